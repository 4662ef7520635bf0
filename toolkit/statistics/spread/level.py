"""From which level on a spread counts as wide: the cost of a round trip, else a number of bps.

One rule for every face: with a fee table a spread counts where its size is beyond the cost in
force, without one where it is at or above a level, `LEVEL_BPS` unless another is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from toolkit.columns import described
from toolkit.market import Step
from toolkit.reasons import Reason
from toolkit.statistics.fees.fee_table import NOTIONAL, FeeModel, Style
from toolkit.statistics.spread.episodes import episodes, level_words, time_above
from toolkit.statistics.spread.net_episodes import net_episodes
from toolkit.statistics.spread.net_spread import net_summary

LEVEL_BPS = 20.0
"""The level where none is chosen (bps of the log spread)."""

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Level:
    """From where on time and episodes of a spread count.

    Without ``fees`` it is ``bps`` of the log spread, with ``absolute`` its size on either side of
    zero. With ``fees`` it is the cost of a round trip of ``notional`` in a ``style``, and the size
    of the spread, as `toolkit.statistics.spread.net_summary` has it.

    >>> Level().words, Level(50, absolute=True).words
    ('≥ 20 bps', '|spread| ≥ 50 bps')
    >>> Level(fees=FeeModel.example(["X"])).words
    '|spread| > cost'
    """

    bps: float = LEVEL_BPS
    absolute: bool = False
    fees: FeeModel | None = None
    style: Style = "taker"
    notional: float = NOTIONAL

    @property
    def words(self) -> str:
        """What counts, for a heading."""
        if self.fees is None:
            return level_words(self.bps, absolute=self.absolute)
        return "spread > cost" if self.style == "transfer" else "|spread| > cost"

    @property
    def sides(self) -> tuple[int, ...]:
        """On which sides of zero the level lies: 1, or 1 and -1."""
        either = self.absolute if self.fees is None else self.style != "transfer"
        return (1, -1) if either else (1,)

    @described("level.measure")
    def measure(
        self, rows: pl.DataFrame, start: int, end: int, *, step_s: Step = None
    ) -> pl.DataFrame:
        """Measure how much of the time spreads are beyond the level, and how often they get there.

        ``rows``, ``start`` and ``end`` (s) are as in `toolkit.statistics.spread`. One row per
        trajectory, sorted by it:

        {columns}

        >>> rows = pl.DataFrame({"trajectory": ["A_B:X.spot:Y.spot"] * 4, "ts": [0, 60, 120, 180],
        ...     "spread_log_bps": [0.0, 30.0, -30.0, 0.0]})
        >>> Level().measure(rows, 0, 240).select("level_share", "level_begun").row(0)
        (0.25, 1)
        >>> Level(absolute=True).measure(rows, 0, 240).select("level_share", "level_begun").row(0)
        (0.5, 1)
        """
        measured = self._of_bps if self.fees is None else self._of_costs
        found = measured(rows, start, end, step_s)
        days = pl.col("observed_share") * ((end - start) / _DAY_S)
        daily = pl.when(days > 0).then(pl.col("level_begun") / days)
        unknown = pl.coalesce("level_reason", pl.lit(Reason.TOO_FEW.value))
        return found.select(
            "trajectory",
            "level_share",
            "level_reason",
            "level_begun",
            level_per_day=daily,
            per_day_reason=pl.when(daily.is_null()).then(unknown),
        )

    def _of_bps(self, rows: pl.DataFrame, start: int, end: int, step_s: Step) -> pl.DataFrame:
        asked: dict[str, Any] = {"absolute": self.absolute, "step_s": step_s}
        shares = time_above(rows, start, end, threshold_bps=self.bps, **asked)
        found = episodes(rows, start, end, enter_bps=self.bps, **asked)
        seen = found.filter(~pl.col("censored_left")).group_by("trajectory").len("level_begun")
        name = "time_abs_above" if self.absolute else "time_above"
        return shares.join(seen, on="trajectory", how="left", maintain_order="left").with_columns(
            pl.col("level_begun").fill_null(0).cast(pl.Int64),
            level_share=f"{name}_share",
            level_reason=f"{name}_reason",
        )

    def _of_costs(self, rows: pl.DataFrame, start: int, end: int, step_s: Step) -> pl.DataFrame:
        asked: dict[str, Any] = {"fees": self.fees, "notional": self.notional, "style": self.style}
        shares = net_summary(rows, start, end, step_s=step_s, **asked)
        begun = net_episodes(rows, start, end, step_s=step_s, **asked).select(
            "trajectory", level_begun=pl.when(pl.col("net_episodes").is_not_null()).then("begun")
        )
        return shares.join(begun, on="trajectory", how="left", maintain_order="left").with_columns(
            level_share="net_share", level_reason="net_share_reason"
        )

    def stretches(
        self, rows: pl.DataFrame, start: int, end: int, *, step_s: Step = None
    ) -> tuple[float, pl.DataFrame] | None:
        """Return the level and the episodes beyond it, as `toolkit.statistics.spread.episodes`.

        With fees it is of a cost that is the same all over the window, else None.
        """
        if self.fees is None:
            asked: dict[str, Any] = {"enter_bps": self.bps, "absolute": self.absolute}
            return self.bps, episodes(rows, start, end, step_s=step_s, **asked)
        priced: dict[str, Any] = {"fees": self.fees, "notional": self.notional, "style": self.style}
        costs = net_summary(rows, start, end, step_s=step_s, **priced).row(0, named=True)
        cost = costs["cost_bps"]
        if costs["cost_changes"] or not cost:
            return None
        asked = {"enter_bps": cost, "column": "spread_bps", "absolute": len(self.sides) > 1}
        return cost, episodes(rows, start, end, step_s=step_s, **asked)
