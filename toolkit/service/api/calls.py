"""One call and the service that answers it, with pages of rows as JSON text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from io import BytesIO
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from toolkit.market import Trajectory
from toolkit.service.accounts import Owner, Policy, Quotas, Sessions
from toolkit.service.events.archive import EventArchive
from toolkit.service.market.source import WALL_CLOCK, Clock, Column, MarketSource, series

_BLOCKS_KEPT = 64


class RowsPage(NamedTuple):
    """Items as JSON text by commas, and where the next page ends (None: nothing older)."""

    items: bytes
    next_end_time: int | None


class _Block(NamedTuple):
    """Rendered rows, newest first: times, text with a comma after each row, start of each row."""

    negative_ts: NDArray[np.int64]  # so that they ascend
    text: bytes
    begins: NDArray[np.int64]

    def place(self, before: int) -> int:
        return int(np.searchsorted(self.negative_ts, -before, side="right"))

    def rows(self, first: int, end: int) -> bytes:
        return self.text[self.begins[first] : self.begins[end] - 1]


class Pages:
    """The pages of a source's trajectories, with a bounded number of text blocks in memory."""

    def __init__(self, source: MarketSource) -> None:
        self._source = source
        self._block = lru_cache(_BLOCKS_KEPT)(self._render)

    def page(
        self, trajectory: Trajectory, *, before: int, limit: int, now: int, since: int | None
    ) -> RowsPage:
        """Return the newest ``limit`` rows with ``since <= ts < before`` that are over at ``now``.

        They are newest first. Nothing in range is an empty page with ``next_end_time`` None.
        """
        known_until, revision = self._source.known_until, self._source.revision  # before its rows
        found = series(self._source, trajectory)
        start, end = found.span
        before = min(before, now - found.interval_s + 1, end)
        since = start if since is None else max(start, since)
        cuts: list[bytes] = []
        oldest: int | None = None
        for number in range((before - 1) // found.block_s, since // found.block_s - 1, -1):
            stretch = number * found.block_s, (number + 1) * found.block_s
            whole = known_until is None or stretch[1] + found.interval_s <= known_until
            block = self._block(trajectory, *stretch, revision, None if whole else known_until)
            first, last = block.place(before), block.place(since)
            taken = min(first + limit, last)
            if taken > first:
                cuts.append(block.rows(first, taken))
                oldest = -int(block.negative_ts[taken - 1])
            if taken < last:
                return RowsPage(b",".join(cuts), oldest)
            limit -= taken - first
        return RowsPage(b",".join(cuts), None)

    def fresh(self, trajectory: Trajectory, after: int, now: int) -> list[bytes]:
        """Return the rows that ended in ``(after, now]``, as JSON, oldest first."""
        found = series(self._source, trajectory)
        stretch = found.between(after - found.interval_s + 1, now - found.interval_s + 1)
        return _lines(stretch.ts, stretch.columns).splitlines()

    def _render(
        self, trajectory: Trajectory, start: int, end: int, _revision: int, _known: int | None
    ) -> _Block:
        stretch = series(self._source, trajectory).between(start, end)
        columns = {n: None if v is None else v[::-1] for n, v in stretch.columns.items()}
        text = _lines(stretch.ts[::-1], columns)
        ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n")) + 1
        return _Block(-stretch.ts[::-1], text.replace(b"\n", b","), np.concatenate([[0], ends]))


def _lines(ts: NDArray[np.int64], columns: Mapping[str, Column]) -> bytes:
    """Render rows as JSON, one row per line, numbers in their shortest form."""
    lines = BytesIO()
    pl.DataFrame({"ts": ts, **columns}).write_ndjson(lines)
    return lines.getvalue()


Q_co = TypeVar("Q_co", covariant=True)


@dataclass(eq=False)
class Service:
    """A source, a clock, a policy and event logs, from which all transports answer."""

    source: MarketSource
    clock: Clock = WALL_CLOCK
    policy: Policy = field(default_factory=Policy)
    event_logs: EventArchive | None = None
    sessions: Sessions = field(default_factory=Sessions)

    @cached_property
    def archive(self) -> EventArchive:
        """The source's event logs: those given, or all that the detectors find."""
        return self.event_logs or EventArchive(self.source)

    @cached_property
    def pages(self) -> Pages:
        """The source's trajectories as pages."""
        return Pages(self.source)

    @cached_property
    def quotas(self) -> Quotas:
        """The request counts of each owner."""
        return Quotas()


@dataclass(frozen=True, slots=True)
class Call(Generic[Q_co]):
    """One request: the owner, the query, and what the owner's plan shows.

    At most ``limit`` items, none after ``now`` (s, the service's clock less the plan's delay) or
    before ``since`` (s, None: without limit).
    """

    service: Service
    owner: Owner
    query: Q_co
    limit: int
    now: int
    since: int | None = None
