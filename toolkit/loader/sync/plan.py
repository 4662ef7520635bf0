"""The plan of requests: for each stream, the parts of the windows that the ledger lacks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolkit.cards import duration
from toolkit.intervals import Interval, difference, split
from toolkit.loader.sync.tasks import LogTask, SnapshotTask, Task, TrajectoryTask, by_deadline
from toolkit.market import EventLog, Family, SnapshotLog, Stream, Trajectory
from toolkit.store import CLOCK_TOLERANCE_S, Edge, Ledger, due_parts, joined, to_ask, unchanged
from toolkit.wire.findings import Finding
from toolkit.wire.profile.profile import Profile


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The service's clock at a question, the local one (s), and what was odd about the first.

    A clock that agreed with the local one at the last question and is minutes off now has jumped.
    Answers then close nothing after the newest row that came.
    """

    served_at: int
    asked_at: int
    findings: tuple[Finding, ...] = ()

    @property
    def jumped(self) -> bool:
        """Whether the service's clock has just left the local one."""
        return bool(self.findings)

    @classmethod
    def held_against(cls, served_at: int, ledger: Iterable[Ledger]) -> ClockReading:
        """Compare the service's clock with what it was at earlier questions.

        >>> from toolkit.store import Edge
        >>> now = int(time.time())
        >>> before = Ledger(Edge(now - 3600, asked_at=now - 3600))
        >>> jumped = ClockReading.held_against(now + 432_030, [before])
        >>> jumped.findings[0].kind
        'clock_jumped'
        """
        now = int(time.time())
        off_s = served_at - now
        before = [
            known.edge.served_at - known.edge.asked_at
            for known in ledger
            if known.edge is not None and known.edge.asked_at is not None
        ]
        agreed = any(abs(each) <= CLOCK_TOLERANCE_S for each in before)
        if abs(off_s) <= CLOCK_TOLERANCE_S or not agreed:
            return cls(served_at, now)
        side = "ahead of" if off_s > 0 else "behind"
        agreement = "the local clock, with which it agreed at the last question"
        says = f"{duration(abs(off_s))} {side} {agreement}"
        return cls(served_at, now, (Finding("clock_jumped", "the Date header", says),))


_DAY_S = 86_400
_KINDS = (Trajectory, EventLog, SnapshotLog)


@dataclass(slots=True)
class LoadPlan:
    """Tasks, and the parts of the windows that neither the service reaches nor the store has.

    What leaves the archive first comes first, then what is kept for ever, then snapshots.
    """

    tasks: list[Task] = field(default_factory=list)
    unrecoverable: dict[Stream, list[Interval]] = field(default_factory=dict)


def plan(
    profile: Profile,
    ledger: Mapping[Stream, Ledger],
    windows: Mapping[Stream, Sequence[Interval]],
    clock: ClockReading,
    *,
    again: bool = False,
    keeps_pages: bool = True,
) -> LoadPlan:
    """Plan a load of the windows of some streams: what is not answered for, or ``again`` all.

    Provisional answers are asked for again when due. Pages of trajectories are kept with
    ``keeps_pages``.
    """
    tasks: list[Task] = []
    unrecoverable: dict[Stream, list[Interval]] = {}
    for stream, asked in sorted(windows.items(), key=lambda item: _KINDS.index(type(item[0]))):
        if isinstance(stream, SnapshotLog):
            tasks.append(SnapshotTask(stream))
            continue
        known = ledger.get(stream, Ledger(None))
        edge = edge_of(profile, stream, known, clock)
        answered = [] if again else _answered(profile, stream, known, edge)
        parts = [part for window in asked for part in to_ask(window, answered, edge)]
        tasks += _tasks(profile, stream, parts, known, edge, keeps_pages=keeps_pages)
        oldest = edge.reachable_from
        beyond = [] if oldest is None else [(each.start, min(oldest, each.end)) for each in asked]
        if lost := difference(beyond, known.answered):
            unrecoverable[stream] = lost
    return LoadPlan(by_deadline(tasks), unrecoverable)


def _answered(profile: Profile, stream: Stream, known: Ledger, edge: Edge) -> list[Interval]:
    """Return what need not be asked for: answers that are not due, and what is the same."""
    same: list[Interval] = []
    if known.edge is not None:
        bars = stream.kind in (Family.PRICE, Family.SPREAD)
        same = unchanged(known.asked, known.answered, known.edge, edge, bars=bars)
    rows = profile.histories[stream.family].limit if isinstance(stream, Trajectory) else 0
    # rows between two parts cost no more requests than two questions, where a page holds them
    due = joined(due_parts(known.provisional, edge.served_at), rows * (edge.step_s or 0))
    return difference([*known.answered, *same], due)


def _tasks(
    profile: Profile,
    stream: Stream,
    parts: Sequence[Interval],
    known: Ledger,
    edge: Edge,
    *,
    keeps_pages: bool,
) -> list[Task]:
    """Return the tasks that ask for parts of a trajectory or an event log."""
    if isinstance(stream, EventLog):
        longest_s = min(_DAY_S, profile.events[stream.family].window_s - 1)
        windows = [  # which end at midnight if the part is long
            window
            for part in parts
            for window in ([part] if part.length_s <= longest_s else split(part, longest_s))
        ]
        return [LogTask(stream, window, edge, known.answered) for window in windows]
    assert isinstance(stream, Trajectory), "there are three kinds of streams"
    rows = profile.histories[stream.family].limit
    return [TrajectoryTask(stream, part, edge, rows, known.answered, keeps_pages) for part in parts]


def edge_of(profile: Profile, stream: Stream, known: Ledger, clock: ClockReading) -> Edge:
    """Return how far the service answers now for a stream."""
    before = known.edge or Edge(0)
    edge = Edge(
        clock.served_at,
        tail_ts=before.tail_ts,
        asked_at=clock.asked_at,
        late_s=before.late_s,
        jumped=clock.jumped,
    )
    if isinstance(stream, EventLog):
        log = profile.events[stream.family]
        return replace(edge, delay_s=log.delay_s, retention_s=log.retention_s, step_s=0)
    if isinstance(stream, Trajectory):
        route = profile.histories[stream.family]
        edge = replace(edge, delay_s=route.delay_s, settle_s=route.settle_s)
        return replace(edge, retention_s=route.retention_s, step_s=before.step_s)
    return edge
