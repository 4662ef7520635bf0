"""Received messages that are not yet written: they become rows when they are committed.

Rows are read in bulk, by the same reader as pages. An event document that was handed on before, by
a stream or by the archive, is left out, also where only its volatile fields differ. In a batch the
archive has the last word: where it differs from a stream, its row is the newer revision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import polars as pl

from toolkit.errors import WireError
from toolkit.intervals import EVER
from toolkit.loader.follow.reader import Message
from toolkit.market import EventFamily, EventLog, Trajectory
from toolkit.store import SOCKET, Batch
from toolkit.store.writing.pages import KeptPage, packed_page
from toolkit.wire.events.events import (
    document_frame,
    document_too_large,
    lasting_content,
    read_document,
    timeless,
)
from toolkit.wire.exchange import Answer
from toolkit.wire.profile.profile import Finding, Profile
from toolkit.wire.rows.doubled import doubled_fields
from toolkit.wire.rows.rows import kept, read_history_page
from toolkit.wire.sockets.stream import RecentlyDelivered

_REMEMBERED = 100_000
_KEY = ("family", "schema_id", "event_id", "event_type", "ts_ms")


class Messages:
    """A batch in the making: pages of the archive as they are, messages of streams as they came.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> pending = Messages(BUILT_IN)
    >>> for _ in range(2):
    ...     pending.add(Message(EventLog(EventFamily.SPLASH), b'{"event_id":"e1","ts":60}'))
    >>> batch, repeated, _ = pending.batch_of_all()
    >>> batch.documents[0].height, repeated
    (1, 1)
    """

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
        answer = Answer(200, {}, body, trajectory.key)
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
        """Drop the documents that were handed on before, and return how many."""
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
