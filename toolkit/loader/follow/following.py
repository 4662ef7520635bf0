"""The two threads of a follow besides its sockets' readers: one sweeps the archive, one keeps up.

The second asks for the snapshots and reads the rules anew. Streams that are new are swept before
the snapshot that named them is kept: what a dashboard lists is there when it lists it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from toolkit.cards import counted, duration
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
from toolkit.loader.follow.capture import Capture
from toolkit.loader.follow.follow_progress import FollowProgress
from toolkit.loader.follow.followed import Followed, Named, Wanted
from toolkit.loader.follow.polls import Pace, SnapshotPolls
from toolkit.loader.follow.sweep import Sweeper
from toolkit.market import SnapshotLog, Stream
from toolkit.wire.profile.profile import Finding

_LASTING = (BadRequestError, KeyRefusedError, NotFoundError, PlanRefusedError)
_ENDING_S, _ENDING_EARLY_S = 45.0, 10.0  # a service manager waits for 90
_SILENT_S, _SILENT_EARLY_S = 1.5, 0.5  # the same where it was stopped and somebody waits
_NEW_SWEPT_S = 20.0
_SHARE_OF_QUOTA = 0.5


class Following:
    """A follow under way. ``followed`` are its streams, ``sweeps`` counts looks into the archive.

    With ``once`` each thread does its work once, and no socket is opened.
    """

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
        """Follow until the end. Then take what the readers still hold, and sweep again."""
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
        """Take what the readers still hold and the last sweep brings.

        Where the follow was stopped, that sweep ends soon after the archive falls silent, and soon
        in any case where it is the first one.
        """
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
        """Sweep again and again. The last one begins when nothing is read any more."""
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
        """Return the seconds between two sweeps: one costs a request per stream at least."""
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
        """Say what the archive has dropped before it was asked for, once."""
        lost = self.sweeper.lost_s
        if lost and sum(lost.values()) > self._lost:
            self._lost = sum(lost.values())
            streams = counted(len(lost), "stream")
            self.capture.note(
                f"lost for good: up to {duration(max(lost.values()))} of {streams}, "
                "which the archive dropped before it was asked for"
            )
