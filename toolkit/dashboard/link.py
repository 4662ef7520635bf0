"""What a link asks the page to show, checked before any widget sees it."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from toolkit.charts.time_axis import utc_offset_s
from toolkit.dashboard.formatting import command_words
from toolkit.errors import InputError
from toolkit.foreign import markdown
from toolkit.intervals import Interval
from toolkit.market import Trajectory, format_ts, parse_ts

PRESETS = {"24 hours": 86_400, "7 days": 604_800, "30 days": 2_592_000, "All": None}
"""Windows that end with what is held, by their length in seconds. None is all of it."""

_DEFAULT_PRESET = "7 days"
_EARLIEST, _LATEST = 0, 4_102_444_800
"""What the page's calendar reaches: 1970 to 2100."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A trajectory's key and a window of whole minutes.

    >>> Choice("BTC_USD:KRAKEN.spot", Interval(0, 60)).params
    {'trajectory': 'BTC_USD:KRAKEN.spot', 'start': '1970-01-01T00:00Z', 'end': '1970-01-01T00:01Z'}
    """

    trajectory: str
    window: Interval

    @property
    def params(self) -> dict[str, str]:
        """The choice as the parameters of a link."""
        start, end = (
            dt.datetime.fromtimestamp(ts, tz=dt.UTC).strftime("%Y-%m-%dT%H:%MZ")
            for ts in self.window
        )
        return {"trajectory": self.trajectory, "start": start, "end": end}


def held_window(catalogue: pl.DataFrame, trajectory: str) -> Interval:
    """Return the window from the trajectory's first row to the end of its last, in minutes.

    A trajectory without rows gets the last 7 days before the service's clock at the last sync.

    >>> catalogue = pl.DataFrame({"stream": ["a"], "first_ts": [60], "last_ts": [120],
    ...                           "step_s": [60], "served_at": [500]})
    >>> held_window(catalogue, "a")
    Interval(start=60, end=180)
    """
    row = catalogue.row(by_predicate=pl.col("stream") == trajectory, named=True)
    if row["first_ts"] is None:
        end = row["served_at"]
        return _minutes(Interval(end - 604_800, end))
    return _minutes(Interval(row["first_ts"], row["last_ts"] + (row["step_s"] or 60)))


def preset_window(held: Interval, preset: str) -> Interval:
    """Return the last part of what is held, as long as the preset or all if that is shorter.

    >>> preset_window(Interval(0, 864000), "24 hours")
    Interval(start=777600, end=864000)
    >>> preset_window(Interval(0, 864000), "All")
    Interval(start=0, end=864000)
    """
    length_s = PRESETS[preset]
    return held if length_s is None else Interval(max(held.start, held.end - length_s), held.end)


def read_link(params: Mapping[str, str], catalogue: pl.DataFrame) -> tuple[Choice, list[str]]:
    """Read the parameters of a link: what to show, and what was wrong with them.

    ``params`` has ``trajectory`` (key), ``start`` and ``end`` (ISO 8601 UTC or Unix seconds), each
    optional. ``catalogue`` is of `toolkit.store.Store`, with at least one row. Returned are a
    choice that can be shown, whatever was asked, and for each parameter that could not be followed
    a sentence of Markdown: what is wrong with it and what the page shows instead.

    >>> catalogue = pl.DataFrame({"stream": ["a"], "first_ts": [0], "last_ts": [540],
    ...                           "step_s": [60], "served_at": [600]})
    >>> choice, wrong = read_link({"trajectory": "b"}, catalogue)
    >>> choice.window, wrong
    (Interval(start=0, end=600), ['The link asks for `trajectory=b`, which this store ...'])
    """
    keys: list[str] = catalogue["stream"].to_list()
    wrong: list[str] = []
    trajectory = params.get("trajectory", keys[0])
    if trajectory not in keys:
        wrong.append(
            f"The link asks for {markdown(f'trajectory={trajectory}')}, which this store does "
            f"not hold{_how_to_load(trajectory)}; the page shows {markdown(keys[0])} instead."
        )
        trajectory = keys[0]
    default = preset_window(held_window(catalogue, trajectory), _DEFAULT_PRESET)
    start, end = (
        _read_time(name, params[name], ts, wrong) if name in params else ts
        for name, ts in zip(("start", "end"), default, strict=True)
    )
    if start >= end:
        wrong.append(
            f"The link asks for a window from {format_ts(start)} to {format_ts(end)}, "
            f"which is empty; the page shows {format_ts(default.start)} to "
            f"{format_ts(default.end)} instead."
        )
        start, end = default
    return Choice(trajectory, Interval(start, end)), wrong


def read_zone(text: str | None) -> tuple[str, str | None]:
    """Read the time zone that a link names, UTC where it names none, and what is wrong with it.

    >>> read_zone("Asia/Tokyo"), read_zone(None)
    (('Asia/Tokyo', None), ('UTC', None))
    >>> read_zone("Mars/Olympus")
    ('UTC', 'The link asks for `clock=Mars/Olympus`, which is no time zone ...')
    """
    if text is None:
        return "UTC", None
    try:
        utc_offset_s(pl.Series([0]), text)
    except InputError as error:
        return "UTC", (
            f"The link asks for {markdown(f'clock={text}')}, which is no time zone "
            f"(allowed: {error.allowed}); times are UTC instead."
        )
    return text, None


def read_choice(
    params: Mapping[str, str], name: str, allowed: Sequence[str], wrong: list[str]
) -> list[str]:
    """Read the allowed values that a parameter names, separated by commas. [] is all.

    A value that is not allowed is left out, and ``wrong`` gets a sentence about it.

    >>> wrong: list[str] = []
    >>> read_choice({"symbol": "BTC_USD,X_Y"}, "symbol", ["BTC_USD", "ETH_USD"], wrong), wrong
    (['BTC_USD'], ['The link asks for `symbol=X_Y`, which this store does not hold; ...'])
    """
    asked = [value for value in params.get(name, "").split(",") if value]
    wrong.extend(
        f"The link asks for {markdown(f'{name}={value}')}, which this store does not hold; "
        "the page leaves it out."
        for value in asked
        if value not in allowed
    )
    return [value for value in dict.fromkeys(asked) if value in allowed]


def read_option(
    params: Mapping[str, str], name: str, allowed: Iterable[str], default: str, wrong: list[str]
) -> str:
    """Return the one allowed value that a parameter names, or the default.

    For a value that is not allowed, ``wrong`` gets a sentence about it.

    >>> wrong: list[str] = []
    >>> read_option({"unit": "2h"}, "unit", ["1h", "8h"], "8h", wrong), wrong
    ('8h', ['The link asks for `unit=2h` (allowed: 1h, 8h); the page takes 8h instead.'])
    """
    value = params.get(name, default)
    if value in allowed:
        return value
    wrong.append(
        f"The link asks for {markdown(f'{name}={value}')} (allowed: {', '.join(allowed)}); "
        f"the page takes {default} instead."
    )
    return default


def read_number(
    params: Mapping[str, str],
    name: str,
    default: float,
    bounds: tuple[float, float],
    wrong: list[str],
) -> float:
    """Read the number of a parameter within the bounds, or the default and why in ``wrong``.

    >>> wrong: list[str] = []
    >>> read_number({"above": "25"}, "above", 10.0, (0.0, 1000.0), wrong), wrong
    (25.0, [])
    >>> read_number({"above": "nan"}, "above", 10.0, (0.0, 1000.0), wrong), wrong
    (10.0, ['The link asks for `above=nan`, which is no number from 0 to 1,000; ...'])
    """
    if name not in params:
        return default
    try:
        number = float(params[name])
    except ValueError:
        number = math.nan
    low, high = bounds
    if low <= number <= high:
        return number
    wrong.append(
        f"The link asks for {markdown(f'{name}={params[name]}')}, which is no number from {low:,g} "
        f"to {high:,g}; the page takes {default:,g} instead."
    )
    return default


def _read_time(name: str, text: str, default: int, wrong: list[str]) -> int:
    """Read the time of a parameter, or the default and why in ``wrong``."""
    try:
        ts = parse_ts(text, parameter=name)
    except InputError as error:
        ts, allowed = None, error.allowed
    else:
        allowed = "a time between 1970 and 2100"
    if ts is None or not _EARLIEST <= ts <= _LATEST:
        wrong.append(
            f"The link asks for {markdown(f'{name}={text}')}, which the page cannot show "
            f"(allowed: {allowed}); it takes {format_ts(default)} instead."
        )
        return default
    if ts % 60:
        wrong.append(
            f"The link asks for {markdown(f'{name}={text}')}; the page shows whole minutes and "
            f"takes {format_ts(ts - ts % 60)}."
        )
    return ts - ts % 60


def _how_to_load(trajectory: str) -> str:
    """Return the hint that names the command for a trajectory, "" where the key is none."""
    try:
        key = Trajectory.parse(trajectory).key
    except InputError:
        return ""
    return f" ({command_words('sync', key)} loads it)"


def _minutes(window: Interval) -> Interval:
    """Return the smallest window of whole minutes around the window."""
    return Interval(window.start // 60 * 60, -(-window.end // 60) * 60)
