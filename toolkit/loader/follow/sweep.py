"""Asking the service repeatedly: the archive in sweeps, snapshots at their pace.

A sweep asks for each stream from where its answers end to the service's present, and for open gaps.
It asks for the youngest part until the archive has settled past it, so nothing is lost however late
it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from toolkit.client import Client
from toolkit.errors import (
    BadRequestError,
    InputError,
    KeyRefusedError,
    NotFoundError,
    PlanRefusedError,
    ServiceError,
)
from toolkit.intervals import Interval, total_s, union
from toolkit.loader.sync.plan import ClockReading, edge_of, plan
from toolkit.loader.sync.sync import OF_ALL, bound_source, refused_by_plan
from toolkit.loader.sync.tasks import Piece, SnapshotTask, Task, workers_on
from toolkit.market import SnapshotKind, SnapshotLog, Stream
from toolkit.store import Ledger, StoreWriter
from toolkit.tables import GapStatus
from toolkit.wire.findings import Finding
from toolkit.wire.profile.profile import Profile

_OF_ONE_STREAM = (BadRequestError, NotFoundError, PlanRefusedError)
_FAILED_IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class Since:
    """From when on a stream without answers in the store is wanted.

    ``ts`` is a moment (s). With ``back_s`` it is so long before the present, as far as the archive
    reaches. A stream with answers is wanted from their end on in any case.
    """

    ts: int = 0
    back_s: int | None = None

    def start(self, known: Ledger, served_at: int, reachable_from: int | None) -> int:
        """Return the first second wanted of a stream.

        >>> Since(back_s=600).start(Ledger(None), 1_000, 700)
        700
        >>> Since(ts=600).start(Ledger(None, [Interval(0, 500)]), 1_000, None)
        500
        """
        start = self.ts
        if self.back_s is not None:
            start = max(served_at - self.back_s, reachable_from or 0)
        return min(start, *(stretch.end for stretch in known.answered[-1:]), served_at)


class Sweeper:
    """Asks for what the store lacks of some streams.

    ``put`` takes the pages, and returns whether more are wanted. After a sweep ``refused`` has the
    streams not given, ``swept_at`` the service's clock at the last sweep of all there was (s),
    ``lost_s`` the seconds of each stream that the archive dropped and the store lacks.
    """

    def __init__(
        self,
        client: Client,
        writer: StoreWriter,
        since: Since,
        put: Callable[[Piece], bool],
        *,
        workers: int,
    ) -> None:
        self.refused: dict[Stream, ServiceError] = {}
        self.swept_at: int | None = None
        self.lost_s: dict[Stream, int] = {}
        self.open_gaps = 0
        self._client = client
        self._store = writer.store
        self._writer = writer
        self._since = since
        self._starts: dict[Stream, int] = {}
        self._put = put
        self._workers = workers
        self._stop = threading.Event()
        self._failed_in_a_row = 0
        self._error: BaseException | None = None
        self._lacking: dict[int, int] = {}

    def sweep(self, streams: Sequence[Stream], *, all_of_them: bool = True) -> None:
        """Sweep once. What came before an error is handed on.

        ``all_of_them`` where these are all that is followed. Raises what a load raises. A refusal
        of one stream stops no other, and is raised only if all are refused.
        """
        profile = self._client.discover()
        served_at = self._client.served_at()
        bound_source(self._client, self._writer)
        self.refused = refused_by_plan(self._client, profile, streams) | {
            s: error for s, error in self.refused.items() if s in streams or not all_of_them
        }
        asked = [each for each in streams if each not in self.refused]
        known = self._store.ledger(asked)  # a sweep asks for what is lost when it is due, no sooner
        ledger = {s: replace(k, provisional=[*k.provisional, *k.lost]) for s, k in known.items()}
        clock = ClockReading.held_against(served_at, ledger.values())
        windows = self._windows(profile, asked, ledger, clock)
        self._writer.ask(windows)
        if clock.findings:
            self._put(Piece(lambda _: None, 0, 0, clock.findings))
        planned = plan(
            profile, ledger, self._with_gaps(windows), clock, keeps_pages=self._writer.keeps_pages
        )
        self.lost_s |= {stream: total_s(gone) for stream, gone in planned.unrecoverable.items()}
        self._carry_out(planned.tasks)
        if all_of_them and all(each in self.refused for each in streams):
            raise self.refused[streams[0]]
        if all_of_them and not self._stop.is_set():
            self.swept_at = served_at

    def next_loss_s(self, now: int) -> int | None:
        """Return the seconds until the archive drops something that a sweep has still to bring.

        ``now`` is the service's clock (s). None if nothing is to be brought, or nothing is dropped.
        """
        dropped_at = min(list(self._lacking.values()), default=None)
        return None if dropped_at is None else max(0, dropped_at - now)

    def _carry_out(self, tasks: Sequence[Task]) -> None:
        self._stop, self._failed_in_a_row, self._error = threading.Event(), 0, None
        self._lacking = {}
        self._expect(tasks)
        threads = workers_on(tasks, self._fetch, self._done, workers=self._workers, stop=self._stop)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error

    def _expect(self, tasks: Sequence[Task]) -> None:
        """Keep when the archive drops the first second of each task."""
        for task in tasks:
            if not isinstance(task, SnapshotTask) and task.edge.retention_s is not None:
                self._lacking[id(task)] = task.stretch.start + task.edge.retention_s

    def _done(self, error: BaseException | None) -> None:
        if error is not None:
            self._error = error
            self._stop.set()

    def _fetch(self, task: Task) -> Iterator[Piece]:
        if self._stop.is_set() or task.stream in self.refused:
            return
        try:
            for piece in task.fetch(self._client):
                self._expect(piece.others)
                yield piece
                if not self._put(piece):
                    self._stop.set()
                if self._stop.is_set():
                    return
        except _OF_ONE_STREAM as error:
            self.refused[task.stream] = error
        except ServiceError as error:
            self._failed_in_a_row += 1
            self._error = error
            if isinstance(error, OF_ALL) or self._failed_in_a_row >= _FAILED_IN_A_ROW:
                self._stop.set()
            return
        self._failed_in_a_row = 0
        self._lacking.pop(id(task), None)

    def _windows(
        self,
        profile: Profile,
        streams: Sequence[Stream],
        ledger: Mapping[Stream, Ledger],
        clock: ClockReading,
    ) -> dict[Stream, Interval]:
        """Return the time in which each stream is wanted."""
        for stream in streams:
            if stream not in self._starts:
                known = ledger.get(stream, Ledger(None))
                reach = edge_of(profile, stream, known, clock).reachable_from
                self._starts[stream] = self._since.start(known, clock.served_at, reach)
        starts = {stream: self._starts[stream] for stream in streams}
        return {s: Interval(at, max(clock.served_at, at + 1)) for s, at in starts.items()}

    def _with_gaps(self, windows: Mapping[Stream, Interval]) -> dict[Stream, list[Interval]]:
        """Add the gaps that are still open."""
        left = self._store.gaps().filter(
            pl.col("status") == GapStatus.OPEN, pl.col("end_ts").is_not_null()
        )
        self.open_gaps = left.height
        gaps: dict[str, list[tuple[int, int]]] = {}
        for key, start, end in left.select("stream", "start_ts", "end_ts").rows():
            gaps.setdefault(key, []).append((start, end))
        return {s: union([whole, *gaps.get(s.key, [])]) for s, whole in windows.items()}


_POLLS = {SnapshotKind.ACTIVITY: 5, SnapshotKind.SYMBOLS: 60}
"""How many times ``poll_s`` lie between two snapshots of the kinds that change slowly."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two looks into the archive, two snapshots, two readings of the rules.

    ``keep_s`` is how long a stream is followed that no rule names any more. ``clock`` gives seconds
    that only grow, ``wait`` waits for an event for so many of them: a test may bring its own.

    >>> Pace(poll_s=0)
    Traceback (most recent call last):
    toolkit.errors.InputError: poll_s: 0 is not allowed; allowed: seconds above 0
    """

    sweep_s: float = 60.0
    poll_s: float = 60.0
    rules_s: float = 300.0
    keep_s: float = 86_400.0
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    wait: Callable[[threading.Event, float], object] = field(
        default=threading.Event.wait, repr=False
    )

    def __post_init__(self) -> None:
        for name in ("sweep_s", "poll_s", "rules_s", "keep_s"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not value > 0:
                raise InputError(name, value, "seconds above 0")

    def between_polls_s(self, kind: SnapshotKind) -> float:
        """Return the seconds from one snapshot of a kind to the next.

        >>> Pace().between_polls_s(SnapshotKind.SPREAD), Pace().between_polls_s("symbols")
        (60.0, 3600.0)
        """
        return self.poll_s * _POLLS.get(kind, 1)


class SnapshotPolls:
    """The snapshots to poll: the newest document of each kind, how many came and failed.

    Due times are on a grid, so a late answer does not delay the next. Each answer is kept with its
    period. A kind outside the plan is a finding, and not asked for again. Without ``patient`` each
    is asked for once, without a period.
    """

    def __init__(
        self, client: Client, pace: Pace, found: Callable[[Finding], object], *, patient: bool
    ) -> None:
        self.documents: dict[SnapshotKind, str] = {}
        self.answered = self.missed = 0
        self.refused: dict[SnapshotLog, ServiceError] = {}
        self._client = client
        self._pace = pace
        self._found = found
        self._patient = patient
        self._due: dict[SnapshotLog, float] = {}

    def ask_for(self, logs: Iterable[SnapshotLog]) -> None:
        """Ask for these from now on, and for no others."""
        now = self._pace.clock()
        self._due = {log: self._due.get(log, now) for log in logs if log not in self.refused}

    @property
    def next_due(self) -> float | None:
        """When the next one is due, by the clock of the pace, None for none."""
        return min(self._due.values(), default=None)

    def poll(self) -> list[Piece]:
        """Ask for what is due now, and return it.

        A service that does not answer makes it a missed one. Raises `KeyRefusedError`, and without
        ``patient`` any `ServiceError` but a refusal by the plan.
        """
        pieces = []
        for log in [log for log, due in self._due.items() if due <= self._pace.clock()]:
            every_s = self._pace.between_polls_s(log.of)
            period_s = max(1, round(every_s)) if self._patient else None
            try:
                document, piece = SnapshotTask(log, period_s).ask(self._client)
            except KeyRefusedError:
                raise
            except (PlanRefusedError, NotFoundError) as error:
                self.refused[log] = error
                del self._due[log]
                self._found(Finding("snapshot_refused", log.key, f"it is not asked for: {error}"))
                continue
            except ServiceError as error:
                if not self._patient:
                    raise
                self.missed += 1
                self._found(Finding("snapshot_missed", log.key, str(error)))
            else:
                self.answered += 1
                self.documents[log.of] = document.decode()
                pieces.append(piece)
            passed = int((self._pace.clock() - self._due[log]) // every_s)
            self.missed += passed  # those that were due meanwhile
            self._due[log] += (passed + 1) * every_s
        return pieces
