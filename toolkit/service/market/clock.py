"""The service's clock: the only place in `toolkit.service` that reads the time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from email.utils import formatdate

from toolkit.service.market.source import MarketSource


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock, or one stopped at ``fixed_at`` (Unix seconds, UTC).

    A client learns it from the ``Date`` header of every answer.

    >>> Clock(fixed_at=1677628800).now()
    1677628800
    """

    fixed_at: int | None = None

    def now(self) -> int:
        """Return Unix seconds, UTC, rounded down."""
        return int(time.time()) if self.fixed_at is None else self.fixed_at

    def http_date(self) -> str:
        """Return the same moment as an HTTP date (RFC 9110 section 5.6.7).

        >>> Clock(fixed_at=1677628800).http_date()
        'Wed, 01 Mar 2023 00:00:00 GMT'
        """
        return formatdate(self.now(), usegmt=True)


@dataclass(frozen=True, slots=True)
class SpedClock(Clock):
    """A clock that reads ``start`` (s) when it is made, and runs ``speed`` times as fast as time.

    >>> 1677628800 <= SpedClock(start=1677628800, speed=60.0).now() < 1677628860
    True
    """

    start: int = 0
    speed: float = 1.0
    began: float = field(default_factory=time.monotonic, repr=False)

    def now(self) -> int:
        """Return Unix seconds, UTC, rounded down."""
        return int(self.start + (time.monotonic() - self.began) * self.speed)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevealedClock(Clock):
    """A clock that does not go past what its source knows."""

    own: Clock
    source: MarketSource = field(repr=False)

    def now(self) -> int:
        """Return Unix seconds, UTC: the own clock's, at most the source's ``known_until``."""
        known_until, now = self.source.known_until, self.own.now()
        return now if known_until is None else min(now, known_until)


WALL_CLOCK = Clock()
"""The machine's own time."""
