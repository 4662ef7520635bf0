"""Funding that settled, and what prices brought: `rail stats funding` as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from toolkit.cli.fees import net_funding, net_funding_columns
from toolkit.cli.held import with_rows
from toolkit.cli.measured import shown_where_odd
from toolkit.columns import columns_of, names_for, schema_of
from toolkit.intervals import Interval
from toolkit.reasons import Reason
from toolkit.series.held_prices import HeldPrices
from toolkit.show.sheet import Sheet
from toolkit.statistics import funding as funding_statistics
from toolkit.statistics.carry_marks import FUNDING_ONLY
from toolkit.statistics.conditions import Schema
from toolkit.statistics.plausibility import notes_of
from toolkit.workspace.answers import Costs
from toolkit.workspace.selection import Selection

_FUNDING: tuple[str, ...] = (
    "n",
    "n_buy",
    "n_sell",
    "n_missed",
    "n_early",
    "n_changed",
    "n_declared_differs",
    "n_in_force",
    "n_duplicates",
    "buy_coverage",
    "sell_coverage",
    "coverage",
    "implausible",
    "buy_funding_bps",
    "sell_funding_bps",
    "funding_bps",
    "funding_apr_pct",
)
_CARRY: tuple[str, ...] = (
    "basis_bps",
    "carry_bps",
)

_SHOWN_ABOVE_0 = {"n_early", "n_declared_differs", "n_in_force", "n_duplicates"}
"""Counts of what is unusual: their line is left out where all are 0."""


_IN_FORCE: tuple[str, ...] = (
    "differential_n",
    "differential_basis",
    "differential_coverage",
    "differential_step_s",
    "differential_pct_8h_time_weighted_mean",
    "differential_apr_pct",
)
"""The figures of the service's own differential in force, of which these are the columns."""

_FUNDING_COLUMNS = (
    "trajectory",
    "funding_apr_pct",
    "funding_bps",
    "coverage",
    "n",
    "n_missed",
    "buy_funding_bps",
    "sell_funding_bps",
    "buy_coverage",
    "sell_coverage",
)
CARRY_COLUMNS = (
    "basis_bps",
    "carry_bps",
)
"""What prices brought, and what funding and prices did."""
_IN_FORCE_COLUMN = "differential_apr_pct"


def funding_columns() -> Schema:
    """Return the columns of carries and of rates kept from snapshots."""
    net = [
        each.name for each in columns_of("funding.net_summary") if not each.name.startswith("cost")
    ]
    only = [f"{FUNDING_ONLY}{name}" for name in net if name.startswith(("net_", "breakeven_"))]
    rates = names_for("spread.summary", "funding_apr_pct")
    also = (*only, "not_tracked", *rates)
    return schema_of("funding.summary", "funding.net_summary", also=also)


def _net_carries(found: pl.DataFrame, costs: Costs) -> pl.DataFrame:
    return funding_statistics.net_summary(
        found, costs.fees, notional=costs.notional, style=costs.style
    )


def funding_sheet(
    asked: Selection,
    min_coverage: float,
    costs: Costs | None = None,
    *,
    funding_only: bool = False,
) -> Sheet:
    """Sum funding and carry of trajectories in one pass over all their rows.

    With costs the net figures are beside the gross ones.
    """
    held = asked.prices
    prices = None if funding_only else held.at_ends(asked.keys, asked.window)
    options = {"min_coverage": min_coverage, "prices": prices, "funding_only": funding_only}
    found = with_rows(asked, asked.analysis(funding_statistics.summary, **options))[0]
    found = found.sort("trajectory")
    figures: Sequence[str] = [
        figure for figure in _FUNDING if figure not in _SHOWN_ABOVE_0 or found[figure].gt(0).any()
    ]
    figures = shown_where_odd(figures, found)
    columns: Sequence[str] = _FUNDING_COLUMNS
    if found["differential_n"].gt(0).any():
        figures = [*figures, *_IN_FORCE]
        columns = [*columns[:2], _IN_FORCE_COLUMN, *columns[2:]]
    notes = [*notes_of(found), *_uncovered(found), *priced_notes(held, found, asked.window)]
    if not funding_only:
        figures = [*figures, *_CARRY]
        columns = [*columns[:3], *CARRY_COLUMNS, *columns[3:]]
    if costs is not None:
        found = _net_carries(found, costs)
        figures = [*figures, *net_funding(funding_only=funding_only)]
        added = net_funding_columns(funding_only=funding_only)
        columns = [*columns[:3], *added, *columns[3:]]
        notes += costs.notes(found)
    of = "Funding only" if funding_only else "Funding received, and carry with prices,"
    return Sheet(
        f"{of} over {asked.stretch}",
        asked.store.source.label,
        found,
        columns,
        order="-funding_apr_pct",
        figures=figures,
        notes=notes,
    )


def _uncovered(found: pl.DataFrame) -> list[str]:
    """Say which least coverage would give the carry of all that have some."""
    few = {"funding_reason": Reason.LOW_COVERAGE.value}
    low = found.filter(pl.col("coverage") > 0, **few)["coverage"]
    if low.is_empty():
        return []
    share = math.floor(min(low.to_list()) * 100) / 100
    return [f"a longer window, or --min-coverage {share:g}, gives the funding of {low.len()} more"]


def priced_notes(held: HeldPrices, found: pl.DataFrame, window: Interval) -> list[str]:
    """Say of how many pairs prices lack, what loads them, and what leaves prices out."""
    return [f"{words}, --funding-only leaves prices out" for words in held.lacking(found, window)]
