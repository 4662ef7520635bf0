"""The log of event documents: a day is detected when it is first read, and kept a while.

A day depends on the source, its date and the settings alone, so any process gives the same page. A
document depends on no later row, so a partly known day is right up to ``known_until``.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from toolkit.errors import InputError
from toolkit.market import EventFamily
from toolkit.service.events.detectors import funding_lives, splash_lives, spread_lives
from toolkit.service.events.documents import Document
from toolkit.service.events.lives import DAY_S, DEFAULT, DetectorSettings, Life
from toolkit.service.market.source import MarketSource

_SEAL_BYTES = 16


class Position(NamedTuple):
    """A document's place in a log. Logs run from the largest to the smallest."""

    ts_ms: int
    event_id: str
    event_type: str


def secret_of(source_id: str) -> bytes:
    """Derive the secret of a source's cursors, the same in every process."""
    return hashlib.sha256(b"machine-rail cursor\0" + source_id.encode()).digest()


def seal(position: Position, bound: bytes, secret: bytes) -> str:
    """Return the cursor for a position, valid only with the same ``bound`` and ``secret``.

    It is base64url without padding over an HMAC-SHA256 and the position. Who knows the source's id
    can forge one, and gains only a place in a log that may be read anyway.

    >>> seal(Position(1000, "spread-1", "spread.opened"), b"a window", b"secret")
    'Bwz5UxR1zUwn8lZ18ugXXFsxMDAwLCJzcHJlYWQtMSIsInNwcmVhZC5vcGVuZWQiXQ'
    """
    place = msgspec.json.encode(position)
    return base64.urlsafe_b64encode(_sealed(place, bound, secret) + place).rstrip(b"=").decode()


def open_(cursor: str, bound: bytes, secret: bytes) -> Position:
    """Return the position in a cursor. Any other text is an `InputError`, a ValueError."""
    refusal = InputError(
        "cursor", cursor[:80], "the next_cursor of a page, with that page's window, filters, limit"
    )
    try:
        content = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise refusal from None
    found, place = content[:_SEAL_BYTES], content[_SEAL_BYTES:]
    if not hmac.compare_digest(found, _sealed(place, bound, secret)):
        raise refusal
    position = msgspec.json.decode(place, type=Position)
    if seal(position, bound, secret) != cursor:  # another spelling of the same bytes
        raise refusal
    return position


def _sealed(place: bytes, bound: bytes, secret: bytes) -> bytes:
    """Compute the HMAC. The length keeps ``bound`` and ``place`` apart."""
    content = b"%d:%b%b" % (len(bound), bound, place)
    return hmac.digest(secret, content, "sha256")[:_SEAL_BYTES]


DAYS_KEPT = 32 * len(EventFamily)
"""How many days of a log are kept (120 MB over the simulated market)."""

_DETECT: Mapping[EventFamily, Callable[[MarketSource, int, DetectorSettings], list[Life]]] = {
    EventFamily.SPREAD: spread_lives,
    EventFamily.SPLASH: splash_lives,
    EventFamily.FUNDING: funding_lives,
}


@dataclass(frozen=True, slots=True)
class EventFilters:
    """Conditions on documents, None for no condition.

    ``exchange``: of any leg. ``min_pct``: the least size without its sign; an unknown size never
    reaches it.
    """

    symbol: str | None = None
    exchange: str | None = None
    event_type: str | None = None
    min_pct: float | None = None
    lifecycle: Literal["open", "closed"] | None = None


class _Entry(NamedTuple):
    position: Position
    symbol: str
    exchanges: tuple[str, ...]
    magnitude_pct: float | None
    lifecycle: str
    body: bytes

    def matches(self, filters: EventFilters) -> bool:
        pct = float("-inf") if self.magnitude_pct is None else self.magnitude_pct
        return (
            filters.symbol in (None, self.symbol)
            and (filters.exchange is None or filters.exchange in self.exchanges)
            and filters.event_type in (None, self.position.event_type)
            and (filters.min_pct is None or pct >= filters.min_pct)
            and filters.lifecycle in (None, self.lifecycle)
        )


class Day(NamedTuple):
    """A day of a log: its documents, oldest first, their positions, and the lives touching it."""

    entries: Sequence[_Entry]
    positions: Sequence[Position]
    lives: Sequence[tuple[str, int, int | None]]


class EventArchive:
    """The three event logs of a source, detected in what it has ``heard``.

    The whole days read last are kept for all archives of equal sources in this process.
    """

    def __init__(self, source: MarketSource, detectors: DetectorSettings = DEFAULT) -> None:
        self.detectors, self._source = detectors, source
        self._partly_known = lru_cache(len(EventFamily))(
            lambda family, number, _known_until: self._detected(family, number)
        )
        self._detecting = threading.Lock()

    def page(
        self,
        family: EventFamily,
        start: int,
        end: int,
        *,
        filters: EventFilters | None = None,
        limit: int,
        after: Position | None = None,
        visible_until: int,
    ) -> tuple[list[bytes], Position | None]:
        """Return documents as JSON, newest first, and the position to go on after (None: no more).

        They match, have ``start <= ts < end`` and ``ts < visible_until``, come after ``after``, and
        descend by (ts_ms, event_id, event_type). A ``limit`` below 1 is an `InputError`.
        """
        if limit < 1:
            raise InputError("limit", limit, "1 or more")
        wanted = filters or EventFilters()
        found: list[_Entry] = []
        for entry in self._newest_first(family, start, min(end, visible_until), after):
            if entry.matches(wanted):
                if len(found) == limit:
                    return [each.body for each in found], found[-1].position
                found.append(entry)
        return [each.body for each in found], None

    def documents(self, family: EventFamily, start: int, end: int) -> list[tuple[str, bytes]]:
        """Return event type and JSON of every document with ``start <= ts < end``, oldest first."""
        found = [(e.position.event_type, e.body) for e in self._newest_first(family, start, end)]
        return found[::-1]

    def counts(self, family: EventFamily, start: int, end: int) -> dict[str, int]:
        """Count documents with ``start <= ts < end`` by symbol."""
        return dict(Counter(e.symbol for e in self._newest_first(family, start, end)))

    def open_at(self, family: EventFamily, ts: int) -> dict[str, int]:
        """Return when each event open at ``ts`` opened (s), by `Life.key` in order.

        An event that opens at ``ts`` is not yet open, one that closes at ``ts`` still is.
        """
        lives = self._day(family, (ts - 1) // DAY_S).lives
        return {
            key: opened_at
            for key, opened_at, closed_at in sorted(lives)
            if opened_at < ts and (closed_at is None or closed_at >= ts)
        }

    def _newest_first(
        self, family: EventFamily, start: int, end: int, after: Position | None = None
    ) -> Iterator[_Entry]:
        if after is not None:
            end = min(end, after.ts_ms // 1000 + 1)
        for number in range((end - 1) // DAY_S, start // DAY_S - 1, -1):
            day = self._day(family, number)
            first = bisect_left(day.positions, Position(1000 * start, "", ""))
            last = bisect_left(day.positions, Position(1000 * end, "", ""))
            if after is not None:
                last = min(last, bisect_left(day.positions, after))
            for place in range(last - 1, first - 1, -1):
                yield day.entries[place]

    def _day(self, family: EventFamily, number: int) -> Day:
        known_until = self._source.known_until
        if known_until is None or (number + 1) * DAY_S <= known_until:
            return self._whole_day(family, number)
        with self._detecting:  # all who ask for the newest minute do so at once
            return self._partly_known(family, number, known_until)

    def _whole_day(self, family: EventFamily, number: int) -> Day:
        return _detected_day(self._source.heard, self.detectors, family, number)

    def _detected(self, family: EventFamily, number: int) -> Day:
        return _detected_day.__wrapped__(self._source.heard, self.detectors, family, number)


@lru_cache(DAYS_KEPT)
def _detected_day(
    source: MarketSource, detectors: DetectorSettings, family: EventFamily, number: int
) -> Day:
    lives = detect(source, detectors, family, number)
    return day_of(lives, [document for life in lives for document in life.documents])


def detect(
    source: MarketSource, detectors: DetectorSettings, family: EventFamily, number: int
) -> list[Life]:
    """Detect the events of a day (since 1970)."""
    return _DETECT[family](source, number, detectors)


def day_of(lives: Sequence[Life], documents: Sequence[Document]) -> Day:
    """Put the documents of a day in order."""
    entries = [
        _Entry(
            Position(each.ts_ms, each.event_id, each.event_type),
            each.instrument.symbol,
            each.exchanges,
            each.magnitude_pct,
            each.lifecycle,
            msgspec.json.encode(each),
        )
        for each in documents
    ]
    entries.sort(key=lambda entry: entry.position)
    return Day(
        entries,
        [entry.position for entry in entries],
        [(life.key, life.opened_at, life.closed_at) for life in lives],
    )
