"""Loading a window of streams into the store: only what is missing, all of it, once.

ledger -> plan -> pages -> check -> commit. Workers fetch and decode pages, one thread commits rows
and ledger entries in one transaction: a killed load goes on where the last commit ended.
"""

from __future__ import annotations

import functools
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version

from toolkit.cards import some
from toolkit.client import Client
from toolkit.ending import under_way
from toolkit.errors import (
    InputError,
    KeyRefusedError,
    PlanRefusedError,
    QuotaError,
    ServiceError,
    StoreSourceError,
    UnavailableError,
    UnknownTrajectoryError,
    UnreachableError,
)
from toolkit.interrupts import one_interrupt
from toolkit.intervals import Interval
from toolkit.loader.sync.plan import ClockReading, LoadPlan, plan
from toolkit.loader.sync.progress import LoadResult, Progress
from toolkit.loader.sync.tasks import Piece, Task, workers_on
from toolkit.market import (
    EventLog,
    Family,
    Plan,
    SnapshotLog,
    SnapshotTrajectory,
    Source,
    Stream,
    Trajectory,
)
from toolkit.store import Batch, Inserted, Ledger, LoadOrigin, Store, StoreWriter
from toolkit.store.writing.pages import KEPT_DAYS
from toolkit.wire.finding_words import as_rows
from toolkit.wire.findings import Finding, Findings
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.listing import nearest_keys
from toolkit.wire.profile.event_routes import EventRoute
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.profile import Profile

_PAGES_A_COMMIT = 250
_ROWS_A_COMMIT = 250_000
_SECONDS_A_COMMIT = 2.0
_WAITING_PIECES = 32
OF_ALL = (KeyRefusedError, QuotaError, UnreachableError)
"""The refusals that concern all that a service is asked for."""
_FAILED_STREAMS = 3
_version = functools.cache(version)  # it reads files
_LOOK_S = 0.5  # a wait without an end would not hear Ctrl-C: polars sets the signal so


_Arrived = Piece | tuple[Stream, ServiceError] | BaseException | None
"""What workers hand over: a piece, a stream with its refusal, an error, None at their end."""


class Run:
    """Carries tasks out, and counts: ``pages``, ``re_asked``, ``inserted``, ``findings``.

    A refusal of one stream ends that stream alone: see ``refused``. A refusal of the key, a spent
    quota, and a service that is out of reach or fails stream after stream end the run.
    ``check_source`` raises if the service's source has changed. It is called before each commit,
    and if it raises, what came since the last one is dropped. After an error it is not called: what
    came is kept.
    """

    def __init__(
        self,
        writer: StoreWriter,
        load_id: int,
        tasks: Sequence[Task],
        on_progress: Callable[[Progress], object] | None,
        check_source: Callable[[], object],
        *,
        limits: Limits = LIMITS,
    ) -> None:
        self._check_source = check_source
        self.pages = self.re_asked = 0
        self.inserted = Inserted()
        self.findings = Findings(limits)
        self.refused: dict[Stream, ServiceError] = {}
        self._failed_in_a_row = 0
        self._limits = limits
        self._writer = writer
        self._load_id = load_id
        self._tasks = tasks
        self._asked_s = sum(task.asked_s for task in tasks)
        self._answered_s = 0
        self._rows = 0
        self._on_progress = on_progress
        self._arrived: queue.Queue[_Arrived] = queue.Queue(_WAITING_PIECES)
        self._stop = threading.Event()
        self._batch = Batch()
        self._in_batch = Counter[str]()
        self._began = self._batch_began = time.monotonic()

    def carry_out(self, client: Client, workers: int) -> None:
        """Fetch everything. Whatever ends it, the pages received whole are committed.

        The exception is another source at the address: see the class.
        """
        threads = workers_on(
            self._tasks,
            lambda task: self._fetch(client, task),
            self._hand_over,
            workers=workers,
            stop=self._stop,
        )
        with under_way(self._stop.set):
            for thread in threads:
                thread.start()
            try:
                self._receive(len(threads))
                self._commit_checked()
            finally:
                self._stop.set()
                self._commit()
                if self.pages:
                    self._writer.keep_allowance(self._load_id, client.allowance)
            for thread in threads:
                thread.join()

    def _fetch(self, client: Client, task: Task) -> Iterator[Piece]:
        """Yield what a task brings, and hand it over; runs in a worker."""
        if task.stream in self.refused:
            return
        try:
            for piece in task.fetch(client):
                yield piece
                self._hand_over(piece)
                if self._stop.is_set():
                    return
        except OF_ALL:
            raise
        except ServiceError as error:
            self._hand_over((task.stream, error))

    def _hand_over(self, item: _Arrived) -> None:
        while not self._stop.is_set():
            try:
                self._arrived.put(item, timeout=0.1)
            except queue.Full:
                continue
            return

    def _receive(self, workers: int) -> None:
        while workers:
            if self._stop.is_set():  # because the process ends: nobody is left to raise anything to
                raise SystemExit
            try:
                item = self._arrived.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if item is None:
                workers -= 1
            elif isinstance(item, BaseException):
                raise item
            elif isinstance(item, tuple):
                self._keep_refusal(*item)
            else:
                self._failed_in_a_row = 0
                self._take(item)

    def _keep_refusal(self, stream: Stream, error: ServiceError) -> None:
        if isinstance(error, UnavailableError):
            self._failed_in_a_row += 1
        if self._failed_in_a_row == _FAILED_STREAMS:
            raise error
        self.refused.setdefault(stream, error)

    def _take(self, piece: Piece) -> None:
        if not self._in_batch:
            self._batch_began = time.monotonic()
        piece.put(self._batch)
        self._in_batch.update(pages=piece.pages, rows=piece.rows * piece.row_size)
        self.pages += piece.pages
        self.re_asked += piece.re_asked
        self._rows += piece.rows
        self._answered_s += piece.answered_s
        self.findings.add(piece.findings)
        full = (
            self._in_batch["pages"] >= _PAGES_A_COMMIT
            or self._in_batch["rows"] >= _ROWS_A_COMMIT
            or time.monotonic() - self._batch_began >= _SECONDS_A_COMMIT
        )
        if full:
            self._commit_checked()
        if self._on_progress:
            elapsed_s = time.monotonic() - self._began
            self._on_progress(
                Progress(self._rows, self.pages, self._answered_s, self._asked_s, elapsed_s)
            )

    def _commit_checked(self) -> None:
        if not self._in_batch:
            return
        try:
            self._check_source()
        except StoreSourceError:
            self._batch = Batch()
            self._in_batch.clear()
            raise
        self._commit()

    def _commit(self) -> None:
        if self._in_batch:
            batch, self._batch = self._batch, Batch()
            self._in_batch.clear()
            self.inserted += self._writer.commit(self._load_id, batch, self._limits)


@one_interrupt()
@under_way()
def sync(
    client: Client,
    store: Store,
    streams: Sequence[Stream],
    window: Interval,
    *,
    again: bool = False,
    workers: int = 4,
    pages_days: float = KEPT_DAYS,
    on_progress: Callable[[Progress], object] | None = None,
) -> LoadResult:
    """Bring everything of the streams with ``start <= ts < end`` into the store, once.

    Of funding also the settlement at ``end``, which a position held until then receives.

    Trajectories and event logs are asked for what the coverage ledger lacks: not for a stretch
    answered for, except its youngest part and provisional answers (`toolkit.store.ledger.ledger`).
    ``again`` asks for all of the window. A snapshot is asked for once, as it is now. A series kept
    from snapshots means its snapshot. After an interruption a second call goes on from there. The
    pages of rows are kept beside the store for ``pages_days`` (days), 0 for not at all: see
    `toolkit.store.writing.remap`.

    A refusal of one stream stops no other: the result names it. A stream outside the key's plan is
    not asked for. If all are refused the first refusal is raised.

    Raises `ServiceError`, `StoreError` (another source's store, a locked file), `InputError` (an
    unknown trajectory, a number of workers out of range). Pages received before an error are kept.
    """
    started, sent_before = time.monotonic(), client.requests
    checked_workers(workers)
    window = Interval.checked(*window)
    asked = (each.log if isinstance(each, SnapshotTrajectory) else each for each in streams)
    streams = list(dict.fromkeys(asked))
    profile, served_at = client.discover(), client.served_at()
    writer = StoreWriter(store, pages_days=pages_days)
    source = bound_source(client, writer)
    planned, clock, refused, unseen = prepare(
        client, profile, store, streams, window, again=again, keeps_pages=writer.keeps_pages
    )
    load_id = writer.start_load(load_origin(client, served_at), streams, window)
    run = Run(
        writer,
        load_id,
        planned.tasks,
        on_progress,
        lambda: still_source(client, source),
        limits=client.limits,
    )
    run.carry_out(client, workers)
    refused |= run.refused
    run.findings.add(run.inserted.findings)
    at_once = [*profile.findings, *unseen, *clock.findings]
    findings = [*((f, 1) for f in at_once), *run.findings.listed()]
    writer.finish_load(load_id, as_rows(findings, profile))
    if len(refused) == len(streams):
        raise next(iter(refused.values()))
    held = store.counts(window)
    dated = [stream for stream in streams if not isinstance(stream, SnapshotLog)]
    return LoadResult(
        source=source,
        window=window,
        asked=tuple(streams),
        rows=run.inserted,
        pages=run.pages,
        re_asked=run.re_asked,
        requests=client.requests - sent_before,
        elapsed_s=time.monotonic() - started,
        silent=tuple(s for s in dated if s not in held and s not in refused),
        refused=refused,
        unrecoverable=planned.unrecoverable,
        findings=tuple(findings),
    )


def prepare(
    client: Client,
    profile: Profile,
    store: Store,
    streams: Sequence[Stream],
    window: Interval,
    *,
    again: bool = False,
    keeps_pages: bool = True,
) -> tuple[LoadPlan, ClockReading, dict[Stream, ServiceError], tuple[Finding, ...]]:
    """Find out what a load would ask for. Raises `UnknownTrajectoryError`.

    Writes nothing. A store without a file is empty. Returns the plan, the clock, what is refused,
    and the findings of `check_listed`.
    """
    served_at = client.served_at()
    ledger = store.ledger(streams, _with_end(window)) if store.path.exists() else {}
    unknown = [s for s in streams if ledger.get(s, Ledger(None)).edge is None]
    findings = check_listed(client, [s for s in unknown if isinstance(s, Trajectory)])
    clock = ClockReading.held_against(served_at, ledger.values())
    refused = refused_by_plan(client, profile, streams)
    wanted = {
        stream: [_with_end(window) if stream.kind == Family.FUNDING else window]
        for stream in streams
        if stream not in refused
    }
    planned = plan(profile, ledger, wanted, clock, again=again, keeps_pages=keeps_pages)
    return planned, clock, refused, findings


def _with_end(window: Interval) -> Interval:
    return Interval(window.start, window.end + 1)


def refused_by_plan(
    client: Client, profile: Profile, streams: Iterable[Stream]
) -> dict[Stream, ServiceError]:
    """Return the streams that the service's schemas keep for larger plans than the key's."""
    allowance = client.allowance
    ranks = {plan.value: plan.rank for plan in Plan}
    held = ranks.get(allowance.plan.lower()) if allowance else None
    refused: dict[Stream, ServiceError] = {}
    for stream in streams:
        route: HistoryRoute | EventRoute | None = None
        if isinstance(stream, Trajectory):
            route = profile.histories[stream.family]
        elif isinstance(stream, EventLog):
            route = profile.events[stream.family]
        needed = ranks.get(route.minimum_plan or "") if route else None
        if allowance and route and held is not None and needed is not None and held < needed:
            refused[stream] = PlanRefusedError(
                f"{stream} is not in the key's plan {allowance.plan}, it begins at "
                f"{route.minimum_plan}; it was not asked for"
            )
    return refused


def checked_workers(workers: int) -> None:
    """Raise `InputError` for a number of workers that makes no sense."""
    whole = isinstance(workers, int) and not isinstance(workers, bool)
    if not whole or not 1 <= workers <= 64:
        raise InputError("workers", workers, "a whole number from 1 to 64")


def bound_source(client: Client, writer: StoreWriter) -> Source:
    """Return the service's source, to which the store is bound. See `StoreWriter.bind`."""
    source = client.profile().source or Source("unknown", client.base_url)
    writer.bind(source)
    return source


def still_source(client: Client, source: Source) -> None:
    """Ask the service again whose it is. Raise `StoreSourceError` where that has changed."""
    found = client.discover().source or Source("unknown", client.base_url)
    if found.id != source.id:
        raise StoreSourceError(
            f"{client.base_url} was {source.label} when the load began and is {found.label} now; "
            "what came since the last commit was dropped: load again, each into a store of its own"
        )


def load_origin(client: Client, served_at: int) -> LoadOrigin:
    """Return what a load records of the service and of this toolkit."""
    profile = client.profile()
    return LoadOrigin(
        client.base_url,
        served_at,
        profile.schema_hash,
        _version("machine-rail-toolkit"),
        client.allowance,
        {family: route.row_key for family, route in profile.histories.items()},
        profile.users_hash,
        client.schemas,
        profile.events,
    )


def check_listed(client: Client, trajectories: Iterable[Trajectory]) -> tuple[Finding, ...]:
    """Raise `UnknownTrajectoryError` for the first trajectory that the service does not list.

    A listing that cannot be read, or has no legs, refuses nothing: what it does not show is
    returned as a finding.
    """
    where = client.profile().symbols_path
    try:
        unseen = list(_unseen(client, list(trajectories)))
    except OF_ALL:
        raise
    except ServiceError as error:
        return (Finding("listing_unreadable", where, str(error)),)
    says = f"{some([each.key for each in unseen])}: not in what can be read of it"
    return (Finding("listing_unreadable", where, says),) if unseen else ()


def _unseen(client: Client, wanted: Sequence[Trajectory]) -> Iterator[Trajectory]:
    """Yield what the listing neither shows nor denies."""
    listed = functools.cache(client.symbols)
    whole_first = len({trajectory.symbol for trajectory in wanted}) > 1
    for trajectory in wanted:
        if whole_first and listed().lists(trajectory):
            continue
        listing = listed(str(trajectory.symbol))
        if listing.lists(trajectory) or (whole := listed()).lists(trajectory):
            continue
        if listing.denies(trajectory) and whole.denies(trajectory) and any(whole.legs.values()):
            raise UnknownTrajectoryError(trajectory.key, nearest_keys(trajectory, whole))
        yield trajectory
