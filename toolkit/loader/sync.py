"""Loading a window of trajectories into the store: only what is missing, all of it, once.

gaps -> pages -> commit. Threads fetch and decode, one thread writes; the store's file is open only
while a batch is written. A batch's rows and the ledger entries that vouch for them are one
transaction: a killed load goes on where the last commit ended.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version

import numpy as np

from toolkit.client import Client
from toolkit.errors import InputError, UnknownTrajectoryError
from toolkit.intervals import Interval, difference
from toolkit.loader.progress import LoadResult, Progress
from toolkit.market import Source, Symbol, Trajectory
from toolkit.store import Batch, Edge, Inserted, Ledger, LoadOrigin, Store, to_ask
from toolkit.wire.listing import Listing, nearest_keys
from toolkit.wire.paging import Page
from toolkit.wire.profile import Finding, Profile

__all__ = ["check_listed", "sync"]

_PAGES_A_COMMIT = 100
_ROWS_A_COMMIT = 250_000
_SECONDS_A_COMMIT = 2.0
_WAITING_PAGES = 32


@dataclass(slots=True)
class _Work:
    """One unit: a stretch of a trajectory to be asked for, newest page first."""

    trajectory: Trajectory
    stretch: Interval
    edge: Edge
    steps: Counter[int] = field(default_factory=Counter)
    begun: bool = False

    def observe(self, page: Page) -> Edge:
        """The edge, with the spacing of the rows seen so far and the end of the newest."""
        spacings, counts = np.unique(
            np.abs(np.diff(page.frame["ts"].to_numpy())), return_counts=True
        )
        self.steps.update(dict(zip(spacings.tolist(), counts.tolist(), strict=True)))
        self.steps.pop(0, None)
        if self.steps:
            most = max(self.steps.values())
            step_s = min(step for step, count in self.steps.items() if count == most)
            self.edge = replace(self.edge, step_s=step_s)
        if not self.begun:
            newest = page.frame["ts"].max()
            self.begun = newest is not None
            tail_ts = page.answered.start if newest is None else newest + (self.edge.step_s or 1)
            self.edge = replace(self.edge, tail_ts=tail_ts)
        return self.edge


def sync(
    client: Client,
    store: Store,
    trajectories: Sequence[Trajectory],
    start: int,
    end: int,
    *,
    workers: int = 4,
    on_progress: Callable[[Progress], object] | None = None,
) -> LoadResult:
    """Bring every row of the trajectories with ``start <= ts < end`` into the store, once.

    Asks only for what the coverage ledger lacks: a stretch answered for is not asked again, except
    its youngest part, which may still change. Interrupted at any moment it leaves whole batches; a
    second call goes on from there, and one more adds nothing.

    Raises `ServiceError`, `StoreError` (another source's store, a locked file) and `InputError`
    (an empty window). Pages received before an error are kept.
    """
    window = Interval.checked(start, end)
    if not 1 <= workers <= 64:
        raise InputError("workers", workers, "a whole number from 1 to 64")
    trajectories = list(dict.fromkeys(trajectories))
    started = time.monotonic()
    profile = client.profile
    served_at = client.served_at
    source = profile.source or Source("unknown", client.base_url)
    store.bind(source)
    ledger = store.ledger()
    check_listed(client, [t for t in trajectories if t not in ledger])
    works = _plan(ledger, profile, trajectories, window, served_at)
    origin = LoadOrigin(
        client.base_url, served_at, profile.schema_hash, version("machine-rail-toolkit")
    )
    load_id = store.start_load(origin)
    run = _Run(store, load_id, works, started, on_progress)
    run.carry_out(client, workers)
    findings = [*((f, 1) for f in profile.findings), *sorted(run.findings.items(), key=str)]
    store.finish_load(load_id, [asdict(f) | {"times": times} for f, times in findings])
    held = store.counts(*window)
    return LoadResult(
        source=source,
        window=window,
        asked=tuple(trajectories),
        rows=run.inserted,
        pages=run.pages,
        elapsed_s=time.monotonic() - started,
        silent=tuple(t for t in trajectories if t not in held),
        unrecoverable=_unrecoverable(store.ledger(), trajectories, window),
        findings=tuple(findings),
    )


def check_listed(client: Client, trajectories: Iterable[Trajectory]) -> None:
    """Raise `UnknownTrajectoryError` for the first trajectory that the service does not list."""
    listings: dict[Symbol, Listing] = {}
    for trajectory in trajectories:
        symbol = trajectory.symbol
        listing = listings.get(symbol) or listings.setdefault(symbol, client.symbols(str(symbol)))
        if not listing.lists(trajectory):
            raise UnknownTrajectoryError(trajectory.key, nearest_keys(trajectory, client.symbols()))


def _plan(
    ledger: Mapping[Trajectory, Ledger],
    profile: Profile,
    trajectories: Iterable[Trajectory],
    window: Interval,
    served_at: int,
) -> list[_Work]:
    """What to ask for: per trajectory, the stretches of the window that the ledger lacks."""
    works: list[_Work] = []
    for trajectory in trajectories:
        route = profile.histories[trajectory.family]
        known = ledger.get(trajectory)
        step_s = known.edge.step_s if known else None
        edge = Edge(served_at, route.delay_s, route.retention_s, step_s)
        missing = to_ask(window, known.answered if known else [], edge)
        works.extend(_Work(trajectory, stretch, edge) for stretch in missing)
    return works


def _unrecoverable(
    ledger: Mapping[Trajectory, Ledger], trajectories: Iterable[Trajectory], window: Interval
) -> dict[Trajectory, list[Interval]]:
    """Per trajectory, what the plan no longer reaches and the ledger does not hold."""
    found = {}
    for trajectory in trajectories:
        known = ledger.get(trajectory)
        oldest = known.edge.reachable_from if known else None
        if known and oldest is not None:
            beyond = difference([(window.start, min(oldest, window.end))], known.answered)
            if beyond:
                found[trajectory] = beyond
    return found


class _Run:
    """One load under way: workers put pages into a queue, the calling thread commits them."""

    def __init__(
        self,
        store: Store,
        load_id: int,
        works: list[_Work],
        started: float,
        on_progress: Callable[[Progress], object] | None,
    ) -> None:
        self.pages = 0
        self.inserted = Inserted()
        self.findings: Counter[Finding] = Counter()
        self._store = store
        self._load_id = load_id
        self._works: queue.SimpleQueue[_Work] = queue.SimpleQueue()
        for work in works:
            self._works.put(work)
        self._asked_s = sum(work.stretch.length_s for work in works)
        self._answered_s = 0
        self._rows = 0
        self._started = started
        self._on_progress = on_progress
        self._arrived: queue.Queue[tuple[_Work, Page] | BaseException | None] = queue.Queue(
            _WAITING_PAGES
        )
        self._stop = threading.Event()
        self._batch = Batch()
        self._in_batch = Counter[str]()
        self._batch_began = started

    def carry_out(self, client: Client, workers: int) -> None:
        """Fetch everything; whatever ends it, the pages received whole are committed."""
        threads = [
            threading.Thread(target=self._fetch, args=(client,), daemon=True, name=f"rail-{i}")
            for i in range(min(workers, self._works.qsize()))
        ]
        for thread in threads:
            thread.start()
        try:
            self._receive(len(threads))
        finally:
            self._stop.set()
            self._commit()
        for thread in threads:
            thread.join()

    def _fetch(self, client: Client) -> None:
        """A worker: takes one unit of work after another until none is left."""
        try:
            while not self._stop.is_set():
                work = self._works.get_nowait()
                for page in client.pages(work.trajectory, work.stretch):
                    self._hand_over((work, page))
                    if self._stop.is_set():
                        return
        except queue.Empty:
            self._hand_over(None)
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            self._hand_over(error)

    def _hand_over(self, item: tuple[_Work, Page] | BaseException | None) -> None:
        while not self._stop.is_set():
            try:
                self._arrived.put(item, timeout=0.1)
            except queue.Full:
                continue
            return

    def _receive(self, workers: int) -> None:
        while workers:
            item = self._arrived.get()
            if item is None:
                workers -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                self._take(*item)

    def _take(self, work: _Work, page: Page) -> None:
        if not self._in_batch:
            self._batch_began = time.monotonic()
        self._batch.add(work.trajectory, page.frame, page.answered, work.observe(page))
        self._in_batch.update(pages=1, rows=page.frame.height)
        self.pages += 1
        self._rows += page.frame.height
        self._answered_s += page.answered.length_s
        self.findings.update(page.findings)
        full = (
            self._in_batch["pages"] >= _PAGES_A_COMMIT
            or self._in_batch["rows"] >= _ROWS_A_COMMIT
            or time.monotonic() - self._batch_began >= _SECONDS_A_COMMIT
        )
        if full:
            self._commit()
        self._report()

    def _commit(self) -> None:
        if self._in_batch:
            batch, self._batch = self._batch, Batch()
            self._in_batch.clear()
            self.inserted += self._store.commit(self._load_id, batch)

    def _report(self) -> None:
        if self._on_progress:
            elapsed_s = time.monotonic() - self._started
            self._on_progress(
                Progress(self._rows, self.pages, self._answered_s, self._asked_s, elapsed_s)
            )
