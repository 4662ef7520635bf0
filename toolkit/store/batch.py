"""What goes into a store together, and what a load says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from toolkit.intervals import Interval
from toolkit.market import EventFamily, Trajectory
from toolkit.store.gaps import Gap
from toolkit.store.ledger import Edge
from toolkit.wire.allowance import Allowance

__all__ = ["Batch", "Ledger", "LoadOrigin"]


@dataclass(frozen=True, slots=True)
class Ledger:
    """What is known of a trajectory or an event log: how far was answered, and which stretches."""

    edge: Edge
    answered: list[Interval]


@dataclass(frozen=True, slots=True)
class LoadOrigin:
    """What a load records of itself when it starts."""

    base_url: str
    served_at: int
    schema_hash: str | None
    toolkit_version: str
    allowance: Allowance | None = None


@dataclass(slots=True)
class Batch:
    """Pages to be committed together: rows and documents, and the stretches they answer for.

    What a stream brought answers for no stretch: it is put into ``rows`` and ``documents`` alone.
    """

    rows: dict[Trajectory, list[pl.DataFrame]] = field(default_factory=dict)
    answered: dict[Trajectory, list[Interval]] = field(default_factory=dict)
    edges: dict[Trajectory, Edge] = field(default_factory=dict)
    documents: list[pl.DataFrame] = field(default_factory=list)
    event_answered: dict[EventFamily, list[Interval]] = field(default_factory=dict)
    event_edges: dict[EventFamily, Edge] = field(default_factory=dict)
    gaps: dict[int, Gap] = field(default_factory=dict)

    def add(
        self, trajectory: Trajectory, frame: pl.DataFrame, answered: Interval, edge: Edge
    ) -> None:
        """Put one page of a trajectory in."""
        self.rows.setdefault(trajectory, []).append(frame)
        self.answered.setdefault(trajectory, []).append(answered)
        self.edges[trajectory] = edge

    def add_documents(
        self, family: EventFamily, frame: pl.DataFrame, answered: Interval | None, edge: Edge
    ) -> None:
        """Put one page of an event log in; its window is answered for with the last page only."""
        self.documents.append(frame)
        self.event_edges[family] = edge
        if answered is not None:
            self.event_answered.setdefault(family, []).append(answered)
