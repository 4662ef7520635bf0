"""One trajectory over a stretch of time, as the parts of its page are given it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from toolkit.analyses import Family as AnalysisFamily
from toolkit.charts.marks import events_of
from toolkit.charts.subject import Subject
from toolkit.dashboard.export import literal
from toolkit.dashboard.pages.trajectory.choice import ShownPart
from toolkit.dashboard.parts.analyses import Asked
from toolkit.dashboard.parts.event_reading import read_documents
from toolkit.dashboard.reading import read_polls, read_rows, selected
from toolkit.dashboard.shell import PageShell
from toolkit.intervals import Interval
from toolkit.market import Family, SnapshotTrajectory, format_ts
from toolkit.workspace.selection import Selection

_OPENED = {"spread": "spread", "price": "prices"}
"""What Python opens each kind of trajectory by. Others are opened by ``series``."""

_ASKED: dict[Family, AnalysisFamily] = {
    Family.SPREAD: "spread",
    Family.PRICE: "price",
    Family.FUNDING: "rates",
}
"""Of which family analyses are asked."""

_SHOWN = ("summary", "half_life", "hour_of_week")
"""The analyses that the page shows elsewhere."""


@dataclass(frozen=True, slots=True)
class Explored:
    """A trajectory of the store, and what is asked about it."""

    shell: PageShell
    trajectory: Subject
    asked: ShownPart

    @property
    def query(self) -> dict[str, Any]:
        """What is read: the trajectory and its stretch of time, as the file is now."""
        return {
            "path": self.shell.held.path,
            "key": self.trajectory.key,
            "start": self.asked.view.start,
            "end": self.asked.view.end,
            "version": self.shell.held.version,
        }

    @property
    def chart(self) -> dict[str, Any]:
        """What charts of it take."""
        return {
            "trajectory": self.trajectory,
            "start": self.asked.view.start,
            "end": self.asked.view.end,
            "source": self.shell.held.source,
            "timezone": self.shell.timezone,
        }

    @property
    def step_s(self) -> int | None:
        """The step of its rows (s), None where it is not known."""
        return self.selection.steps.get(self.trajectory.key)

    @property
    def selection(self) -> Selection:
        """What is measured: the trajectory and its stretch of time."""
        return selected(self.shell.held, self.trajectory.kind, self.asked.view, self.trajectory.key)

    @property
    def priced_in(self) -> str:
        """The currency of a price, "" of a rate, which is a percentage, and of a spread."""
        priced = self.trajectory.family is Family.PRICE
        return self.trajectory.symbol.quote if priced else ""

    @property
    def logged(self) -> pl.DataFrame:
        """The log of spread events, no row where it is not held."""
        return self.shell.held.logs.filter(family="spread")

    def rows(self) -> pl.DataFrame:
        """Read the rows."""
        own = self.shell.held.versions[self.trajectory.key]
        return read_rows(**self.query | {"version": own})

    def polls(self) -> pl.DataFrame | None:
        """Read the polls of a series kept from snapshots, None of another one."""
        if not isinstance(self.trajectory, SnapshotTrajectory):
            return None
        return read_polls(**self.query)

    def events(self) -> pl.DataFrame | None:
        """Read the events of the two legs, None where they are not wanted or their log not held."""
        spread = self.trajectory.family is Family.SPREAD
        if not spread or not self.asked.marks or self.logged.is_empty():
            return None
        # of a window and what is zoomed into, so that a zoom within the window reads none again
        whole = [*self.asked.choice.window, *self.asked.view]
        found = read_documents(self.shell.held, Interval(min(whole), max(whole)))
        return events_of(found, self.trajectory)


def asked_of(explored: Explored) -> Asked:
    """Return what analyses are asked of: the trajectory and the part of the window looked at."""
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
