"""Following streams: by sockets where the plan has them, by the archive in any case.

docs/design.md, "Live capture", has why a socket comes first and the archive answers for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from toolkit.alerts.watch import AlertPlan, AlertWatch
from toolkit.client import Client
from toolkit.ending import under_way
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.loader.follow.capture import Capture, patiently
from toolkit.loader.follow.follow_progress import FollowProgress, FollowResult
from toolkit.loader.follow.followed import Named, Wanted
from toolkit.loader.follow.following import Following
from toolkit.loader.follow.polls import Pace
from toolkit.loader.follow.sweep import Since, Sweeper
from toolkit.loader.sync.sync import bound_source, check_listed, checked_workers, load_origin
from toolkit.market import EventLog, SnapshotLog, Source, Stream, Trajectory
from toolkit.store import Store, StoreWriter
from toolkit.store.writing.follow_mark import FollowMark
from toolkit.store.writing.pages import KEPT_DAYS
from toolkit.tables import GapStatus
from toolkit.wire.finding_words import as_rows
from toolkit.wire.findings import Finding
from toolkit.wire.sockets.stream import ReconnectPolicy


@under_way()
def follow(
    client: Client,
    store: Store,
    wanted: Sequence[Stream] | Wanted,
    *,
    since: Since | None = None,
    once: bool = False,
    duration_s: float | None = None,
    stop: threading.Event | None = None,
    pace: Pace | None = None,
    policy: ReconnectPolicy | None = None,
    workers: int = 4,
    alerts: AlertPlan | None = None,
    pages_days: float = KEPT_DAYS,
    on_progress: Callable[[FollowProgress], object] | None = None,
    on_note: Callable[[str], object] | None = None,
) -> FollowResult:
    """Keep the store up to date, until ``stop`` or for ``duration_s`` (s, the local clock).

    ``wanted`` are trajectories, event logs and snapshots, or what names them anew from time to time
    (`toolkit.workspace.loading.Rules`). Every row and every document from ``since`` on is brought
    in once, by a socket or by the archive, and the snapshots as often as ``pace`` has it. The
    archive is asked for the stretch at least every ``pace.sweep_s`` until it has settled, less
    often where that would spend more than half of the key's quota. So are gaps that earlier
    follows left open. Default of ``since``: where the answers that the store holds of a stream
    end, and the beginning of this follow where it holds none. So a follow that comes back fills
    its absence. It ends with a last sweep. What is younger than the archive's delay then is "not
    yet known" to the ledger, and the next load asks for it.

    ``once`` asks for all there is up to now, and ends: no socket is opened, and no failure of the
    service waited for. Otherwise a service that does not answer, a spent quota and a store that
    another process holds are waited for. A stream without a socket in the key's plan is asked from
    the archive alone. One that is refused there too stops no other: the result names it.

    ``alerts`` are evaluated as rows are committed, and sent (`toolkit.alerts.watch`).

    ``policy`` decides when a lost or silent socket is opened again. ``on_progress`` hears about
    once per second how it goes, ``on_note`` each change and failure, in a sentence. Raises
    `KeyRefusedError` and others that waiting does not mend, `StoreError` (another source's store, a
    full disk, a file that was replaced), `InputError` (nothing to follow). What was received before
    an error is kept.

    >>> import tempfile
    >>> from toolkit.service import Config, Simulated, SpedClock, running
    >>> config = Config(Simulated(7), port=0, clock=SpedClock(start=1_795_046_400, speed=600.0))
    >>> key = Trajectory.parse("BTC_USDT:AURORA.spot")
    >>> with tempfile.TemporaryDirectory() as folder, running(config) as service:
    ...     with Client(service.base_url, "demo-pro") as client:
    ...         done = follow(client, Store(f"{folder}/s.duckdb"), [key], duration_s=1.0)
    >>> done.rows.new > 0, done.gaps
    (True, {})
    """
    checked_workers(workers)
    if duration_s is not None and duration_s <= 0:
        raise InputError("duration_s", duration_s, "seconds above 0")
    named = Named(checked_streams(wanted)) if isinstance(wanted, Sequence) else wanted
    store.keep_lean(client.limits)
    client.discover()
    writer = StoreWriter(store, pages_days=pages_days)
    source = bound_source(client, writer)
    began_at = client.served_at()
    unseen = tuple[Finding, ...]()
    if isinstance(named, Named):
        unseen = check_listed(client, [s for s in named({}) if isinstance(s, Trajectory)])
    load_id = writer.start_load(load_origin(client, began_at))
    writer.end_gaps(client.served_at())
    capture = Capture(client, writer, load_id, policy=policy, note=on_note or (lambda _: None))
    for finding in unseen:
        capture.note(f"the listing of symbols: {finding.says}; asked for as typed")
    sweeper = Sweeper(client, writer, since or Since(began_at), capture.inbox.put, workers=workers)
    following = Following(client, capture, sweeper, named, pace or Pace(), once=once)
    mark = FollowMark(store.path)
    if alerts is not None:
        capture.alerts = AlertWatch(
            alerts,
            writer,
            load_id,
            clock=client.served_at,
            followed=lambda: list(following.followed.rules),
            note=capture.note,
            evaluated=mark.evaluated,
        )
    with mark, under_way(capture.abandon), capture:
        following.carry_out(duration_s, stop or threading.Event(), on_progress)
    return _finished(following, writer, source, began_at, load_id)


def checked_streams(streams: Sequence[Stream]) -> tuple[Stream, ...]:
    """Return the streams, each once. Raise `InputError` for what cannot be followed."""
    asked = tuple(dict.fromkeys(streams))
    wrong = [s for s in asked if not isinstance(s, Trajectory | EventLog | SnapshotLog)]
    if wrong or not asked:
        allowed = "trajectories, event logs and snapshots"
        raise InputError("streams", wrong[0] if wrong else None, allowed)
    return asked


def _finished(
    following: Following, writer: StoreWriter, source: Source, began_at: int, load_id: int
) -> FollowResult:
    """Record the end of a follow, and return what it did."""
    capture, polls, sweeper = following.capture, following.polls, following.sweeper
    capture.findings.add(capture.inserted.findings)
    findings = capture.findings.listed()
    rows = as_rows(findings, following.client.profile())
    patiently(lambda: writer.finish_load(load_id, rows))
    statuses = patiently(writer.store.gaps).filter(load_id=load_id)["status"]
    return FollowResult(
        source=source,
        window=Interval(began_at, max(following.client.served_at(), began_at + 1)),
        followed=following.followed.rules,
        rows=capture.inserted,
        messages=capture.messages,
        sweeps=following.sweeps,
        snapshots=polls.answered,
        missed=polls.missed,
        attempts=capture.attempts,
        elapsed_s=capture.elapsed_s,
        load_id=load_id,
        gaps={GapStatus(s): int((statuses == s).sum()) for s in sorted(set(statuses))},
        lost_s=dict(sweeper.lost_s),
        refused=dict([*polls.refused.items(), *sweeper.refused.items()]),
        findings=findings,
    )
