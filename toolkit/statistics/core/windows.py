"""The window of a statistic: as given, else the extent of the frame."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import When, parse_ts
from toolkit.statistics.core.contract import Frame, checked_columns, checked_times, checked_types

LOOK_BACK_S = 7 * 86_400
"""How long before a window documents are used, so that an earlier opening is seen (s).

The longest event of the local service lasts five days: a funding event expires after three, and
a leg counts as lost after two more.
"""

_LONGEST_S = 2 * 86_400


def window_of(
    frame: Frame,
    start: When | None,
    end: When | None,
    extent: Callable[[Frame], Interval] | None = None,
) -> Interval:
    """Return ``[start, end)``, with the frame's own start or end for one that is not given.

    Times are as `toolkit.market.parse_ts` reads them, and ``extent`` returns the frame's own.
    Raises `InputError` for anything but a time, an end not after the start, and a frame without
    rows to take a time from.
    """
    given = [
        None if each is None else parse_ts(each, parameter=name)
        for name, each in (("start", start), ("end", end))
    ]
    own = (extent or bars_extent)(frame) if None in given else Interval(0, 0)
    low, high = (here if asked is None else asked for asked, here in zip(given, own, strict=True))
    return Interval.checked(low, high)


def bars_extent(frame: Frame) -> Interval:
    """Return the window from the first row to the end of the last bar, one step after the last row.

    The step is the commonest difference between neighbouring times of a trajectory (ties: the
    smallest), and 1 s if no trajectory has two rows.
    """
    checked_columns(frame)
    first, last, step = _times(frame)
    return Interval(first, last + step)


def settlements_extent(frame: Frame) -> Interval:
    """Return the window ``(start, end]`` of all settlements, from one step before the first."""
    checked_columns(frame)
    first, last, step = _times(frame)
    return Interval(first - step, last)


def documents_extent(frame: Frame) -> Interval:
    """Return the window from the first document to one second after the last."""
    checked_types(frame, {"ts": "Int64"})
    first, last = _edges(frame.lazy().select("ts").drop_nulls().collect())
    return Interval(first, last + 1)


def _times(frame: Frame) -> tuple[int, int, int]:
    keys = frame.lazy().select("trajectory", "ts").drop_nulls().sort("trajectory", "ts").collect()
    first, last = _edges(keys)
    steps = keys.select(pl.col("ts").diff().over("trajectory")).to_series().drop_nulls()
    common = [1, *steps.filter(steps > 0).mode().sort(descending=True)]
    return first, last, common[-1]


def _edges(keys: pl.DataFrame) -> tuple[int, int]:
    if keys.is_empty():
        raise InputError("start", None, "a time, for the frame has no row to take one from")
    checked_times(keys)
    return keys.select(pl.col("ts").min(), pl.col("ts").max().alias("last")).row(0)


def documents_window(window: Interval) -> Interval:
    """Return the window of documents to read, so that events of ``window`` have their opening.

    >>> documents_window(Interval(604_800, 691_200))
    Interval(start=0, end=691200)
    """
    return Interval(window.start - LOOK_BACK_S, window.end)


def rows_window(window: Interval) -> Interval:
    """Return the window of rows to read for a window of settlements: two days more on either side.

    >>> rows_window(Interval(172_800, 180_000))
    Interval(start=0, end=352800)
    """
    return Interval(window.start - _LONGEST_S, window.end + _LONGEST_S)


def settled_window(first_ts: int, last_ts: int, step_s: int | None) -> Interval:
    """Return the window ``(start, end]`` of all settlements, from one step before the first.

    ``step_s`` is the usual time between two settlements, None with fewer than two.

    >>> settled_window(28800, 86400, 28800)
    Interval(start=0, end=86400)
    """
    return Interval(first_ts - (step_s or 1), last_ts)
