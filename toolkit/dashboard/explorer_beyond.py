"""How much of the time a spread is beyond a level: the cost of a round trip, else a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from toolkit.dashboard.explorer import Explored
from toolkit.dashboard.fee_choice import Net
from toolkit.dashboard.formatting import reason_words
from toolkit.market import Family
from toolkit.statistics.spread import episodes, net_episodes, net_summary, time_above

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Beyond:
    """What is beyond a level, whose label it has.

    ``share`` is of the time observed, null for ``why``. ``episodes`` is how often, and
    ``stretches`` are when: none are drawn where the level changes within the window.
    """

    label: str
    share: float | None
    why: str | None
    episodes: int | None
    observed_s: float
    level_bps: float | None
    stretches: pl.DataFrame | None

    @property
    def daily(self) -> float | None:
        """Episodes a day of the time observed, None where either is not known."""
        if self.episodes is None or not self.observed_s:
            return None
        return self.episodes * _DAY_S / self.observed_s


def measure_beyond(explored: Explored, rows: pl.DataFrame) -> Beyond | None:
    """Measure the rows of a spread by the fees of the bar, else by the threshold, else not."""
    if explored.trajectory.family is not Family.SPREAD or rows.is_empty():
        return None
    if net := explored.shell.fees.net():
        return _beyond_costs(explored, rows, net)
    bps, view = explored.asked.threshold_bps, explored.asked.view
    if not bps:
        return None
    row = time_above(rows, *view, threshold_bps=bps).row(0, named=True)
    found = episodes(rows, *view, enter_bps=bps)
    share = row["time_above_share"]
    why = None if share is not None else reason_words(row, "time_above_share")
    observed_s = (row["observed_share"] or 0) * view.length_s
    label = f"Time beyond {bps:g} bps"
    return Beyond(label, share, why, found.height, observed_s, bps, found)


def _beyond_costs(explored: Explored, rows: pl.DataFrame, net: Net) -> Beyond:
    view = explored.asked.view
    asked: dict[str, Any] = {"fees": net.fees, "style": net.style}
    row = net_summary(rows, *view, **asked).row(0, named=True)
    count = net_episodes(rows, *view, **asked).row(0, named=True)["net_episodes"]
    share, cost = row["net_share"], row["cost_bps"]
    why = None if share is not None else reason_words(row, "net_share")
    observed_s = (row["observed_share"] or 0) * view.length_s
    same = not row["cost_changes"] and net.style != "transfer" and cost
    stretches = episodes(rows, *view, enter_bps=cost, column="spread_bps") if same else None
    level = cost if same else None
    return Beyond("Time above fees", share, why, count, observed_s, level, stretches)
