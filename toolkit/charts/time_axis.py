"""Unix seconds on plotly's date axis, in the wall clock of a chosen zone.

Times are text, since plotly.js shows numbers in the browser's zone.
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from typing import Any

import polars as pl

from toolkit.errors import InputError
from toolkit.intervals import Interval


def utc_offset_s(ts: pl.Series, timezone: str) -> pl.Series:
    """Return the seconds by which the zone's clock is ahead of UTC at each time.

    >>> utc_offset_s(pl.Series([1698537600, 1698541200]), "Europe/London").to_list()
    [3600, 0]
    >>> utc_offset_s(pl.Series([0]), "Mars/Olympus")
    Traceback (most recent call last):
    toolkit.errors.InputError: timezone: 'Mars/Olympus' is not allowed; allowed: UTC or a name ...
    """
    times = pl.from_epoch(ts.cast(pl.Int64), time_unit="s").dt.replace_time_zone("UTC")
    try:
        local = times.dt.convert_time_zone(timezone)
    except (pl.exceptions.ComputeError, TypeError):
        raise InputError(
            "timezone", timezone, "UTC or a name of the IANA data base, e.g. Europe/London"
        ) from None
    return (local.dt.base_utc_offset() + local.dt.dst_offset()).dt.total_seconds()


def clock_text(ts: pl.Series, timezone: str) -> pl.Series:
    """Format Unix seconds in the zone's clock, without seconds if all of them are zero.

    >>> clock_text(pl.Series([0, 61]), "UTC").to_list()
    ['1970-01-01 00:00:00', '1970-01-01 00:01:01']
    >>> clock_text(pl.Series([0]), "Asia/Tokyo").to_list()
    ['1970-01-01 09:00']
    """
    clock = pl.from_epoch(ts + utc_offset_s(ts, timezone), time_unit="s")
    whole_minutes = bool((clock.dt.second() == 0).all())
    return clock.dt.strftime("%Y-%m-%d %H:%M" if whole_minutes else "%Y-%m-%d %H:%M:%S")


def clock_moment(clock: dt.datetime, timezone: str) -> float:
    """Return the Unix seconds at which the zone's clock shows a time.

    Of an hour that comes twice it is the first. A skipped hour continues the one before.

    >>> clock_moment(dt.datetime(1970, 1, 1, 9, 0, 30), "Asia/Tokyo")
    30.0
    """
    return clock.replace(tzinfo=zoneinfo.ZoneInfo(timezone)).timestamp()


def window_text(window: Interval, timezone: str) -> str:
    """Format the window in the zone's clock."""
    start, end = clock_text(pl.Series(window), timezone)
    return f"{start} to {end} {timezone}"


def measured_window(frame: pl.DataFrame, timezone: str) -> str:
    """Format the rows' window_start and window_end as `window_text`."""
    return window_text(Interval(frame["window_start"][0], frame["window_end"][0]), timezone)


def date_axis(window: Interval, timezone: str) -> dict[str, Any]:
    """Build a date axis over the whole window."""
    return {
        "type": "date",
        "range": clock_text(pl.Series(window), timezone).to_list(),
        "title": {"text": f"time ({timezone})"},
        "hoverformat": "%Y-%m-%d %H:%M:%S",
    }
