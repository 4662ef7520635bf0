"""How often a follow does what, and by which time it waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from toolkit.errors import InputError
from toolkit.market import SnapshotKind

_POLLS = {SnapshotKind.ACTIVITY: 5, SnapshotKind.SYMBOLS: 60}
"""How many times ``poll_s`` lie between two snapshots of the kinds that change slowly."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two looks into the archive, two snapshots, two readings of the rules.

    ``keep_s`` is how long a stream is followed that no rule names any more. ``clock`` gives seconds
    that only grow, ``wait`` waits for an event for so many of them: a test may bring its own.

    >>> Pace(poll_s=0)
    Traceback (most recent call last):
    toolkit.errors.InputError: poll_s: 0 is not allowed; allowed: seconds above 0
    """

    sweep_s: float = 60.0
    poll_s: float = 60.0
    rules_s: float = 300.0
    keep_s: float = 86_400.0
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    wait: Callable[[threading.Event, float], object] = field(
        default=threading.Event.wait, repr=False
    )

    def __post_init__(self) -> None:
        for name in ("sweep_s", "poll_s", "rules_s", "keep_s"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not value > 0:
                raise InputError(name, value, "seconds above 0")

    def between_polls_s(self, kind: SnapshotKind) -> float:
        """Return the seconds from one snapshot of a kind to the next.

        >>> Pace().between_polls_s(SnapshotKind.SPREAD), Pace().between_polls_s("symbols")
        (60.0, 3600.0)
        """
        return self.poll_s * _POLLS.get(kind, 1)
