"""What a series of a spread can be asked beyond its level: each method is a statistic of its name.

The methods take the statistic's own options. Window and step are those of the series.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import polars as pl

from toolkit.series.base import Series, checked_options
from toolkit.statistics import fees as fee_statistics
from toolkit.statistics import quality
from toolkit.statistics import spread as spread_statistics


class SpreadAnalyses(Series):
    """The statistics of `toolkit.statistics.spread` over the rows of one series."""

    @abstractmethod
    def _measured(self, statistic: Callable[..., pl.DataFrame], **options: Any) -> pl.DataFrame:
        """Apply a statistic to the rows."""

    @checked_options
    def half_life(self) -> pl.DataFrame:
        """Estimate how fast a deviation halves. See `toolkit.statistics.spread.half_life`."""
        return self._measured(spread_statistics.half_life)

    @checked_options
    def stationarity(
        self,
        *,
        adf_lags: int | None = None,
        column: str = "spread_log_bps",
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Test for a unit root, and measure variance ratios and autocorrelation.

        The parameters are those of `toolkit.statistics.spread.stationarity`.
        """
        return self._measured(
            spread_statistics.stationarity,
            adf_lags=adf_lags,
            column=column,
            max_stale_s=max_stale_s,
        )

    @checked_options
    def hour_of_week(
        self, *, column: str = "spread_log_bps", max_stale_s: int | None = None
    ) -> pl.DataFrame:
        """Compute the mean of each hour of the week, with intervals from week to week.

        The parameters are those of `toolkit.statistics.spread.hour_of_week`.
        """
        return self._measured(
            spread_statistics.hour_of_week, column=column, max_stale_s=max_stale_s
        )

    @checked_options
    def time_to_close(
        self,
        enter_bps: float,
        exit_bps: float,
        *,
        toward: float = 0.0,
        column: str = "spread_log_bps",
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Measure the time from where the spread is far from a level to where it is near again.

        The parameters are those of `toolkit.statistics.spread.time_to_close`.
        """
        return self._measured(
            spread_statistics.time_to_close,
            enter_bps=enter_bps,
            exit_bps=exit_bps,
            toward=toward,
            column=column,
            max_stale_s=max_stale_s,
        )

    @checked_options
    def net_episodes(
        self,
        fees: fee_statistics.FeeModel | None = None,
        *,
        notional: float = fee_statistics.NOTIONAL,
        style: fee_statistics.Style = "taker",
        enter_bps: float = 0.0,
        leave_bps: float | None = None,
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Count the episodes in which the spread pays more than it costs, and their lengths.

        The parameters are those of `toolkit.statistics.spread.net_episodes`. Without ``fees`` it is
        the workspace's table.
        """
        return self._measured(
            spread_statistics.net_episodes,
            fees=self._fees(fees),
            notional=notional,
            style=style,
            enter_bps=enter_bps,
            leave_bps=leave_bps,
            max_stale_s=max_stale_s,
        )

    @checked_options
    def net_time_to_close(
        self,
        exit_bps: float,
        fees: fee_statistics.FeeModel | None = None,
        *,
        toward: float = 0.0,
        notional: float = fee_statistics.NOTIONAL,
        style: fee_statistics.Style = "taker",
        enter_bps: float = 0.0,
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Measure the time from where the spread pays more than it costs to where it is near again.

        The parameters are those of `toolkit.statistics.spread.net_time_to_close`. Without ``fees``
        it is the workspace's table.
        """
        return self._measured(
            spread_statistics.net_time_to_close,
            fees=self._fees(fees),
            exit_bps=exit_bps,
            toward=toward,
            notional=notional,
            style=style,
            enter_bps=enter_bps,
            max_stale_s=max_stale_s,
        )

    @checked_options
    def lead_lag(self, *, max_lag_steps: int = 10, max_stale_s: int | None = None) -> pl.DataFrame:
        """Find the lag at which both legs agree most, and which leg finds the price.

        The parameters are those of `toolkit.statistics.spread.lead_lag`.
        """
        return self._measured(
            spread_statistics.lead_lag, max_lag_steps=max_lag_steps, max_stale_s=max_stale_s
        )

    @checked_options
    def cross_correlation(
        self, *, max_lag_steps: int = 10, max_stale_s: int | None = None
    ) -> pl.DataFrame:
        """Correlate the returns of both legs at each lag.

        The parameters are those of `toolkit.statistics.spread.cross_correlation`.
        """
        return self._measured(
            spread_statistics.cross_correlation,
            max_lag_steps=max_lag_steps,
            max_stale_s=max_stale_s,
        )

    @checked_options
    def tail_index(
        self, *, column: str = "spread_log_bps", max_stale_s: int | None = None
    ) -> pl.DataFrame:
        """Estimate how fast large sizes of the spread become rare.

        The parameters are those of `toolkit.statistics.spread.tail_index`.
        """
        return self._measured(spread_statistics.tail_index, column=column, max_stale_s=max_stale_s)

    @checked_options
    def flags(
        self,
        *,
        stale_s: int = 3_600,
        stale_moves: int = 10,
        repeated_share: float = 0.5,
        apart_bps: float = 1_000.0,
        apart_share: float = 0.5,
        differs_bps: float = 1.0,
        max_lag_steps: int = 5,
        least_correlation: float = 0.2,
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Flag a frozen leg, another coin, a contract of more coins, a shifted clock.

        The parameters are those of `toolkit.statistics.quality.flags`.
        """
        return self._measured(
            quality.flags,
            stale_s=stale_s,
            stale_moves=stale_moves,
            repeated_share=repeated_share,
            apart_bps=apart_bps,
            apart_share=apart_share,
            differs_bps=differs_bps,
            max_lag_steps=max_lag_steps,
            least_correlation=least_correlation,
            max_stale_s=max_stale_s,
        )
