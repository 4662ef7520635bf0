"""Estimates of the rows and requests of a task, and of the quota's waiting time.

Pure functions of what is known before anything is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from toolkit.intervals import Interval, difference
from toolkit.loader.sync.tasks import LogTask, SnapshotTask, Task, TrajectoryTask, slices
from toolkit.market import Family
from toolkit.store import Edge
from toolkit.wire.allowance import Allowance
from toolkit.wire.profile.profile import Profile


class Bound(StrEnum):
    """How an estimate stands to what a load then makes."""

    EXACT = "exact"
    AT_MOST = "at most"
    AT_LEAST = "at least"
    ABOUT = "about"

    @classmethod
    def of_sum(cls, bounds: Iterable[Bound]) -> Bound:
        """Return the bound of a sum of estimates.

        >>> print(Bound.of_sum([Bound.EXACT, Bound.AT_MOST]))
        at most
        >>> print(Bound.of_sum([Bound.AT_LEAST, Bound.AT_MOST]))
        about
        """
        found = set(bounds) - {cls.EXACT}
        return cls.ABOUT if len(found) > 1 else found.pop() if found else cls.EXACT


@dataclass(frozen=True, slots=True)
class Expected:
    """What a store holds of a stream: its first row (s), and rows per second of what was answered.

    ``regular`` where each step between the first and the last row has its row. ``step_s`` is the
    stream's own step, else the commonest of its kind: then ``assumed`` is true.
    """

    first_ts: int | None = None
    regular: bool = False
    step_s: int | None = None
    assumed: bool = False
    rows_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rows or documents expected (None: not known) and requests, and what the latter are."""

    rows: int | None
    requests: int
    bound: Bound


def estimate(profile: Profile, task: Task, held: Expected) -> Estimate:
    """Estimate what a task will bring and make.

    A snapshot is one request. A log's window is a page at least, and more by the density of what is
    held. Of a trajectory see `pages_of_rows`: exact where its rows follow each other by the step,
    the stretch is over, and a row before it is held. Where none is, one more request finds the
    archive's first row. Where rows are absent it is fewer.
    """
    if isinstance(task, SnapshotTask):
        return Estimate(1, 1, Bound.EXACT)
    if isinstance(task, LogTask):
        if held.rows_per_s is None:
            return Estimate(None, 1, Bound.AT_LEAST)
        rows = round(held.rows_per_s * task.window.length_s)
        limit = profile.events[task.stream.family].limit
        return Estimate(rows, max(1, math.ceil(rows / limit)), Bound.ABOUT)
    if held.step_s is None:
        return Estimate(None, 1, Bound.AT_LEAST)
    visible = visible_part(task.stretch, task.edge, held.step_s, task.stream.family)
    rows = rows_expected(visible, held.step_s, task.edge.tail_ts or 0)
    reached, start = task.edge.reachable_from, task.stretch.start
    first = not _begins_before(task, held) or (reached or start) > start - held.step_s
    return Estimate(rows, pages_of_rows(rows, task.page_rows, first=first), _bound(task, held))


def _bound(task: TrajectoryTask, held: Expected) -> Bound:
    """Return what the requests of a trajectory's task are."""
    final = task.edge.clock - task.edge.delay_s - (held.step_s or 0)
    bounds = [
        Bound.ABOUT if held.assumed else Bound.EXACT,
        Bound.AT_LEAST if task.stretch.end > final else Bound.EXACT,  # more rows appear meanwhile
        Bound.EXACT if held.regular and _begins_before(task, held) else Bound.AT_MOST,
        Bound.AT_MOST if not difference([task.stretch], task.before) else Bound.EXACT,
    ]
    return Bound.of_sum(bounds)


def _begins_before(task: TrajectoryTask, held: Expected) -> bool:
    """Check whether a row before a task's stretch is held."""
    return held.first_ts is not None and held.first_ts < task.stretch.start


def visible_part(part: Interval, edge: Edge, step_s: int, family: Family) -> Interval:
    """Return the part whose rows the service shows by now: a bar when it is over.

    >>> tuple(visible_part(Interval(0, 900), Edge(600, delay_s=60), 60, Family.PRICE))
    (0, 481)
    """
    lasts_s = 0 if family is Family.FUNDING else step_s
    until = edge.served_at - edge.delay_s - lasts_s + 1
    return Interval(part.start, max(part.start, min(part.end, until)))


def rows_expected(part: Interval, step_s: int, at: int) -> int:
    """Count the rows in a part, one per step, one of them at ``at`` (s).

    >>> rows_expected(Interval(0, 120), 60, 0), rows_expected(Interval(1, 120), 60, 0)
    (2, 1)
    """
    return max(0, (part.end - 1 - at) // step_s - (part.start - 1 - at) // step_s)


def pages_of_rows(rows: int, limit: int, *, first: bool) -> int:
    """Return the requests that the pager makes for so many rows, ``limit`` per page.

    A long stretch is asked for in slices. In each, every page after the first repeats the oldest
    row before it. A page with a row from before the stretch is the last. With ``first`` there is
    none: one more page, that brings nothing, ends it.

    >>> [pages_of_rows(rows, 500, first=False) for rows in (0, 1, 499, 500, 998, 999)]
    [1, 1, 1, 2, 2, 3]
    >>> [pages_of_rows(rows, 500, first=True) for rows in (0, 1, 500, 501)]
    [2, 2, 2, 3]
    """
    newest, *others = slices(max(0, rows - limit), limit, 1)
    parts = [min(rows, limit) + newest, *others]
    one_more = [False] * len(others) + [first]
    return sum(_pages(part, limit, first=last) for part, last in zip(parts, one_more, strict=True))


def _pages(rows: int, limit: int, *, first: bool) -> int:
    if first:
        return max(1, math.ceil((rows - 1) / (limit - 1))) + 1
    return max(1, math.ceil(rows / (limit - 1)))


def quota_wait_s(requests: int, allowance: Allowance | None) -> int | None:
    """Return how long a quota makes so many requests wait (s), None where it is not known.

    What is left of the window goes first, then a whole quota each window.

    >>> plan = Allowance("builder", quota=600, window_s=60, left=100, reset_s=20)
    >>> [quota_wait_s(requests, plan) for requests in (100, 101, 700, 701)]
    [0, 20, 20, 80]
    """
    if allowance is None or not allowance.quota or allowance.window_s is None:
        return None
    left = allowance.quota if allowance.left is None else allowance.left
    if requests <= left:
        return 0
    reset_s = allowance.window_s if allowance.reset_s is None else allowance.reset_s
    return reset_s + (math.ceil((requests - left) / allowance.quota) - 1) * allowance.window_s
