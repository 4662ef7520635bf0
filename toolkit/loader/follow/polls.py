"""Asking for the snapshots of a follow, each as often as its pace has it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from toolkit.client import Client
from toolkit.errors import (
    InputError,
    KeyRefusedError,
    NotFoundError,
    PlanRefusedError,
    ServiceError,
)
from toolkit.loader.sync.tasks import Piece, SnapshotTask
from toolkit.market import SnapshotKind, SnapshotLog
from toolkit.wire.profile.profile import Finding

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


class SnapshotPolls:
    """The snapshots asked for: the newest document of each kind, how many came and failed.

    Due times lie on a grid, so that a late answer does not delay the next. Each answer is kept with
    the period asked for: polls due follow from it. A kind that the plan does not include is asked
    for no more, which is a finding. Without ``patient`` each is asked for once, without a period.
    """

    def __init__(
        self, client: Client, pace: Pace, found: Callable[[Finding], object], *, patient: bool
    ) -> None:
        self.documents: dict[SnapshotKind, str] = {}
        self.answered = self.missed = 0
        self.refused: dict[SnapshotLog, ServiceError] = {}
        self._client = client
        self._pace = pace
        self._found = found
        self._patient = patient
        self._due: dict[SnapshotLog, float] = {}

    def ask_for(self, logs: Iterable[SnapshotLog]) -> None:
        """Ask for these from now on, and for no others."""
        now = self._pace.clock()
        self._due = {log: self._due.get(log, now) for log in logs if log not in self.refused}

    @property
    def next_due(self) -> float | None:
        """When the next one is due, by the clock of the pace. None where none is asked for."""
        return min(self._due.values(), default=None)

    def poll(self) -> list[Piece]:
        """Ask for what is due now, and return it.

        A service that does not answer makes it a missed one. Raises `KeyRefusedError`, and in a
        follow that is not to wait (``patient`` off) any `ServiceError` but a refusal by the plan.
        """
        pieces = []
        for log in [log for log, due in self._due.items() if due <= self._pace.clock()]:
            task = SnapshotTask(log, self._period_s(log))
            try:
                document, piece = task.ask(self._client)
            except KeyRefusedError:
                raise
            except (PlanRefusedError, NotFoundError) as error:
                self.refused[log] = error
                del self._due[log]
                self._found(Finding("snapshot_refused", log.key, f"it is not asked for: {error}"))
                continue
            except ServiceError as error:
                if not self._patient:
                    raise
                self.missed += 1
                self._found(Finding("snapshot_missed", log.key, str(error)))
            else:
                self.answered += 1
                self.documents[log.of] = document.decode()
                pieces.append(piece)
            self._put_off(log)
        return pieces

    def _period_s(self, log: SnapshotLog) -> int | None:
        """Return after how many whole seconds the next one is due, None where none will be."""
        return max(1, round(self._pace.between_polls_s(log.of))) if self._patient else None

    def _put_off(self, log: SnapshotLog) -> None:
        """Set the next due time. Those that have passed meanwhile were missed."""
        every_s, now = self._pace.between_polls_s(log.of), self._pace.clock()
        passed = int((now - self._due[log]) // every_s)
        self.missed += passed
        self._due[log] += (passed + 1) * every_s
