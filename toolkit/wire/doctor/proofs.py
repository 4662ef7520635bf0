"""Proofs of profile lines: requests by the service's words, fields by rows.

A refusal ("the parameter first is missing, such as KRAKEN:spot") or a document names a parameter
with a value, which gives its template. A field is proved if exactly one reading fits every row: a
price and a spread by each other, a differential by its rates.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import polars as pl

from toolkit.market import Family, unit_factor
from toolkit.wire.agreement import GIVEN, compared
from toolkit.wire.doctor.draft import toml
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.profile.history_route import FieldRule, HistoryRoute
from toolkit.wire.profile.places import parts_said_of
from toolkit.wire.profile.spelling import iso_ms, placeholders

Rows = Sequence[Mapping[str, Any]]
Fields = dict[str, dict[str, Any]]
"""Entries of ``fields`` in a profile document, by column."""

FEWEST = 10
"""The number of rows that have to agree at least."""
RATES, HOURS = ("buy_rate", "sell_rate"), ("buy_interval_hours", "sell_interval_hours")
CLOCKS = ("s", "ms", "us", "ns", "iso")
_YEAR_2001 = 10**9
_DAY_S = 86_400
_MOST_PLACES = 30
_RATIOS = ("percent", "fraction", "bps")
_TIMES = ("8h", "hour", "day", "year")
_UNITS = {
    Family.SPREAD: _RATIOS,
    Family.FUNDING: tuple(f"{ratio}_per_{each}" for ratio in _RATIOS for each in _TIMES),
}
_BUY, _SELL = "price of the leg bought", "price of the leg sold"

_NAME = r"([A-Za-z][\w.-]*\w)"
_NAMED = re.compile(
    rf"[\"'`]{_NAME}[\"'`]|\bparameters? {_NAME}|\b{_NAME}:? (?:is |field )?(?:missing|required)\b"
)
_NO_NAME = frozenset(("is", "are", "the", "has", "must", "missing", "required", "parameter"))
_SYMBOL = re.compile(r"(?<![A-Za-z0-9])[A-Z0-9]{2,}_[A-Z0-9]{2,}(?![A-Za-z0-9_])")
_OF_SYMBOL = frozenset(("symbol", "pair", "instrument", "ticker"))
_SIDES = dict.fromkeys(("buy", "first", "long"), "buy.")
_SIDES |= dict.fromkeys(("sell", "second", "short"), "sell.")


def question_named(
    message: str, asked: Mapping[str, str], legs: int, markets: Collection[str]
) -> dict[str, str] | None:
    """Return the templates with the parameters that a refusal names, None if that is unclear.

    ``asked`` are the refused templates, ``legs`` the number of legs.

    >>> question_named("sell is missing, such as KRAKEN/spot", {"pair": "{symbol}"}, 2, ["spot"])
    {'pair': '{symbol}', 'sell': '{sell.exchange}/{sell.market}'}
    """
    found, example = dict(asked), _example_template(message, markets)
    for groups in _NAMED.findall(message.replace("Field", "field")):
        name = next(filter(None, groups)).rpartition(".")[2]
        if name.lower() in _NO_NAME:
            continue
        template = _template(name, example, legs)
        if template is None or asked.get(name) == template:
            return None
        found[name] = template
    return found if found != asked else None


def _example_template(message: str, markets: Collection[str]) -> str | None:
    words = "|".join(sorted(map(re.escape, markets), key=len, reverse=True))
    leg = re.compile(rf"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9]*([:./@-])(?:{words})(?![A-Za-z0-9])")
    for chunk in message.split():
        text, count = _SYMBOL.subn("{symbol}", chunk.strip("\"'`.,;()"))
        legs = leg.findall(text)
        if len(legs) > 2 or not (count or legs) or set("{}") & set(chunk):
            continue
        for side, between in zip(_sides(len(legs)), legs, strict=False):
            text = leg.sub(f"{{{side}exchange}}{between}{{{side}market}}", text, count=1)
        if not re.search(r"[A-Za-z0-9]", re.sub(r"\{[a-z.]+\}", "", text)):
            return text
    return None


def _sides(legs: int) -> list[str]:
    return ["buy.", "sell."] if legs == 2 else [""]


def _template(name: str, example: str | None, legs: int) -> str | None:
    words = {*re.findall(r"[a-z]+", name.lower())}
    if example is None:
        return "{symbol}" if _OF_SYMBOL & words else None
    if legs == 1 or "{exchange}" not in example:
        return example if legs == 2 or "buy." not in example else None
    sides = {_SIDES[word] for word in words if word in _SIDES}
    side = sides.pop() if len(sides) == 1 else None
    return side and re.sub(r"\{(exchange|market)\}", rf"{{{side}\1}}", example)


def names_all(ask: Mapping[str, str], legs: int) -> bool:
    """Check that templates name the symbol and every leg of a trajectory."""
    wanted = {"symbol", *(f"{s}{part}" for s in _sides(legs) for part in ("exchange", "market"))}
    return wanted <= {place for template in ask.values() for place in placeholders(template)}


def stated_question(
    said: object, path: str, asked: Mapping[str, str], legs: int, markets: Collection[str]
) -> dict[str, str] | None:
    """Return the templates that a document states for a route, None if that is unclear.

    The document is OpenAPI, or has a tool's input schema beside its ``route``. Examples of required
    parameters are read as in a refusal.
    """
    found = dict(asked)
    for name, example in _required(said, path):
        if name not in found:
            such_as = f", such as {example}" if example else ""
            named = question_named(f"parameter {name} is missing{such_as}", found, legs, markets)
            if named is None:
                return None
            found = named
    return found if names_all(found, legs) else None


def _required(said: object, path: str) -> Iterator[tuple[str, str]]:
    for part in parts_said_of(said, (path,)):
        for facts in parts_said_of(part, ("parameters",)):
            for each in facts if isinstance(facts, list) else []:
                if isinstance(each, dict) and each.get("required") and each.get("in") != "header":
                    yield str(each.get("name")), _example(each) or _example(each.get("schema"))
        for schema in parts_said_of(part, ("input_schema",)):
            if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
                for name in schema.get("required") or []:
                    yield str(name), _example(schema["properties"].get(name))


def _example(facts: object) -> str:
    if not isinstance(facts, dict):
        return ""
    many = facts.get("examples")
    found = facts.get("example", many[0] if isinstance(many, list) and many else None)
    return found if isinstance(found, str) else ""


def time_field(rows: Rows, now: int, *, ties: bool = False) -> tuple[str, str] | None:
    """Find the only field that is a time in all rows, always rising or falling: place and unit.

    With ``ties`` rows may share a time.

    >>> time_field([{"t": 1793491260000, "px": 3}, {"t": 1793491200000, "px": 4}], 1793491300)
    ('t', 'ms')
    """
    found = []
    for place, unit in itertools.product(rows[0] if rows else (), CLOCKS):
        read = [_second(row.get(place), unit) for row in rows]
        times = [at for at in read if at is not None and _YEAR_2001 <= at <= now + _DAY_S]
        steps = {(a < b) - (a > b) for a, b in itertools.pairwise(times)} - ({0} if ties else set())
        found += [(place, unit)] if len(times) == len(rows) and steps in ({1}, {-1}) else []
    return found[0] if len(found) == 1 else None


def _second(value: object, unit: str) -> float | None:
    if unit == "iso":
        try:
            return iso_ms(value) / 1000 if isinstance(value, str) else None
        except msgspec.DecodeError:
            return None
    return value * unit_factor(unit, "s") if type(value) is int else None


def numbers_of(rows: Rows, place: str, unit: str) -> pl.DataFrame:
    """Return ts (s) and the numbers of rows by place (the first 30), numbers as text included."""
    names = sorted({name for row in rows for name in row} - {place, "ts"})
    columns = {name: [_number(row.get(name)) for row in rows] for name in names}
    known = [name for name in names if any(each is not None for each in columns[name])]
    times = [int(_second(row.get(place), unit) or 0) for row in rows]
    frame = {"ts": times, **{name: columns[name] for name in known[:_MOST_PLACES]}}
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
    """Return the rows of a spread with both legs' prices, at times that each has once.

    >>> legs = [pl.DataFrame({"ts": [0, 60], "px": [97.0, each]}) for each in (98.0, 99.0)]
    >>> beside_prices(pl.DataFrame({"ts": [60], "d": [0.1]}), *legs, "px").row(0)
    (60, 0.1, 98.0, 99.0)
    """
    for name, of in ((_BUY, buys), (_SELL, sells)):
        prices = of.select("ts", pl.col(price).alias(name)).unique("ts", keep="none")
        spreads = spreads.unique("ts", keep="none").join(prices, on="ts")
    return spreads.sort("ts")


def _legged(beside: pl.DataFrame, figure: str) -> pl.DataFrame:
    return beside.select("ts", spread_pct=figure, buy_price=_BUY, sell_price=_SELL).drop_nulls()


def prove_spread(
    spreads: pl.DataFrame, buys: pl.DataFrame, sells: pl.DataFrame, prices: Sequence[str]
) -> Fields:
    """Return the fields by which a spread and two prices fit each other, if there is one way.

    ``prices`` are the possible places of the price. ``buy_price`` and ``sell_price`` are included
    if the spread's rows repeat the prices, ``spread_pct`` if a single reading fits.

    >>> buys = pl.DataFrame({"ts": range(12), "px": [97.123456 + n for n in range(12)]})
    >>> sells = buys.with_columns(px=99.654321)
    >>> premium = buys.select("ts", d=1e4 * (1 - 99.654321 / pl.col("px")), b="px")
    >>> prove_spread(premium, buys, sells, ["px"])["spread_pct"]
    {'wire': 'd', 'unit': 'bps', 'reversed': True}
    """
    both = [price for price in prices if price in buys.columns and price in sells.columns]
    beside = {price: beside_prices(spreads, buys, sells, price) for price in both}
    places, proved = spreads.columns[1:], Fields()
    legs = [
        {"price": price, "buy_price": buy, "sell_price": sell}
        for price, rows in beside.items()
        for buy, sell in itertools.permutations(places, 2)
        if _repeats(rows, buy, _BUY) and _repeats(rows, sell, _SELL)
    ]
    if len(legs) == 1:
        proved = {column: {"wire": place, "unit": "quote"} for column, place in legs[0].items()}
        beside = {legs[0]["price"]: beside[legs[0]["price"]]}
        places = [place for place in places if place not in [*legs[0].values()][1:]]
    figures = [
        {"price": {"wire": price, "unit": "quote"}, "spread_pct": {"wire": place} | way}
        for price, rows in beside.items()
        for place in places
        for way in _fitting(Family.SPREAD, _legged(rows, place))
    ]
    return proved | figures[0] if len(figures) == 1 else proved


def _repeats(rows: pl.DataFrame, place: str, price: str) -> bool:
    both = rows.select(one=place, other=price).drop_nulls()
    varied = both["one"].n_unique() >= FEWEST / 2
    return both.height >= FEWEST and varied and (both["one"] == both["other"]).all()


def prove_differential(
    rows: pl.DataFrame, rates: Mapping[str, str], said: Mapping[str, str]
) -> Fields:
    """Return the single field that is the differential of two rates, {} without one.

    ``rates`` has the places of `RATES`, and of `HOURS` if sent, which proves rates per interval
    too. ``said`` has the units that the service states, by place. Without one of the rates or the
    figure nothing is proved: all of them could be larger alike.

    >>> rows = pl.DataFrame([(n, 1e-4, 1e-4 + n * 1e-5, 8.0, n * 1e-3) for n in range(12)],
    ...                     ["ts", "b", "s", "h", "d"], orient="row")
    >>> places = dict(zip((*RATES, *HOURS), "bshh"))
    >>> found = prove_differential(rows, places, {"d": "percent_per_8h"})
    >>> found["differential_pct_8h"], found["buy_rate"]["unit"]
    ({'wire': 'd', 'unit': 'percent_per_8h'}, 'fraction_per_interval')
    """
    stated = {said[rates[side]] for side in RATES if rates.get(side) in said}
    if not {*RATES, *(() if stated else HOURS)} <= rates.keys() or len(stated) > 1:
        return {}
    figures = [p for p in rows.columns[1:] if p not in rates.values() and (stated or p in said)]
    found: list[Fields] = []
    for place, unit in itertools.product(figures, stated or [f"{r}_per_interval" for r in _RATIOS]):
        fixed = not unit.endswith("_per_interval")
        factor = unit_factor(unit, "fraction_per_hour" if fixed else "fraction_per_interval")
        frame = rows.sort("ts").select(
            "ts",
            *(pl.col(rates[side]).forward_fill().alias(side) * factor for side in RATES),
            *((pl.lit(1.0) if fixed else pl.col(rates[each])).alias(each) for each in HOURS),
            differential_pct_8h=place,
        )
        units = dict.fromkeys(RATES, unit) | dict.fromkeys(HOURS, "hours")
        legs = {c: {"wire": at, "unit": units[c]} for c, at in rates.items() if not fixed}
        found += [
            {"differential_pct_8h": {"wire": place} | way} | legs
            for way in _fitting(Family.FUNDING, frame.drop_nulls())
            if said.get(place, way["unit"]) == way["unit"]
        ]
    return found[0] if len(found) == 1 else {}


def _fitting(family: Family, frame: pl.DataFrame) -> list[dict[str, Any]]:
    as_sent = FieldRule(GIVEN[family], "", _UNITS[family][0], _UNITS[family][0])
    fits = _fits(family, frame.drop_nulls(GIVEN[family]), as_sent)
    rules = [rule for rule, (exact, _) in fits.items() if exact and rule.linear]
    return [{"unit": r.unit} | ({"reversed": True} if r.reversed else {}) for r in rules]


def _fits(
    family: Family, frame: pl.DataFrame, rule: FieldRule
) -> dict[FieldRule, tuple[bool, float]]:
    """Return whether rounding explains every difference, and their median, per unit, sign and form.

    It is {} for too few or too even rows.
    """
    figure, found = pl.col(GIVEN[family]), {}
    if frame.height < FEWEST or frame[GIVEN[family]].n_unique() < FEWEST / 2:
        return {}
    spread = family is Family.SPREAD
    forms = (False, True) if spread else (False,)
    ways = [*itertools.product(forms, (False, True), _UNITS[family])]
    ways += [(inverse, False, "ratio") for inverse in forms if spread]
    readings = [replace(rule, unit=u, reversed=turned, inverse=inv) for inv, turned, u in ways]
    for reading in (*readings, rule):
        rows = compared(family, frame.with_columns(reading.ours(rule.theirs(figure))))
        exact = not (rows["far"] > rows["allowed"]).any()
        found[reading] = exact, _median(rows["far"])
    return found


def _median(values: pl.Series) -> float:
    return values.cast(pl.Float64).median() or 0.0  # type: ignore[return-value]  # it is a float


class Verdict(NamedTuple):
    """Whether a figure's unit and sign are right, None if the rows do not show it.

    ``line`` is the profile line that corrects it, "" without one.
    """

    right: bool | None
    says: str
    line: str = ""


def judged(route: HistoryRoute, beside: pl.DataFrame) -> Verdict:
    """Judge the figure of rows by what their legs give.

    ``beside`` has rows of `beside_prices`, or of funding with both rates, in our units. The figure
    is right if all rows have what the legs give, in no other unit or sign; wrong if another reading
    comes four times as near, or it is off by over half of theirs.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> legs = [pl.DataFrame({"ts": range(12), "price": [97 + n * by for n in range(12)]})
    ...         for by in (1.0, 1.1)]
    >>> ratios = legs[0].select("ts", spread_pct=legs[1]["price"] / pl.col("price"))
    >>> judged(BUILT_IN.histories[Family.SPREAD], beside_prices(ratios, *legs, "price")).says
    'spread_pct is 1 where the legs give 0; it is sell / buy'
    """
    family, column = route.family, GIVEN[route.family]
    rule = route.rule(column)
    rows = _legged(beside, column) if family is Family.SPREAD else beside
    read = compared(family, rows)
    if rule is None or read.is_empty():
        return Verdict(None, "nothing beside it shows its unit and sign")
    fits = _fits(family, rows.join(read.select("ts"), on="ts", how="semi"), rule)
    exact = [each for each, (fit, _) in fits.items() if fit and (each.linear or each == rule)]
    if not fits or (rule in exact and len(exact) > 1):
        return Verdict(None, f"of {read.height} rows with both its unit and sign cannot be told")
    if rule in exact:
        return Verdict(True, f"{rule.wire} is what the legs give in all of {read.height} rows")
    odd = read.filter(pl.col("far") > pl.col("allowed")).row(0, named=True)
    says = f"{rule.wire} is {odd['given']:.6g} where the legs give {odd['own']:.6g}"
    off = {each: median for each, (_, median) in fits.items()}
    best, most = min(off, key=lambda each: off[each]), _median(read["own"].abs()) / 2
    if off[best] <= min(off[rule] / 4, most):
        names = ["unit", "reversed"] + ["inverse"] * (best.inverse or rule.inverse)
        line = f"fields.{column} = {toml({name: getattr(best, name) for name in names})}"
        return Verdict(False, f"{says}; it is {_words(best)}", line)
    if off[rule] > most:
        return Verdict(False, f"{says}; no unit and no sign makes it their figure")
    return Verdict(None, f"{says}; no other reading is nearer")


def _words(rule: FieldRule) -> str:
    if rule.unit == "ratio":
        return "buy / sell" if rule.inverse else "sell / buy"
    other_leg = f"{unit_factor('fraction', rule.unit):g} (buy / sell - 1)" if rule.inverse else ""
    return (other_leg or rule.unit) + ", of the other sign" * rule.reversed
