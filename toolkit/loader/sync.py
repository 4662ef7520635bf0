"""Loading a window of trajectories into the store: only what is missing, all of it, once.

gaps -> pages -> check -> commit; `toolkit.loader.run` carries it out.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version

import numpy as np

from toolkit.client import Client
from toolkit.errors import InputError, UnknownTrajectoryError
from toolkit.intervals import Interval, difference
from toolkit.loader.progress import Asked, LoadResult, Progress
from toolkit.loader.run import Piece, Run
from toolkit.market import Source, Symbol, Trajectory
from toolkit.store import Batch, Edge, Ledger, LoadOrigin, Store, to_ask
from toolkit.wire.listing import Listing, nearest_keys
from toolkit.wire.paging import Page
from toolkit.wire.profile import Profile

__all__ = ["Work", "begin_load", "bound_source", "check_listed", "checked_workers", "sync"]


@dataclass(slots=True)
class Work:
    """One unit: a stretch of a trajectory to be asked for, newest page first."""

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
        """The stretch's pages; each vouches for the part of it that it completes."""
        for page in client.pages(self.trajectory, self.stretch):
            put = partial(_put, self.trajectory, page, self._observe(page))
            yield Piece(put, page.frame.height, page.answered.length_s, page.findings)

    def _observe(self, page: Page) -> Edge:
        """The edge, with the spacing of the rows seen so far and the end of the newest."""
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


def _put(trajectory: Trajectory, page: Page, edge: Edge, batch: Batch) -> None:
    batch.add(trajectory, page.frame, page.answered, edge)


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
    checked_workers(workers)
    trajectories = list(dict.fromkeys(trajectories))
    started = time.monotonic()
    profile, served_at = client.discover(), client.served_at()
    source = bound_source(client, store)
    ledger = store.ledger()
    check_listed(client, [t for t in trajectories if t not in ledger])
    works = _plan(ledger, profile, trajectories, window, served_at)
    load_id = begin_load(client, store, served_at)
    run = Run(store, load_id, works, on_progress)
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


def checked_workers(workers: int) -> None:
    """Raise `InputError` for a number of workers that makes no sense."""
    if not 1 <= workers <= 64:
        raise InputError("workers", workers, "a whole number from 1 to 64")


def bound_source(client: Client, store: Store) -> Source:
    """The service's source, which the store is now known to be for; see `Store.bind`."""
    source = client.profile().source or Source("unknown", client.base_url)
    store.bind(source)
    return source


def begin_load(client: Client, store: Store, served_at: int) -> int:
    """Record that a load begins; gives its number."""
    version_now = version("machine-rail-toolkit")
    return store.start_load(
        LoadOrigin(
            client.base_url, served_at, client.profile().schema_hash, version_now, client.allowance
        )
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
) -> list[Work]:
    """What to ask for: per trajectory, the stretches of the window that the ledger lacks."""
    works: list[Work] = []
    for trajectory in trajectories:
        route = profile.histories[trajectory.family]
        known = ledger.get(trajectory)
        step_s = known.edge.step_s if known else None
        edge = Edge(served_at, route.delay_s, route.retention_s, step_s)
        missing = to_ask(window, known.answered if known else [], edge)
        works.extend(Work(trajectory, stretch, edge) for stretch in missing)
    return works


def _unrecoverable(
    ledger: Mapping[Trajectory, Ledger], trajectories: Iterable[Trajectory], window: Interval
) -> dict[Asked, list[Interval]]:
    """Per trajectory, what the plan no longer reaches and the ledger does not hold."""
    found: dict[Asked, list[Interval]] = {}
    for trajectory in trajectories:
        known = ledger.get(trajectory)
        oldest = known.edge.reachable_from if known else None
        if known and oldest is not None:
            beyond = difference([(window.start, min(oldest, window.end))], known.answered)
            if beyond:
                found[trajectory] = beyond
    return found
