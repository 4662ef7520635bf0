"""Proofs of what a field is, from the rows of several histories, and by nothing else.

A price is proved by the legs of a spread that repeat it at the same times. A spread is proved where
its legs give it at every time, in one unit and with one sign. A differential is proved where its
rates give it. What several readings fit is not proved.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import polars as pl

from toolkit.market import Family, unit_factor
from toolkit.wire.agreement import GIVEN, compared
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.history_route import FieldRule, HistoryRoute
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
_UNITS = {
    Family.SPREAD: _RATIOS,
    Family.FUNDING: tuple(f"{ratio}_per_{period}" for ratio in _RATIOS for period in _PERIODS),
}
_OF_ROWS = {
    Family.SPREAD: ("buy_price", "sell_price"),
    Family.FUNDING: ("buy_rate", "sell_rate", "buy_interval_hours", "sell_interval_hours"),
}


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


def places_of(series: Series) -> list[str]:
    """Return the places of numbers, of which those beyond the first 30 are not looked at.

    >>> places_of({60: {"px": 97.5}, 120: {"at": 1.0}})
    ['at', 'px']
    """
    return sorted({place for numbers in series.values() for place in numbers})[:_MOST_PLACES]


class Proved(NamedTuple):
    """A figure that was proved: its place, unit and sign.

    ``beside`` is the place of the prices that it follows from, or the unit of its rates.
    """

    place: str
    unit: str
    reversed: bool
    beside: str


def leg_prices(spreads: Series, buys: Series, sells: Series) -> tuple[str, str, str] | None:
    """Find the places of the price and of both legs' prices, where the legs repeat the prices.

    >>> prices = {60 * n: {"px": 97.0 + n, "vol": 1.0} for n in range(12)}
    >>> dearer = {ts: {"px": row["px"] + 3, "vol": 1.0} for ts, row in prices.items()}
    >>> legs = {ts: {"b": row["px"], "s": row["px"] + 3} for ts, row in prices.items()}
    >>> leg_prices(legs, prices, dearer)
    ('px', 'b', 's')
    """
    found = []
    for price in places_of(buys):
        sides = [
            [place for place in places_of(spreads) if _repeats(spreads, place, side, price)]
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


def spread_figure(
    route: HistoryRoute, spreads: Series, buys: Series, sells: Series, prices: Sequence[str]
) -> Proved | None:
    """Find the one place, unit and sign by which a figure is the spread of two prices.

    ``prices`` are the places that the price may be at.

    >>> from toolkit.wire.profile import BUILT_IN
    >>> buys = {60 * n: {"px": 97.123456 + n} for n in range(12)}
    >>> sells = {ts: {"px": 99.654321} for ts in buys}
    >>> premium = {ts: {"d": 1e4 * (1 - 99.654321 / row["px"])} for ts, row in buys.items()}
    >>> spread_figure(BUILT_IN.histories[Family.SPREAD], premium, buys, sells, ["px"])
    Proved(place='d', unit='bps', reversed=True, beside='px')
    """
    names = ("ts", *_OF_ROWS[Family.SPREAD], GIVEN[Family.SPREAD])
    times = sorted(spreads.keys() & buys.keys() & sells.keys())
    found = []
    for price, place in itertools.product(prices, places_of(spreads)):
        values = [(buys[t].get(price), sells[t].get(price), spreads[t].get(place)) for t in times]
        rows = [(float(t), *of) for t, of in zip(times, values, strict=True) if None not in of]
        frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Float64()), orient="row")
        found += [Proved(place, *fit, price) for fit in _fitting(route, frame, _RATIOS)]
    return found[0] if len(found) == 1 else None


def _fitting(
    route: HistoryRoute, frame: pl.DataFrame, units: Sequence[str]
) -> Iterator[tuple[str, bool]]:
    """Yield the units and signs in which a figure as sent is what the legs of all its rows give."""
    column = GIVEN[route.family]
    known = frame.drop_nulls(column)
    if known.height < FEWEST or known[column].n_unique() < FEWEST / 2:
        return
    wanted = next(rule.wanted for rule in route.fields if rule.column == column)
    for unit, turned in itertools.product(units, (False, True)):
        factor = unit_factor(unit, wanted) * (-1 if turned else 1)
        rows = compared(route.family, known.with_columns(pl.col(column) * factor))
        if (rows["far"] <= rows["allowed"]).all():
            yield unit, turned


def differential_figure(
    route: HistoryRoute, rows: Series, rates: Mapping[str, str], said: Mapping[str, str]
) -> Proved | None:
    """Find the one place, unit and sign by which a figure is the differential of two rates.

    ``rates`` has the places of buy_rate and sell_rate, and of both intervals where they are sent.
    ``said`` has the units that the service names, by place. Where it names that of neither the
    rates nor the figure nothing is proved: all of them could be larger alike.

    >>> from toolkit.wire.profile import BUILT_IN
    >>> rows = {n: {"b": 1e-4, "s": 1e-4 + n * 1e-5, "h": 8.0, "d": n * 1e-3} for n in range(12)}
    >>> places = {"buy_rate": "b", "sell_rate": "s", "buy_interval_hours": "h",
    ...           "sell_interval_hours": "h"}
    >>> route = BUILT_IN.histories[Family.FUNDING]
    >>> differential_figure(route, rows, places, {"d": "percent_per_8h"})
    Proved(place='d', unit='percent_per_8h', reversed=False, beside='fraction_per_interval')
    >>> differential_figure(route, rows, places, {}) is None
    True
    """
    sides = ("buy_rate", "sell_rate")
    if not {*sides} <= rates.keys():
        return None
    rate_said = {said[rates[side]] for side in sides if rates[side] in said}
    if len(rate_said) > 1 or not (rate_said or {*_OF_ROWS[Family.FUNDING]} <= rates.keys()):
        return None
    rate_units = [*rate_said] or [f"{ratio}_per_interval" for ratio in _RATIOS]
    free = [place for place in places_of(rows) if place not in rates.values()]
    found = []
    for place, rate_unit in itertools.product(free, rate_units):
        if rate_said or place in said:
            units = [said[place]] if place in said else _UNITS[Family.FUNDING]
            frame = _rated(rows, rates, place, rate_unit)
            found += [Proved(place, *fit, rate_unit) for fit in _fitting(route, frame, units)]
    return found[0] if len(found) == 1 else None


def _rated(rows: Series, rates: Mapping[str, str], place: str, rate_unit: str) -> pl.DataFrame:
    """Return rows with the rates in force as fractions of their hours: of one where none are sent.

    A leg that does not settle in a row has the rate of its last settlement before.
    """
    fixed = not rate_unit.endswith("_per_interval")
    factor = unit_factor(rate_unit, "fraction_per_hour" if fixed else "fraction_per_interval")
    frame = pl.DataFrame(
        {
            "ts": [float(ts) for ts in sorted(rows)],
            **{
                column: [rows[ts].get(at) for ts in sorted(rows)]
                for column, at in {**rates, GIVEN[Family.FUNDING]: place}.items()
            },
        },
        schema_overrides=dict.fromkeys([*rates, GIVEN[Family.FUNDING]], pl.Float64()),
    ).with_columns(pl.col("buy_rate", "sell_rate").forward_fill() * factor)
    if fixed:
        frame = frame.with_columns(buy_interval_hours=1.0, sell_interval_hours=1.0)
    return frame.drop_nulls()


class Verdict(NamedTuple):
    """What rows show of a figure that was read: whether its unit and sign are right.

    ``right`` is None where they show neither. ``line`` is of the profile's section of the history,
    "" where none would put it right.
    """

    right: bool | None
    says: str
    line: str = ""


def judged(route: HistoryRoute, rows: pl.DataFrame) -> Verdict:
    """Judge the figure of rows as they were read by what their legs give.

    ``rows`` have ts, the spread with the prices of both legs or the differential with both rates in
    force, each in our unit. Right is what the legs give in all rows, and in this reading alone. It
    is wrong where another reading comes four times as near, or where it explains less than half of
    what the legs give.

    >>> from toolkit.wire.profile import BUILT_IN
    >>> ratios = [1 + n / 1000 for n in range(12)]
    >>> rows = pl.DataFrame({"ts": range(12), "buy_price": 97.0, "spread_pct": ratios,
    ...                      "sell_price": [97 * ratio for ratio in ratios]})
    >>> judged(BUILT_IN.histories[Family.SPREAD], rows).says
    'spread_pct is 1 where the legs give 0; it is sell / buy'
    """
    column = GIVEN[route.family]
    rule, read = route.rule(column), compared(route.family, rows)
    if rule is None or read.height < FEWEST or read["given"].n_unique() < FEWEST / 2:
        few = f"of {read.height} rows with both its unit and its sign cannot be told"
        return Verdict(None, few if read.height else "nothing beside it shows its unit and sign")
    mine = rule.unit, rule.reversed
    far = {mine: _distance(read)}
    for reading, value in _readings(route, rule).items():
        if reading != mine:
            far[reading] = _distance(compared(route.family, rows.with_columns(value.alias(column))))
    exact = [(unit, turned) for (unit, turned), (off, _) in far.items() if not off]
    if mine in exact:
        exact = [reading for reading in exact if reading[0] not in _FORMS]
        alike = f"{read.height} rows that several units or signs fit alike"
        right = f"{rule.wire} is what the legs give in all of {read.height} rows"
        return Verdict(True, right) if len(exact) == 1 else Verdict(None, alike)
    odd = read.filter(pl.col("far") > pl.col("allowed")).row(0, named=True)
    says = f"{rule.wire} is {odd['given']:.6g} where the legs give {odd['own']:.6g}"
    unit, turned = best = min(far, key=lambda reading: far[reading])
    if far[best][1] * 4 <= far[mine][1]:
        line = f'fields.{column} = {{ unit = "{unit}", reversed = {str(turned).lower()} }}'
        says += f"; it is {unit}{', of the other sign' * turned}"
        return Verdict(False, says, "" if unit in _FORMS else line)
    nothing = far[mine][1] * 2 > (read["own"].abs().median() or 0.0)
    why = "no unit and no sign makes it their figure" if nothing else "no other reading is nearer"
    return Verdict(False if nothing else None, f"{says}; {why}")


def _distance(rows: pl.DataFrame) -> tuple[bool, float]:
    """Return whether any row is off by more than rounding, and by how much rows mostly are."""
    off = bool((rows["far"] > rows["allowed"]).any())
    return off, float(rows["far"].median() or 0.0)  # type: ignore[arg-type]


def _of_other_base(size: float) -> Callable[[pl.Expr], pl.Expr]:
    return lambda x: 1 / (1 + x / size) - 1


_FORMS: Mapping[str, Callable[[pl.Expr], pl.Expr]] = {
    "sell / buy": lambda x: x - 1,
    "buy / sell": lambda x: 1 / x - 1,
    **{f"{size:g} (buy / sell - 1)": _of_other_base(size) for size in (1.0, 100.0, 1e4)},
}
"""Figures of two prices that are no multiple of a spread, each turned into it as a fraction."""


def _readings(route: HistoryRoute, rule: FieldRule) -> dict[tuple[str, bool], pl.Expr]:
    """Return our figure by each unit and sign that the service may have sent it in."""
    found = {}
    for turned in (False, True):
        sent = pl.col(rule.column) / (-rule.factor if turned else rule.factor)
        for unit in _UNITS[route.family]:
            found[unit, turned] = sent * unit_factor(unit, rule.wanted)
        if route.family is Family.SPREAD:
            found |= {(form, turned): 100 * spread(sent) for form, spread in _FORMS.items()}
    return found
