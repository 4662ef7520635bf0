"""The sockets of a follow: threads that read them, and their messages until they are written.

A message is kept at once. Only the archive answers for a stretch (`toolkit.loader.follow.sweep`). A
document that came before is left out, also where only its volatile fields differ. Where the archive
differs from a stream in a batch, its row is the newer revision.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import polars as pl

from toolkit.client import Client
from toolkit.client.stream import stream
from toolkit.errors import NotFoundError, PlanRefusedError, WireError
from toolkit.intervals import EVER
from toolkit.market import EventFamily, EventLog, Stream, Trajectory
from toolkit.store import SOCKET, Batch, Gap
from toolkit.store.writing.pages import KeptPage, packed_page
from toolkit.wire.event_log import (
    document_frame,
    document_too_large,
    lasting_content,
    read_document,
    timeless,
)
from toolkit.wire.exchange import Response, refusal
from toolkit.wire.findings import Finding
from toolkit.wire.profile.profile import Profile
from toolkit.wire.rows.mending import doubled_fields
from toolkit.wire.rows.rows import kept, read_history_page
from toolkit.wire.socket_steps import (
    Interrupted,
    Joined,
    Loss,
    Received,
    RecentlyDelivered,
    ReconnectPolicy,
    Refused,
    is_fatal,
    read_market_message,
)

_ON_ITS_WAY_S = 120
"""How old what is on its way may be: a delayed opening, the row of a minute (s)."""


@dataclass(frozen=True, slots=True)
class Message:
    """A record of a trajectory, or an event document, as it came (ms, local clock)."""

    of: Stream
    body: bytes
    arrived_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)


ReaderItem = Message | Gap | Finding | BaseException
"""What a stream reader hands on. An exception ends the follow."""


class StreamReader(threading.Thread):
    """Reads one socket: an event log's, or the market socket for some trajectories.

    ``admit`` is called when a connection is open, ``gap_number`` gives the next gap's number.
    ``connected`` is whether the socket is open now, ``attempts`` how often it was tried,
    ``refused`` whether the plan or the service has no such socket.
    """

    def __init__(
        self,
        client: Client,
        of: EventLog | Sequence[Trajectory],
        *,
        policy: ReconnectPolicy | None,
        put: Callable[[ReaderItem], object],
        admit: Callable[[], object],
        gap_number: Callable[[], int],
    ) -> None:
        super().__init__(name=f"rail-stream-{of if isinstance(of, EventLog) else 'market'}")
        self.daemon = True
        self.streams: tuple[Stream, ...] = (of,) if isinstance(of, EventLog) else tuple(of)
        self.connected = self.refused = False
        self.attempts = 0
        self._client = client
        self._names = client.profile().streams
        self._of = of
        self._policy = policy
        self._halt = threading.Event()
        self._put = put
        self._admit = admit
        self._gap_number = gap_number
        self._clock = _ServiceClock(client)
        self._received_at = self._clock.now()
        self._gaps: list[Gap] = []
        self._joined_once = False

    def end(self) -> None:
        """Stop reading. The thread ends soon after."""
        self._halt.set()

    def run(self) -> None:
        """Read until `end` is called."""
        place = self._of.family if isinstance(self._of, EventLog) else self._of
        received = stream(
            self._client, place, policy=self._policy, stop=self._halt, admitted=self._admit
        )
        try:
            for item in received:
                match item:
                    case Joined():  # the service's clock was asked when the socket opened
                        self.connected, self.attempts = True, self.attempts + 1
                        self._joined_once = True
                        self._end_gaps(self._client.served_at() + 1)
                        self._received_at = self._clock.now()
                    case Received(body):
                        self._received_at = self._clock.now()
                        self._hand_on(body)
                    case Interrupted(why):
                        self._lost(why)
            self._end_gaps(self._clock.now() + 1)  # nobody waits for its end any more
        except (PlanRefusedError, NotFoundError) as error:
            self.refused = True
            where = self._of.key if isinstance(self._of, EventLog) else self._names.market
            says = f"no stream, so the archive is asked instead: {error}"
            self._put(Finding("stream_refused", where, says))
        except BaseException as error:  # noqa: BLE001 - raised again in the follow's own thread
            self._put(error)
        finally:
            self.connected = False

    def _end_gaps(self, at: int) -> None:
        for gap in self._gaps:
            self._put(replace(gap, end=max(at, gap.start + 1)))
        self._gaps = []

    def _lost(self, why: str) -> None:
        self.attempts += not self.connected
        self.connected = False
        if not self._gaps:
            start = self._received_at - _ON_ITS_WAY_S
            self._gaps = [Gap(self._gap_number(), each, start, None, why) for each in self.streams]
            if self._joined_once:  # else it is handed on when it ends, or refused
                for gap in self._gaps:
                    self._put(gap)

    def _hand_on(self, body: bytes) -> None:
        if isinstance(self._of, EventLog):
            self._put(Message(self._of, body))
            return
        names, findings = self._names, list[Finding]()
        try:
            message = read_market_message(names, body, findings)
        except WireError as error:
            self._put(Finding("message_unreadable", names.market, str(error)))
            return
        for finding in findings:
            self._put(finding)
        if message is None:
            return
        known = message.identity is not None and 0 <= message.identity < len(self._of)
        of = self._of[message.identity or 0] if known else None
        if isinstance(message, Refused):
            refused = refusal(message.answer)
            if is_fatal(Loss("", answer=message.answer)):
                raise refused
            where = of.key if of else names.market
            self._put(Finding("subscription_refused", where, str(refused)))
        elif of is None:
            self._put(Finding("id_unknown", names.market, f"a record for id {message.identity}"))
        else:
            self._put(Message(of, message.record))


class _ServiceClock:
    """The service's clock between two answers: its last reading and the time since."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._read = client.served_at()
        self._at = time.monotonic()

    def now(self) -> int:
        """Return Unix seconds, rather too early than too late."""
        if self._client.served_at() != self._read:
            self._read, self._at = self._client.served_at(), time.monotonic()
        return self._read + int(time.monotonic() - self._at)


_REMEMBERED = 100_000
_KEY = ("family", "schema_id", "event_id", "event_type", "ts_ms")


class Messages:
    """A batch in the making: pages of the archive as they are, messages of streams as they came."""

    def __init__(self, profile: Profile, delivered: RecentlyDelivered | None = None) -> None:
        self.batch = Batch()
        self.pages = 0
        self.bytes = 0
        self._profile = profile
        self._delivered = delivered or RecentlyDelivered(_REMEMBERED)
        self._documents: list[tuple[EventFamily, Message]] = []
        self._records: dict[Trajectory, list[bytes]] = {}
        self._received = 0

    @property
    def size(self) -> int:
        """Messages, pages and gaps that wait."""
        return self._received + self.pages + len(self.batch.gaps)

    def following(self) -> Messages:
        """Return an empty one that remembers the same documents."""
        return Messages(self._profile, self._delivered)

    def add(self, message: Message) -> None:
        """Take a message in."""
        self._received += 1
        self.bytes += len(message.body)
        if isinstance(message.of, EventLog):
            self._documents.append((message.of.family, message))
        elif isinstance(message.of, Trajectory):
            self._records.setdefault(message.of, []).append(message.body)

    def batch_of_all(self) -> tuple[Batch, int, Counter[Finding]]:
        """Return the batch, how many documents came again, and what was odd."""
        findings: list[Finding] = []
        pages: list[bytes] = []
        for trajectory, records in self._records.items():
            if frames := self._frames(trajectory, records, findings, pages):
                self.batch.rows[trajectory] = frames + self.batch.rows.get(trajectory, [])
        self.batch.pages = pages + self.batch.pages
        read = [
            (row, message.arrived_ms)
            for family, message in self._documents
            if (row := self._read(family, message.body, findings))
        ]
        if read:
            rows, times = zip(*read, strict=True)
            frame = document_frame(rows)
            self.batch.documents.insert(0, frame)
            arrived = frame.with_columns(pl.Series("arrived_ms", times, pl.Int64))
            self.batch.came.append((SOCKET, arrived))
        return self.batch, self._leave_out_repeats(), Counter(findings)

    def _frames(
        self,
        trajectory: Trajectory,
        records: Sequence[bytes],
        findings: list[Finding],
        pages: list[bytes],
    ) -> list[pl.DataFrame]:
        """Read records as if they were a page, and keep that. Where that fails, one by one."""
        route = self._profile.histories[trajectory.family]
        if route.row_leg:
            says = f"{len(records)} rows of one leg each: the archive brings both legs of a second"
            findings.append(Finding("record_unreadable", trajectory.key, says))
            return []
        names = (msgspec.json.encode(name) for name in (route.items, route.next))
        body = b"{%b:[%b],%b:null}" % (next(names), b",".join(records), next(names))
        answer = Response(200, {}, body, trajectory.key)
        try:
            page = read_history_page(route, trajectory, answer)
        except WireError as error:
            if len(records) > 1:
                single = [self._frames(trajectory, [each], findings, pages) for each in records]
                return [frame for frames in single for frame in frames]
            findings.append(Finding("record_unreadable", trajectory.key, str(error)))
            return []
        findings.extend(page.findings)
        pages.append(packed_page(KeptPage(trajectory, EVER, answer)))
        return [kept(page.frame)]

    def _read(
        self, family: EventFamily, body: bytes, findings: list[Finding]
    ) -> dict[str, object] | None:
        route = self._profile.events[family]
        if len(body) > route.limits.document_bytes:
            findings.append(document_too_large(route, body))
            return None
        try:
            row = read_document(route, body, findings)
        except WireError as error:
            findings.append(Finding("document_unreadable", route.path, str(error)))
            return None
        if row["ts"] is None:
            findings.append(timeless(route, row))
            return None
        findings += doubled_fields([body], route.path)
        return row

    def _leave_out_repeats(self) -> int:
        """Drop the documents that came before, and return how many."""
        frames = self.batch.documents
        if not frames:
            return 0
        whole = pl.concat(frames)
        fresh = []
        for *key, document in whole.select(*_KEY, "document").iter_rows():
            route = self._profile.events[EventFamily(key[0])]
            content = lasting_content(route, document.encode())
            fresh.append(self._delivered.is_new(tuple(key), content))
        self.batch.documents = [whole.filter(pl.Series(fresh, dtype=pl.Boolean))]
        return whole.height - sum(fresh)
