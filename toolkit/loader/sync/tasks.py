"""The units of a load and the threads that carry them out.

A unit is a stretch of a trajectory, a window of an event log, or a snapshot. A log's window is
answered for only when its last page has come, so a killed load asks for it again. Neighbouring
windows share a second, because the service decides whether a window's end belongs to it.
"""

from __future__ import annotations

import math
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise

import numpy as np
import polars as pl

from toolkit.client import Client
from toolkit.ending import under_way
from toolkit.intervals import Interval, clip, difference, union
from toolkit.market import EventLog, SnapshotLog, Trajectory
from toolkit.store import Batch, Edge, Snapshot, rowless_parts, settled_after_s
from toolkit.store.writing.pages import KeptPage, packed_page
from toolkit.wire.event_log import EventPage
from toolkit.wire.findings import Finding, LostStretch
from toolkit.wire.history_page import Page
from toolkit.wire.rows.rows import column_schema
from toolkit.wire.rows.snapshot_rows import split_snapshot

_PAGES_A_SLICE, _SLICES = 4, 64
_DOCUMENT_ROWS = 10
_KEYS = {"event_id": pl.String, "event_type": pl.String, "ts_ms": pl.Int64, "ts": pl.Int64}


@dataclass(frozen=True, slots=True)
class Piece:
    """What one page brings: ``put`` adds it to a batch. The rest is for the count.

    ``re_asked``: all of it was answered before. ``others``: tasks left to other workers. ``pages``
    is 0 where nothing was asked for it. ``row_size``: how many rows of a history take as much
    memory as one of its rows.
    """

    put: Callable[[Batch], object]
    rows: int
    answered_s: int
    findings: Sequence[Finding] = ()
    re_asked: bool = False
    others: Sequence[TrajectoryTask] = ()
    pages: int = 1
    row_size: int = 1


def slices(length_s: int, page_rows: int, step_s: int) -> list[int]:
    """Cut a length (s) into slices of a few whole pages, the newest first, the last one longer.

    >>> slices(60 * 1_000, 101, 60)
    [23940, 36060]
    """
    longest_s = (_PAGES_A_SLICE * (page_rows - 1) - 1) * step_s
    if longest_s <= 0 or length_s < 2 * longest_s:
        return [length_s]
    longest_s *= -(-length_s // (longest_s * _SLICES))
    whole = (length_s - longest_s - 1) // longest_s
    return [longest_s] * whole + [length_s - whole * longest_s]


@dataclass(slots=True)
class _Beginning:
    """The second before which a trajectory has no row, None so far. What is lost."""

    ts: int | None = None
    lost: tuple[LostStretch, ...] = ()


class _OfStretch:
    """What tasks of a stretch have in common."""

    __slots__ = ()
    stretch: Interval
    edge: Edge

    @property
    def asked_s(self) -> int:
        """Seconds of the stretch."""
        return self.stretch.length_s

    @property
    def deadline(self) -> int | None:
        """When its oldest second leaves the archive. See `Edge.leaves_at`."""
        return self.edge.leaves_at(self.stretch.start)


@dataclass(slots=True)
class TrajectoryTask(_OfStretch):
    """A stretch of a trajectory, asked for from its newest page on.

    Once its first page shows how much time a page has, what is older than a few more pages is left
    to others, in slices that do not depend on the number of workers. ``before`` was answered
    already. Pages go into the batch if it ``keeps_pages``.
    """

    stream: Trajectory
    stretch: Interval
    edge: Edge
    page_rows: int
    before: Sequence[Interval] = ()
    keeps_pages: bool = True
    steps: Counter[int] = field(default_factory=Counter)
    oldest: int | None = None
    beginning: _Beginning | None = None

    def __post_init__(self) -> None:
        # A load of few rows: two of them beside a hole are not a new spacing.
        if self.edge.step_s:
            self.steps[self.edge.step_s] += 1

    def fetch(self, client: Client) -> Iterator[Piece]:
        """Ask for the stretch. Each page answers for the part of it that it completes."""
        begins = self.beginning.ts if self.beginning else None
        nothing_older = begins is not None and self.stretch.end <= begins
        if self.beginning and nothing_older:
            none = column_schema(self.stream.family).to_frame()
            pages = iter([Page(none, self.stretch, (), lost=self.beginning.lost)])
        else:
            pages = client.pages(self.stream, self.stretch, floor=lambda: self.stretch.start)
        for page in pages:
            answers = page.answers if self.keeps_pages else ()
            page = replace(page, answers=())  # noqa: PLW2901 - they are large
            part = page.window or page.answered
            packed = [packed_page(KeptPage(self.stream, part, answer)) for answer in answers]
            put = partial(self._put, page, packed, *self._observe(page))
            others: list[TrajectoryTask] = []
            if self.oldest is not None and self.beginning is None:
                others = self._left_to_others(page.frame.height, self.oldest)
            if self.beginning and page.is_oldest:
                self.beginning.lost = page.lost  # first: other threads wait for ts
                self.beginning.ts = self.stretch.start
            rows, answered_s = page.frame.height, page.answered.length_s
            again = not difference([page.answered if answered_s else self.stretch], self.before)
            asked = not nothing_older
            yield Piece(put, rows, answered_s, page.findings, asked and again, others, int(asked))

    def _left_to_others(self, rows: int, oldest: int) -> list[TrajectoryTask]:
        """Cut off what is older than some pages of so many rows, in slices of as many."""
        self.beginning = _Beginning()
        start, end = self.stretch
        step_s = self.edge.step_s or 0
        cuts = [oldest, *(oldest - x for x in accumulate(slices(oldest - start, rows, step_s)))]
        self.stretch = Interval(cuts[1], end)
        return [
            replace(self, stretch=Interval(low, high), steps=Counter(self.steps), oldest=None)
            for high, low in pairwise(cuts[1:])
        ]

    def _observe(self, page: Page) -> tuple[list[Interval], Edge]:
        """Return where rows may still appear, and the edge with their spacing and newest end."""
        times = page.frame["ts"].to_numpy()
        spacings, counts = np.unique(np.abs(np.diff(times)), return_counts=True)
        self.steps.update(dict(zip(spacings.tolist(), counts.tolist(), strict=True)))
        self.steps.pop(0, None)
        if self.steps:
            most = max(self.steps.values())
            step_s = min(step for step, count in self.steps.items() if count == most)
            self.edge = replace(self.edge, step_s=step_s)
        also = [second.start for second in page.missing]
        also += [] if self.oldest is None else [self.oldest]
        known = np.concatenate([times, np.array(also, dtype=np.int64)])
        if self.oldest is None:
            end = int(times.max()) + (self.edge.step_s or 1) if times.size else page.answered.start
            if times.size or self.edge.tail_ts is None:
                self.edge = replace(self.edge, tail_ts=max(self.edge.tail_ts or end, end))
        if times.size:
            self.oldest = int(times.min())
        edge = self.edge
        holes = rowless_parts(
            page.answered,
            pl.Series("ts", known),
            edge.step_s,
            young_from=edge.clock - edge.delay_s - settled_after_s(edge.late_s),
            reach_s=self.page_rows * (edge.step_s or 1),
        )
        return holes, edge

    def _put(
        self, page: Page, packed: Sequence[bytes], still: list[Interval], edge: Edge, batch: Batch
    ) -> None:
        batch.pages += packed
        batch.add(
            self.stream,
            page.frame,
            page.answered,
            edge,
            open_parts=still,
            tied=page.tied,
            missing=page.missing,
            lost=page.lost,
        )


@dataclass(frozen=True, slots=True)
class LogTask(_OfStretch):
    """One window of an event log, to be paged to its end. ``before`` as of a trajectory."""

    stream: EventLog
    stretch: Interval
    edge: Edge
    before: Sequence[Interval] = ()

    def fetch(self, client: Client) -> Iterator[Piece]:
        """Ask for the window. Its last page answers for all of it."""
        shared = Interval(self.stretch.start, self.stretch.end + 1)
        keys, missing = [pl.DataFrame(schema=_KEYS)], list[Interval]()
        edge, lost = self.edge, dict[LostStretch, None]()
        for page in client.event_pages(self.stream.family, shared):
            keys.append(page.frame.select(pl.col(name).cast(kind) for name, kind in _KEYS.items()))
            if page.frame.height:
                newest = max(edge.tail_ts or 0, int(page.frame["ts"].to_numpy().max()))
                edge = replace(edge, tail_ts=newest)
            answered_s = self.asked_s if page.last else 0
            missing = union([*missing, *page.missing])
            lost |= dict.fromkeys(page.lost)
            put = partial(self._put, page, keys, edge, missing=missing, lost=tuple(lost))
            again = not difference([self.stretch], self.before)
            rows = page.frame.height
            yield Piece(put, rows, answered_s, page.findings, again, row_size=_DOCUMENT_ROWS)

    def _put(
        self,
        page: EventPage,
        keys: Sequence[pl.DataFrame],
        edge: Edge,
        batch: Batch,
        *,
        missing: Sequence[Interval],
        lost: Sequence[LostStretch],
    ) -> None:
        """Put a page in. The window stays open where it is young, all of it where nothing came."""
        if not page.last:
            batch.add_documents(self.stream, page.frame, None, edge)
            return
        archived = pl.concat(keys)
        young_from = edge.clock - edge.delay_s - settled_after_s(edge.late_s)
        start = max(self.stretch.start, young_from) if archived.height else self.stretch.start
        still = clip([self.stretch], (start, max(start, self.stretch.end)))
        batch.add_documents(
            self.stream,
            page.frame,
            self.stretch,
            edge,
            open_parts=still,
            archived=archived,
            missing=missing,
            lost=lost,
        )


@dataclass(frozen=True, slots=True)
class SnapshotTask:
    """One snapshot, kept with the service's clock at its answer. Its odd items are findings.

    ``period_s`` is how often it is asked for (s), None for once.
    """

    stream: SnapshotLog
    period_s: int | None = None
    stretch: None = None
    asked_s: int = 0
    deadline: int | None = None

    def fetch(self, client: Client) -> Iterator[Piece]:
        """Ask for it once."""
        yield self.ask(client)[1]

    def ask(self, client: Client) -> tuple[bytes, Piece]:
        """Return the service's answer, and what brings it with the service's clock into a batch."""
        findings: list[Finding] = []
        document = client.snapshot(self.stream.of.value, findings)
        snapshot = Snapshot(self.stream, client.served_at(), document, self.period_s)
        odd = split_snapshot(self.stream.of, document).findings
        findings.extend(finding for finding, times in odd.items() for _ in range(times))
        edge = Edge(snapshot.served_at)
        return document, Piece(lambda batch: batch.add_snapshot(snapshot, edge), 1, 0, findings)


Task = TrajectoryTask | LogTask | SnapshotTask
"""Something to be asked for: of which stream, how many seconds of it, until when, its pages."""


def by_deadline(tasks: Iterable[Task]) -> list[Task]:
    """Sort tasks by what leaves the archive first. What never leaves it comes last, as it was.

    >>> from toolkit.market import Stream
    >>> log = LogTask(Stream.parse("events/splash"), Interval(60, 90), Edge(120, retention_s=60))
    >>> tasks = [SnapshotTask(Stream.parse("snapshot/spread")), log]
    >>> [(str(task.stream), task.deadline) for task in by_deadline(tasks)]
    [('events/splash', 120), ('snapshot/spread', None)]
    """
    return sorted(tasks, key=lambda task: math.inf if task.deadline is None else task.deadline)


_LOOK_S = 0.5  # a wait without an end would not notice that the load was stopped


class _TaskQueue:
    """The tasks that no worker has taken yet. One under way may add others."""

    def __init__(self, tasks: Sequence[Task], stop: threading.Event) -> None:
        self._tasks = deque(tasks)
        self._unfinished = len(tasks)
        self._stop = stop
        self._turn = threading.Condition()

    def __iter__(self) -> Iterator[Task]:
        """Yield one task after another, until all are done."""
        while task := self._next():
            yield task
            self.add(-1)

    def _next(self) -> Task | None:
        with self._turn:
            while self._unfinished and not self._stop.is_set():
                if self._tasks:
                    return self._tasks.popleft()
                self._turn.wait(_LOOK_S)
        return None

    def add(self, number: int, tasks: Sequence[Task] = ()) -> None:
        """Count so many more unfinished tasks, and put in those that wait."""
        with self._turn:
            self._unfinished += number
            self._tasks.extendleft(reversed(tasks))
            self._turn.notify_all()


def workers_on(
    tasks: Sequence[Task],
    fetch: Callable[[Task], Iterable[Piece]],
    done: Callable[[BaseException | None], object],
    *,
    workers: int,
    stop: threading.Event,
) -> list[threading.Thread]:
    """Return threads, not started, that take all pieces of each task until ``stop`` is set.

    The tasks that a piece leaves to others come next. Each thread calls ``done`` at its end, with
    the error that ended it, or None. They are daemons, and the end of the process sets ``stop``.
    """
    waiting = _TaskQueue(tasks, stop)

    def work() -> None:
        try:
            with under_way(stop.set):
                for task in waiting:
                    for piece in fetch(task):
                        waiting.add(len(piece.others), piece.others)
            done(None)
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            done(error)

    return [
        threading.Thread(target=work, daemon=True, name=f"rail-{i}")
        for i in range(workers if tasks else 0)
    ]
