"""The methods of series that are made of declarations. Written by `make docs`."""

from abc import ABCMeta
from collections.abc import Sequence
from typing import Literal

import polars as pl

from toolkit.market import Trajectory
from toolkit.series.base import Series
from toolkit.statistics.contract import Frame
from toolkit.statistics.fee_table import FeeModel, Style

class SpreadAnalyses(Series, metaclass=ABCMeta):
    """The analyses of a spread."""

    def half_life(
        self, *, column: str = "spread_log_bps", max_stale_s: int | None = None
    ) -> pl.DataFrame:
        """Estimate the time in which a deviation from the mean halves, from the autocorrelation.

        Formula, columns, errors and an example: `toolkit.statistics.spread.half_life`.

        ``column``: The column of the rows that is measured.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """

    def summary(
        self,
        *,
        column: str = "spread_log_bps",
        max_stale_s: int | None = None,
        fees: FeeModel | None = None,
        notional: float = 10000.0,
        style: Style = "taker",
    ) -> pl.DataFrame:
        """Compute the level, dispersion, tails and half-life of a spread in one pass.

        Formula, columns, errors and an example: `toolkit.statistics.spread.summary`.

        ``column``: The column of the rows that is measured.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        ``fees``: A fee table. Default: that of the workspace.
        """

    def net_edge(
        self,
        fees: FeeModel | None = None,
        *,
        exit_bps: float = 0.0,
        notional: float = 10000.0,
        style: Style = "taker",
    ) -> pl.DataFrame:
        """Add to every row, in the order given, what its spread would leave after costs.

        Formula, columns, errors and an example: `toolkit.statistics.fees.net_edge`.

        ``exit_bps``: The spread at which it is left.
        ``fees``: A fee table. Default: that of the workspace.
        """

    def flags(
        self,
        *,
        stale_s: int = 3600,
        stale_moves: int = 10,
        repeated_share: float = 0.5,
        apart_bps: float = 1000.0,
        apart_share: float = 0.5,
        differs_bps: float = 1.0,
        max_lag_steps: int = 5,
        least_correlation: float = 0.2,
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Flag what is wrong with the prices of a pair: a frozen leg, another coin, a shifted clock.

        Formula, columns, errors and an example: `toolkit.statistics.quality.flags`.

        ``stale_s``: How long a leg repeats its price to be stale.
        ``stale_moves``: How often the other leg moves meanwhile, at least.
        ``repeated_share``: The share of closes equal to the one before, 0 to 1, at most.
        ``apart_bps``: From how far apart on the legs may be of two coins.
        ``apart_share``: The least part of the observations that are so far apart, 0 to 1.
        ``differs_bps``: How far the service's spread may be from that of the legs.
        ``max_lag_steps``: The longest lag, in steps.
        ``least_correlation``: The least correlation of returns that shows a shifted clock.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """

    def cross_correlation(
        self, *, max_lag_steps: int = 10, max_stale_s: int | None = None
    ) -> pl.DataFrame:
        """Compute the correlation of the returns of two legs at each lag, as `lead_lag` does.

        Formula, columns, errors and an example: `toolkit.statistics.spread.cross_correlation`.

        ``max_lag_steps``: The longest lag, in steps.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """

    def episodes(
        self,
        enter_bps: float,
        *,
        absolute: bool = False,
        leave_bps: float | None = None,
        merge_gap_s: int = 0,
        min_duration_s: int = 0,
        column: str = "spread_log_bps",
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Find every stretch of time in which a spread is at or above a level.

        Formula, columns, errors and an example: `toolkit.statistics.spread.episodes`.

        ``enter_bps``: From which spread on an episode begins.
        ``absolute``: Take the size of the spread, on either side of zero.
        ``leave_bps``: Below how much it ends. Default: where it begins.
        ``merge_gap_s``: Two that are at most so far apart are one.
        ``min_duration_s``: Leave out those that are shorter.
        ``column``: The column of the rows that is measured.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """

    def hour_of_week(
        self, *, column: str = "spread_log_bps", max_stale_s: int | None = None
    ) -> pl.DataFrame:
        """Compute the mean of a spread for each hour of the week in UTC, with 95 % intervals.

        Formula, columns, errors and an example: `toolkit.statistics.spread.hour_of_week`.

        ``column``: The column of the rows that is measured.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """

    def lead_lag(self, *, max_lag_steps: int = 10, max_stale_s: int | None = None) -> pl.DataFrame:
        """Find the lag at which the returns of two legs agree most, and which leg finds the price.

        Formula, columns, errors and an example: `toolkit.statistics.spread.lead_lag`.

        ``max_lag_steps``: The longest lag, in steps.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """

    def net_episodes(
        self,
        fees: FeeModel | None = None,
        *,
        enter_bps: float = 0.0,
        leave_bps: float | None = None,
        max_stale_s: int | None = None,
        notional: float = 10000.0,
        style: Style = "taker",
    ) -> pl.DataFrame:
        """Count the episodes in which a spread pays more than a round trip costs, and their lengths.

        Formula, columns, errors and an example: `toolkit.statistics.spread.net_episodes`.

        ``enter_bps``: How far beyond the cost an episode begins.
        ``leave_bps``: How far beyond the cost it ends. Default: as far as it begins.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        ``fees``: A fee table. Default: that of the workspace.
        """

    def net_summary(
        self,
        fees: FeeModel | None = None,
        *,
        exit_bps: float = 0.0,
        max_stale_s: int | None = None,
        notional: float = 10000.0,
        style: Style = "taker",
    ) -> pl.DataFrame:
        """Sum up what spreads pay before and after costs: at half, once and twice the costs.

        Formula, columns, errors and an example: `toolkit.statistics.spread.net_summary`.

        ``exit_bps``: The spread at which it is left.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        ``fees``: A fee table. Default: that of the workspace.
        """

    def net_time_to_close(
        self,
        exit_bps: float,
        fees: FeeModel | None = None,
        *,
        toward: float = 0.0,
        enter_bps: float = 0.0,
        max_stale_s: int | None = None,
        notional: float = 10000.0,
        style: Style = "taker",
    ) -> pl.DataFrame:
        """Measure the time from where a spread is beyond a round trip's cost to where it is near again.

        Formula, columns, errors and an example: `toolkit.statistics.spread.net_time_to_close`.

        ``exit_bps``: How near the level it has closed.
        ``toward``: The level.
        ``enter_bps``: How far beyond the cost a spread is entered.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        ``fees``: A fee table. Default: that of the workspace.
        """

    def rolling_z_summary(
        self,
        *,
        window_s: int = 86400,
        min_samples: int | None = None,
        beyond: float = 3.0,
        column: str = "spread_log_bps",
    ) -> pl.DataFrame:
        """Measure how far a spread is from its own recent mean, in standard deviations.

        Formula, columns, errors and an example: `toolkit.statistics.spread.rolling_z_summary`.

        ``window_s``: The length of time whose mean and deviation a score is by.
        ``min_samples``: The least observations of a score. Default: half of the window.
        ``beyond``: The size from which a score counts as beyond.
        ``column``: The column of the rows that is measured.
        """

    def stationarity(
        self,
        *,
        adf_lags: int | None = None,
        column: str = "spread_log_bps",
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Test whether a spread has a unit root, and measure how its variance grows with the horizon.

        Formula, columns, errors and an example: `toolkit.statistics.spread.stationarity`.

        ``adf_lags``: Lags of the unit root test. Default: by the rows.
        ``column``: The column of the rows that is measured.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """

    def tail_index(
        self, *, column: str = "spread_log_bps", max_stale_s: int | None = None
    ) -> pl.DataFrame:
        """Estimate how fast large sizes of a spread become rare, at 1, 2, 5 and 10 % of its rows.

        Formula, columns, errors and an example: `toolkit.statistics.spread.tail_index`.

        ``column``: The column of the rows that is measured.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """

    def time_above(
        self,
        threshold_bps: float,
        *,
        absolute: bool = False,
        column: str = "spread_log_bps",
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Measure the share of observed time at which a spread is at or above a threshold.

        Formula, columns, errors and an example: `toolkit.statistics.spread.time_above`.

        ``threshold_bps``: The level.
        ``absolute``: Take the size of the spread, on either side of zero.
        ``column``: The column of the rows that is measured.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """

    def time_to_close(
        self,
        enter_bps: float,
        exit_bps: float,
        *,
        toward: float = 0.0,
        column: str = "spread_log_bps",
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Measure the time from where a spread is far from a level to where it is near it again.

        Formula, columns, errors and an example: `toolkit.statistics.spread.time_to_close`.

        ``enter_bps``: How far from the level a spread is entered.
        ``exit_bps``: How near the level it has closed.
        ``toward``: The level.
        ``column``: The column of the rows that is measured.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """

class FundingAnalyses(Series, metaclass=ABCMeta):
    """The analyses of funding."""

    def by_hour(self) -> pl.DataFrame:
        """Average the funding of each trajectory by hour of the day in UTC, with 95 % intervals.

        Formula, columns, errors and an example: `toolkit.statistics.funding.by_hour`.
        """

    def by_weekday(self) -> pl.DataFrame:
        """Average the funding of each trajectory by day of the week in UTC, with 95 % intervals.

        Formula, columns, errors and an example: `toolkit.statistics.funding.by_weekday`.
        """

    def heatmap(self, *, bucket: str | int = "8h") -> pl.DataFrame:
        """Average the funding of each trajectory in buckets of time, as a yearly rate.

        Formula, columns, errors and an example: `toolkit.statistics.funding.heatmap`.

        ``bucket``: The time that is averaged over: 1h, 8h, 1d.
        """

    def persistence(self, *, band_apr_pct: float = 0.0) -> pl.DataFrame:
        """Measure how long the differential in force keeps its sign, and how it resembles itself later.

        Formula, columns, errors and an example: `toolkit.statistics.funding.persistence`.

        ``band_apr_pct``: Percent a year on either side of 0 in which funding has no sign.
        """
