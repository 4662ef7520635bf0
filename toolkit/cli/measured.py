"""Statistics of what a store holds, as tables: computed in one pass over all that was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from toolkit.cards import counted, some
from toolkit.cli.event_logs import Logs
from toolkit.cli.fees import (
    NET_FUNDING,
    NET_FUNDING_COLUMNS,
    NET_SPREAD,
    NET_SPREAD_COLUMNS,
    NO_COSTS,
    Costs,
    net_notes,
)
from toolkit.cli.figures import HALF_LIFE, Figure
from toolkit.cli.held import Asked
from toolkit.cli.tables import Sheet, TableColumn
from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval
from toolkit.market import format_ts
from toolkit.statistics import funding as funding_statistics
from toolkit.statistics import spread as spread_statistics
from toolkit.statistics.conditions import Schema
from toolkit.statistics.contract import Reason, beside
from toolkit.statistics.differentials import service_differential, without_rates
from toolkit.statistics.event_counts import event_counts
from toolkit.statistics.plausibility import notes_of
from toolkit.statistics.polls import PollCount, by_polls
from toolkit.statistics.rates_in_force import with_apr
from toolkit.store import Store
from toolkit.tables import ROWS

_SPREAD: tuple[Figure, ...] = (
    ("rows with a spread", "n", "count"),
    ("computed from", "spread_basis", "text"),
    ("coverage", "coverage", "share"),
    ("observed share", "observed_share", "share"),
    ("step", "step_s", "s"),
    ("segments", "n_segments", "count"),
    ("longest gap", "longest_gap_s", "s"),
    ("not plausible", "implausible", "text"),
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
    ("half-life", "half_life_s", HALF_LIFE),
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
    ("before their interval was over", "n_early", "count"),
    ("changes of interval", "n_changed", "count"),
    ("with another interval than declared", "n_declared_differs", "count"),
    ("rows that are rates in force", "n_in_force", "count"),
    ("rows that are a settlement sent again", "n_duplicates", "count"),
    ("coverage of the leg bought", "buy_coverage", "share"),
    ("coverage of the leg sold", "sell_coverage", "share"),
    ("coverage of both at once", "coverage", "share"),
    ("not plausible", "implausible", "text"),
    ("received on the leg bought", "buy_carry_bps", "bps"),
    ("received on the leg sold", "sell_carry_bps", "bps"),
    ("carry, received on both", "carry_bps", "bps"),
    ("simple APR of one leg's notional", "funding_apr_pct", "%"),
)

_SHOWN_ABOVE_0 = {"n_early", "n_declared_differs", "n_in_force", "n_duplicates"}
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

_RATE: tuple[Figure, ...] = (
    ("rows with a rate", "n", "count"),
    ("coverage", "coverage", "share"),
    ("observed share", "observed_share", "share"),
    ("period of the polls", "step_s", "s"),
    ("segments", "n_segments", "count"),
    ("longest gap", "longest_gap_s", "s"),
    ("not plausible", "implausible", "text"),
    ("mean", "funding_apr_mean_pct", "%"),
    ("time-weighted mean", "funding_apr_time_weighted_mean_pct", "%"),
    ("standard deviation", "funding_apr_std_pct", "%"),
    ("median", "funding_apr_median_pct", "%"),
    ("5 % quantile", "funding_apr_q05_pct", "%"),
    ("95 % quantile", "funding_apr_q95_pct", "%"),
    ("half-life", "half_life_s", HALF_LIFE),
)
_NOT_TRACKED: Figure = ("answers that lack it: not tracked", "not_tracked", "count")

_SPREAD_COLUMNS = (
    TableColumn("trajectory", "trajectory", "text"),
    TableColumn("sd bps", "spread_std_log_bps", "bps"),
    TableColumn("mean bps", "spread_mean_log_bps", "bps"),
    TableColumn("half-life", "half_life_s", HALF_LIFE),
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
_RATE_COLUMNS = (
    TableColumn("trajectory", "trajectory", "text"),
    TableColumn("mean APR %", "funding_apr_mean_pct", "%"),
    TableColumn("sd APR %", "funding_apr_std_pct", "%"),
    TableColumn("coverage", "coverage", "share"),
    TableColumn("n", "n", "count"),
    TableColumn("median APR %", "funding_apr_median_pct", "%"),
    TableColumn("5 % APR %", "funding_apr_q05_pct", "%"),
    TableColumn("95 % APR %", "funding_apr_q95_pct", "%"),
    TableColumn("longest gap", "longest_gap_s", "s"),
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
    TableColumn("cut by gaps", "cut", "count"),
)
EVENT_COUNTS: Schema = {
    "family": pl.String(),
    **dict.fromkeys(("n", "closed", "open", "reopened", "orphans", "cut"), pl.Int64()),
    "coverage": pl.Float64(),
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
    read = Logs.read(store, asked)
    return event_counts(read.documents, *asked, logs=read.logs, held=read.held)


def no_rows(kind: str) -> pl.DataFrame:
    """Return the columns of a kind's rows without a row: what a statistic of them looks like."""
    values = dict.fromkeys((column.name for column in ROWS[kind].values), pl.Float64)
    return pl.DataFrame(schema={"trajectory": pl.String, "ts": pl.Int64, **values})


def spread_columns() -> Schema:
    """Return the columns of spreads, those kept from snapshots among them."""
    found = _net_spreads(no_rows("spread"), Interval(0, 1), None, costs=NO_COSTS)
    return by_polls(found, PollCount(0, 0)).schema


def funding_columns() -> Schema:
    """Return the columns of carries and of rates kept from snapshots."""
    rates = by_polls(_rates(no_rows("snapshot-funding"), Interval(0, 1), None), PollCount(0, 0))
    net = _net_carries(carries(no_rows("funding"), Interval(0, 1), 1.0), NO_COSTS)
    return dict(net.schema) | dict(rates.schema)


def spread_sheet(store: Store, asked: Asked, costs: Costs | None = None) -> Sheet:
    """Measure spreads in one pass over all their rows. Coverage is by polls where there are.

    With costs the net figures are beside the gross ones.
    """
    heading = f"Spread 1e4 ln(sell / buy) over {asked.window}"
    order = "-spread_std_log_bps"
    if costs is None:
        return series_sheet(store, asked, _spreads, heading, (_SPREAD, _SPREAD_COLUMNS), order)
    columns = [*_SPREAD_COLUMNS[:3], *NET_SPREAD_COLUMNS, *_SPREAD_COLUMNS[3:]]
    shown = ([*_SPREAD, *NET_SPREAD], columns)
    sheet = series_sheet(store, asked, partial(_net_spreads, costs=costs), heading, shown, order)
    return replace(sheet, notes=[*sheet.notes, *net_notes(sheet.rows, costs)])


def rate_sheet(store: Store, asked: Asked) -> Sheet:
    """Measure the rates of legs as snapshots showed them, in one pass over all their rows."""
    return series_sheet(
        store,
        asked,
        _rates,
        f"Funding rate in force, percent a year, over {asked.window}",
        (_RATE, _RATE_COLUMNS),
        order="-funding_apr_mean_pct",
    )


def series_sheet(
    store: Store,
    asked: Asked,
    measure: Callable[[pl.DataFrame, Interval, int | None], pl.DataFrame],
    heading: str,
    shown: tuple[Sequence[Figure], Sequence[TableColumn]],
    order: str,
) -> Sheet:
    """Measure series in one pass. Of those kept from snapshots the coverage is by polls."""
    applied = partial(_applied, measure, asked.window, asked.step_s)
    found = asked.in_one_pass(store, asked.window, applied)[0].sort("trajectory")
    if found.is_empty():
        raise nothing_in(store, asked, str(asked.window))
    asked.name_silent(found["trajectory"], str(asked.window))
    figures, columns = shown_where_odd(shown[0], found), shown[1]
    if asked.polls is not None:
        found = by_polls(found, asked.polls)
        polls = f"{counted(asked.polls.answered, 'poll')} answered, {asked.polls.missed:,} missed"
        heading += f", kept from snapshots: {polls}"
        after = [name for _, name, _ in figures].index("coverage") + 1
        figures = [*figures[:after], _NOT_TRACKED, *figures[after:]]
        columns = [*columns, TableColumn("not tracked", "not_tracked", "count")]
    notes = [*([] if asked.pairs is None else asked.pairs.notes), *notes_of(found)]
    source = store.source.label
    return Sheet(heading, source, found, columns, order=order, figures=figures, notes=notes)


def shown_where_odd(figures: Sequence[Figure], found: pl.DataFrame) -> Sequence[Figure]:
    """Leave out the line of what is not plausible where nothing is."""
    if notes_of(found):
        return figures
    return [figure for figure in figures if figure[1] != "implausible"]


def _spreads(rows: pl.DataFrame, window: Interval, step_s: int | None) -> pl.DataFrame:
    return spread_statistics.summary(rows, *window, step_s=step_s)


def _applied(
    measure: Callable[[pl.DataFrame, Interval, int | None], pl.DataFrame],
    window: Interval,
    step_s: int | None,
    rows: pl.DataFrame,
) -> pl.DataFrame:
    return measure(rows, window, step_s)


def _net_spreads(
    rows: pl.DataFrame, window: Interval, step_s: int | None, *, costs: Costs
) -> pl.DataFrame:
    net = spread_statistics.net_summary(rows, *window, step_s=step_s, **costs.arguments)
    return beside(_spreads(rows, window, step_s), net, "net")


def _net_carries(found: pl.DataFrame, costs: Costs) -> pl.DataFrame:
    return funding_statistics.net_summary(
        found, costs.fees, notional=costs.notional, style=costs.style
    )


def _rates(rows: pl.DataFrame, window: Interval, step_s: int | None) -> pl.DataFrame:
    column = "funding_apr_pct"
    return spread_statistics.summary(with_apr(rows), *window, column=column, step_s=step_s)


def funding_sheet(
    store: Store, asked: Asked, min_coverage: float, costs: Costs | None = None
) -> Sheet:
    """Sum the carry of funding trajectories in one pass over all their rows.

    With costs the net figures are beside the gross ones.
    """
    found, inside = asked.in_one_pass(
        store,
        funding_statistics.rows_window(asked.window),
        partial(carries, asked=asked.window, min_coverage=min_coverage),
        partial(settled_within, window=asked.window),
    )
    left_open = f"({format_ts(asked.window.start)}, {format_ts(asked.window.end)}]"
    if inside.is_empty():
        raise nothing_in(store, asked, left_open)
    asked.name_silent(inside["trajectory"], left_open)
    found = found.sort("trajectory")
    figures: Sequence[Figure] = [
        figure
        for figure in _FUNDING
        if figure[1] not in _SHOWN_ABOVE_0 or found[figure[1]].gt(0).any()
    ]
    figures = shown_where_odd(figures, found)
    columns: Sequence[TableColumn] = _FUNDING_COLUMNS
    if found["differential_n"].gt(0).any():
        figures = [*figures, *_IN_FORCE]
        columns = [*columns[:2], _IN_FORCE_COLUMN, *columns[2:]]
    notes = [*notes_of(found), *_uncovered(found)]
    if costs is not None:
        found = _net_carries(found, costs)
        figures = [*figures, *NET_FUNDING]
        columns = [*columns[:3], *NET_FUNDING_COLUMNS, *columns[3:]]
        notes += net_notes(found, costs)
    return Sheet(
        f"Funding received over {left_open}",
        store.source.label,
        found,
        columns,
        order="-funding_apr_pct",
        figures=figures,
        notes=notes,
    )


def _uncovered(found: pl.DataFrame) -> list[str]:
    """Say which least coverage would give the carry of all that have some."""
    low = found.filter(pl.col("coverage") > 0, carry_reason=Reason.LOW_COVERAGE.value)["coverage"]
    if low.is_empty():
        return []
    share = math.floor(min(low.to_list()) * 100) / 100
    return [f"a longer window, or --min-coverage {share:g}, gives the carry of {low.len()} more"]


def settled_within(rows: pl.DataFrame, window: Interval) -> pl.DataFrame:
    """Return the trajectories with a settlement in ``(start, end]``."""
    inside = pl.col("ts").is_between(*window, closed="right")
    return rows.filter(inside).select(pl.col("trajectory").unique())


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


def nothing_in(store: Store, asked: Asked, stretch: str) -> EmptyWindowError:
    """Return the error that the store has no row of what was asked for in a stretch of time."""
    held = {each.key for each in asked.held.values()}
    known = store.catalogue().filter(pl.col("stream").is_in(held)).drop_nulls("first_ts")
    times = [*known["first_ts"].to_list(), *known["last_ts"].to_list()]
    other = f"; held: {format_ts(min(times))} to {format_ts(max(times))}" if times else ""
    return EmptyWindowError(f"{store.name} holds nothing in {stretch} of {some(asked.keys)}{other}")


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
