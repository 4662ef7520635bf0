"""Series of a leg's funding rate in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from toolkit.series.analyses import RateAnalyses
from toolkit.series.base import checked_options
from toolkit.series.trajectories import TrajectorySeries

if TYPE_CHECKING:
    from toolkit.charts import Figure


class RateSeries(TrajectorySeries, RateAnalyses):
    """The funding rate of one leg in force, kept from snapshots. Positive: longs pay shorts.

    Beside the store's columns the rows have ``rate_pct_8h`` and ``funding_apr_pct``, see
    `toolkit.statistics.funding.rates_in_force.with_apr`. A rate in force pays nothing until it
    settles.
    """

    @property
    def _column(self) -> str | None:
        return "funding_apr_pct"

    @checked_options
    def quantiles(self) -> pl.DataFrame:
        """Compute the quantiles of ``funding_apr_pct``, with n and coverage, as `summary` does."""
        return self.summary().select(
            "trajectory", "n", "coverage", pl.col("^funding_apr_q\\d\\d_pct$"), "quantiles_reason"
        )

    @checked_options
    def plot(
        self, *, timezone: str = "UTC", theme: str | None = None, points: int = 2000
    ) -> Figure:
        """Draw the rate. The parameters are those of `toolkit.charts.rate_chart`."""
        from toolkit.charts import rate_chart  # noqa: PLC0415 - plotly takes half a second

        return rate_chart(
            self.rows,
            **self._known,
            step_s=self.origin.step_s,
            polls=self.origin.polls,
            timezone=timezone,
            theme=theme,
            points=points,
        )
