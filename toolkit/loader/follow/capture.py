"""A follow under way: streams and the archive fill an inbox, and one thread writes it.

Messages of streams are kept at once. Meanwhile the archive is asked for the same stretch until it
has settled past it, and only what the archive has answered for enters the ledger, so a killed
follow claims nothing that it does not have. Each loss of a stream is a row of the gap ledger.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Self, TypeVar

from toolkit.alerts.watch import AlertWatch
from toolkit.client import Client
from toolkit.errors import StoreLockedError
from toolkit.loader.follow.reader import Message, Messages, ReaderItem, StreamReader
from toolkit.loader.sync.sync import bound_source
from toolkit.loader.sync.tasks import Piece
from toolkit.market import EventLog, Stream, Trajectory
from toolkit.store import Batch, Gap, Inserted, StoreWriter
from toolkit.wire.findings import Finding, Findings
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.socket_steps import ReconnectPolicy

InboxItem = ReaderItem | Piece | threading.Event

_WAITING_ITEMS, _WAITING_PAGES = 10_000, 32


class Inbox:
    """Items that several threads put and one thread gets, in their order.

    A reader, and with it its socket, waits while ``waiting_bytes`` of the limits wait here.

    >>> inbox = Inbox()
    >>> inbox.put(threading.Event()), inbox.empty
    (True, False)
    """

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._most_bytes = limits.waiting_bytes
        self.abandoned = threading.Event()
        self._items: deque[InboxItem] = deque()
        self._pages = self._bytes = 0
        self._changed = threading.Condition()

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._items

    def put(self, item: InboxItem) -> bool:
        """Put an item, as soon as there is room. Return False once it is abandoned."""
        with self._changed:
            while not self._fits(item):
                if self.abandoned.is_set():
                    return False
                self._changed.wait(_LOOK_S)
            if self.abandoned.is_set():
                return False
            self._items.append(item)
            self._count(item, 1)
            self._changed.notify_all()
        return True

    def get(self, timeout: float) -> InboxItem:
        """Take the next item. Raises `queue.Empty` where none comes in time (s)."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._items, timeout):
                raise queue.Empty
            item = self._items.popleft()
            self._count(item, -1)
            self._changed.notify_all()
        return item

    def _fits(self, item: InboxItem) -> bool:
        if isinstance(item, Piece):
            return self._pages < _WAITING_PAGES
        if isinstance(item, Message) and self._bytes + len(item.body) > self._most_bytes:
            return self._bytes == 0  # a message that is larger than all that may wait goes alone
        return len(self._items) < _WAITING_ITEMS

    def _count(self, item: InboxItem, sign: int) -> None:
        if isinstance(item, Piece):
            self._pages += sign
        elif isinstance(item, Message):
            self._bytes += sign * len(item.body)


_Result = TypeVar("_Result")
_SUBSCRIPTIONS_A_SOCKET = 500
_SECONDS_A_COMMIT, _MESSAGES_A_COMMIT = 1.0, 5_000
_LOOK_S, _PATIENCE_S = 0.1, 0.5  # who waits for the network longer is left there
_LOCKED = Finding("store_locked", "the store", "another process held it; the follow waited")


def patiently(use: Callable[[], _Result]) -> _Result:
    """Use the store, however long another process holds it."""
    while True:
        with contextlib.suppress(StoreLockedError):
            return use()


class Capture:
    """What the threads of a follow bring, and the calling thread writes.

    Threads put into ``inbox``, and end soon after ``stop`` is set. ``note`` gets each finding of a
    new kind, in a sentence. ``alerts``, if set, evaluates what is committed. ``heard_at`` is when
    something last came (s, monotonic clock).
    """

    def __init__(
        self,
        client: Client,
        writer: StoreWriter,
        load_id: int,
        *,
        policy: ReconnectPolicy | None,
        note: Callable[[str], object],
    ) -> None:
        self.inserted = Inserted()
        self.messages = 0
        self.findings = Findings(client.limits)
        self.inbox = Inbox(client.limits)
        self.stop = threading.Event()
        self.readers: list[StreamReader] = []
        self.attempts_before = 0
        self.gaps: set[int] = set()
        self._client = client
        self._policy = policy
        self.note = note
        self._noted: set[tuple[str, str]] = set()
        self._source = client.profile().source
        self._writer = writer
        self._load_id = load_id
        self._pending = Messages(client.profile())
        self._threads: list[threading.Thread] = []
        self._numbers = itertools.count(1)
        self._began = self._committed = self.heard_at = time.monotonic()
        self.alerts: AlertWatch | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop reading, whatever ended the follow, and keep what was received."""
        self.abandon()
        self._commit()
        if self.alerts is not None:
            self.alerts.end()
        until = time.monotonic() + _PATIENCE_S
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began, by the local clock."""
        return time.monotonic() - self._began

    @property
    def attempts(self) -> int:
        """How often a socket was tried."""
        return self.attempts_before + sum(reader.attempts for reader in self.readers)

    # -- sockets -----------------------------------------------------------------------------------

    def listen(self, streams: Sequence[Stream]) -> None:
        """Read these streams from sockets, and no others. Keep sockets that go on.

        A socket that the service refused is not tried again.
        """
        wanted = dict.fromkeys(s for s in streams if isinstance(s, EventLog | Trajectory))
        kept = [reader for reader in self.readers if set(reader.streams) <= wanted.keys()]
        refused = any(reader.refused for reader in kept if _market(reader))
        read = {stream for reader in kept for stream in reader.streams}
        fresh = [stream for stream in wanted if stream not in read]
        market = [s for s in fresh if isinstance(s, Trajectory) and not refused]
        room = [r for r in kept if _market(r) and len(r.streams) < _SUBSCRIPTIONS_A_SOCKET]
        if market and room:  # one socket more for each pair would be many
            kept.remove(room[-1])
            market = [*(s for s in room[-1].streams if isinstance(s, Trajectory)), *market]
        for reader in self.readers:
            if reader not in kept:
                reader.end()
                self.attempts_before += reader.attempts
        size = _SUBSCRIPTIONS_A_SOCKET
        sockets: list[EventLog | Sequence[Trajectory]] = [
            *(each for each in fresh if isinstance(each, EventLog)),
            *(market[first : first + size] for first in range(0, len(market), size)),
        ]
        opened = [
            StreamReader(
                self._client,
                of,
                policy=self._policy,
                put=self.inbox.put,
                admit=self._admit,
                gap_number=lambda: next(self._numbers),
            )
            for of in sockets
        ]
        self.readers = [*kept, *opened]
        for reader in opened:
            self.start(reader)

    def end(self) -> None:
        """Stop reading every socket, and set ``stop`` for the other threads."""
        self.stop.set()
        for reader in self.readers:
            reader.end()

    def abandon(self) -> None:
        """Stop reading and asking, from any thread. Nothing more is taken."""
        self.end()
        self.inbox.abandoned.set()

    def _admit(self) -> None:
        """Refuse a connection behind which another source now answers."""
        if self._client.discover().source != self._source:
            bound_source(self._client, self._writer)

    # -- threads -----------------------------------------------------------------------------------

    def start(self, thread: threading.Thread) -> None:
        """Start a thread that puts into the inbox. It is waited for at the end."""
        self._threads = [each for each in self._threads if each.is_alive()]
        thread.start()
        self._threads.append(thread)

    def await_written(self) -> None:
        """Wait in another thread until what was put before is written."""
        written = threading.Event()
        self.inbox.put(written)
        while not written.wait(_LOOK_S) and not self.inbox.abandoned.is_set():
            pass

    # -- what the calling thread does --------------------------------------------------------------

    def write_while(self, goes_on: Callable[[], bool], report: Callable[[], object]) -> None:
        """Write what comes for as long as it goes on. Raise errors of the other threads."""
        while goes_on():
            self._take_some(report)

    def _take_some(self, report: Callable[[], object]) -> None:
        if self.inbox.abandoned.is_set():  # because the process ends
            raise SystemExit
        try:
            item = self.inbox.get(timeout=_LOOK_S)
        except queue.Empty:
            self._commit_if_due(report)
            return
        self.heard_at = time.monotonic()
        match item:
            case Message():
                self.messages += 1
                self._pending.add(item)
            case Piece():
                item.put(self._pending.batch)
                self._pending.pages += 1
                self.findings.add(item.findings)
            case Gap():
                self.gaps.add(item.number)
                self._pending.batch.gaps[item.number] = item
            case Finding():
                self._find(item)
            case threading.Event():
                self._commit()
                report()
                item.set()
            case _:
                raise item
        self._commit_if_due(report)

    def _find(self, finding: Finding) -> None:
        self.findings.add([finding])
        if (finding.kind, finding.where) not in self._noted:
            self._noted.add((finding.kind, finding.where))
            self.note(f"{finding.where}: {finding.says}")

    def _commit_if_due(self, report: Callable[[], object]) -> None:
        if self.alerts is not None:
            self.alerts.look()
        waited_s = time.monotonic() - self._committed
        pending = self._pending
        full = (
            pending.size >= _MESSAGES_A_COMMIT
            or pending.bytes >= self._client.limits.waiting_bytes // 2
        )
        if full or waited_s >= _SECONDS_A_COMMIT:
            self._commit()
            report()

    def _commit(self) -> None:
        self._committed = time.monotonic()
        if self._pending.size:
            pending, self._pending = self._pending, self._pending.following()
            batch, repeated, findings = pending.batch_of_all()
            self.findings.add(findings)
            self.inserted += self._written(batch) + Inserted(repeated=repeated)

    def _written(self, batch: Batch) -> Inserted:
        """Write a batch. Where others hold the file, wait until they let go."""
        alerts, limits = self.alerts, self._client.limits
        also = None if alerts is None else alerts.committing(batch)
        while True:
            try:
                inserted = self._writer.commit(self._load_id, batch, limits, also=also)
            except StoreLockedError:
                if self.inbox.abandoned.is_set():
                    raise
                self._find(_LOCKED)
            else:
                if alerts is not None:
                    alerts.committed()
                return inserted


def _market(reader: StreamReader) -> bool:
    return not isinstance(reader.streams[0], EventLog)
