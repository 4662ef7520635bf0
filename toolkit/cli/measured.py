"""Statistics of what a store holds, as tables: computed in one pass over all that was asked for."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from toolkit.cards import counted, some
from toolkit.cli.conditions import Schema
from toolkit.cli.figures import Figure
from toolkit.cli.held import Asked
from toolkit.cli.tables import Sheet, TableColumn
from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, format_ts
from toolkit.statistics import events as event_statistics
from toolkit.statistics import funding as funding_statistics
from toolkit.statistics import spread as spread_statistics
from toolkit.statistics.differentials import service_differential, without_rates
from toolkit.statistics.event_counts import event_counts
from toolkit.store import Store, event_logs
from toolkit.tables import SERIES

_SPREAD: tuple[Figure, ...] = (
    ("rows with a spread", "n", "count"),
    ("computed from", "spread_basis", "text"),
    ("coverage", "coverage", "share"),
    ("observed share", "observed_share", "share"),
    ("step", "step_s", "s"),
    ("segments", "n_segments", "count"),
    ("longest gap", "longest_gap_s", "s"),
    ("mean", "spread_mean_log_bps", "bps"),
    ("time-weighted mean", "spread_time_weighted_mean_log_bps", "bps"),
    ("standard deviation", "spread_std_log_bps", "bps"),
    ("median", "spread_median_log_bps", "bps"),
    ("median absolute deviation", "spread_mad_log_bps", "bps"),
    ("1 % quantile", "spread_q01_log_bps", "bps"),
    ("5 % quantile", "spread_q05_log_bps", "bps"),
    ("95 % quantile", "spread_q95_log_bps", "bps"),
    ("99 % quantile", "spread_q99_log_bps", "bps"),
    ("expected shortfall above 95 %", "spread_expected_shortfall_95_log_bps", "bps"),
    ("noise, share of the variance", "noise_share", "share"),
    ("half-life", "half_life_s", "s"),
    ("half-life, lower 95 %", "half_life_lower_s", "s"),
    ("half-life, upper 95 %", "half_life_upper_s", "s"),
    ("autocorrelation it misses by", "half_life_acf_error", "plain"),
    ("AR(1) coefficient", "ar1_phi", "plain"),
    ("half-life by the AR(1)", "half_life_ar1_s", "s"),
    ("autocorrelation that misses by", "half_life_ar1_acf_error", "plain"),
    ("AR(1) outside the 95 %", "half_lives_differ", "flag"),
)


_FUNDING: tuple[Figure, ...] = (
    ("settlements", "n", "count"),
    ("of the leg bought", "n_buy", "count"),
    ("of the leg sold", "n_sell", "count"),
    ("missed between others", "n_missed", "count"),
    ("changes of interval", "n_changed", "count"),
    ("with another interval than declared", "n_declared_differs", "count"),
    ("rows that are rates in force", "n_in_force", "count"),
    ("coverage of the leg bought", "buy_coverage", "share"),
    ("coverage of the leg sold", "sell_coverage", "share"),
    ("coverage of both at once", "coverage", "share"),
    ("received on the leg bought", "buy_carry_bps", "bps"),
    ("received on the leg sold", "sell_carry_bps", "bps"),
    ("carry, received on both", "carry_bps", "bps"),
    ("simple APR of one leg's notional", "funding_apr_pct", "%"),
)

_SHOWN_ABOVE_0 = {"n_declared_differs", "n_in_force"}
"""Counts of what is unusual: their line is left out where all are 0."""


_IN_FORCE: tuple[Figure, ...] = (
    ("rows with the service's differential", "differential_n", "count"),
    ("computed from", "differential_basis", "text"),
    ("coverage", "differential_coverage", "share"),
    ("step", "differential_step_s", "s"),
    ("mean over time, per 8 h", "differential_pct_8h_time_weighted_mean", "%8h"),
    ("a year at that, simple", "differential_apr_pct", "%"),
)
"""The figures of the service's own differential in force, of which these are the columns."""

_SPREAD_COLUMNS = (
    TableColumn("trajectory", "trajectory", "text"),
    TableColumn("sd bps", "spread_std_log_bps", "bps"),
    TableColumn("mean bps", "spread_mean_log_bps", "bps"),
    TableColumn("half-life", "half_life_s", "s"),
    TableColumn("coverage", "coverage", "share"),
    TableColumn("n", "n", "count"),
    TableColumn("longest gap", "longest_gap_s", "s"),
    TableColumn("median bps", "spread_median_log_bps", "bps"),
    TableColumn("5 % bps", "spread_q05_log_bps", "bps"),
    TableColumn("95 % bps", "spread_q95_log_bps", "bps"),
    TableColumn("noise", "noise_share", "share"),
    TableColumn("half-life from", "half_life_lower_s", "s"),
    TableColumn("to", "half_life_upper_s", "s"),
    TableColumn("computed from", "spread_basis", "text"),
)
_FUNDING_COLUMNS = (
    TableColumn("trajectory", "trajectory", "text"),
    TableColumn("APR %", "funding_apr_pct", "%"),
    TableColumn("carry bps", "carry_bps", "bps"),
    TableColumn("coverage", "coverage", "share"),
    TableColumn("settled", "n", "count"),
    TableColumn("missed", "n_missed", "count"),
    TableColumn("buy bps", "buy_carry_bps", "bps"),
    TableColumn("sell bps", "sell_carry_bps", "bps"),
    TableColumn("buy coverage", "buy_coverage", "share"),
    TableColumn("sell coverage", "sell_coverage", "share"),
)
_IN_FORCE_COLUMN = TableColumn("in force APR %", "differential_apr_pct", "%")
_EVENT_COLUMNS = (
    TableColumn("family", "family", "text"),
    TableColumn("events", "n", "count"),
    TableColumn("closed", "closed", "count"),
    TableColumn("open", "open", "count"),
    TableColumn("close lost", "reopened", "count"),
    TableColumn("opened before", "orphans", "count"),
    TableColumn("median life", "median_life_s", "s"),
)
EVENT_COUNTS: Schema = {
    "family": pl.String(),
    **dict.fromkeys(("n", "closed", "open", "reopened", "orphans"), pl.UInt32()),
    "n_lives": pl.Int64(),
    "n_ended": pl.Int64(),
    "median_life_s": pl.Float64(),
    "median_life_reason": pl.String(),
    "n_unknown": pl.UInt32(),
    "unknown_types": pl.String(),
}
"""The columns of `event_counts`."""


def counted_events(store: Store, asked: Interval) -> pl.DataFrame:
    """Count the events in the store that touch a window. See `event_counts`."""
    with store.reading():
        logs = event_logs(store.catalogue())
        read = event_statistics.documents_window(asked)
        events = pl.concat([store.events(family, read) for family in EventFamily])
    return event_counts(events, *asked, logs=logs)


def no_rows(family: Family) -> pl.DataFrame:
    """Return the columns of a family's rows without a row: what a statistic of them looks like."""
    values = dict.fromkeys((column.name for column in SERIES[family].values), pl.Float64)
    return pl.DataFrame(schema={"trajectory": pl.String, "ts": pl.Int64, **values})


def spread_sheet(store: Store, asked: Asked) -> Sheet:
    """Measure spreads in one pass over all their rows."""
    rows = asked.rows(store, asked.window)
    if rows.is_empty():
        raise _nothing_in(store, asked, str(asked.window))
    asked.name_silent(rows["trajectory"].unique(), str(asked.window))
    return Sheet(
        f"Spread 1e4 ln(sell / buy) over {asked.window}",
        store.source.label,
        spread_statistics.summary(rows, *asked.window),
        _SPREAD_COLUMNS,
        order="-spread_std_log_bps",
        figures=_SPREAD,
    )


def funding_sheet(store: Store, asked: Asked, min_coverage: float) -> Sheet:
    """Sum the carry of funding trajectories in one pass over all their rows."""
    rows = asked.rows(store, funding_statistics.rows_window(asked.window))
    inside = rows.filter(pl.col("ts").is_between(*asked.window, closed="right"))
    left_open = f"({format_ts(asked.window.start)}, {format_ts(asked.window.end)}]"
    if inside.is_empty():
        raise _nothing_in(store, asked, left_open)
    asked.name_silent(inside["trajectory"].unique(), left_open)
    found = carries(rows, asked.window, min_coverage)
    figures: Sequence[Figure] = [
        figure
        for figure in _FUNDING
        if figure[1] not in _SHOWN_ABOVE_0 or found[figure[1]].gt(0).any()
    ]
    columns: Sequence[TableColumn] = _FUNDING_COLUMNS
    if found["differential_n"].gt(0).any():
        figures = [*figures, *_IN_FORCE]
        columns = [*columns[:2], _IN_FORCE_COLUMN, *columns[2:]]
    return Sheet(
        f"Funding received over {left_open}",
        store.source.label,
        found,
        columns,
        order="-funding_apr_pct",
        figures=figures,
    )


def carries(rows: pl.DataFrame, asked: Interval, min_coverage: float) -> pl.DataFrame:
    """Sum the carry, and average the service's differential of those that have nothing else."""
    found = funding_statistics.summary(rows, *asked, min_coverage=min_coverage)
    inside = rows.filter(pl.col("ts").is_between(*asked, closed="left"))
    own = service_differential(without_rates(inside), *asked)
    names = [name for _, name, _ in _IN_FORCE]
    own = own.rename({name: f"differential_{name}" for name in ("n", "coverage", "step_s")})
    own = own.rename({"moments_reason": "differential_reason"})
    own = own.select("trajectory", *names, "differential_reason")
    return found.join(own, on="trajectory", how="left", maintain_order="left")


def _nothing_in(store: Store, asked: Asked, stretch: str) -> EmptyWindowError:
    names = some([trajectory.key for trajectory in asked.held])
    return EmptyWindowError(f"{store.path} holds nothing in {stretch} of {names}")


def event_sheet(store: Store, asked: Interval) -> Sheet:
    """Count the events of a window by family."""
    found = counted_events(store, asked)
    unknown = found.filter(pl.col("n_unknown") > 0).iter_rows(named=True)
    return Sheet(
        f"Events over {asked}",
        store.source.label,
        found,
        _EVENT_COLUMNS,
        window=asked,
        notes=[
            f"{row['family']}: {counted(row['n_unknown'], 'document')} of unknown type "
            f"({row['unknown_types']}), kept and not counted above"
            for row in unknown
        ],
    )
