"""Loading a window of streams into the store: only what is missing, all of it, once.

ledger -> plan -> pages -> check -> commit. `toolkit.loader.sync.run` carries it out.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from toolkit.cards import some
from toolkit.client import Client
from toolkit.ending import under_way
from toolkit.errors import (
    InputError,
    PlanRefusedError,
    ServiceError,
    StoreSourceError,
    UnknownTrajectoryError,
)
from toolkit.interrupts import one_interrupt
from toolkit.intervals import Interval
from toolkit.loader.sync.clock import ClockReading
from toolkit.loader.sync.plan import LoadPlan, plan
from toolkit.loader.sync.progress import LoadResult, Progress
from toolkit.loader.sync.run import OF_ALL, Run
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
from toolkit.store import Ledger, LoadOrigin, Store, StoreWriter
from toolkit.store.writing.pages import KEPT_DAYS
from toolkit.wire.finding_words import as_rows
from toolkit.wire.findings import Finding
from toolkit.wire.listing import nearest_keys
from toolkit.wire.profile.event_routes import EventRoute
from toolkit.wire.profile.profile import HistoryRoute, Profile


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

    Trajectories and event logs are asked for what the coverage ledger lacks: a stretch answered for
    is not asked again, except its youngest part, which may still change, and where more may still
    arrive (`toolkit.store.ledger.answers`). ``again`` asks for all of the window. A snapshot
    is asked for once, as it is now, whatever the window. A series kept from snapshots stands for
    its snapshot. Interrupted at any moment, a sync leaves whole batches. A second call goes on from
    there, and one more adds nothing. The pages that rows come from are kept beside the store for
    ``pages_days`` (days), 0 for not at all: see `toolkit.store.writing.remap`.

    A refusal of one stream stops no other: the result names it. A stream that the key's plan does
    not include, as the service states, is not asked for. Where all are refused the first refusal is
    raised.

    Raises `ServiceError`, `StoreError` (another source's store, a locked file), `InputError` (an
    unknown trajectory, a number of workers out of range). Pages received before an error are kept.
    """
    started, sent_before = time.monotonic(), client.requests
    checked_workers(workers)
    window, streams = Interval.checked(*window), _asked_for(streams)
    profile, served_at = client.discover(), client.served_at()
    writer = StoreWriter(store, pages_days=pages_days)
    source = bound_source(client, writer)
    prepared = prepare(
        client, profile, store, streams, window, again=again, keeps_pages=writer.keeps_pages
    )
    planned, clock, refused = prepared.plan, prepared.clock, dict(prepared.refused)
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
    at_once = [*profile.findings, *prepared.findings, *clock.findings]
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


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a load of a window would carry out: ``plan``, what is ``refused``, and the clock.

    ``findings`` are of the listing: see `check_listed`.
    """

    plan: LoadPlan
    clock: ClockReading
    refused: Mapping[Stream, ServiceError]
    findings: tuple[Finding, ...] = ()


def prepare(
    client: Client,
    profile: Profile,
    store: Store,
    streams: Sequence[Stream],
    window: Interval,
    *,
    again: bool = False,
    keeps_pages: bool = True,
) -> Prepared:
    """Find out what a load would ask for. Raises `UnknownTrajectoryError`.

    Writes nothing. Where the store has no file yet, it holds nothing.
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
    return Prepared(planned, clock, refused, findings)


def _asked_for(streams: Iterable[Stream]) -> list[Stream]:
    """Return what the service is asked for, each once: for a series its snapshot."""
    asked = (each.log if isinstance(each, SnapshotTrajectory) else each for each in streams)
    return list(dict.fromkeys(asked))


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
        route = _route(profile, stream)
        needed = ranks.get(route.minimum_plan or "") if route else None
        if allowance and route and held is not None and needed is not None and held < needed:
            refused[stream] = PlanRefusedError(
                f"{stream} is not in the key's plan {allowance.plan}, it begins at "
                f"{route.minimum_plan}; it was not asked for"
            )
    return refused


def _route(profile: Profile, stream: Stream) -> HistoryRoute | EventRoute | None:
    if isinstance(stream, Trajectory):
        return profile.histories[stream.family]
    return profile.events[stream.family] if isinstance(stream, EventLog) else None


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
    profile, version_now = client.profile(), version("machine-rail-toolkit")
    return LoadOrigin(
        client.base_url,
        served_at,
        profile.schema_hash,
        version_now,
        client.allowance,
        {family: route.row_key for family, route in profile.histories.items()},
        profile.users_hash,
        client.schemas,
        profile.events,
    )


def check_listed(client: Client, trajectories: Iterable[Trajectory]) -> tuple[Finding, ...]:
    """Raise `UnknownTrajectoryError` for the first trajectory that the service does not list.

    A listing that cannot be had or read, or has no legs, refuses nothing: what it does not show is
    returned as a finding. Of many symbols the whole listing is asked for, which is one request
    where it is not cut.
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
