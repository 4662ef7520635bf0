"""Share of time in which a spread is beyond a level: the cost of a round trip, else some bps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from toolkit.dashboard.fee_choice import level_of
from toolkit.dashboard.pages.trajectory.explorer import Explored
from toolkit.market import Family
from toolkit.statistics.spread.net_episodes import Level


@dataclass(frozen=True, slots=True)
class Beyond:
    """What is beyond a level.

    ``row`` is what the level measures of the spread. ``drawn`` has the level (bps) and the episodes
    that the chart shows, None where none are drawn: the level changes within the window, or nobody
    chose one.
    """

    level: Level
    row: Mapping[str, Any]
    drawn: tuple[float, pl.DataFrame] | None


def measure_beyond(explored: Explored, rows: pl.DataFrame) -> Beyond | None:
    """Measure the rows of a spread by the fees of the bar, else by the level chosen."""
    if explored.trajectory.family is not Family.SPREAD or rows.is_empty():
        return None
    asked, net, of = explored.asked, explored.shell.fees.net(), explored.selection
    level = level_of(net, asked.threshold_bps, either=asked.either)
    row = of.applied(rows, level.measure).row(0, named=True)
    chosen = net is not None or asked.threshold_bps
    return Beyond(
        level, row, level.stretches(rows, *of.window, step_s=of.steps) if chosen else None
    )
