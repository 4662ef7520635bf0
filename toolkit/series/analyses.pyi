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
    ) -> Result:
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
    ) -> Result:
        """Compute what the spread of each row would leave after the costs of a round trip.

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
    ) -> Result:
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
    ) -> Result:
        """Compute the correlation of the returns of two legs at each lag.

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
    ) -> Result:
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

        ``column``: The column of the rows that is measured.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """

    def lead_lag(self, *, max_lag_steps: int = 10, max_stale_s: int | None = None) -> Result:
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
    ) -> Result:
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
    ) -> Result:
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
    ) -> Result:
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
    ) -> Result:
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
    ) -> Result:
        """Test whether a spread has a unit root, and measure how its variance grows with the horizon.

        Formula, columns, errors and an example: `toolkit.statistics.spread.stationarity`.

        ``adf_lags``: Lags of the unit root test. Default: by the rows.
        ``column``: The column of the rows that is measured.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """

    def tail_index(
        self, *, column: str = "spread_log_bps", max_stale_s: int | None = None
    ) -> Result:
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
    ) -> Result:
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
    ) -> Result:
        """Measure the time from where a spread is far from a level to where it is near it again.

        Formula, columns, errors and an example: `toolkit.statistics.spread.episodes`.

        ``enter_bps``: How far from the level a spread is entered.
        ``exit_bps``: How near the level it has closed.
        ``toward``: The level.
        ``column``: The column of the rows that is measured.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
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

        ``min_coverage``: The least part of the window, 0 to 1, that both legs must cover for a figure.
        ``funding_only``: Leave prices out: what settlements pay alone, named so.
        """

    def heatmap(self, *, bucket: str | int = "8h") -> Result:
        """Average the funding of each trajectory in buckets of time, as a yearly rate.

        Formula, columns, errors and an example: `toolkit.statistics.funding.heatmap`.

        ``bucket``: The time that is averaged over: 1h, 8h, 1d.
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

        ``horizons``: How long a position is held: 8h, 7d. May be repeated.
        ``every``: How far apart positions are entered.
        ``funding_only``: Leave prices out: what settlements pay alone, named so.
        ``step_s``: The time between two prices. Default: their commonest.
        ``max_stale_s``: How long a price is known after its step. Default: three steps.
        ``compound``: Put what is received into the position at each settlement.
        ``legs``: Of each leg of the pairs alone, held short.
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

        ``min_coverage``: The least part of the window, 0 to 1, that both legs must cover for a figure.
        ``funding_only``: Leave prices out: what settlements pay alone, named so.
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

        ``enter_bps``: The spread (bps) that opens an event, of funding the differential per 8 h, of a splash the move. Default: the smallest size of one.
        ``leave_bps``: Below which size (bps) it is over. Default: as --enter-bps.
        ``slack_s``: How far apart an event and its episode may be.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        ``move_s``: The time over which a splash moves. Default: 5m.
        ``by``: A row for each of these groups.
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

        ``enter_bps``: The spread (bps) that opens an event, of funding the differential per 8 h, of a splash the move. Default: the smallest size of one.
        ``leave_bps``: Below which size (bps) it is over. Default: as --enter-bps.
        ``slack_s``: How far apart an event and its episode may be.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        ``move_s``: The time over which a splash moves. Default: 5m.
        """

    def clustering(
        self, by: Sequence[str] = (), *, bucket_s: int = 300, draws: int = 499
    ) -> Result:
        """Measure whether events open in bursts, beyond what the hours of the week explain.

        Formula, columns, errors and an example: `toolkit.statistics.events.clustering`.

        ``by``: A row for each of these groups.
        ``bucket_s``: How long the buckets are in which openings are counted.
        ``draws``: How many draws the factor is compared with.
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
        ``same``: Count pairs of one symbol, or of the same legs, alone.
        ``within_s``: How far apart openings are at most.
        ``season_s``: By what a log is shifted. Default: a day, or an hour.
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
        """Compute how far prices went on after pumps and dumps, and which share they gave back.

        Formula, columns, errors and an example: `toolkit.statistics.events.follow_through`.

        ``horizons_s``: How long after the start of the path.
        ``by``: A row for each of these of the events.
        ``column``: The column of the rows that is measured.
        ``before_s``: So long before events. Default: 1h, of funding 1d.
        ``cluster``: Within what events may depend on each other. path: in time.
        ``from_detection``: Start at what was known at the event: the move that made it then counts as what followed.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        ``on``: The trajectory of the values. Around the events of its symbol, in place of each event's own.
        """

    def hazard_ratios(
        self, covariates: Sequence[str] = ("size",), *, cluster: str = "auto"
    ) -> Result:
        """Estimate what makes events end sooner or later, by the regression of Cox.

        Formula, columns, errors and an example: `toolkit.statistics.events.hazard_ratios`.

        ``covariates``: What an end is explained by: size, symbol, legs, exchange or hour.
        ``cluster``: Within what lives may depend on each other. auto: what widens the intervals most.
        """

    def league(self, by: Sequence[str] = ("legs",), *, cluster: str = "auto") -> Result:
        """Rank the groups of each family by how often their events open, with shrunk rates.

        Formula, columns, errors and an example: `toolkit.statistics.events.league`.

        ``by``: A row for each of these groups.
        ``cluster``: What may hold bursts of openings. auto: where they show.
        """

    def log_rank(self, by: Sequence[str] = ("legs",)) -> Result:
        """Test whether the groups of a family live equally long, by the log-rank test.

        Formula, columns, errors and an example: `toolkit.statistics.events.log_rank`.

        ``by``: A row for each of these groups.
        """

    def magnitudes(self, by: Sequence[str] = ()) -> Result:
        """Compute how large events become, by family and group, and how fast large ones become rare.

        Formula, columns, errors and an example: `toolkit.statistics.events.timing`.

        ``by``: A row for each of these groups.
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

        Formula, columns, errors and an example: `toolkit.statistics.events.positions`.

        ``delays_s``: How long after its detection an event is taken: 0, 30s, 5m.
        ``limit_s``: How long a position is held at most. Default: no limit.
        ``exit_bps``: Leave also when the log spread is at most this.
        ``exit_delay_s``: How long after its end an event is left.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        ``by``: Rows for each of these: symbol or legs.
        ``cluster``: Within what events may depend on each other. path: in time.
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

        Formula, columns, errors and an example: `toolkit.statistics.events.study`.

        ``horizons_s``: How long after the start of the path.
        ``column``: The column of the rows that is measured.
        ``before_s``: So long before events. Default: 1h, of funding 1d.
        ``less``: What is taken from each change. past: its trend before.
        ``quiet_s``: How long before an event its trend is not looked at.
        ``runs``: How many times the events are moved.
        ``from_detection``: Start at what was known at the event: the move that made it then counts as what followed.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
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

        ``delays_s``: How long after its detection an event is taken: 0, 30s, 5m.
        ``limit_s``: How long a position is held at most. Default: no limit.
        ``exit_bps``: Leave also when the log spread is at most this.
        ``exit_delay_s``: How long after its end an event is left.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        ``fees``: A fee table. Default: that of the workspace.
        """

    def rate_changes(
        self, by: Sequence[str] = (), *, length_s: int = 604800, cluster: str = "auto"
    ) -> Result:
        """Compare how often events open in the last week of the window with the week before.

        Formula, columns, errors and an example: `toolkit.statistics.events.rates`.

        ``by``: A row for each of these groups.
        ``length_s``: How long the time is that is compared with that before it.
        ``cluster``: What may hold bursts of openings. auto: where they show.
        """

    def rates(self, by: Sequence[str] = (), *, cluster: str = "auto") -> Result:
        """Compute how often events open, per hour and per day of time covered by their log.

        Formula, columns, errors and an example: `toolkit.statistics.events.rates`.

        ``by``: A row for each of these groups.
        ``cluster``: What may hold bursts of openings. auto: where they show.
        """

    def rates_by_hour(self, by: Sequence[str] = ()) -> Result:
        """Compute how many events open in each hour of the week, in UTC, with errors between weeks.

        Formula, columns, errors and an example: `toolkit.statistics.events.rates_by_hour`.

        ``by``: A row for each of these groups.
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

        ``column``: The column of the rows that is measured.
        ``before_s``: So long before events. Default: 1h, of funding 1d.
        ``after_s``: So long after them. Default: 1h, of funding 1d.
        ``every_s``: How far apart the rows of a path are.
        ``less``: What is taken from each path. past: its trend before.
        ``quiet_s``: How long before an event its trend is not looked at.
        ``cluster``: Within what events may depend on each other. path: in time.
        ``from_detection``: Start at what was known at the event: the move that made it then counts as what followed.
        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        ``on``: The trajectory of the values. Around the events of its symbol, in place of each event's own.
        """

    def survival(self, by: Sequence[str] = (), *, cluster: str = "auto") -> Result:
        """Compute how long events last, with those whose end was not seen, by Kaplan and Meier.

        Formula, columns, errors and an example: `toolkit.statistics.events.survival`.

        ``by``: A row for each of these groups.
        ``cluster``: Within what lives may depend on each other. auto: what widens the intervals most.
        """

    def survival_curve(self, by: Sequence[str] = (), *, cluster: str = "auto") -> Result:
        """Compute the share of events that survive to each age, with its 95 % band and those watched.

        Formula, columns, errors and an example: `toolkit.statistics.events.survival_curve`.

        ``by``: A row for each of these groups.
        ``cluster``: Within what lives may depend on each other. auto: what widens the intervals most.
        """

class RateAnalyses(Series, metaclass=ABCMeta):
    """The analyses of rates in force."""

    def summary(self, *, max_stale_s: int | None = None) -> Result:
        """Compute level, dispersion and tails of a leg's funding rate in force, in percent a year.

        Formula, columns, errors and an example: `toolkit.statistics.funding.differentials.summary`.

        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """

class PriceAnalyses(Series, metaclass=ABCMeta):
    """The analyses of prices."""

    def summary(self, *, max_stale_s: int | None = None) -> Result:
        """Compute first, last, lowest and highest price, change and realized volatility.

        Formula, columns, errors and an example: `toolkit.statistics.prices.summary`.

        ``max_stale_s``: How long a value holds without a new one. Default: a step.
        """
