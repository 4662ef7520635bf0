"""A clock that stands while anybody works, and goes on to the next moment that is waited for.

A follow that waits by it, over a service that reads it, lives through weeks as fast as it works.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from toolkit.loader import Pace
from toolkit.service import Clock

_LOOK_S = 0.002


@dataclass(frozen=True)
class SteppedClock(Clock):
    """Reads ``start`` (s) until all ``parties`` wait. Then it jumps to the first of their times."""

    start: int = 0
    parties: int = 2
    _moved: list[float] = field(default_factory=lambda: [0.0])
    _waiting: dict[int, float] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def now(self) -> int:
        return int(self.start + self._moved[0])

    def seconds(self) -> float:
        """Seconds since it began."""
        return self._moved[0]

    def jump(self, seconds: float) -> None:
        """Let time pass in which nobody follows."""
        with self._changed:
            self._moved[0] += seconds

    def wait(self, event: threading.Event, seconds: float) -> None:
        """Wait for an event, or until the clock has come so far."""
        me = threading.get_ident()
        with self._changed:
            due = self._waiting[me] = self._moved[0] + seconds
            while self._moved[0] < due and not event.is_set():
                first = min(self._waiting.values())
                if len(self._waiting) >= self.parties and first > self._moved[0]:
                    self._moved[0] = first
                    self._changed.notify_all()
                else:
                    self._changed.wait(_LOOK_S)
            self._waiting.pop(me)

    def pace(self, **seconds: float) -> Pace:
        """The pace of a follow that waits by this clock."""
        return Pace(clock=self.seconds, wait=self.wait, **seconds)


def wait_until(clock: SteppedClock, ts: int) -> None:
    """Wait in another thread until the clock has come to a moment (s)."""
    while clock.now() < ts:
        time.sleep(_LOOK_S)
