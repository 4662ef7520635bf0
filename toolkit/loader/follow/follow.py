"""Following streams: by sockets where the plan has them, by the archive in any case.

Besides the sockets' readers one thread sweeps the archive, one asks for snapshots and reads the
rules. New streams are swept before the snapshot that named them is kept, so that a dashboard has
what it lists (docs/design.md, "Live capture").
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from toolkit.alerts.watch import AlertPlan, AlertWatch
from toolkit.cards import counted, duration, some
from toolkit.client import Client
from toolkit.ending import under_way
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
from toolkit.loader.follow.capture import Capture, patiently
from toolkit.loader.follow.follow_progress import FollowProgress, FollowResult
from toolkit.loader.follow.sweep import Pace, Since, SnapshotPolls, Sweeper
from toolkit.loader.sync.sync import bound_source, check_listed, checked_workers, load_origin
from toolkit.market import (
    EventLog,
    SnapshotKind,
    SnapshotLog,
    Source,
    Stream,
    Trajectory,
    format_ts,
)
from toolkit.store import Store, StoreWriter
from toolkit.store.writing.follows import FollowMark
from toolkit.store.writing.pages import KEPT_DAYS
from toolkit.tables import GapStatus
from toolkit.wire.finding_words import as_rows
from toolkit.wire.findings import Finding
from toolkit.wire.socket_steps import ReconnectPolicy


class Wanted(Protocol):
    """What names the streams to follow, anew at each call."""

    @property
    def snapshots(self) -> Sequence[SnapshotLog]:
        """The snapshots that a call needs."""

    def __call__(self, documents: Mapping[SnapshotKind, str], /) -> Mapping[Stream, str]:
        """Return the streams to follow now, each with the rule that names it."""

    def lately(self, now: int, /) -> Mapping[Stream, tuple[str, int]]:
        """Return the streams named lately, by the store: the rule, and when last (s)."""


class Named:
    """Streams that are named once and for all.

    >>> Named([Stream.parse("events/splash")])({})
    {EventLog(family=<EventFamily.SPLASH: 'splash'>): 'named'}
    """

    snapshots: tuple[SnapshotLog, ...] = ()

    def __init__(self, streams: Iterable[Stream]) -> None:
        self._streams = dict.fromkeys(streams, "named")

    def __call__(self, _documents: Mapping[SnapshotKind, str]) -> dict[Stream, str]:
        """Return the streams."""
        return dict(self._streams)

    def lately(self, _now: int) -> dict[Stream, tuple[str, int]]:
        """Return nothing: they are always named."""
        return {}


class Followed:
    """The streams followed now, each with its rule. A change is one sentence.

    A stream that no rule names any more is followed for ``keep_s`` longer (s). Times are of the
    service's clock.
    """

    def __init__(self, keep_s: float) -> None:
        self.rules: dict[Stream, str] = {}
        self._keep_s = round(keep_s)
        self._left: dict[Stream, int] = {}

    def remember(self, lately: Mapping[Stream, tuple[str, int]]) -> list[str]:
        """Follow what was named before this follow began, for the rest of its time.

        Returns which streams, in a sentence.
        """
        rules = dict(self.rules)
        for stream, (rule, last_at) in lately.items():
            if stream not in rules:
                rules[stream] = f"{rule}, lately"
                self._left[stream] = last_at
        more = [stream for stream in rules if stream not in self.rules]
        self.rules = rules
        kept = duration(self._keep_s)
        return [f"named within the last {kept}, and followed on: {some(more)}"] if more else []

    def renew(self, found: Mapping[Stream, str], now: int) -> list[str]:
        """Follow what the rules name now. Return what changed, nothing the first time."""
        before, left = self.rules, dict(self._left)
        gone = [s for s in before if s not in found and s not in left]
        left = {s: at for s, at in left.items() if s not in found} | dict.fromkeys(gone, now)
        over = [s for s, at in left.items() if now - at >= self._keep_s]
        self._left = {s: at for s, at in left.items() if s not in over}
        self.rules = dict(found) | {s: before[s] for s in self._left}  # read by other threads
        came = [s for s in found if s not in before] if before else []
        until = format_ts(now + self._keep_s)
        kept = f"after {duration(self._keep_s)} without a rule (what is held stays)"
        return [
            f"{counted(len(streams), 'stream')} {words}: {some(streams)}"
            for streams, words in (
                (came, "more is followed" if len(came) == 1 else "more are followed"),
                (gone, f"{_are(gone)} named by no rule any more, followed until {until}"),
                (over, f"{_are(over)} followed no more, {kept}"),
            )
            if streams
        ]


def _are(streams: Sequence[Stream]) -> str:
    return "is" if len(streams) == 1 else "are"


_LASTING = (BadRequestError, KeyRefusedError, NotFoundError, PlanRefusedError)
_ENDING_S, _ENDING_EARLY_S = 45.0, 10.0  # a service manager waits for 90
_SILENT_S, _SILENT_EARLY_S = 1.5, 0.5  # the same where it was stopped and somebody waits
_NEW_SWEPT_S = 20.0
_SHARE_OF_QUOTA = 0.5


class Following:
    """A follow under way: ``followed`` are its streams, ``sweeps`` counts those of the archive."""

    def __init__(
        self,
        client: Client,
        capture: Capture,
        sweeper: Sweeper,
        wanted: Wanted,
        pace: Pace,
        *,
        once: bool,
    ) -> None:
        self.client = client
        self.capture = capture
        self.sweeper = sweeper
        self.sweeps = 0
        self.followed = Followed(pace.keep_s)
        self.polls = SnapshotPolls(client, pace, capture.inbox.put, patient=not once)
        self._wanted = wanted
        self._pace = pace
        self._once = once
        self._new: list[Stream] = []
        self._wake, self._new_swept = threading.Event(), threading.Event()
        self._rules_due = 0.0
        self._lost = 0
        self._upkeep = self._thread("rail-upkeep", self._keep_up)
        self._sweeping = self._thread("rail-sweeps", self._sweep_on)

    def carry_out(
        self,
        duration_s: float | None,
        stop: threading.Event,
        on_progress: Callable[[FollowProgress], object] | None,
    ) -> None:
        """Follow until the end. Then take what the readers still have, and sweep again."""
        capture = self.capture
        report = (lambda: on_progress(self._progress())) if on_progress else (lambda: None)
        self._begin()
        if not self._once:
            capture.listen(self._dated)
        for thread in (self._upkeep, self._sweeping):
            capture.start(thread)
        try:
            capture.write_while(
                lambda: (
                    self._sweeping.is_alive()
                    and not stop.is_set()
                    and (duration_s is None or capture.elapsed_s < duration_s)
                ),
                report,
            )
            capture.end()
        except BaseException:
            capture.abandon()
            raise
        finally:
            for waited_for in (self._wake, self._new_swept):
                waited_for.set()
        self._end(stop, report)

    def _end(self, stop: threading.Event, report: Callable[[], object]) -> None:
        """Take what the readers still have and the last sweep brings."""
        capture, ended_at = self.capture, time.monotonic()
        early = self.sweeper.swept_at is None

        def has_time() -> bool:
            now = time.monotonic()
            if not stop.is_set():
                return now - ended_at < (_ENDING_EARLY_S if early else _ENDING_S)
            if early:
                return now - ended_at < _SILENT_EARLY_S
            heard_s = now - max(ended_at, capture.heard_at)
            return heard_s < _SILENT_S and now - ended_at < _ENDING_S

        capture.write_while(
            lambda: (self._sweeping.is_alive() and has_time()) or not capture.inbox.empty, report
        )

    def _begin(self) -> None:
        """Read the rules for the first time, on snapshots as they are now."""
        self.polls.ask_for(self._wanted.snapshots)
        pieces = self.polls.poll()
        found = self._wanted(self.polls.documents)
        if not found:
            self.capture.note("the rules name no stream now; they are read again later")
        self.followed.renew(found, self.client.served_at())
        for sentence in self.followed.remember(self._wanted.lately(self.client.served_at())):
            self.capture.note(sentence)
        self._ask_for_snapshots()
        self._rules_due = self._pace.clock() + self._pace.rules_s
        for piece in pieces:
            self.capture.inbox.put(piece)

    def _thread(self, name: str, work: Callable[[], object]) -> threading.Thread:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
                self.capture.inbox.put(error)

        return threading.Thread(target=guarded, name=name, daemon=True)

    @property
    def _dated(self) -> list[Stream]:
        """The trajectories and event logs followed now."""
        return [s for s in self.followed.rules if not isinstance(s, SnapshotLog)]

    def _ask_for_snapshots(self) -> None:
        self.polls.ask_for(s for s in self.followed.rules if isinstance(s, SnapshotLog))

    def _progress(self) -> FollowProgress:
        capture, sweeper, readers = self.capture, self.sweeper, self.capture.readers
        dated, now = self._dated, self.client.served_at()
        live = sum(len(reader.streams) for reader in readers if reader.connected)
        swept_at = sweeper.swept_at
        return FollowProgress(
            messages=capture.messages,
            new=capture.inserted.new,
            live=live,
            polled=max(0, len(dated) - live),
            connected=sum(reader.connected for reader in readers),
            sockets=len(readers),
            snapshots=self.polls.answered,
            missed=self.polls.missed,
            gaps=len(capture.gaps),
            open_gaps=sweeper.open_gaps,
            behind_s=(None if dated else 0) if swept_at is None else max(0, now - swept_at),
            next_loss_s=sweeper.next_loss_s(now),
            elapsed_s=capture.elapsed_s,
        )

    # -- the thread that keeps up ------------------------------------------------------------------

    def _keep_up(self) -> None:
        """Ask for what is due and read the rules, again and again."""
        changes = not isinstance(self._wanted, Named)
        while self.polls.next_due is not None or changes:
            if not self._once:
                dues = [self.polls.next_due, self._rules_due if changes else None]
                due = min(each for each in dues if each is not None)
                self._pace.wait(self.capture.stop, max(0.0, due - self._pace.clock()))
                if self.capture.stop.is_set():
                    return
            pieces = self.polls.poll()
            if changes and not self._once and self._pace.clock() >= self._rules_due:
                self._rules_due = self._pace.clock() + self._pace.rules_s
                self._renew()
            for piece in pieces:
                self.capture.inbox.put(piece)
            if self.polls.refused and self.polls.next_due is None and not self._dated:
                raise next(iter(self.polls.refused.values()))
            if self._once:
                return

    def _renew(self) -> None:
        """Read the rules anew, and let new streams be swept."""
        try:
            found = self._wanted(self.polls.documents)
        except KeyRefusedError:
            raise
        except (ServiceError, StoreLockedError, InputError) as error:
            says = f"the rules could not be read, those from before go on: {error}"
            self.capture.inbox.put(Finding("rules_unread", "watchlist", says))
            return
        before = self.followed.rules
        for sentence in self.followed.renew(found, self.client.served_at()):
            self.capture.note(sentence)
        if self.followed.rules.keys() == before.keys():
            return
        self._ask_for_snapshots()
        self.capture.listen(self._dated)
        self._new_swept.clear()
        self._new = [stream for stream in self._dated if stream not in before]
        if self._new and not self.capture.stop.is_set():
            self._wake.set()
            self._new_swept.wait(_NEW_SWEPT_S)

    # -- the thread that sweeps --------------------------------------------------------------------

    def _sweep_on(self) -> None:
        """Sweep again and again. The last sweep begins when nothing is read any more."""
        clock, due = self._pace.clock, 0.0
        while True:
            last = self._once or self.capture.stop.is_set()
            if last:
                for thread in (*self.capture.readers, self._upkeep):
                    thread.join()
                self.capture.await_written()  # the gaps that the readers ended are asked for, too
            if self.capture.inbox.abandoned.is_set():
                return
            new, self._new = self._new, []
            if last or not new:
                due = clock() + self._between_sweeps_s()
                self._sweep(self._dated)
            else:
                self._sweep(new, all_of_them=False)
            if not self._new:
                self._new_swept.set()
            if last:
                return
            self._pace.wait(self._wake, max(0.0, due - clock()))
            self._wake.clear()

    def _between_sweeps_s(self) -> float:
        """Return the seconds between two sweeps: one takes a request per stream at least."""
        allowance = self.client.allowance
        if allowance is None or not allowance.quota or not allowance.window_s:
            return self._pace.sweep_s
        per_s = _SHARE_OF_QUOTA * allowance.quota / allowance.window_s
        return max(self._pace.sweep_s, len(self._dated) / per_s)

    def _sweep(self, streams: Sequence[Stream], *, all_of_them: bool = True) -> None:
        refused = set(self.sweeper.refused)
        try:
            if streams:
                self.sweeper.sweep(streams, all_of_them=all_of_them)
        except _LASTING:
            raise
        except (ServiceError, StoreLockedError) as error:  # the next sweep asks for the same again
            if self._once:
                raise
            says = f"asked again in the next sweep: {error}"
            self.capture.inbox.put(Finding("sweep_failed", type(error).__name__, says))
        self.sweeps += 1
        for stream in self.sweeper.refused.keys() - refused:
            says = f"not asked for any more: {self.sweeper.refused[stream]}"
            self.capture.inbox.put(Finding("refused", stream.key, says))
        self._note_loss()
        self.capture.await_written()

    def _note_loss(self) -> None:
        """Say once what the archive has dropped before it was asked for."""
        lost = self.sweeper.lost_s
        if lost and sum(lost.values()) > self._lost:
            self._lost = sum(lost.values())
            streams = counted(len(lost), "stream")
            self.capture.note(
                f"lost for good: up to {duration(max(lost.values()))} of {streams}, "
                "which the archive dropped before it was asked for"
            )


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
    (`toolkit.workspace.loading.Rules`). Every row and document from ``since`` on is brought in
    once, by a socket or by the archive, and snapshots as often as ``pace`` has it. The archive is
    asked at least every ``pace.sweep_s`` until it has settled, less often where that would spend
    more than half of the quota, also for gaps of earlier follows. ``since`` is by default where the
    store's answers of a stream end, else the beginning of this follow. It ends with a last sweep.
    The next load asks for what is younger than the archive's delay then.

    ``once`` asks for all there is up to now, without sockets, and waits for nothing. Otherwise a
    service that does not answer, a spent quota and a locked store are waited for. A stream without
    a socket in the key's plan comes from the archive alone. One that is refused there too stops no
    other: the result names it.

    ``alerts`` are evaluated as rows are committed, and sent (`toolkit.alerts.watch`). ``policy``
    decides when a lost or silent socket is opened again. ``on_progress`` is called about once per
    second, ``on_note`` with each change and failure, in a sentence. Raises `KeyRefusedError` and
    others that waiting does not mend, `StoreError` (another source's store, a full disk, a replaced
    file), `InputError` (nothing to follow). What was received before an error is kept.

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
    """Return the streams, each once. Raise `InputError` for one that cannot be followed."""
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
