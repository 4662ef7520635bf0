"""Proofs of what a field is, from the rows of several histories, and by nothing else.

A price is proved by the legs of a spread that repeat it at the same times. A spread is proved where
its legs give it at every time, in one unit and with one sign. A differential is proved where its
rates give it. What several readings fit is not proved.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from toolkit.market import Family, unit_factor
from toolkit.wire.agreement import GIVEN, compared
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.history_route import FieldRule, HistoryRoute
from toolkit.wire.moments import iso_ms

Rows = Sequence[Mapping[str, Any]]

FEWEST = 10
"""So many rows at least have to agree."""
_YEAR_2001 = 10**9
_DAY_S = 86_400
_MOST_PLACES = 30
_RATIOS = ("percent", "fraction", "bps")
_UNITS = {
    Family.SPREAD: _RATIOS,
    Family.FUNDING: tuple(
        f"{r}_per_{each}" for r in _RATIOS for each in ("8h", "hour", "day", "year")
    ),
}
_BUY, _SELL = "price of the leg bought", "price of the leg sold"


def time_field(rows: Rows, now: int, *, ties: bool = False) -> tuple[str, str] | None:
    """Find the one field that is a time in all rows, always rising or always falling: place, unit.

    With ``ties`` several rows may share a time.

    >>> time_field([{"t": 1793491260000, "px": 3}, {"t": 1793491200000, "px": 4}], 1793491300)
    ('t', 'ms')
    """
    found = []
    for place, unit in itertools.product(rows[0] if rows else (), ("s", "ms", "us", "ns", "iso")):
        read = [_second(row.get(place), unit) for row in rows]
        times = [at for at in read if at is not None and _YEAR_2001 <= at <= now + _DAY_S]
        pairs = [(a, b) for a, b in itertools.pairwise(times) if not ties or a != b]
        steps = {(a < b) - (a > b) for a, b in pairs}
        found += [(place, unit)] if len(times) == len(rows) and steps in ({1}, {-1}) else []
    return found[0] if len(found) == 1 else None


def _second(value: object, unit: str) -> float | None:
    if unit == "iso":
        try:
            return iso_ms(value) / 1000 if isinstance(value, str) else None
        except msgspec.DecodeError:
            return None
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value * unit_factor(unit, "s") if whole and isinstance(value, int) else None


def numbers_of(rows: Rows, place: str, unit: str) -> pl.DataFrame:
    """Return ts (s) and the numbers of rows by their places, also those that are text.

    Places beyond the first 30 are not looked at.

    >>> numbers_of([{"t": 60_000, "px": "97.5", "why": "x"}], "t", "ms").rows(named=True)
    [{'ts': 60, 'px': 97.5}]
    """
    times = [int(_second(row.get(place), unit) or 0) for row in rows]
    columns = {
        name: [_number(row.get(name)) for row in rows]
        for name in sorted({name for row in rows for name in row} - {place, "ts"})
    }
    known = [name for name, of in columns.items() if any(each is not None for each in of)]
    frame = {"ts": times} | {name: columns[name] for name in known[:_MOST_PLACES]}
    return pl.DataFrame(frame, schema_overrides=dict.fromkeys(known, pl.Float64))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(msgspec.json.decode(value, type=float) if isinstance(value, str) else value)
    except (*UNREADABLE, OverflowError):
        return None


def beside_prices(
    spreads: pl.DataFrame, buys: pl.DataFrame, sells: pl.DataFrame, price: str
) -> pl.DataFrame:
    """Return the rows of a spread with both legs' prices of the same time, which is one row's.

    >>> legs = [pl.DataFrame({"ts": [0, 60], "px": [97.0, each]}) for each in (98.0, 99.0)]
    >>> beside_prices(pl.DataFrame({"ts": [60], "d": [0.1]}), *legs, "px").row(0)
    (60, 0.1, 98.0, 99.0)
    """
    for name, of in ((_BUY, buys), (_SELL, sells)):
        prices = of.select("ts", pl.col(price).alias(name)).unique("ts", keep="none")
        spreads = spreads.unique("ts", keep="none").join(prices, on="ts")
    return spreads.sort("ts")


def _legged(beside: pl.DataFrame, figure: pl.Expr) -> pl.DataFrame:
    return beside.select("ts", spread_pct=figure, buy_price=_BUY, sell_price=_SELL).drop_nulls()


class SpreadProof(NamedTuple):
    """What was proved of a spread: the place of the prices, those of its legs, and its figure.

    ``legs`` is empty where its rows do not repeat the prices, ``figure`` (place, unit, and whether
    it is reversed) where no one reading fits.
    """

    price: str
    legs: tuple[str, ...]
    figure: tuple[str, str, bool] | tuple[()]


def prove_spread(
    spreads: pl.DataFrame, buys: pl.DataFrame, sells: pl.DataFrame, prices: Sequence[str]
) -> SpreadProof | None:
    """Find the places by which a spread and two prices fit each other, None where not one way does.

    ``prices`` are the places that the price may be at.

    >>> buys = pl.DataFrame({"ts": range(12), "px": [97.123456 + n for n in range(12)]})
    >>> sells = buys.with_columns(px=99.654321)
    >>> premium = buys.select("ts", d=1e4 * (1 - 99.654321 / pl.col("px")), b="px")
    >>> prove_spread(premium, buys, sells, ["px"])
    SpreadProof(price='px', legs=(), figure=('d', 'bps', True))
    """
    places = spreads.columns[1:]
    both = [price for price in prices if price in buys.columns and price in sells.columns]
    beside = {price: beside_prices(spreads, buys, sells, price) for price in both}
    legs = [
        (price, buy, sell)
        for price, rows in beside.items()
        for buy, sell in itertools.permutations(places, 2)
        if _repeats(rows, buy, _BUY) and _repeats(rows, sell, _SELL)
    ]
    [(only, *sides)] = legs if len(legs) == 1 else [("",)]
    figures = [
        (price, (place, *fit))
        for price, place in itertools.product([only] if only else both, places)
        if place not in sides
        for fit in _fitting(Family.SPREAD, _legged(beside[price], pl.col(place)))
    ]
    if len(figures) != 1:
        return SpreadProof(only, tuple(sides), ()) if only else None
    return SpreadProof(figures[0][0], tuple(sides), figures[0][1])


def _repeats(rows: pl.DataFrame, place: str, price: str) -> bool:
    both = rows.select(pl.col(place).alias("one"), pl.col(price).alias("other")).drop_nulls()
    varied = both["one"].n_unique() >= FEWEST / 2
    return both.height >= FEWEST and varied and (both["one"] == both["other"]).all()


def prove_differential(
    rows: pl.DataFrame, rates: Mapping[str, str], said: Mapping[str, str]
) -> tuple[tuple[str, str, bool], str] | None:
    """Find the one place, unit and sign by which a figure is the differential of two rates.

    Returns these three, and the unit of the rates. ``rates`` has the places of buy_rate and
    sell_rate, and of both intervals where they are sent. ``said`` has the units that the service
    names, by place. Where it names that of neither the rates nor the figure nothing is proved: all
    of them could be larger alike.

    >>> rows = pl.DataFrame([(n, 1e-4, 1e-4 + n * 1e-5, 8.0, n * 1e-3) for n in range(12)],
    ...                     ["ts", "b", "s", "h", "d"], orient="row")
    >>> places = {"buy_rate": "b", "sell_rate": "s", "buy_interval_hours": "h",
    ...           "sell_interval_hours": "h"}
    >>> prove_differential(rows, places, {"d": "percent_per_8h"})
    (('d', 'percent_per_8h', False), 'fraction_per_interval')
    >>> prove_differential(rows, places, {}) is None
    True
    """
    sides, hours = ("buy_rate", "sell_rate"), ("buy_interval_hours", "sell_interval_hours")
    stated = {said[rates[side]] for side in sides if rates.get(side) in said}
    needed = {*sides} if stated else {*sides, *hours}
    if not needed <= rates.keys() or len(stated) > 1:
        return None
    free = [place for place in rows.columns[1:] if place not in rates.values()]
    found = []
    for place, unit in itertools.product(free, stated or [f"{r}_per_interval" for r in _RATIOS]):
        if not stated and place not in said:
            continue
        fixed = not unit.endswith("_per_interval")
        factor = unit_factor(unit, "fraction_per_hour" if fixed else "fraction_per_interval")
        frame = rows.sort("ts").select(
            "ts",
            *(pl.col(rates[side]).forward_fill().alias(side) * factor for side in sides),
            *((pl.lit(1.0) if fixed else pl.col(rates[each])).alias(each) for each in hours),
            differential_pct_8h=place,
        )
        fits = _fitting(Family.FUNDING, frame.drop_nulls())
        found += [((place, *fit), unit) for fit in fits if said.get(place, fit[0]) == fit[0]]
    return found[0] if len(found) == 1 else None


def _fitting(family: Family, frame: pl.DataFrame) -> list[tuple[str, bool]]:
    """List the units and signs in which a figure as sent is what the legs of all its rows give."""
    as_sent = FieldRule(GIVEN[family], "", _UNITS[family][0], _UNITS[family][0])
    found = _distances(family, frame.drop_nulls(GIVEN[family]), as_sent)
    return [(r.unit, r.reversed) for r, (off, _) in found.items() if not off and r.linear]


def _distances(
    family: Family, frame: pl.DataFrame, rule: FieldRule
) -> dict[FieldRule, tuple[bool, float]]:
    """Return how well each unit, sign and form fits a figure that was read by a rule.

    Whether any row is off by more than rounding explains, and how far rows mostly are. Nothing for
    rows that are too few, or vary too little.
    """
    column = pl.col(GIVEN[family])
    if frame.height < FEWEST or frame[GIVEN[family]].n_unique() < FEWEST / 2:
        return {}
    found = {}
    for reading in _readings(family, rule):
        read = frame.with_columns(reading.ours(rule.theirs(column)))
        found[reading] = _distance(compared(family, read))
    return found


def _readings(family: Family, rule: FieldRule) -> Iterator[FieldRule]:
    """Yield the ways in which a figure may be sent, first those that differ in unit and sign."""
    for inverse in (False, True) if family is Family.SPREAD else (False,):
        for turned, unit in itertools.product((False, True), _UNITS[family]):
            yield replace(rule, unit=unit, reversed=turned, inverse=inverse)
        if family is Family.SPREAD:
            yield replace(rule, unit="ratio", reversed=False, inverse=inverse)


def _words(rule: FieldRule) -> str:
    """Return how a figure is sent, in words."""
    if rule.unit == "ratio":
        return "buy / sell" if rule.inverse else "sell / buy"
    other_leg = f"{unit_factor('fraction', rule.unit):g} (buy / sell - 1)" if rule.inverse else ""
    return (other_leg or rule.unit) + ", of the other sign" * rule.reversed


def _distance(rows: pl.DataFrame) -> tuple[bool, float]:
    return bool((rows["far"] > rows["allowed"]).any()), _median(rows["far"])


def _median(values: pl.Series) -> float:
    return float(np.median(values.to_numpy())) if values.len() else 0.0


class Verdict(NamedTuple):
    """What rows show of a figure that was read: whether its unit and sign are right.

    ``right`` is None where they show neither. ``line`` is of the profile's section of the history,
    "" where none would put it right.
    """

    right: bool | None
    says: str
    line: str = ""


def judged(route: HistoryRoute, beside: pl.DataFrame) -> Verdict:
    """Judge the figure of rows as they were read by what their legs give.

    ``beside`` has rows of `beside_prices`, or of funding with both rates in force, in our units.
    Right is what the legs give in all rows, and in no other unit or sign. It is wrong where another
    reading comes four times as near, or where it is off by more than half of what the legs give.

    >>> from toolkit.wire.profile import BUILT_IN
    >>> legs = [pl.DataFrame({"ts": range(12), "price": [97 + n * by for n in range(12)]})
    ...         for by in (1.0, 1.1)]
    >>> ratios = legs[0].select("ts", spread_pct=legs[1]["price"] / pl.col("price"))
    >>> judged(BUILT_IN.histories[Family.SPREAD], beside_prices(ratios, *legs, "price")).says
    'spread_pct is 1 where the legs give 0; it is sell / buy'
    """
    family, column = route.family, GIVEN[route.family]
    rule = route.rule(column)
    rows = _legged(beside, pl.col(column)) if family is Family.SPREAD else beside
    read = compared(family, rows)
    if rule is None or read.is_empty():
        return Verdict(None, "nothing beside it shows its unit and sign")
    far = _distances(family, rows.join(read.select("ts"), on="ts", how="semi"), rule)
    far |= {rule: _distance(read)} if far else {}
    exact = [each for each, (off, _) in far.items() if not off and (each.linear or each == rule)]
    if rule not in far or (rule in exact and len(exact) > 1):
        return Verdict(None, f"of {read.height} rows with both its unit and sign cannot be told")
    if rule in exact:
        return Verdict(True, f"{rule.wire} is what the legs give in all of {read.height} rows")
    odd = read.filter(pl.col("far") > pl.col("allowed")).row(0, named=True)
    says = f"{rule.wire} is {odd['given']:.6g} where the legs give {odd['own']:.6g}"
    best = min(far, key=lambda reading: far[reading])
    most = _median(read["own"].abs()) / 2
    if far[best][1] <= min(far[rule][1] / 4, most):
        names = ["unit", "reversed"] + ["inverse"] * (best.inverse or rule.inverse)
        values = (msgspec.json.encode(getattr(best, name)).decode() for name in names)
        line = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
        line = f"fields.{column} = {{ {line} }}"
        return Verdict(False, f"{says}; it is {_words(best)}", line)
    if far[rule][1] > most:
        return Verdict(False, f"{says}; no unit and no sign makes it their figure")
    return Verdict(None, f"{says}; no other reading is nearer")
