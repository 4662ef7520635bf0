"""Statistics of what a store holds, as tables: computed in one pass over all that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from toolkit.cards import counted, some
from toolkit.cli.event_logs import Logs
from toolkit.cli.fees import (
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
from toolkit.statistics import spread as spread_statistics
from toolkit.statistics.conditions import Schema
from toolkit.statistics.contract import beside
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
    ("fit of one speed and noise, p", "fit_p_value", "plain"),
    ("autocorrelation halves after", "acf_half_lag_s", "s"),
    ("half-life without spikes", "half_life_without_spikes_s", "s"),
    ("spikes, share of the variance", "spike_share", "share"),
    ("autocorrelation it misses by", "half_life_acf_error", "plain"),
    ("AR(1) coefficient", "ar1_phi", "plain"),
    ("half-life by the AR(1)", "half_life_ar1_s", "s"),
    ("autocorrelation that misses by", "half_life_ar1_acf_error", "plain"),
    ("AR(1) outside the 95 %", "half_lives_differ", "flag"),
)


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
    TableColumn("autocorrelation halves", "acf_half_lag_s", "s"),
    TableColumn("without spikes", "half_life_without_spikes_s", "s"),
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
        rates_in_force,
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


def rates_in_force(rows: pl.DataFrame, window: Interval, step_s: int | None) -> pl.DataFrame:
    """Measure rates in force, in percent a year."""
    column = "funding_apr_pct"
    return spread_statistics.summary(with_apr(rows), *window, column=column, step_s=step_s)


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
