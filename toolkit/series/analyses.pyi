"""The methods of series that are made of declarations. Written by `make docs`."""

from abc import ABCMeta
from collections.abc import Sequence
from typing import Literal

import polars as pl

from toolkit.market import Trajectory
from toolkit.series.base import Series
from toolkit.show.result import Result
from toolkit.statistics.core.contract import Frame
from toolkit.statistics.fees.fee_table import FeeModel, Style

class SpreadAnalyses(Series, metaclass=ABCMeta):
    """The analyses of a spread."""

    def half_life(
        self, *, column: str = "spread_log_bps", max_stale_s: int | None = None
    ) -> Result:
        """Estimate the time in which a deviation from the mean halves, from the autocorrelation.

        Formula, columns, errors and an example: `toolkit.statistics.spread.half_life`.

        ``column``: The column of the rows to measure.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        """

    def summary(
        self,
        *,
        column: str = "spread_log_bps",
        max_stale_s: int | None = None,
        fees: FeeModel | None = None,
        notional: float = 10000.0,
        style: Style = "taker",
    ) -> Result:
        """Compute the level, dispersion, tails and half-life of a spread in one pass.

        Formula, columns, errors and an example: `toolkit.statistics.spread.summary`.

        ``column``: The column of the rows to measure.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        ``fees``: A fee table. Default: that of the workspace.
        """

    def net_edge(
        self,
        fees: FeeModel | None = None,
        *,
        exit_bps: float = 0.0,
        notional: float = 10000.0,
        style: Style = "taker",
    ) -> Result:
        """Compute what the spread of each row would leave after the costs of a round trip.

        Formula, columns, errors and an example: `toolkit.statistics.fees.net_edge`.

        ``exit_bps``: The spread at the exit.
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
    ) -> Result:
        """Flag what is wrong with the prices of a pair: a frozen leg, another coin, a shifted clock.

        Formula, columns, errors and an example: `toolkit.statistics.quality.flags`.

        ``stale_s``: How long a leg must repeat its price to be stale.
        ``stale_moves``: How often the other leg must move meanwhile.
        ``repeated_share``: The largest share of closes equal to the one before, 0 to 1.
        ``apart_bps``: How far apart legs of two coins are at least.
        ``apart_share``: The share of observations, 0 to 1, that must be so far apart.
        ``differs_bps``: How far the service's spread may be from that of the legs.
        ``max_lag_steps``: The longest lag, in steps.
        ``least_correlation``: The correlation of returns that a shifted clock must reach.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        """

    def cross_correlation(
        self, *, max_lag_steps: int = 10, max_stale_s: int | None = None
    ) -> Result:
        """Compute the correlation of the returns of two legs at each lag.

        Formula, columns, errors and an example: `toolkit.statistics.spread.cross_correlation`.

        ``max_lag_steps``: The longest lag, in steps.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
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
    ) -> Result:
        """Find every stretch of time in which a spread is at or above a level.

        Formula, columns, errors and an example: `toolkit.statistics.spread.episodes`.

        ``enter_bps``: The spread from which an episode begins.
        ``absolute``: Use the size of the spread, on either side of zero.
        ``leave_bps``: The size below which it ends. Default: that at which it begins.
        ``merge_gap_s``: Episodes at most this far apart are one.
        ``min_duration_s``: Leave out shorter episodes.
        ``column``: The column of the rows to measure.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        """

    def hayashi_yoshida(self, *, lags_s: Sequence[int] | None = None) -> Result:
        """Correlate the returns of two legs, each at the times at which it has a price.

        Formula, columns, errors and an example: `toolkit.statistics.spread.hayashi_yoshida`.

        ``lags_s``: A lag to try, either way: 0s, 1m. Default: 0, 1, 2, 5 and 10 steps.
        """

    def hour_of_week(
        self, *, column: str = "spread_log_bps", max_stale_s: int | None = None
    ) -> Result:
        """Compute the mean of a spread for each hour of the week in UTC, with 95 % intervals.

        Formula, columns, errors and an example: `toolkit.statistics.spread.hour_of_week`.

        ``column``: The column of the rows to measure.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        """

    def lead_lag(self, *, max_lag_steps: int = 10, max_stale_s: int | None = None) -> Result:
        """Find the lag at which the returns of two legs agree most, and which leg finds the price.

        Formula, columns, errors and an example: `toolkit.statistics.spread.lead_lag`.

        ``max_lag_steps``: The longest lag, in steps.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
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
    ) -> Result:
        """Count the episodes in which a spread pays more than a round trip costs, and their lengths.

        Formula, columns, errors and an example: `toolkit.statistics.spread.net_episodes`.

        ``enter_bps``: How far beyond the cost an episode begins.
        ``leave_bps``: How far beyond the cost it ends. Default: as far as it begins.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
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
    ) -> Result:
        """Sum up what spreads pay before and after costs: at half, once and twice the costs.

        Formula, columns, errors and an example: `toolkit.statistics.spread.net_summary`.

        ``exit_bps``: The spread at the exit.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
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
    ) -> Result:
        """Measure the time from when a spread is beyond a round trip's cost to when it is near again.

        Formula, columns, errors and an example: `toolkit.statistics.spread.net_time_to_close`.

        ``exit_bps``: How near the level it is at a close.
        ``toward``: The level.
        ``enter_bps``: How far beyond the cost an entry is.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        ``fees``: A fee table. Default: that of the workspace.
        """

    def rolling_z_summary(
        self,
        *,
        window_s: int = 86400,
        min_samples: int | None = None,
        beyond: float = 3.0,
        column: str = "spread_log_bps",
    ) -> Result:
        """Measure how far a spread is from its own recent mean, in standard deviations.

        Formula, columns, errors and an example: `toolkit.statistics.spread.rolling_z_summary`.

        ``window_s``: The time over which a score takes mean and deviation.
        ``min_samples``: The fewest observations for a score. Default: half of the window.
        ``beyond``: The size from which a score is beyond.
        ``column``: The column of the rows to measure.
        """

    def stationarity(
        self,
        *,
        adf_lags: int | None = None,
        column: str = "spread_log_bps",
        max_stale_s: int | None = None,
    ) -> Result:
        """Test whether a spread has a unit root, and measure how its variance grows with the horizon.

        Formula, columns, errors and an example: `toolkit.statistics.spread.stationarity`.

        ``adf_lags``: Lags of the unit root test. Default: by the number of rows.
        ``column``: The column of the rows to measure.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        """

    def tail_index(
        self, *, column: str = "spread_log_bps", max_stale_s: int | None = None
    ) -> Result:
        """Estimate how fast large sizes of a spread become rare, at 1, 2, 5 and 10 % of its rows.

        Formula, columns, errors and an example: `toolkit.statistics.spread.tail_index`.

        ``column``: The column of the rows to measure.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        """

    def time_above(
        self,
        threshold_bps: float,
        *,
        absolute: bool = False,
        column: str = "spread_log_bps",
        max_stale_s: int | None = None,
    ) -> Result:
        """Measure the share of observed time at which a spread is at or above a threshold.

        Formula, columns, errors and an example: `toolkit.statistics.spread.time_above`.

        ``threshold_bps``: The level.
        ``absolute``: Use the size of the spread, on either side of zero.
        ``column``: The column of the rows to measure.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        """

    def time_to_close(
        self,
        enter_bps: float,
        exit_bps: float,
        *,
        toward: float = 0.0,
        column: str = "spread_log_bps",
        max_stale_s: int | None = None,
    ) -> Result:
        """Measure the time from when a spread is far from a level to when it is near it again.

        Formula, columns, errors and an example: `toolkit.statistics.spread.time_to_close`.

        ``enter_bps``: How far from the level an entry is.
        ``exit_bps``: How near the level it is at a close.
        ``toward``: The level.
        ``column``: The column of the rows to measure.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        """

class FundingAnalyses(Series, metaclass=ABCMeta):
    """The analyses of funding."""

    def by_hour(self) -> Result:
        """Average the funding of each trajectory by hour of the day in UTC, with 95 % intervals.

        Formula, columns, errors and an example: `toolkit.statistics.funding.by_hour`.
        """

    def by_weekday(self) -> Result:
        """Average the funding of each trajectory by day of the week in UTC, with 95 % intervals.

        Formula, columns, errors and an example: `toolkit.statistics.funding.by_weekday`.
        """

    def carry(
        self,
        *,
        min_coverage: float = 0.9,
        funding_only: bool = False,
        prices: Series | pl.DataFrame | None = None,
    ) -> Result:
        """Sum what the position has received and gained after each settlement in (start, end].

        Formula, columns, errors and an example: `toolkit.statistics.funding.carry`.

        ``min_coverage``: The share of the window, 0 to 1, that both legs must cover for a figure.
        ``funding_only``: Leave prices out: only what settlements pay, under names that say so.
        """

    def heatmap(self, *, bucket: str | int = "8h") -> Result:
        """Average the funding of each trajectory in buckets of time, as a yearly rate.

        Formula, columns, errors and an example: `toolkit.statistics.funding.heatmap`.

        ``bucket``: The time to average over: 1h, 8h, 1d.
        """

    def holdings(
        self,
        *,
        horizons: Sequence[str | int] | str | int = ("1h", "8h", "1d", "3d", "7d", "30d"),
        every: str | int = "1h",
        funding_only: bool = False,
        step_s: int | None = None,
        max_stale_s: int | None = None,
        compound: bool = False,
        legs: bool = False,
        prices: Series | pl.DataFrame | None = None,
        fees: FeeModel | None = None,
        notional: float = 10000.0,
        style: Style = "taker",
    ) -> Result:
        """Compute the distribution of what a position kept, over all times at which it was entered.

        Formula, columns, errors and an example: `toolkit.statistics.funding.holdings`.

        ``horizons``: The time in a position: 8h, 7d. May be repeated.
        ``every``: The time between two entries.
        ``funding_only``: Leave prices out: only what settlements pay, under names that say so.
        ``step_s``: The time between two prices. Default: the commonest.
        ``max_stale_s``: How long a price is valid after its step. Default: three steps.
        ``compound``: Reinvest what is received at each settlement.
        ``legs``: Each leg of the pairs alone, short.
        ``fees``: A fee table. Default: that of the workspace.
        """

    def intervals(self) -> Result:
        """List every settlement of every leg with the interval it accrued over.

        Formula, columns, errors and an example: `toolkit.statistics.funding.intervals`.
        """

    def persistence(self, *, band_apr_pct: float = 0.0) -> Result:
        """Measure how long the differential in force keeps its sign, and its autocorrelation.

        Formula, columns, errors and an example: `toolkit.statistics.funding.persistence`.

        ``band_apr_pct``: Percent a year on either side of 0 in which funding has no sign.
        """

    def service_differential(self) -> Result:
        """Average the differential in force that the service sends, over time in [start, end).

        Formula, columns, errors and an example: `toolkit.statistics.funding.service_differential`.
        """

    def summary(
        self,
        *,
        min_coverage: float = 0.9,
        funding_only: bool = False,
        prices: Series | pl.DataFrame | None = None,
        fees: FeeModel | None = None,
        notional: float = 10000.0,
        style: Style = "taker",
    ) -> Result:
        """Sum the funding and the carry of a position over (start, end], also as a yearly rate.

        Formula, columns, errors and an example: `toolkit.statistics.funding.summary`.

        ``min_coverage``: The share of the window, 0 to 1, that both legs must cover for a figure.
        ``funding_only``: Leave prices out: only what settlements pay, under names that say so.
        ``fees``: A fee table. Default: that of the workspace.
        """

class EventAnalyses(Series, metaclass=ABCMeta):
    """The analyses of an event log."""

    def summary(self) -> Result:
        """Count the events that touch a window, by family and kind, with their median life.

        Formula, columns, errors and an example: `toolkit.statistics.events.rates.summary`.
        """

    def audit(
        self,
        rows: Frame,
        *,
        enter_bps: float | None = None,
        leave_bps: float | None = None,
        slack_s: int | None = None,
        max_stale_s: int | None = None,
        move_s: int | None = None,
        by: Sequence[str] = (),
    ) -> Result:
        """Summarise the accuracy of a log: precision, recall and delay.

        Formula, columns, errors and an example: `toolkit.statistics.events.audit`.

        ``enter_bps``: The spread (bps) that opens an event, for funding the differential per 8 h, for a splash the move. Default: the smallest size of an event.
        ``leave_bps``: The size (bps) below which it ends. Default: --enter-bps.
        ``slack_s``: How far apart an event and its episode may be.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        ``move_s``: The time within which a splash moves. Default: 5m.
        ``by``: One row per group, by any of these.
        """

    def audited(
        self,
        rows: Frame,
        *,
        enter_bps: float | None = None,
        leave_bps: float | None = None,
        slack_s: int | None = None,
        max_stale_s: int | None = None,
        move_s: int | None = None,
    ) -> Result:
        """Match each event with an episode of its trajectory, and list those without a match.

        Formula, columns, errors and an example: `toolkit.statistics.events.audited`.

        ``enter_bps``: The spread (bps) that opens an event, for funding the differential per 8 h, for a splash the move. Default: the smallest size of an event.
        ``leave_bps``: The size (bps) below which it ends. Default: --enter-bps.
        ``slack_s``: How far apart an event and its episode may be.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        ``move_s``: The time within which a splash moves. Default: 5m.
        """

    def clustering(
        self, by: Sequence[str] = (), *, bucket_s: int = 300, draws: int = 499
    ) -> Result:
        """Measure whether events open in bursts, beyond what the hours of the week explain.

        Formula, columns, errors and an example: `toolkit.statistics.events.clustering`.

        ``by``: One row per group, by any of these.
        ``bucket_s``: The length of the buckets in which openings are counted.
        ``draws``: The number of draws to compare the factor with.
        """

    def cooccurrence(
        self,
        by: Sequence[str] = (),
        *,
        same: Sequence[str] = (),
        within_s: int = 300,
        season_s: int | None = None,
    ) -> Result:
        """Measure which events open near others in time, more often than their own hours explain.

        Formula, columns, errors and an example: `toolkit.statistics.events.cooccurrence`.

        ``by``: Compare each of these with each other.
        ``same``: Count only pairs of one symbol, or of the same legs.
        ``within_s``: How far apart openings may be.
        ``season_s``: The length of the shift. Default: a day, or an hour.
        """

    def follow_through(
        self,
        values: Frame,
        *,
        horizons_s: Sequence[int] = (300, 1800, 7200),
        by: Sequence[str] = (),
        column: str = "price",
        before_s: int = 3600,
        cluster: str = "path",
        from_detection: bool = False,
        max_stale_s: int | None = None,
        on: Trajectory | str | None = None,
    ) -> Result:
        """Measure returns after pumps and dumps, and the share of the move that was retraced.

        Formula, columns, errors and an example: `toolkit.statistics.events.follow_through`.

        ``horizons_s``: The time after the start of the path.
        ``by``: One row per group of events, by any of these.
        ``column``: The column of the rows to measure.
        ``before_s``: The time before events. Default: 1h, for funding 1d.
        ``cluster``: Which events may depend on each other. path: those near in time.
        ``from_detection``: Start at the value known at the event, so that its own move counts as what followed.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        ``on``: The trajectory of the values. Around the events of its symbol, in place of each event's own.
        """

    def hazard_ratios(
        self, covariates: Sequence[str] = ("size",), *, cluster: str = "auto"
    ) -> Result:
        """Estimate what makes events end sooner or later, by the regression of Cox.

        Formula, columns, errors and an example: `toolkit.statistics.events.hazard_ratios`.

        ``covariates``: What explains an end: size, symbol, legs, exchange or hour.
        ``cluster``: Which lives may depend on each other. auto: the choice that widens the intervals most.
        """

    def league(self, by: Sequence[str] = ("legs",), *, cluster: str = "auto") -> Result:
        """Rank the groups of each family by how often their events open, with shrunk rates.

        Formula, columns, errors and an example: `toolkit.statistics.events.league`.

        ``by``: One row per group, by any of these.
        ``cluster``: Which openings may be bursts. auto: where the counts show bursts.
        """

    def log_rank(self, by: Sequence[str] = ("legs",)) -> Result:
        """Test whether the groups of a family live equally long, by the log-rank test.

        Formula, columns, errors and an example: `toolkit.statistics.events.log_rank`.

        ``by``: One row per group, by any of these.
        """

    def magnitudes(self, by: Sequence[str] = ()) -> Result:
        """Compute how large events become, by family and group, and how fast large ones become rare.

        Formula, columns, errors and an example: `toolkit.statistics.events.magnitudes`.

        ``by``: One row per group, by any of these.
        """

    def payoff(
        self,
        spreads: Frame,
        *,
        delays_s: Sequence[int] = (0, 60, 300, 900),
        limit_s: int | None = None,
        exit_bps: float | None = None,
        exit_delay_s: int = 0,
        max_stale_s: int | None = None,
        by: Sequence[str] = (),
        cluster: str = "path",
        fees: FeeModel | None = None,
        notional: float = 10000.0,
        style: Style = "taker",
    ) -> Result:
        """Sum up what taking events would have paid, by delay.

        Formula, columns, errors and an example: `toolkit.statistics.events.payoff`.

        ``delays_s``: How long after its detection an event is entered: 0, 30s, 5m.
        ``limit_s``: The longest time in a position. Default: no limit.
        ``exit_bps``: Also exit once the log spread is at most this.
        ``exit_delay_s``: How long after its end the exit is.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        ``by``: Rows per symbol or legs.
        ``cluster``: Which events may depend on each other. path: those near in time.
        ``fees``: A fee table. Default: that of the workspace.
        """

    def placebo(
        self,
        values: Frame,
        *,
        horizons_s: Sequence[int] = (300, 1800, 7200),
        column: str | None = None,
        before_s: int | None = None,
        less: str = "none",
        quiet_s: int = 0,
        runs: int = 999,
        from_detection: bool = False,
        max_stale_s: int | None = None,
        on: Trajectory | str | None = None,
    ) -> Result:
        """Test whether the mean change after events is one that other times would have as well.

        Formula, columns, errors and an example: `toolkit.statistics.events.placebo`.

        ``horizons_s``: The time after the start of the path.
        ``column``: The column of the rows to measure.
        ``before_s``: The time before events. Default: 1h, for funding 1d.
        ``less``: What to subtract from each change. past: its trend before.
        ``quiet_s``: How long before an event to ignore its trend.
        ``runs``: How often to move the events.
        ``from_detection``: Start at the value known at the event, so that its own move counts as what followed.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        ``on``: The trajectory of the values. Around the events of its symbol, in place of each event's own.
        """

    def positions(
        self,
        spreads: Frame,
        *,
        delays_s: Sequence[int] = (0, 60, 300, 900),
        limit_s: int | None = None,
        exit_bps: float | None = None,
        exit_delay_s: int = 0,
        max_stale_s: int | None = None,
        fees: FeeModel | None = None,
        notional: float = 10000.0,
        style: Style = "taker",
    ) -> Result:
        """Compute what each spread event would have paid, taken so long after it was detected.

        Formula, columns, errors and an example: `toolkit.statistics.events.positions`.

        ``delays_s``: How long after its detection an event is entered: 0, 30s, 5m.
        ``limit_s``: The longest time in a position. Default: no limit.
        ``exit_bps``: Also exit once the log spread is at most this.
        ``exit_delay_s``: How long after its end the exit is.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        ``fees``: A fee table. Default: that of the workspace.
        """

    def rate_changes(
        self, by: Sequence[str] = (), *, length_s: int = 604800, cluster: str = "auto"
    ) -> Result:
        """Compare how often events open in the last week of the window with the week before.

        Formula, columns, errors and an example: `toolkit.statistics.events.rate_changes`.

        ``by``: One row per group, by any of these.
        ``length_s``: The length of the time that is compared with the one before it.
        ``cluster``: Which openings may be bursts. auto: where the counts show bursts.
        """

    def rates(self, by: Sequence[str] = (), *, cluster: str = "auto") -> Result:
        """Compute how often events open, per hour and per day of time covered by their log.

        Formula, columns, errors and an example: `toolkit.statistics.events.rates`.

        ``by``: One row per group, by any of these.
        ``cluster``: Which openings may be bursts. auto: where the counts show bursts.
        """

    def rates_by_hour(self, by: Sequence[str] = ()) -> Result:
        """Compute how many events open in each hour of the week, in UTC, with errors between weeks.

        Formula, columns, errors and an example: `toolkit.statistics.events.rates_by_hour`.

        ``by``: One row per group, by any of these.
        """

    def study(
        self,
        values: Frame,
        *,
        column: str | None = None,
        before_s: int | None = None,
        after_s: int | None = None,
        every_s: int | None = None,
        less: str = "none",
        quiet_s: int = 0,
        cluster: str = "path",
        from_detection: bool = False,
        max_stale_s: int | None = None,
        on: Trajectory | str | None = None,
    ) -> Result:
        """Compute the mean and median path of a column around events, with 95 % bands.

        Formula, columns, errors and an example: `toolkit.statistics.events.study`.

        ``column``: The column of the rows to measure.
        ``before_s``: The time before events. Default: 1h, for funding 1d.
        ``after_s``: The time after events. Default: 1h, for funding 1d.
        ``every_s``: The time between two rows of a path.
        ``less``: What to subtract from each path. past: its trend before.
        ``quiet_s``: How long before an event to ignore its trend.
        ``cluster``: Which events may depend on each other. path: those near in time.
        ``from_detection``: Start at the value known at the event, so that its own move counts as what followed.
        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        ``on``: The trajectory of the values. Around the events of its symbol, in place of each event's own.
        """

    def survival(self, by: Sequence[str] = (), *, cluster: str = "auto") -> Result:
        """Compute how long events last, with those whose end was not seen, by Kaplan and Meier.

        Formula, columns, errors and an example: `toolkit.statistics.events.survival`.

        ``by``: One row per group, by any of these.
        ``cluster``: Which lives may depend on each other. auto: the choice that widens the intervals most.
        """

    def survival_curve(self, by: Sequence[str] = (), *, cluster: str = "auto") -> Result:
        """Compute the share of events that survive to each age, with its 95 % band and those watched.

        Formula, columns, errors and an example: `toolkit.statistics.events.survival_curve`.

        ``by``: One row per group, by any of these.
        ``cluster``: Which lives may depend on each other. auto: the choice that widens the intervals most.
        """

class RateAnalyses(Series, metaclass=ABCMeta):
    """The analyses of rates in force."""

    def summary(self, *, max_stale_s: int | None = None) -> Result:
        """Compute level, dispersion and tails of a leg's funding rate in force, in percent a year.

        Formula, columns, errors and an example: `toolkit.statistics.funding.differentials.summary`.

        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        """

class PriceAnalyses(Series, metaclass=ABCMeta):
    """The analyses of prices."""

    def summary(self, *, max_stale_s: int | None = None) -> Result:
        """Compute first, last, lowest and highest price, change and realized volatility.

        Formula, columns, errors and an example: `toolkit.statistics.prices.summary`.

        ``max_stale_s``: How long a value is valid without a new one. Default: three steps.
        """
