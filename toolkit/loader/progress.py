"""What a load reports while it runs and when it is done: plain values, shown by whoever asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.intervals import Interval
from toolkit.market import EventFamily, Source, Trajectory
from toolkit.store import Inserted
from toolkit.wire.profile import Finding

__all__ = ["Asked", "LoadResult", "Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load is: rows and pages received, and the share of the asked time answered for.

    Examples
    --------
    >>> Progress(rows=1000, pages=2, answered_s=600, asked_s=2400, elapsed_s=3.0).eta_s
    9.0
    """

    rows: int
    pages: int
    answered_s: int
    asked_s: int
    elapsed_s: float

    @property
    def fraction(self) -> float:
        """Seconds answered for over seconds asked for, from 0 to 1."""
        return self.answered_s / self.asked_s if self.asked_s else 1.0

    @property
    def eta_s(self) -> float | None:
        """Seconds left at the pace so far; None while nothing is answered."""
        if not self.answered_s:
            return None
        return self.elapsed_s * (self.asked_s - self.answered_s) / self.answered_s


Asked = Trajectory | EventFamily
"""What a load is of: a trajectory, or an event log."""


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did: of what, from where, how much, and what was odd.

    ``asked`` are the trajectories or the event logs of the call; ``silent`` those of them of which
    the store holds nothing in the window after it. ``unrecoverable`` are the stretches that the
    key's plan no longer reaches and the store does not hold. ``findings`` says what the service
    did otherwise than assumed, each kind once with how often.
    """

    source: Source
    window: Interval
    asked: tuple[Asked, ...]
    rows: Inserted
    pages: int
    elapsed_s: float
    silent: tuple[Asked, ...] = ()
    unrecoverable: Mapping[Asked, list[Interval]] = field(default_factory=dict)
    findings: tuple[tuple[Finding, int], ...] = ()

    def __str__(self) -> str:
        rows = self.rows
        logs = all(isinstance(asked, EventFamily) for asked in self.asked)
        parts = [f"{rows.new:,} {'documents' if logs else 'rows'} new"]
        parts.append(f"{rows.repeated:,} held already")
        if rows.revised:
            parts.append(f"{rows.revised:,} revised")
        things = "event logs" if logs else "trajectories"
        return (
            f"{', '.join(parts)}; {self.pages:,} pages, {len(self.asked):,} {things}, "
            f"{self.elapsed_s:.1f} s; {self.source.label}"
        )
