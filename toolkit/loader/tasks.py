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

import numpy as np
import polars as pl

from toolkit.client import Client
from toolkit.intervals import Interval, clip, union
from toolkit.market import EventLog, SnapshotLog, Trajectory
from toolkit.store import Batch, Edge, Snapshot, rowless_parts, settled_after_s
from toolkit.wire.events import EventPage
from toolkit.wire.paging import Page
from toolkit.wire.profile import Finding

_KEYS = {"event_id": pl.String, "event_type": pl.String, "ts_ms": pl.Int64, "ts": pl.Int64}


@dataclass(frozen=True, slots=True)
class Piece:
    """What one page brings: ``put`` adds it to a batch. The rest is for the count."""

    put: Callable[[Batch], object]
    rows: int
    answered_s: int
    findings: Sequence[Finding] = ()


@dataclass(slots=True)
class TrajectoryTask:
    """A stretch of a trajectory, asked for from its newest page on."""

    stream: Trajectory
    stretch: Interval
    edge: Edge
    page_rows: int
    steps: Counter[int] = field(default_factory=Counter)
    oldest: int | None = None

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
        for page in client.pages(self.stream, self.stretch):
            put = partial(self._put, page, *self._observe(page))
            yield Piece(put, page.frame.height, page.answered.length_s, page.findings)

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
        known = times if self.oldest is None else np.append(times, self.oldest)
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

    def _put(self, page: Page, still: list[Interval], edge: Edge, batch: Batch) -> None:
        batch.add(self.stream, page.frame, page.answered, edge, open_parts=still, tied=page.tied)


@dataclass(frozen=True, slots=True)
class LogTask:
    """One window of an event log, to be paged to its end."""

    stream: EventLog
    window: Interval
    edge: Edge

    @property
    def asked_s(self) -> int:
        """Seconds of the window."""
        return self.window.length_s

    def fetch(self, client: Client) -> Iterator[Piece]:
        """Ask for the window. Its last page answers for all of it."""
        shared = Interval(self.window.start, self.window.end + 1)
        keys, missing = [pl.DataFrame(schema=_KEYS)], list[Interval]()
        edge = self.edge
        for page in client.event_pages(self.stream.family, shared):
            keys.append(page.frame.select(pl.col(name).cast(kind) for name, kind in _KEYS.items()))
            if page.frame.height:
                newest = max(edge.tail_ts or 0, int(page.frame["ts"].to_numpy().max()))
                edge = replace(edge, tail_ts=newest)
            answered_s = self.asked_s if page.last else 0
            missing = union([*missing, *page.missing])
            put = partial(self._put, page, pl.concat(keys), edge, missing)
            yield Piece(put, page.frame.height, answered_s, page.findings)

    def _put(
        self,
        page: EventPage,
        archived: pl.DataFrame,
        edge: Edge,
        missing: Sequence[Interval],
        batch: Batch,
    ) -> None:
        """Put a page in. The window stays open where it is young, all of it where nothing came."""
        if not page.last:
            batch.add_documents(self.stream, page.frame, None, edge)
            return
        young_from = edge.clock - edge.delay_s - settled_after_s(edge.late_s)
        start = max(self.window.start, young_from) if archived.height else self.window.start
        still = clip([self.window], (start, max(start, self.window.end)))
        batch.add_documents(
            self.stream,
            page.frame,
            self.window,
            edge,
            open_parts=still,
            archived=archived,
            missing=missing,
        )


@dataclass(frozen=True, slots=True)
class SnapshotTask:
    """One snapshot, kept whole with the service's clock at its answer."""

    stream: SnapshotLog
    asked_s: int = 0

    def fetch(self, client: Client) -> Iterator[Piece]:
        """Ask for it once."""
        snapshot = Snapshot(self.stream, 0, client.snapshot(self.stream.of.value))
        snapshot = replace(snapshot, served_at=client.served_at())
        edge = Edge(snapshot.served_at)
        yield Piece(lambda batch: batch.add_snapshot(snapshot, edge), 1, 0)


Task = TrajectoryTask | LogTask | SnapshotTask
"""Something to be asked for: of which stream, how many seconds of it, and its pages."""
