"""Proofs of what a field is, from the rows of several histories, and by nothing else.

A price is proved by the legs of a spread that repeat it at the same times. A spread is proved where
its legs give it at every time, in one unit and with one sign. A differential is proved where its
rates give it. What several readings fit is not proved.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from toolkit.market import unit_factor
from toolkit.wire.agreement import disagreements
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.history_route import HistoryRoute
from toolkit.wire.moments import iso_ms

Rows = Sequence[Mapping[str, Any]]
Series = Mapping[int, Mapping[str, float]]
"""The numbers of rows by their time (s) and place."""

FEWEST = 10
"""So many rows at least have to agree."""
_YEAR_2001 = 10**9
_DAY_S = 86_400
_MOST_PLACES = 30
_RATIOS = ("percent", "fraction", "bps")
_PERIODS = ("8h", "hour", "day", "year")


def time_field(rows: Rows, now: int, *, ties: bool = False) -> tuple[str, str] | None:
    """Find the one field that is a time in all rows, always rising or always falling: place, unit.

    With ``ties`` several rows may share a time.

    >>> time_field([{"t": 1793491260000, "px": 3}, {"t": 1793491200000, "px": 4}], 1793491300)
    ('t', 'ms')
    """
    places = rows[0] if rows else ()
    units = {p: _time_unit([row.get(p) for row in rows], now, ties=ties) for p in places}
    found = [(place, unit) for place, unit in units.items() if unit]
    return found[0] if len(found) == 1 else None


def _time_unit(values: Sequence[object], now: int, *, ties: bool) -> str | None:
    for unit in ("s", "ms", "us", "ns", "iso"):
        seconds = [_second(value, unit) for value in values]
        if all(at is not None and _YEAR_2001 <= at <= now + _DAY_S for at in seconds):
            pairs = list(itertools.pairwise(at for at in seconds if at is not None))
            pairs = [(a, b) for a, b in pairs if not ties or a != b]
            rises, falls = all(a < b for a, b in pairs), all(a > b for a, b in pairs)
            return unit if pairs and (rises or falls) else None
    return None


def _second(value: object, unit: str) -> float | None:
    if unit == "iso":
        try:
            return iso_ms(value) / 1000 if isinstance(value, str) else None
        except msgspec.DecodeError:
            return None
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value * unit_factor(unit, "s") if whole and isinstance(value, int) else None


def by_time(rows: Rows, place: str, unit: str) -> dict[int, dict[str, float]]:
    """Return the numbers of rows, also those that are text, by their times in seconds.

    >>> by_time([{"t": 60_000, "px": "97.5", "why": "x"}], "t", "ms")
    {60: {'px': 97.5}}
    """
    return {
        int(_second(row[place], unit) or 0): {
            name: number
            for name, value in row.items()
            if name != place and (number := _number(value)) is not None
        }
        for row in rows
    }


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(msgspec.json.decode(value, type=float) if isinstance(value, str) else value)
    except (*UNREADABLE, OverflowError):
        return None


def _places(series: Series) -> list[str]:
    """Return the places of numbers, of which those beyond the first 30 are not looked at."""
    return sorted({place for numbers in series.values() for place in numbers})[:_MOST_PLACES]


def leg_prices(spreads: Series, buys: Series, sells: Series) -> tuple[str, str, str] | None:
    """Find the places of the price and of both legs' prices, where the legs repeat the prices.

    >>> prices = {60 * n: {"px": 97.0 + n, "vol": 1.0} for n in range(12)}
    >>> dearer = {ts: {"px": row["px"] + 3, "vol": 1.0} for ts, row in prices.items()}
    >>> legs = {ts: {"b": row["px"], "s": row["px"] + 3} for ts, row in prices.items()}
    >>> leg_prices(legs, prices, dearer)
    ('px', 'b', 's')
    """
    found = []
    for price in _places(buys):
        sides = [
            [place for place in _places(spreads) if _repeats(spreads, place, side, price)]
            for side in (buys, sells)
        ]
        found += [(price, buy, sell) for buy, sell in itertools.product(*sides) if buy != sell]
    return found[0] if len(found) == 1 else None


def _repeats(spreads: Series, place: str, prices: Series, price: str) -> bool:
    pairs = [
        (spreads[ts][place], prices[ts][price])
        for ts in spreads.keys() & prices.keys()
        if place in spreads[ts] and price in prices[ts]
    ]
    varied = len({each for each, _ in pairs}) >= FEWEST / 2
    return len(pairs) >= FEWEST and varied and all(one == other for one, other in pairs)


@dataclass(frozen=True, slots=True)
class ProvedValue:
    """A spread or a differential that was proved: its place, unit and sign, and of how many rows.

    ``price`` is the place of the prices that it follows from, ``rate_unit`` the unit of the rates.
    """

    place: str
    unit: str
    reversed: bool
    rows: int
    price: str = ""
    rate_unit: str = ""


def spread_figure(
    route: HistoryRoute, spreads: Series, buys: Series, sells: Series, prices: Sequence[str]
) -> ProvedValue | None:
    """Find the one place, unit and sign by which a figure is the spread of two prices.

    ``prices`` are the places that the price may be at.

    >>> from toolkit.market import Family
    >>> from toolkit.wire.profile import BUILT_IN
    >>> buys = {60 * n: {"px": 97.123456 + n} for n in range(12)}
    >>> sells = {ts: {"px": 99.654321} for ts in buys}
    >>> premium = {ts: {"d": 1e4 * (1 - 99.654321 / row["px"])} for ts, row in buys.items()}
    >>> route = BUILT_IN.histories[Family.SPREAD]
    >>> figure = spread_figure(route, premium, buys, sells, ["px"])
    >>> figure.place, figure.unit, figure.reversed, figure.rows
    ('d', 'bps', True, 12)
    """
    found = []
    for price, place in itertools.product(prices, _places(spreads)):
        rows = [
            (ts, buys[ts][price], sells[ts][price], spreads[ts][place])
            for ts in sorted(spreads.keys() & buys.keys() & sells.keys())
            if place in spreads[ts] and price in buys[ts] and price in sells[ts]
        ]
        columns = ["ts", "buy_price", "sell_price", "spread_pct"]
        frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.Float64()), orient="row")
        for unit, turned in _agreeing(route, frame, "spread_pct", _RATIOS):
            found.append(ProvedValue(place, unit, turned, frame.height, price))
    return found[0] if len(found) == 1 else None


def _agreeing(
    route: HistoryRoute, frame: pl.DataFrame, column: str, units: Sequence[str]
) -> Iterator[tuple[str, bool]]:
    """Yield the units and signs in which a column agrees with the legs of its rows."""
    known = frame.drop_nulls(column)
    if known.height < FEWEST or known[column].n_unique() < FEWEST / 2:
        return
    wanted = next(rule.wanted for rule in route.fields if rule.column == column)
    for unit, turned in itertools.product(units, (False, True)):
        factor = unit_factor(unit, wanted) * (-1 if turned else 1)
        if not disagreements(route, known.with_columns(pl.col(column) * factor)):
            yield unit, turned


def differential_figure(
    route: HistoryRoute,
    rows: Series,
    rates: Mapping[str, str],
    said: Mapping[str, str],
) -> ProvedValue | None:
    """Find the one place, unit and sign by which a figure is the differential of two rates.

    ``rates`` has the places of buy_rate and sell_rate, and of both intervals where they are sent.
    ``said`` has the units that the service names, by place. Where it names that of neither the
    rates nor the figure nothing is proved: all of them could be larger alike.

    >>> from toolkit.market import Family
    >>> from toolkit.wire.profile import BUILT_IN
    >>> rows = {n: {"b": 1e-4, "s": 1e-4 + n * 1e-5, "h": 8.0, "d": n * 1e-3} for n in range(12)}
    >>> places = {"buy_rate": "b", "sell_rate": "s", "buy_interval_hours": "h",
    ...           "sell_interval_hours": "h"}
    >>> route = BUILT_IN.histories[Family.FUNDING]
    >>> figure = differential_figure(route, rows, places, {"d": "percent_per_8h"})
    >>> figure.place, figure.reversed, figure.rate_unit
    ('d', False, 'fraction_per_interval')
    >>> differential_figure(route, rows, places, {}) is None
    True
    """
    sides = ("buy_rate", "sell_rate")
    if not {*sides} <= rates.keys():
        return None
    hours = {"buy_interval_hours", "sell_interval_hours"} <= rates.keys()
    rate_said = {said[rates[side]] for side in sides if rates[side] in said}
    if len(rate_said) > 1 or not (rate_said or hours):
        return None
    rate_units = [*rate_said] or [f"{ratio}_per_interval" for ratio in _RATIOS]
    figure_units = [f"{ratio}_per_{period}" for ratio in _RATIOS for period in _PERIODS]
    found = []
    taken = {*rates.values()}
    for place, rate_unit in itertools.product(_places(rows), rate_units):
        if place in taken or not (rate_said or place in said):
            continue
        frame = _rated(rows, rates, place, rate_unit)
        units = [said[place]] if place in said else figure_units
        for unit, turned in _agreeing(route, frame, "differential_pct_8h", units):
            found.append(ProvedValue(place, unit, turned, frame.height, rate_unit=rate_unit))
    return found[0] if len(found) == 1 else None


def _rated(rows: Series, rates: Mapping[str, str], place: str, rate_unit: str) -> pl.DataFrame:
    """Return rows with the rates in force as fractions of their hours: of one where none are sent.

    A leg that does not settle in a row has the rate of its last settlement before.
    """
    fixed = not rate_unit.endswith("_per_interval")
    wanted = "fraction_per_hour" if fixed else "fraction_per_interval"
    factor = unit_factor(rate_unit, wanted)
    ordered = [rows[ts] for ts in sorted(rows)]
    columns: dict[str, list[float | None]] = {"ts": [float(ts) for ts in sorted(rows)]}
    for side in ("buy", "sell"):
        of_side = [numbers.get(rates[f"{side}_rate"]) for numbers in ordered]
        columns[f"{side}_rate"] = [None if rate is None else rate * factor for rate in of_side]
        at = rates.get(f"{side}_interval_hours", "")
        columns[f"{side}_interval_hours"] = [
            1.0 if fixed else numbers.get(at) for numbers in ordered
        ]
    columns["differential_pct_8h"] = [numbers.get(place) for numbers in ordered]
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64()))
    return frame.with_columns(pl.col("buy_rate", "sell_rate").forward_fill()).drop_nulls()
