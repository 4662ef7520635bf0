"""What a series of funding can be asked beyond its carry: each method is a statistic of its name.

The methods take the statistic's own options. The window is that of the series.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from toolkit.series.base import Series, checked_options
from toolkit.statistics import fees as fee_statistics
from toolkit.statistics import funding as funding_statistics
from toolkit.statistics.carry import HORIZONS
from toolkit.statistics.differentials import service_differential


class FundingAnalyses(Series):
    """The statistics of `toolkit.statistics.funding` of a differential and of a position in it."""

    @checked_options
    def persistence(self, *, band_apr_pct: float = 0.0) -> pl.DataFrame:
        """Measure how long the sign lasts. See `toolkit.statistics.funding.persistence`."""
        return funding_statistics.persistence(self.rows, *self.window, band_apr_pct=band_apr_pct)

    @checked_options
    def heatmap(self, *, bucket: str | int = "8h") -> pl.DataFrame:
        """Average the rate in buckets of time. See `toolkit.statistics.funding.heatmap`."""
        return funding_statistics.heatmap(self.rows, *self.window, bucket=bucket)

    @checked_options
    def intervals(self) -> pl.DataFrame:
        """List the settlements of the window with their intervals.

        See `toolkit.statistics.funding.intervals`.
        """
        return funding_statistics.intervals(self.rows).filter(self._inside())

    @checked_options
    def service_differential(self) -> pl.DataFrame:
        """Average the differential that the service sends itself, in force over the window.

        See `toolkit.statistics.differentials.service_differential`.
        """
        return service_differential(self.rows, *self.window)

    @checked_options
    def by_hour(self) -> pl.DataFrame:
        """Average the rate by hour of the day. See `toolkit.statistics.funding.by_hour`."""
        return funding_statistics.by_hour(self.rows, *self.window)

    @checked_options
    def by_weekday(self) -> pl.DataFrame:
        """Average the rate by day of the week. See `toolkit.statistics.funding.by_weekday`."""
        return funding_statistics.by_weekday(self.rows, *self.window)

    @checked_options
    def holdings(
        self,
        *,
        horizons: Sequence[str | int] = HORIZONS,
        every: str | int = "1h",
        prices: Series | pl.DataFrame | None = None,
        step_s: int | None = None,
        max_stale_s: int | None = None,
        fees: fee_statistics.FeeModel | None = None,
        notional: float = fee_statistics.NOTIONAL,
        style: fee_statistics.Style = "taker",
        compound: bool = False,
    ) -> pl.DataFrame:
        """Compute what the position kept, over all times in the window at which it was entered.

        ``prices`` is the spread series of the same legs, or a frame. ``fees`` is a fee table, by
        default that of the workspace. Without one there are no net figures. The other parameters
        are those of `toolkit.statistics.funding.holdings`.
        """
        of_prices = prices.rows if isinstance(prices, Series) else prices
        return funding_statistics.holdings(
            self.rows,
            *self.window,
            horizons=horizons,
            every=every,
            prices=of_prices,
            step_s=step_s,
            max_stale_s=max_stale_s,
            fees=self.origin.fees if fees is None else fees,
            notional=notional,
            style=style,
            compound=compound,
        )
