"""The batch that goes into a store together, and a load's record of itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from toolkit.intervals import Interval, union
from toolkit.market import EventFamily, EventLog, Family, SnapshotLog, Stream, Trajectory
from toolkit.store.ledger.ledger import Edge, Gap, Provisional
from toolkit.wire.findings import LostStretch, lost_within
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS, EventRoute
from toolkit.wire.quota import Allowance


@dataclass(frozen=True, slots=True)
class Ledger:
    """What is known of a stream: how far the service answers, what was answered, what was asked.

    ``edge`` is None while the service has answered nothing. What its source has ``lost`` is not
    among what was answered.

    >>> known = Ledger(None, [Interval(0, 60)], [Provisional(60, 90, 9, 9)])
    >>> [tuple(part) for part in known.answered]
    [(0, 90)]
    """

    edge: Edge | None
    settled: list[Interval] = field(default_factory=list)
    provisional: list[Provisional] = field(default_factory=list)
    asked: list[Interval] = field(default_factory=list)
    lost: list[Provisional] = field(default_factory=list)

    @property
    def answered(self) -> list[Interval]:
        """What the service has answered for, so far or for good."""
        return union([*self.settled, *((part.start, part.end) for part in self.provisional)])


@dataclass(frozen=True, slots=True)
class Answered:
    """A stretch that a page answers for, and the parts in which more may still arrive.

    ``archived`` has event_id, event_type, ts_ms and ts of all that the archive has in it, None for
    a trajectory. ``missing`` are parts of which something came that was not kept, ``lost`` what the
    source says it lost.
    """

    stretch: Interval
    open_parts: Sequence[Interval] = ()
    archived: pl.DataFrame | None = None
    missing: Sequence[Interval] = ()
    lost: Sequence[LostStretch] = ()

    @property
    def is_plain(self) -> bool:
        """Whether all that it answers for came, and is kept."""
        return self.archived is None and not (self.open_parts or self.missing or self.lost)


ARCHIVE, SOCKET = "archive", "socket"
"""The channels by which event documents come, besides webhooks."""

WEBHOOK = "webhook"
"""The channel of webhooks, and what stands for the address of a load that they brought."""


@dataclass(frozen=True, slots=True)
class LoadOrigin:
    """A load's record of itself at its start.

    ``keys`` identify a row, by family: ts and other columns, or fields in ``extra``, or () for all
    values. A family left out keeps the store's key. ``schemas`` is the `/schemas` document, kept
    with the pages. ``logs`` are the routes by which deliveries of a document are compared.
    """

    base_url: str
    served_at: int
    schema_hash: str | None
    toolkit_version: str
    allowance: Allowance | None = None
    keys: Mapping[Family, tuple[str, ...]] = field(default_factory=dict)
    profile_hash: str | None = None
    schemas: bytes | None = field(default=None, repr=False)
    logs: Mapping[EventFamily, EventRoute] = field(
        default_factory=lambda: BUILT_IN_EVENTS, repr=False
    )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One answer: of which kind, at what time of the service's clock (s).

    ``period_s`` is how long after it the next one is due, None where it was not asked regularly.
    """

    log: SnapshotLog
    served_at: int
    document: bytes
    period_s: int | None = None


@dataclass(slots=True)
class Batch:
    """Pages to be committed together: rows and documents, and the stretches they answer for.

    What a socket brought is in ``rows`` and ``documents`` alone. ``tied`` has the times at which
    one page had several rows, by trajectory. ``pages`` are packed (`toolkit.store.writing.pages`).
    ``came`` has channels with the documents that came together, repeats included.
    """

    rows: dict[Trajectory, list[pl.DataFrame]] = field(default_factory=dict)
    documents: list[pl.DataFrame] = field(default_factory=list)
    came: list[tuple[str, pl.DataFrame]] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    answered: dict[Stream, list[Answered]] = field(default_factory=dict)
    edges: dict[Stream, Edge] = field(default_factory=dict)
    gaps: dict[int, Gap] = field(default_factory=dict)
    tied: dict[Trajectory, set[int]] = field(default_factory=dict)
    pages: list[bytes] = field(default_factory=list)

    def add(
        self,
        trajectory: Trajectory,
        frame: pl.DataFrame,
        answered: Interval,
        edge: Edge,
        *,
        open_parts: Sequence[Interval] = (),
        tied: Collection[int] = (),
        missing: Sequence[Interval] = (),
        lost: Sequence[LostStretch] = (),
    ) -> None:
        """Put one page of a trajectory in.

        More may still arrive in ``open_parts``. ``tied``: times of several rows. Rows for
        ``missing`` parts were not kept. ``lost`` is what the source lost, of any time.
        """
        self.rows.setdefault(trajectory, []).append(frame)
        if tied:
            self.tied.setdefault(trajectory, set()).update(tied)
        told = lost_within(lost, [answered])
        self._answer(trajectory, Answered(answered, open_parts, None, missing, told), edge)

    def add_documents(
        self,
        log: EventLog,
        frame: pl.DataFrame,
        answered: Interval | None,
        edge: Edge,
        *,
        open_parts: Sequence[Interval] = (),
        archived: pl.DataFrame | None = None,
        missing: Sequence[Interval] = (),
        lost: Sequence[LostStretch] = (),
    ) -> None:
        """Put one page of an event log in. Only the last page answers for its window.

        ``archived`` has event_id, event_type, ts_ms and ts of all documents in the window. The
        others as in `add`.
        """
        self.documents.append(frame)
        self.came.append((ARCHIVE, frame))
        answer = None
        if answered is not None:
            told = lost_within(lost, [answered])
            answer = Answered(answered, open_parts, archived, missing, told)
        self._answer(log, answer, edge)

    def add_snapshot(self, snapshot: Snapshot, edge: Edge) -> None:
        """Put one snapshot in."""
        self.snapshots.append(snapshot)
        self._answer(snapshot.log, None, edge)

    def _answer(self, stream: Stream, answered: Answered | None, edge: Edge) -> None:
        if stream in self.edges:  # an answer without rows leaves the newest row the newest
            ends = (self.edges[stream].tail_ts, edge.tail_ts)
            edge = replace(edge, tail_ts=max((ts for ts in ends if ts is not None), default=None))
        self.edges[stream] = edge
        if answered is not None:
            self.answered.setdefault(stream, []).append(answered)
