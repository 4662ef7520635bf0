"""Families of series: the rows that each reads, their preparation, and the window of all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolkit.intervals import Interval
from toolkit.statistics.core.definition import with_spread
from toolkit.statistics.core.windows import documents_window, rows_window, settled_window
from toolkit.statistics.funding.rates_in_force import with_apr


def _bars_window(first_ts: int, last_ts: int, step_s: int | None) -> Interval:
    return Interval(first_ts, last_ts + (step_s or 1))


def _as_it_is(given: Any) -> Any:
    return given


@dataclass(frozen=True, slots=True)
class FamilyRows:
    """How the rows of a kind of series are read.

    ``read`` returns the window of rows to read for a window to measure. ``ready`` adds to rows (a
    frame, or except for rates from snapshots a LazyFrame) the columns that statistics take.
    ``everything`` returns the window of all rows, from the first and last time and the step (s or
    None).

    >>> FAMILIES["price"].read(Interval(0, 60)), FAMILIES["events"].read(Interval(604_800, 604_860))
    (Interval(start=0, end=60), Interval(start=0, end=604860))
    >>> [FAMILIES[kind].everything(28_800, 57_600, 28_800) for kind in ("spread", "funding")]
    [Interval(start=28800, end=86400), Interval(start=0, end=57600)]
    """

    read: Callable[[Interval], Interval] = _as_it_is
    ready: Callable[[Any], Any] = _as_it_is
    everything: Callable[[int, int, int | None], Interval] = _bars_window


FAMILIES = {
    "price": FamilyRows(),
    "spread": FamilyRows(ready=with_spread),
    "funding": FamilyRows(read=rows_window, everything=settled_window),
    "events": FamilyRows(read=documents_window),
    "snapshot": FamilyRows(),
    "snapshot-spread": FamilyRows(ready=with_spread),
    "snapshot-funding": FamilyRows(ready=with_apr),
    "pair": FamilyRows(ready=with_spread),
}
"""The rows of each kind of stream, and of pairs of two prices."""


def extent_of(streams: Iterable[Mapping[str, Any]]) -> Interval | None:
    """Return the window of all rows of some streams, given as rows of `Store.catalogue`.

    It reads kind, first_ts, last_ts (s UTC) and step_s (s or None), and returns None if none has a
    row.
    """
    extents = [
        FAMILIES[row["kind"]].everything(row["first_ts"], row["last_ts"], row["step_s"])
        for row in streams
        if row["first_ts"] is not None
    ]
    if not extents:
        return None
    return Interval(min(each.start for each in extents), max(each.end for each in extents))
