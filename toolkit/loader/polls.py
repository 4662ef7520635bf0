"""Asking for the snapshots of a follow, each as often as its pace has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from toolkit.client import Client
from toolkit.errors import KeyRefusedError, NotFoundError, PlanRefusedError, ServiceError
from toolkit.loader.pace import Pace
from toolkit.loader.tasks import Piece, SnapshotTask
from toolkit.market import SnapshotKind, SnapshotLog
from toolkit.wire.profile import Finding


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
                snapshot = task.ask(self._client)
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
                self.documents[log.of] = snapshot.document.decode(errors="replace")
                pieces.append(task.piece(snapshot))
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
