"""Write values, headings and reasons of nulls in the words of all interfaces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from toolkit.cards import duration
from toolkit.columns import Column, column
from toolkit.market import EventFamily, format_ts
from toolkit.reasons import Reason

UNRELIABLE = "unreliable"
"""The word beside a half-life whose 95 % interval has no upper bound."""

NEEDS_NO_MODEL = {
    "The autocorrelation halves after": "acf_half_lag_s",
    "Without spikes, the half-life is": "half_life_without_spikes_s",
}
"""Figures beside a half-life that is null or unreliable: words, and the column in seconds."""

_NONE = {
    Reason.TOO_FEW: "too few rows for a half-life",
    Reason.DEGENERATE: "does not vary",
    Reason.NO_REVERSION: "no reversion",
    Reason.BELOW_STEP: "half-life under 1 step",
}


def half_life_note(row: Mapping[str, Any]) -> str:
    """Describe why a half-life is null or unreliable, "" for a reliable one.

    ``row`` is of `toolkit.statistics.spread.half_life`.

    >>> half_life_note({"half_life_s": None, "half_life_reason": "too_few"})
    'too few rows for a half-life'
    >>> half_life_note({"half_life_s": 60.0, "half_life_upper_s": None,
    ...                 "half_life_upper_reason": "no_reversion"})
    'half-life unreliable: a spread that never returns to its mean fits these rows too'
    """
    if row.get("half_life_s") is None:
        reason = row.get("half_life_reason")
        if not reason:
            return "no half-life"
        return _NONE.get(Reason(reason), f"no half-life: {Reason(reason).words}")
    doubt = doubt_of(row, "half_life_s")
    return f"half-life {UNRELIABLE}: {doubt.words.removeprefix('none: ')}" if doubt else ""


NULL = "–"

DECIMALS = {
    "count": 0,
    "bps": 2,
    "%": 2,
    "fraction": 2,
    "% per 1 h": 5,
    "% per 8 h": 4,
    "% per 24 h": 4,
    "bps h": 2,
    "h": 1,
    "days": 1,
    "per hour": 2,
    "per day": 2,
    "MB": 1,
}
"""The decimals of each unit. A number without a unit has four significant digits, a price five."""

_IN_HEADINGS = frozenset(DECIMALS) - {"count", "fraction", "per hour", "per day"}
"""The units in headings. Others are shown in the cells."""

BASIS = ("trajectory", "stream", "n", "coverage")
"""The columns that identify rows, and those of the basis of figures."""


def heading_of(one: Column, *, short: bool = False) -> str:
    """Return a column's heading with its unit in brackets.

    >>> heading_of(column("spread_std_log_bps"), short=True), heading_of(column("half_life_s"))
    ('std dev (bps)', 'half-life')
    """
    words = one.short if short else one.heading
    return f"{words} ({one.unit})" if one.unit in _IN_HEADINGS else words


def value_text(value: Any, one: Column, *, unit: bool = False) -> str:
    """Write a value of a column: a length in its units, a moment in UTC, a share in percent.

    ``unit`` adds the unit that a heading would have. A null is a dash.

    >>> value_text(1670.0, column("half_life_s")), value_text(0.95, column("coverage"))
    ('27 min 50 s', '95.00 %')
    >>> value_text(-3.456, column("spread_mean_log_bps"), unit=True), value_text(1200, column("n"))
    ('-3.46 bps', '1,200')
    """
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float) or not math.isfinite(value):
        return str(value) or "none"
    if one.unit in ("s", "UTC", "UTC ms"):
        return _time_text(value, one.unit, zone=unit)
    number = _number_text(value, one)
    return f"{number} {one.unit}" if unit and one.unit in _IN_HEADINGS else number


def _time_text(value: float, unit: str, *, zone: bool) -> str:
    if unit == "s":
        return duration(value)
    try:
        moment = format_ts(int(value) // (1000 if unit == "UTC ms" else 1))
    except (ValueError, OverflowError, OSError):
        return f"{value:.0f}"
    return moment if zone else moment.removesuffix(" UTC")


def _number_text(value: float, one: Column) -> str:
    places = DECIMALS.get(one.unit) if one.decimals is None else one.decimals
    if one.unit == "quote" and one.decimals is None:
        return f"{Decimal(f'{value:.5g}'):,f}"
    if places is None:
        return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    if one.unit == "fraction":
        return _percent_text(100 * value, places)
    return f"{value:z,.{places}f}"


def _percent_text(percent: float, places: int) -> str:
    """Write a share. Only exactly 0 and 1 read as 0 % and 100 %."""
    text, least = f"{percent:z,.{places}f}", 10.0**-places
    if percent > 0 and not text.strip("0."):
        return f"<{least:.{places}f} %"
    if percent < 100 and text == f"{100:.{places}f}":
        return f">{100 - least:.{places}f} %"
    return f"{text} %"


def share_text(share: float | None) -> str:
    """Write a share, such as a coverage. A null is a dash.

    >>> share_text(0.000001), share_text(0.972), share_text(0.999999), share_text(None)
    ('<0.01 %', '97.20 %', '>99.99 %', '–')
    """
    return value_text(share, column("coverage"))


def basis_text(n: int | None, coverage: float | None, what: str = "coverage") -> str:
    """Write the basis of figures: n, and their coverage of the window.

    >>> basis_text(1200, 0.985), basis_text(3, None)
    ('n = 1,200, coverage 98.50 %', 'n = 3')
    """
    parts = [] if n is None else [f"n = {n:,}"]
    parts += [] if coverage is None else [f"{what} {share_text(coverage)}"]
    return ", ".join(parts)


def figures_text(row: Mapping[str, Any], names: Iterable[str], result: str = "") -> str:
    """Write figures of a row in a line, each after its short heading.

    >>> figures_text({"n": 1200, "coverage": 0.5}, ["n", "coverage"], "funding.summary")
    'settlements 1,200, coverage 50.00 %'
    """
    columns = (column(name, result) for name in names)
    return ", ".join(f"{one.short} {value_text(row[one.name], one, unit=True)}" for one in columns)


def figures_of(names: Iterable[str], result: str) -> list[str]:
    """Return the names of figures of a result, without their basis and reasons.

    >>> figures_of(["trajectory", "n", "half_life_s", "half_life_reason", "method"], "")
    ['half_life_s']
    """
    return [
        name
        for name in names
        if name not in BASIS
        and not name.endswith(("_reason", "method", "params_hash", "window_start", "window_end"))
        and (not result or column(name, result).type)
    ]


def reason_column(row: Mapping[str, Any], name: str) -> str:
    """Return the column that says why a value of a row is null, "" where there is none.

    It is the declared one, else the next that ends in ``_reason``.

    >>> reason_column({"half_life_s": None, "half_life_reason": "too_few"}, "half_life_s")
    'half_life_reason'
    """
    declared = column(name, str(row.get("method") or "")).reason
    if declared in row:
        return declared
    names = list(row)
    right = (each for each in names[names.index(name) + 1 :] if each.endswith("_reason"))
    return next(right, "")


def reason_of(row: Mapping[str, Any], name: str) -> str | None:
    """Return why a value of a row is null, as the code or words of its `reason_column`."""
    found = row.get(reason_column(row, name))
    return None if found is None else str(found)


def reason_words(row: Mapping[str, Any], name: str) -> str:
    """Return in words why a value is null, "" without a reason.

    >>> reason_words({"half_life_s": None, "half_life_reason": "too_few"}, "half_life_s")
    'too few observations for this statistic'
    """
    code = reason_of(row, name) or ""
    return Reason(code).words if code in set(Reason) else code


def null_text(row: Mapping[str, Any], name: str) -> str:
    """Return the text of a null: a dash, or a bound of the number.

    >>> null_text({"half_life_s": None, "half_life_reason": "below_step"}, "half_life_s")
    'under 1 step'
    """
    code = reason_of(row, name)
    return Reason(code).in_place if code in set(Reason) else NULL


def doubt_of(row: Mapping[str, Any], name: str) -> Reason | None:
    """Return why a value is unreliable, None for a reliable or null one.

    A half-life is reliable if its 95 % interval has an upper bound. Without that column, and for
    other figures, it is None.

    >>> row = {"half_life_s": 60.0, "half_life_upper_s": None}
    >>> doubt_of(row | {"half_life_upper_reason": "no_reversion"}, "half_life_s").name
    'NO_REVERSION'
    """
    reason = row.get("half_life_upper_reason")
    known = name == "half_life_s" and row.get(name) is not None
    return Reason(reason) if known and reason and row.get("half_life_upper_s") is None else None


def size_text(size: float | None, family: str) -> str:
    """Write a size as the service sends it of a family, with its unit.

    >>> size_text(1.23456, "spread"), size_text(-0.1, "funding"), size_text(None, "splash")
    ('1.235 %', '-0.1000 % per 8 h', '–')
    """
    name = "differential_pct_8h" if family == EventFamily.FUNDING else "magnitude_pct"
    return value_text(size, column(name), unit=size is not None)


def lasted_text(duration_s: float | None, kind: str) -> str:
    """Write how long an event lasted, as far as it was seen.

    >>> lasted_text(90.0, "closed"), lasted_text(90.0, "open"), lasted_text(None, "orphan_close")
    ('1 min 30 s', 'at least 1 min 30 s', '–')
    """
    least = {"open": "at least ", "reopened": "at most "}.get(kind, "")
    lasted = value_text(duration_s, column("duration_s"))
    return lasted if duration_s is None else f"{least}{lasted}"
