"""Live capture: streams into the store, without a gap that the archive could fill.

Every stream is received first and its messages are kept at once. Meanwhile the archive is asked for
the same stretch until it has settled past it, and only what the archive has answered for enters
the ledger. So a killed capture claims nothing that it does not hold, and a lost connection costs
time, not rows. Each loss is a row of the gap ledger. Measured in docs/design.md.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeVar

import polars as pl

from toolkit.client import Client
from toolkit.errors import (
    BadRequestError,
    InputError,
    KeyRefusedError,
    NotFoundError,
    PlanRefusedError,
    ServiceError,
    StoreLockedError,
)
from toolkit.intervals import Interval
from toolkit.loader.inbox import Inbox
from toolkit.loader.messages import Messages
from toolkit.loader.reader import Message, StreamReader
from toolkit.loader.sweep import Sweeper
from toolkit.loader.sync import bound_source, check_listed, checked_workers, load_origin
from toolkit.loader.tasks import Piece
from toolkit.market import EventLog, Source, Stream, Trajectory
from toolkit.store import Batch, Gap, Inserted, Store, StoreWriter
from toolkit.tables import GapStatus
from toolkit.wire.findings import Finding, Findings, as_rows
from toolkit.wire.stream import ReconnectPolicy

_Result = TypeVar("_Result")
_LASTING = (BadRequestError, KeyRefusedError, NotFoundError, PlanRefusedError)
_SUBSCRIPTIONS_A_SOCKET = 500
_SECONDS_A_COMMIT, _MESSAGES_A_COMMIT = 1.0, 5_000
_LOOK_S, _PATIENCE_S = 0.1, 30.0
_LOCKED = Finding("store_locked", "the store", "another process held it; the capture waited")


@dataclass(frozen=True, slots=True)
class CaptureProgress:
    """How far a capture is: messages received, new rows and documents, sockets open now, gaps.

    >>> CaptureProgress(messages=3, new=2, connected=4, streams=4, gaps=0, elapsed_s=1.0).new
    2
    """

    messages: int
    new: int
    connected: int
    streams: int
    gaps: int
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """What a capture did. ``window`` runs from its start to its end by the service's clock.

    ``rows`` counts rows and documents, whether a stream or the archive brought them. ``gaps``
    counts the losses of a stream by what became of them: an open one is settled by the next load
    of its stretch. ``attempts`` is how often a socket was tried. ``findings`` as in `LoadResult`.
    """

    source: Source
    window: Interval
    asked: tuple[Stream, ...]
    rows: Inserted
    messages: int
    sweeps: int
    attempts: int
    elapsed_s: float
    load_id: int
    gaps: Mapping[GapStatus, int] = field(default_factory=dict)
    findings: tuple[tuple[Finding, int], ...] = ()

    def __str__(self) -> str:
        lost = sum(self.gaps.values())
        parts = ", ".join(f"{count:,} {status}" for status, count in self.gaps.items())
        gaps = f"{lost:,} gaps ({parts})" if lost else "no gaps"
        return (
            f"{self.rows.new:,} new, {self.rows.revised:,} revised, "
            f"{self.rows.repeated:,} held already{self.rows.unkept_counted}; "
            f"{self.messages:,} messages, {self.sweeps:,} sweeps of the archive, {gaps}; "
            f"{self.elapsed_s:.1f} s; {self.source.label}"
        )


def capture(
    client: Client,
    store: Store,
    streams: Sequence[Stream],
    *,
    since: int | None = None,
    duration_s: float | None = None,
    stop: threading.Event | None = None,
    sweep_every_s: float = 60.0,
    policy: ReconnectPolicy | None = None,
    workers: int = 4,
    on_progress: Callable[[CaptureProgress], object] | None = None,
) -> CaptureResult:
    """Keep the store up to date from the service's sockets, until ``stop`` or for ``duration_s``.

    From ``since`` (s, the service's clock) on, every row of the trajectories and every document of
    the event logs is brought in once, by a socket or by the archive. Default: where the answers
    that the store holds of these streams end, the earliest of them, and the service's present for
    streams of which it holds none. So a capture that comes back fills its absence. The archive is
    asked for the stretch every ``sweep_every_s`` until it has settled. Ends after ``duration_s``
    (s, the local clock) or when ``stop`` is set, with a last sweep. What is younger than the
    archive's delay then is "not yet known" to the ledger, and the next load asks for it. Gaps of
    earlier captures that are still open are asked for, too.

    ``policy`` decides when a lost or silent socket is opened again. A service that does not answer
    and a store that another process holds are waited for. Raises `KeyRefusedError`,
    `PlanRefusedError` and others that waiting does not mend, `StoreSourceError` (another source's
    store), `InputError` (nothing to capture, or a snapshot). What was received before an error is
    kept.

    >>> import tempfile
    >>> from toolkit.service import Config, Simulated, SpedClock, running
    >>> config = Config(Simulated(7), port=0, clock=SpedClock(start=1_795_046_400, speed=600.0))
    >>> key = Trajectory.parse("BTC_USDT:AURORA.spot")
    >>> with tempfile.TemporaryDirectory() as folder, running(config) as service:
    ...     with Client(service.base_url, "demo-pro") as client:
    ...         done = capture(client, Store(f"{folder}/s.duckdb"), [key], duration_s=1.0)
    >>> done.rows.new > 0, done.gaps
    (True, {})
    """
    asked = checked_streams(streams, sweep_every_s=sweep_every_s, duration_s=duration_s)
    checked_workers(workers)
    store.keep_lean(client.limits)
    client.discover()
    writer = StoreWriter(store)
    source = bound_source(client, writer)
    start = _answered_until(store, asked, client.served_at()) if since is None else since
    check_listed(client, [each for each in asked if isinstance(each, Trajectory)])
    load_id = writer.start_load(load_origin(client, client.served_at()))
    writer.end_gaps(client.served_at())
    run = _Capture(
        client,
        writer,
        load_id,
        asked=asked,
        policy=policy,
        on_progress=on_progress,
    )
    sweeper = Sweeper(client, writer, asked, start, run.inbox.put, workers=workers)
    with run:
        run.carry_out(sweeper, sweep_every_s, duration_s, stop or threading.Event())
    run.findings.add(run.inserted.findings)
    findings = run.findings.listed()
    _patiently(lambda: writer.finish_load(load_id, as_rows(findings)))
    statuses = _patiently(store.gaps).filter(pl.col("load_id") == load_id)["status"]
    return CaptureResult(
        source=source,
        window=Interval(start, max(client.served_at(), start + 1)),
        asked=asked,
        rows=run.inserted,
        messages=run.messages,
        sweeps=run.sweeps,
        attempts=sum(reader.attempts for reader in run.readers),
        elapsed_s=run.elapsed_s,
        load_id=load_id,
        gaps={GapStatus(s): int((statuses == s).sum()) for s in sorted(set(statuses))},
        findings=findings,
    )


def checked_streams(
    streams: Sequence[Stream], *, sweep_every_s: float, duration_s: float | None
) -> tuple[Stream, ...]:
    """Return the streams, each once. Raise `InputError` for what `capture` cannot do."""
    asked = tuple(dict.fromkeys(streams))
    wrong = [each for each in asked if not isinstance(each, Trajectory | EventLog)]
    if wrong or not asked:
        raise InputError("streams", wrong[0].key if wrong else None, "trajectories and event logs")
    for name, seconds in (("sweep_every_s", sweep_every_s), ("duration_s", duration_s)):
        if seconds is not None and seconds <= 0:
            raise InputError(name, seconds, "seconds above 0")
    return asked


def _answered_until(store: Store, streams: Sequence[Stream], present: int) -> int:
    """Return where the answers end that the store holds of the streams, the earliest of them."""
    ledger = store.ledger(streams)
    ends = [known.answered[-1].end for known in ledger.values() if known.answered]
    return min([present, *ends])


def _patiently(use: Callable[[], _Result]) -> _Result:
    """Use the store, however long another process holds it."""
    while True:
        with contextlib.suppress(StoreLockedError):
            return use()


class _Capture:
    """A capture under way: readers and a sweeper fill the inbox, the calling thread writes it."""

    def __init__(
        self,
        client: Client,
        writer: StoreWriter,
        load_id: int,
        *,
        asked: Sequence[Stream],
        policy: ReconnectPolicy | None,
        on_progress: Callable[[CaptureProgress], object] | None,
    ) -> None:
        self.inserted = Inserted()
        self.messages = 0
        self.sweeps = 0
        self.findings = Findings(client.limits)
        self._client = client
        self._source = client.profile().source
        self._writer = writer
        self._load_id = load_id
        self._on_progress = on_progress
        self.inbox = Inbox(client.limits)
        self._stop = threading.Event()
        self._pending = Messages(client.profile())
        self._gaps: set[int] = set()
        self._threads: list[threading.Thread] = []
        self._began = self._committed = time.monotonic()
        numbers = itertools.count(1)
        trajectories = [each for each in asked if isinstance(each, Trajectory)]
        size = _SUBSCRIPTIONS_A_SOCKET
        sockets: list[EventLog | Sequence[Trajectory]] = [
            *(each for each in asked if isinstance(each, EventLog)),
            *(trajectories[first : first + size] for first in range(0, len(trajectories), size)),
        ]
        self.readers = [
            StreamReader(
                client,
                of,
                policy=policy,
                stop=self._stop,
                put=self.inbox.put,
                admit=self._admit,
                gap_number=lambda: next(numbers),
            )
            for of in sockets
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop reading, whatever ended the capture, and keep what was received."""
        self._stop.set()
        self.inbox.abandoned.set()
        for thread in self._threads:
            thread.join(_PATIENCE_S)  # one that dies with the process inside DuckDB takes it along
        self._commit()

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began, by the local clock."""
        return time.monotonic() - self._began

    def carry_out(
        self,
        sweeper: Sweeper,
        sweep_every_s: float,
        duration_s: float | None,
        stop: threading.Event,
    ) -> None:
        """Read and sweep until the end. Then take what the readers still hold, and sweep again."""
        sweeping = threading.Thread(
            target=self._sweep_on, args=(sweeper, sweep_every_s), name="rail-sweeps", daemon=True
        )
        for thread in (*self.readers, sweeping):
            thread.start()
            self._threads.append(thread)
        while not stop.is_set() and (duration_s is None or self.elapsed_s < duration_s):
            self._take_some()
        self._stop.set()
        while sweeping.is_alive() or not self.inbox.empty:
            self._take_some()

    # -- what the other threads do -----------------------------------------------------------------

    def _admit(self) -> None:
        """Refuse a connection behind which another source now answers."""
        if self._client.discover().source != self._source:
            bound_source(self._client, self._writer)

    def _sweep_on(self, sweeper: Sweeper, every_s: float) -> None:
        """Sweep again and again. The last one begins when nothing is read any more."""
        try:
            while True:
                last = self._stop.is_set()
                if last:
                    for reader in self.readers:
                        reader.join()
                self._sweep(sweeper)
                if last or self.inbox.abandoned.is_set():
                    return
                self._stop.wait(every_s)
        except BaseException as error:  # noqa: BLE001 - raised again in the capture's own thread
            self.inbox.put(error)

    def _sweep(self, sweeper: Sweeper) -> None:
        try:
            sweeper.sweep()
        except _LASTING:
            raise
        except (ServiceError, StoreLockedError) as error:  # the next sweep asks for the same again
            self.inbox.put(
                Finding("sweep_failed", type(error).__name__, "asked again in the next sweep")
            )
        self.sweeps += 1
        written = threading.Event()
        self.inbox.put(written)
        while not written.wait(_LOOK_S) and not self.inbox.abandoned.is_set():
            pass

    # -- what the calling thread does --------------------------------------------------------------

    def _take_some(self) -> None:
        try:
            item = self.inbox.get(timeout=_LOOK_S)
        except queue.Empty:
            self._commit_if_due()
            return
        match item:
            case Message():
                self.messages += 1
                self._pending.add(item)
            case Piece():
                item.put(self._pending.batch)
                self._pending.pages += 1
                self.findings.add(item.findings)
            case Gap():
                self._gaps.add(item.number)
                self._pending.batch.gaps[item.number] = item
            case Finding():
                self.findings.add([item])
            case threading.Event():
                self._commit()
                item.set()
            case _:
                raise item
        self._commit_if_due()

    def _commit_if_due(self) -> None:
        waited_s = time.monotonic() - self._committed
        pending = self._pending
        full = (
            pending.size >= _MESSAGES_A_COMMIT
            or pending.bytes >= self._client.limits.waiting_bytes // 2
        )
        if full or waited_s >= _SECONDS_A_COMMIT:
            self._commit()

    def _commit(self) -> None:
        self._committed = time.monotonic()
        if self._pending.size:
            pending, self._pending = self._pending, self._pending.following()
            batch, repeated, findings = pending.batch_of_all()
            self.findings.add(findings)
            self.inserted += self._written(batch) + Inserted(repeated=repeated)
        if self._on_progress:
            connected = sum(reader.connected for reader in self.readers)
            self._on_progress(
                CaptureProgress(
                    self.messages,
                    self.inserted.new,
                    connected,
                    len(self.readers),
                    len(self._gaps),
                    self.elapsed_s,
                )
            )

    def _written(self, batch: Batch) -> Inserted:
        """Write a batch. Where others hold the file, wait until they let go."""
        while True:
            try:
                return self._writer.commit(self._load_id, batch, self._client.limits)
            except StoreLockedError:
                if self.inbox.abandoned.is_set():
                    raise
                self.findings.add([_LOCKED])
