"""What to ask for: of each stream, the parts of the windows that the ledger lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolkit.intervals import Interval, difference, split
from toolkit.loader.clock import ClockReading
from toolkit.loader.tasks import LogTask, SnapshotTask, Task, TrajectoryTask
from toolkit.market import EventLog, SnapshotLog, Stream, Trajectory
from toolkit.store import Edge, Ledger, due_parts, joined, to_ask
from toolkit.wire.profile import Profile

_DAY_S = 86_400


@dataclass(slots=True)
class LoadPlan:
    """Tasks, and the parts of the windows that the service no longer reaches nor the store holds.

    Trajectories come first, then the logs' windows, the oldest first since it leaves the archive
    soonest, then snapshots.
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
) -> LoadPlan:
    """Plan a load of the windows of some streams: what is not answered for, or ``again`` all.

    What was answered without the last word is asked for again when it is due.
    """
    found = LoadPlan()
    logs: list[LogTask] = []
    snapshots: list[Task] = []
    for stream, asked in windows.items():
        if isinstance(stream, SnapshotLog):
            snapshots.append(SnapshotTask(stream))
            continue
        known = ledger.get(stream, Ledger(None))
        edge = edge_of(profile, stream, known, clock)
        rows = profile.histories[stream.family].limit if isinstance(stream, Trajectory) else 0
        # rows between two parts cost no more requests than two questions, where a page holds them
        due = joined(due_parts(known.provisional, clock.served_at), rows * (edge.step_s or 0))
        answered = [] if again else difference(known.answered, due)
        parts = [part for window in asked for part in to_ask(window, answered, edge)]
        if isinstance(stream, EventLog):
            longest_s = min(_DAY_S, profile.events[stream.family].longest_window_s - 1)
            logs += [LogTask(stream, p, edge) for part in parts for p in split(part, longest_s)]
        elif isinstance(stream, Trajectory):
            found.tasks += [TrajectoryTask(stream, part, edge, rows) for part in parts]
        if lost := difference(_beyond(asked, edge), known.answered):
            found.unrecoverable[stream] = lost
    found.tasks += [*sorted(logs, key=lambda task: task.window), *snapshots]
    return found


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
        return replace(
            edge, delay_s=route.delay_s, retention_s=route.retention_s, step_s=before.step_s
        )
    return edge


def _beyond(windows: Iterable[Interval], edge: Edge) -> list[tuple[int, int]]:
    """Return the parts of the windows that the plan no longer reaches."""
    oldest = edge.reachable_from
    if oldest is None:
        return []
    return [(window.start, min(oldest, window.end)) for window in windows]
