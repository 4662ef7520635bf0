"""Half-open intervals ``[start, end)`` of whole Unix seconds.

Functions take intervals in any order, and return sorted, disjoint, non-touching ones without the
empty ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from toolkit.errors import InputError
from toolkit.market import When, format_ts, parse_ts

Ends = tuple[When, When]
"""A window's start and end, as `Interval.of` reads them. Every `Interval` is one."""


class Interval(NamedTuple):
    """``[start, end)`` in Unix seconds, UTC.

    >>> print(Interval(1677628800, 1677715200))
    [2023-03-01 00:00 UTC, 2023-03-02 00:00 UTC)
    """

    start: int
    end: int

    @classmethod
    def checked(cls, start: When, end: When) -> Interval:
        """Return the interval, or raise `InputError` if it is empty or an end is not a time.

        >>> Interval.checked(0, "1970-01-01T00:01").length_s
        60
        """
        start, end = parse_ts(start, parameter="start"), parse_ts(end, parameter="end")
        if start >= end:
            raise InputError(
                "window",
                f"{format_ts(start)} to {format_ts(end)}",
                "a start before its end (the end itself is outside)",
            )
        return cls(start, end)

    @classmethod
    def of(cls, window: object) -> Interval:
        """Return the interval of a start and an end; `EVER` is taken as it is.

        >>> Interval.of((0, 60))
        Interval(start=0, end=60)
        """
        if isinstance(window, tuple) and window == EVER:
            return EVER
        if not isinstance(window, tuple | list) or len(window) != 2:
            allowed = "a start and an end, e.g. ('2023-03-01', '2023-03-02')"
            raise InputError("window", window, allowed)
        return cls.checked(*window)

    @property
    def length_s(self) -> int:
        """Seconds from start to end."""
        return self.end - self.start

    def last(self, length_s: int | None) -> Interval:
        """Return its last seconds: all of it if it is shorter, or for None.

        >>> Interval(0, 90).last(60), Interval(0, 90).last(None)
        (Interval(start=30, end=90), Interval(start=0, end=90))
        """
        begin = self.start if length_s is None else max(self.start, self.end - length_s)
        return Interval(begin, self.end)

    def __str__(self) -> str:
        return f"[{format_ts(self.start)}, {format_ts(self.end)})"


EVER = Interval(-(2**62), 2**62)
"""All of time."""


def union(intervals: Iterable[tuple[int, int]]) -> list[Interval]:
    """Return the union of the intervals.

    >>> [tuple(i) for i in union([(5, 9), (0, 2), (2, 3), (6, 7), (4, 4)])]
    [(0, 3), (5, 9)]
    """
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if start >= end:
            continue
        if merged and start <= merged[-1].end:
            merged[-1] = Interval(merged[-1].start, max(end, merged[-1].end))
        else:
            merged.append(Interval(start, end))
    return merged


def intersection(
    left: Iterable[tuple[int, int]], right: Iterable[tuple[int, int]]
) -> list[Interval]:
    """Return the seconds in both.

    >>> [tuple(i) for i in intersection([(0, 10)], [(2, 4), (8, 12)])]
    [(2, 4), (8, 10)]
    """
    ours, theirs = union(left), union(right)
    found: list[Interval] = []
    i = j = 0
    while i < len(ours) and j < len(theirs):
        start, end = max(ours[i].start, theirs[j].start), min(ours[i].end, theirs[j].end)
        if start < end:
            found.append(Interval(start, end))
        if ours[i].end < theirs[j].end:
            i += 1
        else:
            j += 1
    return found


def difference(left: Iterable[tuple[int, int]], right: Iterable[tuple[int, int]]) -> list[Interval]:
    """Return the seconds of ``left`` that are not in ``right``.

    >>> [tuple(i) for i in difference([(0, 10)], [(2, 4), (8, 12)])]
    [(0, 2), (4, 8)]
    """
    edges = [EVER.start, *itertools.chain(*union(right)), EVER.end]
    return intersection(left, zip(edges[::2], edges[1::2], strict=True))


def clip(intervals: Iterable[tuple[int, int]], window: tuple[int, int]) -> list[Interval]:
    """Return the parts of the intervals in the window.

    >>> [tuple(i) for i in clip([(0, 5), (7, 12)], (3, 10))]
    [(3, 5), (7, 10)]
    """
    return intersection(intervals, [window])


def split(interval: Interval, length_s: int) -> list[Interval]:
    """Split the interval at whole multiples of ``length_s``.

    >>> [tuple(i) for i in split(Interval(5, 25), 10)]
    [(5, 10), (10, 20), (20, 25)]
    """
    if length_s < 1:
        raise InputError("length_s", length_s, "a whole number of seconds, at least 1")
    inner = range(interval.start // length_s + 1, -(-interval.end // length_s))
    cuts = [interval.start, *(k * length_s for k in inner), interval.end]
    return [Interval(low, high) for low, high in itertools.pairwise(cuts) if low < high]


def total_s(intervals: Iterable[tuple[int, int]]) -> int:
    """Count the seconds covered by any of the intervals.

    >>> total_s([(0, 5), (3, 8)])
    8
    """
    return sum(interval.length_s for interval in union(intervals))
