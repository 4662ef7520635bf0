"""The time by the service's answer, compared with the local clock."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from toolkit.cards import duration
from toolkit.store import CLOCK_TOLERANCE_S, Ledger
from toolkit.wire.profile.profile import Finding


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The service's clock at a question, the local one (s), and what was odd about the first.

    A service that went by the local clock at the last question and is minutes off now has a clock
    that jumped. Its answers then close nothing after the newest row that came.
    """

    served_at: int
    asked_at: int
    findings: tuple[Finding, ...] = ()

    @property
    def jumped(self) -> bool:
        """Whether the service's clock has just left the local one."""
        return bool(self.findings)

    @classmethod
    def held_against(cls, served_at: int, ledger: Iterable[Ledger]) -> ClockReading:
        """Compare the service's clock with what it was at earlier questions.

        >>> from toolkit.store import Edge
        >>> now = int(time.time())
        >>> before = Ledger(Edge(now - 3600, asked_at=now - 3600))
        >>> jumped = ClockReading.held_against(now + 432_030, [before])
        >>> jumped.findings[0].kind
        'clock_jumped'
        """
        now = int(time.time())
        off_s = served_at - now
        before = [
            known.edge.served_at - known.edge.asked_at
            for known in ledger
            if known.edge is not None and known.edge.asked_at is not None
        ]
        agreed = any(abs(each) <= CLOCK_TOLERANCE_S for each in before)
        if abs(off_s) <= CLOCK_TOLERANCE_S or not agreed:
            return cls(served_at, now)
        side = "ahead of" if off_s > 0 else "behind"
        agreement = "the local clock, with which it agreed at the last question"
        says = f"{duration(abs(off_s))} {side} {agreement}"
        return cls(served_at, now, (Finding("clock_jumped", "the Date header", says),))
