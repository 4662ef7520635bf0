"""Reliability of an answer: settled, or provisional and to be asked for again.

An answer is *provisional* where more may still arrive: in stretches without rows, and of event logs
in all that is younger than a day, since an archive that is late looks like one that is empty. Each
provisional stretch carries when it was answered first and last. It is asked for again at the ages
`CHECK_AGES_S`, then weekly, as long as the plan reaches it. What brought rows is *settled*. Where
something once arrived later than half a day, documents settle at twice that lateness.

Pure functions over intervals. Nothing here touches the file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

from toolkit.intervals import Interval, difference, intersection, union
from toolkit.store.ledger.ledger import LATE_S, stretches

CHECK_AGES_S = (120, 600, 3_600, 21_600, 86_400)
"""The ages of a provisional answer at which it is asked for again (s). Weekly after the last."""

_WEEK_S = 7 * 86_400


class Provisional(NamedTuple):
    """A stretch ``[start, end)``, when it was answered first and last by the service's clock (s).

    >>> Provisional(0, 60, first_served_at=100, served_at=300).checks
    1
    """

    start: int
    end: int
    first_served_at: int
    served_at: int

    @property
    def checks(self) -> int:
        """How many of the ages to ask again were reached when it was asked last."""
        return _checks(self.served_at - self.first_served_at)


def _checks(age_s: int) -> int:
    return bisect_right(CHECK_AGES_S, age_s) + max(0, age_s - CHECK_AGES_S[-1]) // _WEEK_S


def settled_after_s(late_s: int) -> int:
    """Return the age from which documents that came are all there are (s).

    ``late_s`` is how much later than its time something of the stream once arrived.

    >>> settled_after_s(600), settled_after_s(100_000)
    (86400, 200000)
    """
    return max(LATE_S, 2 * late_s)


def due_parts(provisional: Iterable[Provisional], now: int) -> list[Interval]:
    """Return what is to be asked for again at ``now``, the service's clock (s).

    >>> once = Provisional(0, 60, first_served_at=100, served_at=100)
    >>> [tuple(part) for now in (219, 220) for part in due_parts([once], now)]
    [(0, 60)]
    """
    return union(
        (part.start, part.end)
        for part in provisional
        if _checks(now - part.first_served_at) > part.checks
    )


def renewed(
    held: Sequence[Provisional], answers: Iterable[tuple[int, int]], served_at: int
) -> list[Provisional]:
    """Return the provisional stretches after ``answers`` that are provisional, too.

    Parts that were provisional keep the time of their first answer. Neighbours that were asked for
    again as often become one, with the earlier times, so that their number stays small.

    >>> held = [Provisional(0, 60, first_served_at=100, served_at=100)]
    >>> [tuple(part) for part in renewed(held, [(30, 90)], 220)]
    [(0, 30, 100, 100), (30, 60, 100, 220), (60, 90, 220, 220)]
    """
    asked = union(answers)
    parts = [
        Provisional(*stretch, served_at, served_at)
        for stretch in difference(asked, [(part.start, part.end) for part in held])
    ]
    for part in held:
        whole = [(part.start, part.end)]
        first = min(part.first_served_at, served_at)
        parts += without([part], asked)
        parts += [Provisional(*again, first, served_at) for again in intersection(whole, asked)]
    merged: list[Provisional] = []
    for part in sorted(parts):
        last = merged[-1] if merged else None
        if last is not None and last.end == part.start and last.checks == part.checks:
            first = min(last.first_served_at, part.first_served_at)
            before = min(last.served_at, part.served_at)
            merged[-1] = Provisional(last.start, part.end, first, before)
        else:
            merged.append(part)
    return merged


def without(held: Iterable[Provisional], settled: Iterable[tuple[int, int]]) -> list[Provisional]:
    """Return the provisional stretches outside of what is settled.

    >>> [tuple(part) for part in without([Provisional(0, 60, 100, 100)], [(20, 30)])]
    [(0, 20, 100, 100), (30, 60, 100, 100)]
    """
    known = list(settled)
    return [
        Provisional(*stretch, part.first_served_at, part.served_at)
        for part in held
        for stretch in difference([(part.start, part.end)], known)
    ]


def within_reach(
    parts: Iterable[Provisional], retention_s: int | None, first_ts: int | None
) -> list[Provisional]:
    """Return the parts of a log's answers that its archive reached when it answered.

    Before that it has forgotten what happened: no document there is no answer. From the first
    document held, ``first_ts``, on it did reach. ``retention_s`` is None where it reaches all.

    >>> asked_late = [Provisional(0, 500, 1_000, 1_000)]
    >>> [within_reach(asked_late, 600, first)[0].start for first in (None, 450, 90)]
    [400, 400, 90]
    """
    if retention_s is None:
        return list(parts)
    kept = []
    for part in parts:
        reached = part.served_at - retention_s
        start = max(part.start, reached if first_ts is None else min(reached, first_ts))
        if start < part.end:
            kept.append(Provisional(start, part.end, part.first_served_at, part.served_at))
    return kept


def joined(parts: Iterable[tuple[int, int]], apart_s: int) -> list[Interval]:
    """Join the parts that are at most ``apart_s`` from the next (s).

    >>> [tuple(part) for part in joined([(0, 10), (15, 20), (40, 50)], 5)]
    [(0, 20), (40, 50)]
    """
    widened = union((start, end + apart_s) for start, end in parts)
    return [Interval(start, end - apart_s) for start, end in widened]


def rowless_parts(
    answered: Interval, times: pl.Series, step_s: int | None, *, young_from: int, reach_s: int
) -> list[Interval]:
    """Return the parts of an answer in which rows may still appear.

    ``times`` are the ts of the rows that came, and of the row above ``answered`` where there is
    one. A hole is such a part if it begins or ends the answer, is longer than ``reach_s``, or ends
    after ``young_from`` (s). A short hole between rows that are older than that is the service's
    last word. Parts at most ``reach_s`` apart are one. Without a known step all of the answer is
    one.

    >>> times = pl.Series([0, 60, 240, 300])
    >>> for young_from in (600, 0):
    ...     found = rowless_parts(Interval(0, 600), times, 60, young_from=young_from, reach_s=200)
    ...     print([tuple(part) for part in found])
    [(360, 600)]
    [(120, 600)]
    """
    if step_s is None:
        return [answered]
    held = stretches(times, step_s, step_s * 3 // 2).tolist()
    holes = [hole for hole in difference([answered], held) if 2 * hole.length_s > step_s]
    inside = [
        hole
        for hole in holes
        if hole.end > young_from
        or hole.length_s > reach_s
        or hole.start == answered.start
        or hole.end == answered.end
    ]
    return joined(inside, reach_s)
