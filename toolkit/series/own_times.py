"""The times of your own rows in UTC, or one error where that is ambiguous."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Literal
from zoneinfo import ZoneInfo

import polars as pl
from polars.exceptions import PolarsError

from toolkit.cards import counted, duration
from toolkit.errors import InputError
from toolkit.market import format_ts

Unit = Literal["s", "ms", "us", "ns"]
"""Of a time that is a number."""
Stamp = Literal["start", "end"]
"""Which end of its bar a row's time is."""

NULL_WORDS = (
    "",
    "NaN",
    "nan",
    "null",
    "NULL",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "None",
    "none",
    "-",
    "--",
)
"""Texts that stand for no value."""

_PER_S = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_FROM, _UNTIL = (int(dt.datetime(y, 1, 1, tzinfo=dt.UTC).timestamp()) for y in (2009, 2100))
_YEARS = "times of the years 2009 to 2099"
_NUMBER = r"^[+-]?\d+(\.\d*)?$"
_ZONED = r"(?:Z|[+-]\d\d:?\d\d)$"
_YEAR_FIRST = r"^(\d{4})[./](\d{1,2})[./](\d{1,2})"
_YEAR_LAST = r"^(\d{1,2})[./-](\d{1,2})[./-](\d{4})"


def moments(
    times: pl.Series, units: Sequence[Unit], timezone: str | None, form: str | None = None
) -> pl.Series:
    """Return times as whole microseconds of UTC, in the order given.

    Numbers are in the first of ``units`` that puts them all into 2009 to 2099. Texts are read by
    ``form``, as of ``strptime``, or are ISO 8601, or have the year last if only one order of day
    and month reads them all. Times without a zone are in ``timezone``.

    >>> moments(pl.Series("ts", ["03/13/2023 00:00", "03/14/2023 00:00"]), ["s"], "UTC").to_list()
    [1678665600000000, 1678752000000000]
    >>> moments(pl.Series("ts", [1_700_000_000]), ["ms"], None)
    Traceback (most recent call last):
    toolkit.errors.InputError: unit: 'ms' is not allowed; allowed: s, as these are seconds; ...
    """
    if form is not None:
        times = _by_form(times.cast(pl.String), form)
    elif times.dtype == pl.String:
        times = _of_texts(times)
    if missing := times.null_count():
        raise InputError("ts", counted(missing, "null"), "a time in each row")
    if times.dtype.is_numeric():
        return _of_numbers(times, units)
    if times.dtype == pl.Date:
        times = times.cast(pl.Datetime("us"))
    if not isinstance(times.dtype, pl.Datetime):
        raise InputError("ts", f"a column of {times.dtype}", "numbers, times or texts of times")
    zoned = times if times.dtype.time_zone else _localized(times, _zone(timezone))
    found = zoned.dt.convert_time_zone("UTC").dt.epoch("us")
    outside = found.filter(~_within(found, 10**6))
    if outside.len():
        advice = _made_of(times)
        first = f"the first {_shown(outside[0])}"
        raise InputError("ts", f"{counted(outside.len(), 'time')}, {first}", _YEARS, advice=advice)
    return found


def commonest_step(us: pl.Series) -> int | None:
    """Return the commonest difference (s) of sorted times, the smallest if tied, None for one.

    >>> commonest_step(pl.Series([59_999_000, 119_999_000, 179_999_000]))
    60
    """
    spacings = (us // 10**6).diff().drop_nulls()
    spacings = spacings.filter(spacings > 0)
    return None if spacings.is_empty() else int(spacings.mode().min())  # type: ignore[arg-type]  # whole numbers


def bar_starts(us: pl.Series, step_s: int | None, stamped: Stamp) -> tuple[pl.Series, list[str]]:
    """Return the starts (s) of the bars of sorted times, and notes.

    A bar may be stamped by its last moment: the last second of a minute, or the last thousandth of
    a second. Where most are, those are moved to the end that they mean, or refused if ``stamped``
    is start. Times off the grid of the others are kept, and counted in a note.

    >>> closes = pl.Series([1_700_000_099_999_000, 1_700_000_159_999_000])
    >>> bar_starts(closes, 60, "end")[0].to_list()
    [1700000040, 1700000100]
    """
    notes = []
    every, last = (60 * 10**6, 10**6) if step_s and step_s % 60 == 0 else (10**6, 10**3)
    left = every - us % every
    closing = left <= last
    if step_s is not None and 2 * int(closing.sum()) > us.len():
        if stamped == "start":
            given = f"{closing.sum():,} of {us.len():,} times, the first {_shown(us[0])}"
            advice = 'stamped="end", --stamped end on the command line'
            raise InputError("ts", given, "the start of a bar, not its last moment", advice=advice)
        us = us + left * closing.cast(pl.Int64)
        notes.append(
            f"{counted(int(closing.sum()), 'time')} moved from a bar's last moment to its end"
        )
    ts = us // 10**6
    if stamped == "end":
        if step_s is None:
            raise InputError("step_s", None, "seconds: one row alone does not show its length")
        ts = ts - step_s
    phase = ts % (step_s or 1)
    off = ts.filter(phase != phase.mode().min())
    if off.len():
        share = f"{off.len():,} of {ts.len():,} rows"
        grid = duration(step_s or 1)
        notes.append(f"{share} are off the grid of {grid}, the first at {format_ts(int(off[0]))}")
    return ts, notes


def _within(values: pl.Series, per_s: int) -> pl.Series:
    return values.is_between(_FROM * per_s, _UNTIL * per_s, closed="left")


def _shown(us: int) -> str:
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=int(us))  # noqa: DTZ001 - in UTC
    return f"{moment} UTC"


def _of_numbers(times: pl.Series, units: Sequence[Unit]) -> pl.Series:
    if times.dtype.is_integer():
        times = times.cast(pl.Int64, strict=False)
    fits = {unit: _within(times, per_s).fill_null(value=False) for unit, per_s in _PER_S.items()}
    for unit in units:
        if fits[unit].all():
            return _microseconds(times, unit)
    some = {unit: int(held.sum()) for unit, held in fits.items() if held.any()}
    whole = next((unit for unit, count in some.items() if count == times.len()), None)
    if whole is not None:
        advice = f'unit="{whole}", --unit {whole} on the command line'
        allowed = f"{whole}, as these are {_WORDS[whole]}"
        raise InputError("unit", units[0], allowed, advice=advice)
    if len(some) > 1:
        usual = max(some, key=some.__getitem__)
        other = int((~fits[usual]).arg_max())  # type: ignore[arg-type]  # there is one
        given = " and ".join(f"{count:,} in {_WORDS[unit]}" for unit, count in some.items())
        advice = f"row {other + 1:,} is the first that differs: {times[other]}"
        raise InputError("ts", given, "times of one unit", advice=advice)
    bad = times.filter(~fits[units[0]])
    given = f"{counted(bad.len(), 'number')}, the first {bad[0]}"
    raise InputError("ts", given, f"{_YEARS}, in {_WORDS[units[0]]} since 1970")


def _microseconds(times: pl.Series, unit: Unit) -> pl.Series:
    per_s = _PER_S[unit]
    if times.dtype.is_integer():
        return times * (10**6 // per_s) if per_s <= 10**6 else times // (per_s // 10**6)
    return (times.cast(pl.Float64) * (10**6 / per_s)).round().cast(pl.Int64)


def _made_of(times: pl.Series) -> str:
    """Return what unit the numbers were in that times outside all years were made of, or ""."""
    per_s = _PER_S[times.dtype.time_unit]  # type: ignore[attr-defined]  # it is a Datetime
    numbers = times.to_physical()
    for unit, theirs in _PER_S.items():
        if theirs != per_s and _within(numbers, theirs).all():
            return f"they were made of {_WORDS[unit]} taken for {_WORDS[_UNITS[per_s]]}"
    return ""


_UNITS = {per_s: unit for unit, per_s in _PER_S.items()}


def _of_texts(texts: pl.Series) -> pl.Series:
    texts = texts.str.strip_chars()
    texts = texts.set(texts.is_in(NULL_WORDS), None)
    given = texts.drop_nulls()
    if given.str.contains(_NUMBER).all():
        whole = not given.str.contains(".", literal=True).any()
        return texts.cast(pl.Int64 if whole else pl.Float64, strict=False)
    texts = texts.str.replace(_YEAR_FIRST, "$1-$2-$3").str.replace(r" ?UTC$", "Z")
    if given.str.contains(_YEAR_LAST).all():
        texts = _year_first(texts, given)
    zoned = texts.drop_nulls().str.contains(_ZONED).all()
    try:
        found = texts.str.to_datetime(strict=False, time_zone="UTC" if zoned else None)
    except PolarsError:  # it finds no form for any of them
        found = pl.Series(texts.name, [None] * texts.len(), pl.Datetime("us"))
    if bad := found.null_count() - texts.null_count():
        first = texts.filter(found.is_null() & texts.is_not_null())[0]
        advice = 'format="%d %b %Y %H:%M" says how they are written, --format on the command line'
        allowed = "times such as 2023-03-10 12:00:00"
        raise InputError("ts", f"{counted(bad, 'text')}, the first {first}", allowed, advice=advice)
    return found


def _year_first(texts: pl.Series, given: pl.Series) -> pl.Series:
    parts = given.str.extract_groups(_YEAR_LAST).struct.unnest()
    first, second = (max(map(int, parts[name])) for name in parts.columns[:2])
    if max(first, second) <= 12:
        rest = re.sub(r"\d{1,2}:\d\d:\d\d", "%H:%M:%S", re.sub(_YEAR_LAST, "", given[0]))
        rest = re.sub(r"\d{1,2}:\d\d", "%H:%M", rest)
        if rest.endswith("M") and rest[-2:] != "%M":
            rest = f"{rest[:-2]}%p".replace("%H", "%I")
        mark = re.sub(r"\d", "", given[0])[0]
        month, day = (
            f'"{mark.join(order)}{rest}"' for order in (("%m", "%d", "%Y"), ("%d", "%m", "%Y"))
        )
        advice = (
            f"format={month} reads the month first, {day} the day; --format on the command line"
        )
        shown = f"{given[0]} to {given[-1]}"
        raise InputError("ts", shown, "dates that can be read in one way", advice=advice)
    return texts.str.replace(_YEAR_LAST, "$3-$1-$2" if second > 12 else "$3-$2-$1")


def _by_form(texts: pl.Series, form: str) -> pl.Series:
    texts = texts.str.strip_chars()
    zone = "UTC" if "%z" in form else None
    try:
        found = texts.str.to_datetime(form, strict=False, time_zone=zone)
    except PolarsError as error:
        why = str(error).splitlines()[0]
        raise InputError("format", form, 'a form such as "%d/%m/%Y %H:%M"', advice=why) from None
    bad = texts.filter(found.is_null() & texts.is_not_null())
    if bad.len():
        given = f"{counted(bad.len(), 'text')}, the first {bad[0]}"
        raise InputError("ts", given, f"times as {form} writes them")
    return found


def _localized(times: pl.Series, zone: str) -> pl.Series:
    """Read times by a zone's clock. Where clocks change, some are not there and some are twice."""
    found = times.dt.replace_time_zone(zone, ambiguous="null", non_existent="null")
    if bad := found.null_count():
        first = times.filter(found.is_null())[0]
        given = f"{counted(bad, 'time')}, the first {first}"
        raise InputError("ts", given, f"times that {zone} has once", advice="times in UTC are")
    return found


def _zone(timezone: str | None) -> str:
    if timezone is None:
        advice = 'timezone="UTC" where they are UTC, --timezone UTC on the command line'
        raise InputError("timezone", None, "that of times without one", advice=advice)
    try:
        return ZoneInfo(timezone).key
    except (KeyError, ValueError, OSError):
        raise InputError("timezone", timezone, "a name such as UTC or Europe/Berlin") from None
