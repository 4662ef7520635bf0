"""The coverage ledger's arithmetic: from what was answered to what is known of every second.

An answer is *provisional* where more may still arrive: in stretches without rows, and in event logs
younger than a day, since a late archive looks like an empty one. It is asked for again at the ages
`CHECK_AGES_S`, then weekly, as long as the plan reaches it. What brought rows is *settled*.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from toolkit.intervals import Interval, clip, difference, intersection, union
from toolkit.market import Stream
from toolkit.tables import LedgerState

Stretches = Sequence[tuple[int, int]] | NDArray[np.int64]
"""Starts and ends (s), a row for each."""

SETTLE_S = 60
"""Seconds after which a visible row is final, unless the profile says another number.

See docs/concepts.md, "Delay and settling".
"""

LATE_S = 86_400
"""How long after the newest row an empty answer is not taken for the last word."""

CLOCK_TOLERANCE_S = 300
"""How far the service's clock is believed to be ahead of the local one where no row shows it."""

LONGEST_INTERVAL_S = 2 * 86_400
"""No settlement is believed to last longer, whatever its row declares."""

UNKNOWN_STEP_S = 86_400
"""Taken for the rows' spacing while none was observed: long, so that nothing is settled early."""


@dataclass(frozen=True, slots=True)
class Edge:
    """How far a service answers for a stream: its clock, the plan's depth and delay.

    ``tail_ts``: where its newest row ends, None if not seen. ``asked_at``: the local clock at the
    question, None where it does not matter. ``late_s``: how late a row or document once arrived.
    ``settle_s``: how long a visible row may change. ``jumped``: whether the service's clock has
    just left the local one.
    """

    served_at: int
    delay_s: int = 0
    retention_s: int | None = None
    step_s: int | None = None
    tail_ts: int | None = None
    asked_at: int | None = field(default=None, compare=False)
    late_s: int = 0
    settle_s: int = SETTLE_S
    jumped: bool = field(default=False, compare=False)

    @property
    def clock(self) -> int:
        """The service's clock, as far as a row that came or the local clock supports it.

        A clock wrong by days would otherwise close days that have not happened.

        >>> Edge(served_at=900_000, asked_at=100_000).clock
        100300
        >>> Edge(served_at=900_000, asked_at=100_000, tail_ts=899_000).clock
        899000
        """
        if self.jumped:
            return min(self.served_at, self.tail_ts or 0)
        if self.asked_at is None:
            return self.served_at
        return min(self.served_at, max(self.tail_ts or 0, self.asked_at + CLOCK_TOLERANCE_S))

    @property
    def final_before(self) -> int:
        """The second before which an answer counts: rows from here on may still appear.

        A row stamped ts appears at ts + step_s + delay_s and is final ``settle_s`` later. Emptiness
        after a trajectory's newest row counts only once it is older than `LATE_S`. An event log has
        ``step_s`` 0 and may be quiet for any time.

        >>> Edge(served_at=100_000, step_s=60).final_before
        99880
        >>> Edge(served_at=100_000, step_s=60, tail_ts=99_000).final_before
        99000
        """
        step_s = UNKNOWN_STEP_S if self.step_s is None else self.step_s
        on_time = self.clock - self.delay_s - self.settle_s - step_s
        if self.tail_ts is None or step_s == 0:
            return on_time
        return min(on_time, max(self.tail_ts, self.clock - LATE_S))

    @property
    def reachable_from(self) -> int | None:
        """The oldest second the plan still reaches, None for no limit."""
        return None if self.retention_s is None else self.served_at - self.retention_s

    def leaves_at(self, ts: int) -> int | None:
        """Return when a second leaves what the plan reaches (Unix s), None for never.

        >>> Edge(1000, retention_s=600).leaves_at(500), Edge(1000).leaves_at(500)
        (1100, None)
        """
        return None if self.retention_s is None else ts + self.retention_s


@dataclass(frozen=True, slots=True)
class Gap:
    """A loss of live capture of the stream ``of``, from ``start`` to ``end`` (s).

    ``end`` is None while it is lost. ``number`` is unique in its load.
    """

    number: int
    of: Stream
    start: int
    end: int | None
    cause: str


def unchanged(
    asked: Sequence[tuple[int, int]],
    answered: Iterable[tuple[int, int]],
    before: Edge,
    now: Edge,
    *,
    bars: bool,
) -> list[Interval]:
    """Return the seconds after the last final one that need not be asked for again yet.

    Until the service's clock moves, what was ``asked`` is the same. Of ``bars``, rows that follow
    each other by the step, it is the same until the next one is due or one becomes final, but only
    of one stretch up to the last answer: an answer for what is missing beside it would make rows
    final that did not come.

    >>> before = Edge(served_at=1000, step_s=60, tail_ts=960)
    >>> for clock in (1000, 1019, 1020):
    ...     now = Edge(served_at=clock, step_s=60, tail_ts=960)
    ...     unchanged([(0, 1000)], [(0, 880)], before, now, bars=True)
    [Interval(start=880, end=1000)]
    [Interval(start=880, end=1019)]
    []
    """
    final = before.final_before
    young = clip(asked, (final, before.served_at))
    # of what is all younger than the last final second, no answer is in the ledger
    known = any(start < final <= end for start, end in answered)
    known |= all(start >= final for start, _ in asked)
    whole = [end for _, end in young] == [before.served_at]
    moved = before.served_at != now.served_at
    changed = moved and not (bars and whole and _same_bars(before, now))
    as_before = (now.delay_s, now.settle_s) == (before.delay_s, before.settle_s)
    if changed or not known or now.jumped or not as_before:
        return []
    return union([*young, (before.served_at, now.served_at)])


def _same_bars(before: Edge, now: Edge) -> bool:
    """Check that no bar can have appeared or become final between two of the service's clocks."""
    tail, step_s, delay_s = before.tail_ts, before.step_s, before.delay_s
    if (
        tail is None
        or not step_s
        or not before.served_at <= now.served_at < tail + step_s + delay_s
    ):
        return False
    last_final = [
        (edge.served_at - delay_s - edge.settle_s - tail - 1) // step_s for edge in (before, now)
    ]
    return last_final[0] == last_final[1]


def to_ask(window: Interval, answered: Iterable[tuple[int, int]], edge: Edge) -> list[Interval]:
    """Return the parts of the window to ask for: reachable, begun, and not answered for yet.

    >>> edge = Edge(served_at=1000, retention_s=800, step_s=60)
    >>> [tuple(i) for i in to_ask(Interval(0, 2000), [(300, 400)], edge)]
    [(200, 300), (400, 1000)]
    """
    oldest = window.start if edge.reachable_from is None else edge.reachable_from
    open_part = intersection([window], [(oldest, edge.served_at)])
    return difference(open_part, answered)


def states(
    window: Interval,
    answered: Sequence[tuple[int, int]],
    held: Stretches,
    edge: Edge,
    *,
    settled: bool = False,
    lost: Sequence[tuple[int, int]] = (),
) -> pl.DataFrame:
    """Return what is known of every second of the window, in order, without gaps or overlaps.

    The columns are those of `toolkit.store.Store.coverage`. ``answered`` is the ledger, ``held``
    the stretches with rows. Rows outside the ledger are not yet known, or held if ``settled`` once
    visible, as those of funding. What the source has ``lost`` is lost even where one leg's row is.
    """
    oldest = window.start if edge.reachable_from is None else edge.reachable_from
    answers, rows, losses = _apart(answered), _apart(held), _apart(lost)
    ends = [*answers.ravel(), *losses.ravel(), *window, edge.final_before, oldest]
    cuts = np.unique(np.clip(np.append(rows.ravel(), ends), *window))
    starts = cuts[:-1]
    inside = _lies_in(starts, answers)
    rules = [
        (_lies_in(starts, losses), LedgerState.LOST),
        ((inside | settled) & _lies_in(starts, rows), LedgerState.HELD),
        (inside, LedgerState.EMPTY),
        (starts >= edge.final_before, LedgerState.UNKNOWN),
        (starts < oldest, LedgerState.UNRECOVERABLE),
    ]
    words = pl.Series([*(state.value for _, state in rules), LedgerState.MISSING.value])
    found = np.select([mask for mask, _ in rules], range(len(rules)), len(rules))
    begun = np.flatnonzero(np.diff(found, prepend=-1))
    bounds = np.append(starts[begun], window.end)
    return pl.DataFrame(
        {"start_ts": bounds[:-1], "end_ts": bounds[1:], "state": words[found[begun]]}
    )


def _apart(parts: Stretches) -> NDArray[np.int64]:
    """Return the seconds of all parts as parts in order and apart, as `toolkit.intervals.union`."""
    each = np.array(parts, dtype=np.int64).reshape(-1, 2)
    starts, ends = each[each[:, 0] < each[:, 1]].T
    order = np.argsort(starts, kind="stable")
    starts, reached = starts[order], np.maximum.accumulate(ends[order])
    begun = np.flatnonzero(starts > np.append(np.iinfo(np.int64).min, reached)[:-1])
    return np.column_stack([starts[begun], reached[np.append(begun, starts.size)[1:] - 1]])


def _lies_in(ts: NDArray[np.int64], parts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Check of each second whether it lies in one of the parts, which are in order and apart."""
    starts, ends = parts.T
    before = np.searchsorted(starts, ts, side="right")
    return (before > 0) & (ts < np.append(ends, 0)[before - 1])


def stretches(times: pl.Series, step_s: int, apart_s: int) -> NDArray[np.int64]:
    """Find the stretches with rows at most ``apart_s`` apart, in order: start and end.

    ``times`` are the rows' ts, in any order. Each row lasts ``step_s``.
    """
    ts = np.sort(times.to_numpy())  # of polars the same costs 10 times as much for a page
    breaks = np.flatnonzero(np.diff(ts) > max(apart_s, step_s))
    firsts, lasts = ts[[0, *(breaks + 1)][: ts.size]], ts[[*breaks, -1][: ts.size]]
    return np.column_stack([firsts, lasts + step_s])


def settled_stretches(
    times: pl.Series, declared_s: pl.Series, step_s: int, apart_s: int | None
) -> NDArray[np.int64]:
    """Find the stretches that have rates of funding, whose interval may change between rows.

    ``times`` are in order, ``declared_s`` is the interval each row declares (s, or null). A row
    lasts its interval, or ``step_s`` where the next follows sooner. Two rows are of one stretch if
    at most ``apart_s`` apart, by default 1.5 times the longer of the two.
    """
    ts = times.to_numpy()
    told_s = declared_s.fill_null(step_s).clip(1, LONGEST_INTERVAL_S).to_numpy()
    spacing_s = np.diff(ts)
    follows_s = np.append(spacing_s, spacing_s[-1:] if ts.size > 1 else told_s)[: ts.size]
    lasts_s = np.where(3 * follows_s < 2 * told_s, step_s, told_s)
    longer_s = np.maximum(lasts_s[:-1], lasts_s[1:])
    reach_s = longer_s * 3 // 2 if apart_s is None else np.maximum(apart_s, lasts_s[:-1])
    breaks = np.flatnonzero(spacing_s > reach_s)
    firsts, lasts = [0, *(breaks + 1)][: ts.size], [*breaks, -1][: ts.size]
    return np.column_stack([ts[firsts], ts[lasts] + lasts_s[lasts]])


def final_part(answered: Interval, edge: Edge) -> list[Interval]:
    """Return the part of a fresh answer that the ledger may record."""
    return clip([answered], (min(answered.start, edge.final_before), edge.final_before))


CHECK_AGES_S = (120, 600, 3_600, 21_600, 86_400)
"""The ages of a provisional answer at which it is asked for again (s). Weekly after the last."""

_WEEK_S = 7 * 86_400


class Provisional(NamedTuple):
    """A stretch ``[start, end)``, and the service's clock at its first and its last answer (s)."""

    start: int
    end: int
    first_served_at: int
    served_at: int

    @property
    def checks(self) -> int:
        """How many of the ages to ask again were reached at the last answer."""
        return _checks(self.served_at - self.first_served_at)


def _checks(age_s: int) -> int:
    return bisect_right(CHECK_AGES_S, age_s) + max(0, age_s - CHECK_AGES_S[-1]) // _WEEK_S


def settled_after_s(late_s: int) -> int:
    """Return the age from which documents that came are all there are (s).

    ``late_s`` is how late something of the stream once arrived.

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

    Parts keep the time of their first answer. Neighbours that were asked for again as often become
    one, with the earlier times.
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
    """Return the provisional stretches outside what is settled."""
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

    From the first document held, ``first_ts``, on it did reach. ``retention_s`` is None for no
    limit.

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

    ``times`` are the ts of its rows, and of the row above it. A hole is such a part if it begins or
    ends the answer, is longer than ``reach_s``, or ends after ``young_from`` (s). Parts at most
    ``reach_s`` apart are one. Without a known step the whole answer is one.

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
