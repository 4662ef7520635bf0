"""The table of what funding positions kept, by how long they were held."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import polars as pl

from toolkit.cli.fees import Costs
from toolkit.cli.held import Asked
from toolkit.cli.measured import no_rows, settled_within
from toolkit.cli.tables import Sheet, TableColumn
from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval
from toolkit.market import format_ts
from toolkit.statistics import funding as funding_statistics
from toolkit.statistics.conditions import Schema
from toolkit.statistics.passes import in_one_pass
from toolkit.store import Store

_NET_COLUMNS = (
    TableColumn("net bps", "net_median_bps", "bps"),
    TableColumn("net > 0", "net_positive_share", "share"),
    TableColumn("even after h", "breakeven_median_h", "plain"),
    TableColumn("net APR %", "net_apr_median_pct", "%"),
)
_COLUMNS = (
    TableColumn("trajectory", "trajectory", "text"),
    TableColumn("held", "horizon_s", "s"),
    TableColumn("median bps", "gross_median_bps", "bps"),
    TableColumn("5 % bps", "gross_q05_bps", "bps"),
    TableColumn("95 % bps", "gross_q95_bps", "bps"),
    TableColumn("entries", "n", "count"),
    TableColumn("coverage", "coverage", "share"),
    TableColumn("mean bps", "gross_mean_bps", "bps"),
    TableColumn("mean from", "gross_mean_lower_bps", "bps"),
    TableColumn("to", "gross_mean_upper_bps", "bps"),
    TableColumn("fall, median bps", "drawdown_median_bps", "bps"),
)


class Entered(NamedTuple):
    """How positions are held: for how long, how far apart, and with what becomes of receipts."""

    horizons: Sequence[str]
    every: str
    compound: bool


def carry_columns() -> Schema:
    """Return the columns of holdings."""
    hourly = Entered(["1h"], "1h", compound=False)
    return _held(no_rows("funding"), Interval(0, 1), hourly, None).schema


def carry_sheet(
    store: Store, asked: Asked, entered: Entered, costs: Costs | None, *, legs: bool
) -> Sheet:
    """Hold the positions from each entry on, in one pass over all their rows.

    With ``legs`` a position is short one leg alone, of each that the pairs have.
    """
    read = funding_statistics.rows_window(asked.window)
    measures = (
        partial(_held, window=asked.window, entered=entered, costs=costs),
        partial(settled_within, window=asked.window),
    )
    if legs:
        settlements = asked.in_one_pass(store, read, funding_statistics.legs)[0]
        found, settled = in_one_pass([funding_statistics.legs(settlements)], *measures)
    else:
        found, settled = asked.in_one_pass(store, read, *measures)
    left_open = f"({format_ts(asked.window.start)}, {format_ts(asked.window.end)}]"
    if settled.is_empty():
        raise EmptyWindowError(f"{store.path} holds no settlement in {left_open}")
    if not legs:
        asked.name_silent(settled["trajectory"], left_open)
    return Sheet(
        ("Funding kept short one leg alone, by" if legs else "Funding kept by")
        + f" positions entered each {entered.every} of {left_open}, "
        + ("compounded, " if entered.compound else "")
        + (costs.heading if costs else "before fees"),
        store.source.label,
        found,
        (*_COLUMNS[:3], *_NET_COLUMNS, *_COLUMNS[3:]) if costs else _COLUMNS,
        order="trajectory",
    )


def _held(
    rows: pl.DataFrame, window: Interval, entered: Entered, costs: Costs | None
) -> pl.DataFrame:
    measure = partial(funding_statistics.holdings, rows, *window, **entered._asdict())
    return measure(**costs.arguments) if costs else measure()
