"""The units of a load: a stretch of a trajectory, a window of an event log, a snapshot.

A log's window is answered for only when its last page has come, so a killed load asks for the
windows under way again and finds their documents held. Neighbouring windows share a second, because
whether a window's end belongs to it is for the service to decide. What comes twice is stored once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.market import EventLog, SnapshotLog, Trajectory
from toolkit.store import Batch, Edge, Snapshot
from toolkit.wire.events import EventPage
from toolkit.wire.paging import Page
from toolkit.wire.profile import Finding

__all__ = ["LogTask", "Piece", "SnapshotTask", "Task", "TrajectoryTask"]


@dataclass(frozen=True, slots=True)
class Piece:
    """What one page brings: ``put`` adds it to a batch. The rest is for the count."""

    put: Callable[[Batch], object]
    rows: int
    answered_s: int
    findings: Sequence[Finding] = ()


class Task(Protocol):
    """Something to be asked for: how long it is, and its pages, one after another."""

    @property
    def asked_s(self) -> int:
        """Seconds to be answered for."""

    def fetch(self, client: Client) -> Iterator[Piece]:
        """Ask for it, page by page. Runs in a worker."""


@dataclass(slots=True)
class TrajectoryTask:
    """A stretch of a trajectory, asked for from its newest page on."""

    trajectory: Trajectory
    stretch: Interval
    edge: Edge
    steps: Counter[int] = field(default_factory=Counter)
    begun: bool = False

    def __post_init__(self) -> None:
        # A load of few rows: two of them beside a hole are not a new spacing.
        if self.edge.step_s:
            self.steps[self.edge.step_s] += 1

    @property
    def asked_s(self) -> int:
        """Seconds of the stretch."""
        return self.stretch.length_s

    def fetch(self, client: Client) -> Iterator[Piece]:
        """Ask for the stretch. Each page answers for the part of it that it completes."""
        for page in client.pages(self.trajectory, self.stretch):
            put = partial(_put_rows, self.trajectory, page, self._observe(page))
            yield Piece(put, page.frame.height, page.answered.length_s, page.findings)

    def _observe(self, page: Page) -> Edge:
        """Return the edge with the spacing of the rows so far and the end of the newest."""
        times = page.frame["ts"].to_numpy()
        spacings, counts = np.unique(np.abs(np.diff(times)), return_counts=True)
        self.steps.update(dict(zip(spacings.tolist(), counts.tolist(), strict=True)))
        self.steps.pop(0, None)
        if self.steps:
            most = max(self.steps.values())
            step_s = min(step for step, count in self.steps.items() if count == most)
            self.edge = replace(self.edge, step_s=step_s)
        if not self.begun:
            self.begun = bool(times.size)
            ends = int(times.max()) + (self.edge.step_s or 1) if self.begun else None
            self.edge = replace(self.edge, tail_ts=page.answered.start if ends is None else ends)
        return self.edge


def _put_rows(trajectory: Trajectory, page: Page, edge: Edge, batch: Batch) -> None:
    batch.add(trajectory, page.frame, page.answered, edge, page.tied)


@dataclass(frozen=True, slots=True)
class LogTask:
    """One window of an event log, to be paged to its end."""

    log: EventLog
    window: Interval
    edge: Edge

    @property
    def asked_s(self) -> int:
        """Seconds of the window."""
        return self.window.length_s

    def fetch(self, client: Client) -> Iterator[Piece]:
        """Ask for the window. Its last page answers for all of it."""
        shared = Interval(self.window.start, self.window.end + 1)
        for page in client.event_pages(self.log.family, shared):
            answered_s = self.asked_s if page.last else 0
            yield Piece(partial(self._put, page), page.frame.height, answered_s, page.findings)

    def _put(self, page: EventPage, batch: Batch) -> None:
        answered = self.window if page.last else None
        batch.add_documents(self.log, page.frame, answered, self.edge)


@dataclass(frozen=True, slots=True)
class SnapshotTask:
    """One snapshot, kept whole with the service's clock at its answer."""

    log: SnapshotLog

    @property
    def asked_s(self) -> int:
        """Return 0: a snapshot is of a moment."""
        return 0

    def fetch(self, client: Client) -> Iterator[Piece]:
        """Ask for it once."""
        snapshot = Snapshot(self.log, 0, client.snapshot(self.log.of.value))
        snapshot = replace(snapshot, served_at=client.served_at())
        yield Piece(partial(self._put, snapshot), 1, 0)

    def _put(self, snapshot: Snapshot, batch: Batch) -> None:
        batch.add_snapshot(snapshot, Edge(snapshot.served_at))
