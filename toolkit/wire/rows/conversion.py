"""Values of the wire to values of columns: types, units, signs and times."""

from __future__ import annotations

import functools
import math
import re
from decimal import Context, Decimal
from typing import Annotated, Any

import msgspec
import polars as pl

from toolkit.market import UNIT_FACTORS
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.findings import Finding
from toolkit.wire.profile.history_route import FieldRule, HistoryRoute
from toolkit.wire.profile.spelling import iso_ms

_DECIMALS = Context(prec=40)
_EXACT = 2**53  # whole numbers up to here are exact as floats
_PRINTED = re.compile(r"([+-]?)0*(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?([eE][+-]?\d+)?( ?%)?")
_SPAN = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


def name_of(value: object) -> object:
    """Return a whole number as text, as names and ids are kept, else the value.

    >>> name_of(70312), name_of(70312.0), name_of("x1"), name_of(True)
    ('70312', '70312', 'x1', True)
    """
    if type(value) is int or (type(value) is float and value % 1 == 0 and abs(value) <= _EXACT):
        return str(int(value))
    return value


def plain_number(text: str, unit: str) -> str:
    """Return the JSON number of a printed one: with a sign, commas of thousands, a %.

    Raises `msgspec.DecodeError` for other text, and for a % unless the unit is a percent.

    >>> plain_number("+1,234.50", "quote"), plain_number("−0.125%", "percent")
    ('1234.50', '-0.125')
    """
    found = _PRINTED.fullmatch(text.strip().replace("\u2212", "-"))
    if found is None or (found[5] and not unit.startswith("percent")):
        raise msgspec.DecodeError(f"{text!r:.40} is not a number in {unit}")
    sign, whole, *rest = (part or "" for part in found.groups()[:4])
    return f"{sign.replace('+', '')}{whole.replace(',', '')}{''.join(rest)}"


def _span_hours(text: str) -> float:
    """Read an ISO 8601 duration of weeks to seconds as hours.

    >>> _span_hours("PT8H"), _span_hours("P1DT30M")
    (8.0, 24.5)
    """
    found = _SPAN.fullmatch(text)
    if found is None or not any(found.groups()):
        raise msgspec.DecodeError(f"{text!r:.40} is not a duration in ISO 8601, such as PT8H")
    weeks, days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return 168 * weeks + 24 * days + hours + minutes / 60 + seconds / 3600


def converted_text(text: str, unit: str, wanted: str) -> float:
    """Read text of a JSON number as the nearest float in the unit ``wanted``.

    Raises `msgspec.DecodeError` for other text.

    >>> converted_text("1.1", "bps", "percent"), 1.1 * 0.01
    (0.011, 0.011000000000000001)
    """
    number = msgspec.json.decode(text, type=float)
    if unit == wanted or not math.isfinite(number):
        return number
    return float(_DECIMALS.multiply(Decimal(text), _ratio(unit, wanted)))


@functools.lru_cache(maxsize=64)
def _ratio(unit: str, wanted: str) -> Decimal:
    size = UNIT_FACTORS[unit][1] / UNIT_FACTORS[wanted][1]
    return _DECIMALS.divide(Decimal(size.numerator), Decimal(size.denominator))


Time = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


def kind_of(rule: FieldRule) -> Any:
    """Return the type that a field's values are decoded as."""
    if rule.unit == "iso":
        return str
    number = Time if rule.column == "ts" else float | None
    return number | str if rule.text else number


def number_of(rule: FieldRule, value: float | str | None) -> int | float | None:
    """Return a number unchanged, the number in a text, or ISO 8601 as milliseconds.

    Text in another unit is converted in decimals: ``"1.1"`` bps are 0.011 percent, not the float
    beside it. Raises `msgspec.DecodeError` for other text.

    >>> number_of(FieldRule("spread_pct", "s", "bps", "percent", text=True), "1.1"), 1.1 * 0.01
    (0.011, 0.011000000000000001)
    """
    if not isinstance(value, str):
        return value * rule.factor + 0.0 if value is not None and _in_decimals(rule) else value
    if rule.unit == "iso":
        return _span_hours(value) if rule.wanted == "hours" else iso_ms(value)
    value = plain_number(value, rule.unit) if rule.printed else value
    if rule.column == "ts":
        return int(msgspec.json.decode(value, type=Time))
    if not _in_decimals(rule):
        return float(msgspec.json.decode(value, type=float))
    number = converted_text(value, rule.unit, rule.wanted)
    return -number + 0.0 if rule.reversed else number


def converted(rule: FieldRule, value: object) -> object:
    """Return a value in its column's unit, one of another type unchanged.

    >>> converted(FieldRule("opened_at", "t", "iso", "s"), "1970-01-01T00:01:00Z")
    60
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    try:
        if rule.unit == "iso" and rule.wanted == "s":
            return iso_ms(value) // 1000 if isinstance(value, str) else str(value)
        if isinstance(value, str) and not rule.text:
            return value
        number = number_of(rule, value) or 0
        if not rule.linear:
            number = rule.ours(number)
        elif not _in_decimals(rule) and rule.factor != 1.0:
            number = number * rule.factor + 0.0
        whole = rule.wanted == "s" or (rule.wanted == "count" and number % 1 == 0)
        return math.floor(number) if whole else number
    except (*UNREADABLE, ArithmeticError):
        return value


def _in_decimals(rule: FieldRule) -> bool:
    """Check for a field that is converted value by value, not by `scaled`."""
    converted = rule.column != "ts" and rule.hours is None and rule.factor != 1.0
    return rule.text and rule.linear and converted


def scaled(route: HistoryRoute, frame: pl.DataFrame, findings: list[Finding]) -> pl.DataFrame:
    """Convert a page to the columns' units. A time in ms becomes its second.

    A rate of a fixed time becomes that of its leg's interval, null without one, unless it is 0.
    """
    if not route.row_leg:  # else a constant is the row's leg's alone
        constants = {r.column: pl.lit(r.constant) for r in route.fields if r.constant is not None}
        frame = frame.with_columns(**constants)
    for rule in sorted(route.fields, key=lambda rule: rule.hours is not None):
        column = pl.col(rule.column)
        if rule.column == "ts":
            frame = _in_seconds(route, rule, frame, findings)
        elif rule.hours is not None:
            rate = column * rule.factor * pl.col(rule.hours) + 0.0
            zero = pl.when(column == 0).then(0.0)
            whole = frame.with_columns(zero.otherwise(rate).alias(rule.column))
            lost = whole[rule.column].null_count() - frame[rule.column].null_count()
            if lost:
                says = f"{rule.unit} without {rule.hours} in {lost} of {frame.height} rows: null"
                findings.append(Finding("interval_missing", f"{route.path}.{rule.wire}", says))
            frame = whole
        elif not rule.linear:
            turned = rule.ours(column)
            frame = frame.with_columns(pl.when(turned.is_finite()).then(turned).alias(rule.column))
        elif rule.factor != 1.0 and not _in_decimals(rule):
            frame = frame.with_columns(column * rule.factor + 0.0)  # no -0.0 of a sign turned
    return frame


def _in_seconds(
    route: HistoryRoute, rule: FieldRule, frame: pl.DataFrame, findings: list[Finding]
) -> pl.DataFrame:
    column = pl.col(rule.column)
    if rule.factor >= 1.0:
        return frame if rule.factor == 1.0 else frame.with_columns(column * round(rule.factor))
    parts = round(1 / rule.factor)
    cut = frame.select((column % parts != 0).sum()).item()
    if cut:
        says = f"a part of a second was left out in {cut} of {frame.height} rows"
        findings.append(Finding("time_cut", f"{route.path}.{rule.wire}", says))
    return frame.with_columns(column // parts)
