"""The trajectory and stretch of time that all parts of the page show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from toolkit.analyses import Family as AnalysisFamily
from toolkit.charts.marks import events_of
from toolkit.charts.view import Subject
from toolkit.dashboard.export import literal
from toolkit.dashboard.fee_choice import level_of
from toolkit.dashboard.pages.trajectory.choice import ShownPart
from toolkit.dashboard.parts.analyses import Asked
from toolkit.dashboard.parts.event_reading import read_documents
from toolkit.dashboard.reading import read_polls, read_rows, selected
from toolkit.dashboard.shell import PageShell
from toolkit.intervals import Interval
from toolkit.market import Family, SnapshotTrajectory, format_ts
from toolkit.statistics.spread.net_episodes import Level
from toolkit.workspace.selection import Selection

_OPENED = {"spread": "spread", "price": "prices"}
"""The method that opens each kind of trajectory, else ``series``."""

_ASKED: dict[Family, AnalysisFamily] = {
    Family.SPREAD: "spread",
    Family.PRICE: "price",
    Family.FUNDING: "rates",
}
"""The family of analyses."""

_SHOWN = ("summary", "half_life", "hour_of_week")
"""The analyses that the page shows elsewhere."""


@dataclass(frozen=True, slots=True)
class Explored:
    """A stored trajectory, and the values of the widgets."""

    shell: PageShell
    trajectory: Subject
    asked: ShownPart

    @property
    def query(self) -> dict[str, Any]:
        """The arguments of cached readings."""
        return {
            "path": self.shell.held.path,
            "key": self.trajectory.key,
            "start": self.asked.view.start,
            "end": self.asked.view.end,
            "version": self.shell.held.version,
        }

    @property
    def chart(self) -> dict[str, Any]:
        """The arguments of charts."""
        return {
            "trajectory": self.trajectory,
            "start": self.asked.view.start,
            "end": self.asked.view.end,
            "source": self.shell.held.source,
            "timezone": self.shell.timezone,
        }

    @property
    def step_s(self) -> int | None:
        """The step of its rows (s), None if not known."""
        return self.selection.steps.get(self.trajectory.key)

    @property
    def selection(self) -> Selection:
        """The measured rows."""
        return selected(self.shell.held, self.trajectory.kind, self.asked.view, self.trajectory.key)

    @property
    def priced_in(self) -> str:
        """The currency of a price, "" for rates and spreads."""
        priced = self.trajectory.family is Family.PRICE
        return self.trajectory.symbol.quote if priced else ""

    @property
    def logged(self) -> pl.DataFrame:
        """The log of spread events, no row if it is not stored."""
        return self.shell.held.logs.filter(family="spread")

    def rows(self) -> pl.DataFrame:
        """Read the rows."""
        own = self.shell.held.versions[self.trajectory.key]
        return read_rows(**self.query | {"version": own})

    def polls(self) -> pl.DataFrame | None:
        """Read the polls of a series kept from snapshots, else None."""
        if not isinstance(self.trajectory, SnapshotTrajectory):
            return None
        return read_polls(**self.query)

    def events(self) -> pl.DataFrame | None:
        """Read the events of the two legs, None if not wanted or without their log."""
        spread = self.trajectory.family is Family.SPREAD
        if not spread or not self.asked.marks or self.logged.is_empty():
            return None
        # of the whole window, so that a zoom in it reads nothing again
        whole = [*self.asked.choice.window, *self.asked.view]
        found = read_documents(self.shell.held, Interval(min(whole), max(whole)))
        return events_of(found, self.trajectory)


def asked_of(explored: Explored) -> Asked:
    """Return the subject of analyses: the trajectory in the stretch shown."""
    key, held = explored.trajectory.key, explored.shell.held
    if net := explored.shell.fees.net():
        net = replace(net, notional=explored.asked.notional)
    kept = isinstance(explored.trajectory, SnapshotTrajectory)  # with coverage by polls
    start, end = (literal(format_ts(ts)) for ts in explored.asked.view)
    opened = _OPENED.get(explored.trajectory.kind, "series")
    return Asked(
        "trajectory",
        _ASKED[explored.trajectory.family],
        lambda: explored.selection,
        (held.version if kept else held.versions[key], key, *explored.asked.view),
        f"rail.{opened}({literal(key)}, {start}, {end})",
        net,
        explored.priced_in,
        _SHOWN,
    )


@dataclass(frozen=True, slots=True)
class Beyond:
    """A spread beyond a level.

    ``row`` is of `Level.measure`. ``drawn`` has the level (bps) and the episodes, None without a
    level or if it changes within the window.
    """

    level: Level
    row: Mapping[str, Any]
    drawn: tuple[float, pl.DataFrame] | None


def measure_beyond(explored: Explored, rows: pl.DataFrame) -> Beyond | None:
    """Measure the rows of a spread by the chosen fees, else by the chosen level."""
    if explored.trajectory.family is not Family.SPREAD or rows.is_empty():
        return None
    asked, net, of = explored.asked, explored.shell.fees.net(), explored.selection
    level = level_of(net, asked.threshold_bps, either=asked.either)
    row = of.applied(rows, level.measure).row(0, named=True)
    chosen = net is not None or asked.threshold_bps
    return Beyond(
        level, row, level.stretches(rows, *of.window, step_s=of.steps) if chosen else None
    )
