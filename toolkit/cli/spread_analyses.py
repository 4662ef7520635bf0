"""Analyses of spreads as subcommands of `rail stats`: one row of a table each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import polars as pl
import typer

from toolkit.cli.fees import NO_COSTS, CostOptions
from toolkit.cli.held import JoinOptions, MeasuredWindow, SpreadKeys
from toolkit.cli.measured import no_rows, series_sheet
from toolkit.cli.options import signed
from toolkit.cli.table_options import TableOptions, tabled
from toolkit.cli.tables import show
from toolkit.columns import schema_of
from toolkit.market import Family
from toolkit.statistics import spread
from toolkit.statistics.conditions import Schema

_FIRST: tuple[str, ...] = (
    "n",
    "coverage",
    "step_s",
)
_KEY = "trajectory"
_COVERAGE = "coverage"


@dataclass(frozen=True, slots=True)
class SpreadAnalysis:
    """A subcommand: what it computes and shows, and its words.

    ``options`` are the names of the statistic's own, each with its type and help. ``example`` gives
    a value to those without a default. A statistic that is ``net`` takes a fee table, a style and a
    notional, as its subcommand does.
    """

    statistic: Callable[..., pl.DataFrame]
    words: str
    shown: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    example: Mapping[str, float] = field(default_factory=dict)
    order: str = ""

    @property
    def net(self) -> bool:
        """Whether the statistic is net of fees."""
        return "fees" in inspect.signature(self.statistic).parameters

    @property
    def name(self) -> str:
        """The subcommand: the name of the statistic."""
        return self.statistic.__name__.replace("_", "-")

    def columns(self) -> Schema:
        """Return the columns of the rows, those kept from snapshots among them."""
        also = ("spread_basis", "not_tracked")
        return schema_of(f"spread.{self.statistic.__name__}", also=also)


def _option(kind: Any, text: str) -> Any:
    return Annotated[kind, typer.Option(help=text)]


SPREAD_ANALYSES = (
    SpreadAnalysis(
        spread.stationarity,
        """Test whether spreads return to a level: unit root, variance ratios, autocorrelation.

        The test of Dickey and Fuller rejects a unit root (no return) where t is below its critical
        value. A variance ratio is below 1 where the spread returns, 1 for a random walk. No
        difference spans a gap.

        Example: rail stats stationarity --where rejects_unit_root_5pct""",
        (
            "rejects_unit_root_5pct",
            "adf_t",
            "adf_critical_5pct",
            "adf_lags",
            "variance_ratio_10",
            "variance_ratio_60",
            "variance_ratio_60_z",
            "variance_ratio_1440",
            "acf_1",
            "acf_60",
            "acf_1440",
        ),
        {"adf_lags": _option(int | None, "Lags of the unit root test. Default: by the rows.")},
        order="adf_t",
    ),
    SpreadAnalysis(
        spread.hour_of_week,
        """Print the mean of spreads by hour of the week (UTC), with errors from week to week.

        One in twenty hours differs where there is no season. Hours of less than four weeks have no
        interval, nor has the mean of a spread that remembers more than the window.

        Example: rail stats hour-of-week LTC_USDT:AURORA.spot:BOREAS.spot""",
        (
            "weekday",
            "hour",
            "spread_mean_log_bps",
            "spread_mean_lower_log_bps",
            "spread_mean_upper_log_bps",
            "weeks",
            "spread_deviation_log_bps",
            "differs",
        ),
    ),
    SpreadAnalysis(
        spread.time_to_close,
        """Print how long spreads take to come back, from where they are entered.

        An entry is a spread that comes to ENTER bps from a level, its close the first one within
        EXIT bps. Where a gap or the end comes first, it counts as longer than seen.

        Example: rail stats time-to-close --enter-bps 30 --exit-bps 5""",
        (
            "close_median_s",
            "close_lower_s",
            "close_upper_s",
            "entries",
            "closed",
            "close_q25_s",
            "close_q90_s",
            "truncated",
        ),
        {
            "enter_bps": _option(float, "How far from the level a spread is entered."),
            "exit_bps": _option(float, "How near the level it has closed."),
            "toward": _option(float, "The level, in bps."),
        },
        {"enter_bps": 1.0, "exit_bps": 0.0},
        order="close_median_s",
    ),
    SpreadAnalysis(
        spread.net_time_to_close,
        """Print how long spreads beyond the cost of a round trip take to come back.

        An entry is a spread, on either side of a level, whose distance is ENTER bps above the cost
        then. Its close is the first one within EXIT bps of the level, before costs. Where a gap or
        the end comes first, it counts as longer than seen.

        Before: rail fees --example > fees.toml

        Example: rail stats net-time-to-close --exit-bps 5 --fees fees.toml""",
        (
            "close_median_s",
            "close_lower_s",
            "close_upper_s",
            "entries",
            "closed",
            "cost_lowest_bps",
            "cost_highest_bps",
            "truncated",
        ),
        {
            "enter_bps": _option(float, "How far beyond the cost a spread is entered."),
            "exit_bps": _option(float, "How near the level it has closed."),
            "toward": _option(float, "The level, in bps."),
        },
        {"exit_bps": 0.0},
        order="close_median_s",
    ),
    SpreadAnalysis(
        spread.net_episodes,
        """Print how often spreads pay more than a round trip costs, for how long, and how much.

        An episode begins where a spread is ENTER bps beyond the cost then, and ends where it is
        less than LEAVE bps beyond it. One that a gap or the end cuts off lasted longer than seen.

        Before: rail fees --example > fees.toml

        Example: rail stats net-episodes --fees fees.toml""",
        (
            "net_episodes",
            "net_duration_s",
            "net_area_bps_h",
            "net_peak_bps",
            "life_median_s",
            "life_lower_s",
            "life_upper_s",
            "cost_lowest_bps",
            "cost_highest_bps",
            "truncated",
        ),
        {
            "enter_bps": _option(float, "How far beyond the cost an episode begins."),
            "leave_bps": _option(
                float | None, "How far beyond the cost it ends. Default: as far as it begins."
            ),
        },
        order="-net_area_bps_h",
    ),
    SpreadAnalysis(
        spread.lead_lag,
        """Print which leg of spreads moves first: the lag at which their returns agree most.

        A positive lag means that the buy leg leads. A lead of less than a step cannot be seen, and
        a clock that runs late looks like one. Shares of discovery need steps of 2 s or less.

        Example: rail stats lead-lag --where "beyond_band and peak_lag_s != 0\"""",
        (
            "peak_lag_s",
            "peak_correlation",
            "null_band",
            "beyond_band",
            "correlation_at_0",
            "lead_lag_ratio",
            "returns_n",
            "gonzalo_granger_share",
        ),
        {"max_lag_steps": _option(int, "The longest lag, in steps.")},
        order="-peak_lag_s",
    ),
    SpreadAnalysis(
        spread.tail_index,
        """Print how fast large spreads become rare: the index of Hill at depths of the tail.

        With an index of 3, sizes twice as large are 8 times as rare. The interval of 95 % takes
        days as draws, as sizes follow each other.

        Example: rail stats tail-index --where "tail_5pct_index < 3\"""",
        (
            "tail_5pct_index",
            "tail_5pct_lower",
            "tail_5pct_upper",
            "spread_tail_5pct_x_min_log_bps",
            "tail_5pct_n",
            "tail_5pct_days",
            "tail_1pct_index",
            "tail_2pct_index",
            "tail_10pct_index",
        ),
        order="tail_5pct_index",
    ),
)


def add_spread_analyses(app: typer.Typer) -> None:
    """Add the subcommands to `rail stats`."""
    for analysis in SPREAD_ANALYSES:
        app.command(analysis.name)(tabled(analysis.columns)(_command(analysis)))


def _command(analysis: SpreadAnalysis) -> Callable[..., None]:
    """Make the function of a subcommand, with the statistic's own options in its signature."""

    def run(
        trajectories: list[str] | None,
        within: MeasuredWindow,
        pairs: JoinOptions,
        view: TableOptions,
        net_of: CostOptions | None = None,
        **options: Any,
    ) -> None:
        joined = pairs.joining()
        fees = NO_COSTS.arguments if net_of else {}
        analysis.statistic(no_rows("spread"), 0, 1, **fees, **options)  # refuses what it must
        held = view.opened(within)
        costs = net_of.needed(held) if net_of else None
        fees = costs.arguments if costs else {}
        asked = within.of(held, Family.SPREAD, trajectories, joined)
        [found] = asked.measured(analysis.statistic, **fees, **options)
        shown = ([*_FIRST, *analysis.shown], [_KEY, *analysis.shown, _COVERAGE])
        heading = f"Spreads, {analysis.name}, over {asked.window}"
        if costs:
            heading += f", {costs.heading}"
        show(view, series_sheet(asked, found, heading, shown, order=analysis.order))

    groups = {"within": MeasuredWindow, "pairs": JoinOptions}
    groups |= {"net_of": CostOptions} if analysis.net else {}
    groups |= {"view": TableOptions}
    by_name, own = inspect.Parameter.KEYWORD_ONLY, inspect.signature(analysis.statistic).parameters
    taken = [inspect.Parameter("trajectories", by_name, default=None, annotation=SpreadKeys)]
    taken += [
        inspect.Parameter(name, by_name, default=own[name].default, annotation=kind)
        for name, kind in analysis.options.items()
    ]
    taken += [inspect.Parameter(name, by_name, annotation=each) for name, each in groups.items()]
    run.__doc__ = inspect.cleandoc(analysis.words)
    return signed(run, taken)
