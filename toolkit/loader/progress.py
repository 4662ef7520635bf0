"""What a load reports while it runs and when it is done: plain values, shown by whoever asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory
from toolkit.store import Inserted
from toolkit.wire.profile import Finding

__all__ = ["LoadResult", "Progress"]


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


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did.

    ``asked`` are the trajectories of the call; ``silent`` those of them of which the store holds
    no row in the window after it. ``unrecoverable`` are the stretches that the key's plan no
    longer reaches and the store does not hold. ``findings`` says what the service did otherwise
    than assumed, each kind once with how often.
    """

    source: Source
    window: Interval
    asked: tuple[Trajectory, ...]
    rows: Inserted
    pages: int
    elapsed_s: float
    silent: tuple[Trajectory, ...] = ()
    unrecoverable: dict[Trajectory, list[Interval]] = field(default_factory=dict)
    findings: tuple[tuple[Finding, int], ...] = ()

    def __str__(self) -> str:
        rows = self.rows
        parts = [f"{rows.new:,} rows new", f"{rows.repeated:,} held already"]
        if rows.revised:
            parts.append(f"{rows.revised:,} revised")
        return (
            f"{', '.join(parts)}; {self.pages:,} pages, {len(self.asked):,} trajectories, "
            f"{self.elapsed_s:.1f} s; {self.source.label}"
        )
