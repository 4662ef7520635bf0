"""Event logs with faults: lost closes, closes without an opening, many events in one second."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from toolkit.errors import InputError
from toolkit.market import EventFamily
from toolkit.service.events.archive import DAYS_KEPT, Day, EventArchive, day_of, detect
from toolkit.service.events.documents import Document, event_id
from toolkit.service.events.lives import DetectorSettings
from toolkit.service.market.source import MarketSource


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """The detectors' settings and the faults of the log, by default none.

    ``lost_close_share`` is the share of events that never show their close, ``orphan_close_share``
    of those that show only it. ``burst``: the first opening of each day has so many copies in its
    second, under ids of their own, without later documents.

    >>> ArchiveSettings(lost_close_share=0.6, orphan_close_share=0.6)
    Traceback (most recent call last):
    toolkit.errors.InputError: shares: 1.2 is not allowed; allowed: 0 to 1 together
    """

    detectors: DetectorSettings = field(default_factory=DetectorSettings)
    lost_close_share: float = 0.0
    orphan_close_share: float = 0.0
    burst: int = 0

    def __post_init__(self) -> None:
        shares = self.lost_close_share, self.orphan_close_share
        if min(shares) < 0.0 or sum(shares) > 1.0:
            raise InputError("shares", sum(shares), "0 to 1 together")
        if self.burst < 0:
            raise InputError("burst", self.burst, "0 or more")


class FaultyArchive(EventArchive):
    """The event logs of a source, with the faults of their settings."""

    def __init__(self, source: MarketSource, settings: ArchiveSettings | None = None) -> None:
        self._settings = settings or ArchiveSettings()
        super().__init__(source, self._settings.detectors)
        self._kept_day = lru_cache(DAYS_KEPT)(self._detected)

    def _whole_day(self, family: EventFamily, number: int) -> Day:
        plain = self._settings == ArchiveSettings(self.detectors)
        return super()._whole_day(family, number) if plain else self._kept_day(family, number)

    def _detected(self, family: EventFamily, number: int) -> Day:
        lives = detect(self._source.heard, self.detectors, family, number)
        shown = [each for life in lives for each in life.documents if self._is_shown(each)]
        return day_of(lives, shown + self._doubles(family, shown))

    def _is_shown(self, document: Document) -> bool:
        """Return whether the log shows a document, by the shares of lost and orphan closes."""
        content = f"{document.event_id} told".encode()
        draw = int.from_bytes(hashlib.blake2b(content, digest_size=6).digest(), "little") / 2**48
        closed = document.lifecycle == "closed"
        if draw < self._settings.lost_close_share:
            return not closed
        return closed or draw >= self._settings.lost_close_share + self._settings.orphan_close_share

    def _doubles(self, family: EventFamily, documents: Sequence[Document]) -> list[Document]:
        """Return the burst of a day. Its milliseconds repeat after 250 documents."""
        openings = [each for each in documents if each.lifecycle == "open"]
        if not openings:
            return []
        first = min(openings, key=lambda each: (each.ts_ms, each.event_id))
        return [
            msgspec.structs.replace(
                first,
                event_id=event_id(family, first.event_id, number),
                ts_ms=1000 * first.ts + 500 + number % 250,
            )
            for number in range(self._settings.burst)
        ]
