"""Reports of a follow while it runs and when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.cards import counted, duration
from toolkit.errors import ServiceError
from toolkit.intervals import Interval
from toolkit.market import Source, Stream
from toolkit.store import Inserted
from toolkit.tables import GapStatus
from toolkit.wire.findings import Finding


@dataclass(frozen=True, slots=True)
class FollowProgress:
    """How a follow is doing.

    Parameters
    ----------
    messages, new
        Messages that sockets brought, and new rows and documents whoever brought them.
    live, polled
        Streams that a socket brings now, and those that the archive alone brings.
    connected, sockets
        Sockets that are open now, and all.
    snapshots, missed
        Snapshots that came, and those that did not although they were due.
    gaps, open_gaps
        Losses of a stream since it began, and those that the store has still to fill.
    behind_s
        Seconds since the archive was last asked for all there was, by the service's clock. None
        while the first time is under way.
    next_loss_s
        Seconds until the archive drops something that is still to be brought, None for nothing.
    elapsed_s
        Seconds since it began, by the local clock.

    Examples
    --------
    >>> print(FollowProgress(live=4, polled=1, new=1200, behind_s=30, elapsed_s=3_660.0))
    1 h 1 min: 4 streams live, 1 polled; 1,200 rows new; behind by 30 s; 0 open gaps
    >>> str(FollowProgress(live=4, next_loss_s=7_200)).split("; ")[-1]
    'the first row not yet loaded leaves the archive in 2 h'
    """

    messages: int = 0
    new: int = 0
    live: int = 0
    polled: int = 0
    connected: int = 0
    sockets: int = 0
    snapshots: int = 0
    missed: int = 0
    gaps: int = 0
    open_gaps: int = 0
    behind_s: int | None = None
    next_loss_s: int | None = None
    elapsed_s: float = 0.0

    def __str__(self) -> str:
        """Return it in one line."""
        behind = "first load" if self.behind_s is None else f"behind by {duration(self.behind_s)}"
        parts = [
            f"{counted(self.live, 'stream')} live, {self.polled:,} polled",
            f"{counted(self.new, 'row')} new",
            behind,
            counted(self.open_gaps, "open gap"),
        ]
        if self.missed:
            parts.append(f"{counted(self.missed, 'snapshot')} missed")
        if self.next_loss_s is not None:
            left = duration(self.next_loss_s)
            parts.append(f"the first row not yet loaded leaves the archive in {left}")
        return f"{duration(round(self.elapsed_s))}: {'; '.join(parts)}"


@dataclass(frozen=True, slots=True)
class FollowResult:
    """What a follow did. ``window`` runs from its start to its end by the service's clock.

    ``followed`` are the streams at its end, each with the rule that named it. ``rows`` counts rows
    and documents. ``gaps`` counts the losses of a stream by status: the next load settles an open
    one. ``snapshots`` and ``missed`` are as in `FollowProgress`, ``refused`` and ``findings`` as in
    `LoadResult`. ``lost_s`` are the seconds of a stream that the archive had dropped before they
    were asked for. ``attempts`` is how often a socket was tried.
    """

    source: Source
    window: Interval
    followed: Mapping[Stream, str]
    rows: Inserted
    messages: int
    sweeps: int
    snapshots: int
    missed: int
    attempts: int
    elapsed_s: float
    load_id: int
    gaps: Mapping[GapStatus, int] = field(default_factory=dict)
    lost_s: Mapping[Stream, int] = field(default_factory=dict)
    refused: Mapping[Stream, ServiceError] = field(default_factory=dict)
    findings: tuple[tuple[Finding, int], ...] = ()

    def __str__(self) -> str:
        lost = sum(self.gaps.values())
        parts = ", ".join(f"{count:,} {status}" for status, count in self.gaps.items())
        gaps = f"{counted(lost, 'gap')} ({parts})" if lost else "no gaps"
        return (
            f"{self.rows.new:,} new, {self.rows.revised:,} revised, "
            f"{self.rows.repeats_counted}{self.rows.unkept_counted}; "
            f"{counted(self.messages, 'message')}, {counted(self.sweeps, 'sweep')} of the archive, "
            f"{counted(self.snapshots, 'snapshot')}, {gaps}; "
            f"{self.elapsed_s:.1f} s; {self.source.label}"
        )
