"""Tables of how funding behaves: how long its sign lasts, and how far venues are apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import polars as pl

from toolkit.cli.held import with_rows
from toolkit.cli.received import priced_notes
from toolkit.columns import columns_of, schema_of
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.show.sheet import Sheet
from toolkit.statistics import funding
from toolkit.statistics import funding as funding_statistics
from toolkit.statistics.carry_marks import FUNDING_ONLY, LegPrices
from toolkit.statistics.conditions import Schema
from toolkit.statistics.passes import Analysis
from toolkit.workspace.answers import Costs
from toolkit.workspace.selection import Selection

_DISPERSION_COLUMNS = (
    "symbol",
    "range_mean_apr_pct",
    "std_mean_apr_pct",
    "n_venues",
    "coverage",
    "iqr_mean_apr_pct",
    "range_median_apr_pct",
    "range_q95_apr_pct",
    "n",
)


def dispersion_columns() -> Schema:
    """Return the columns of `toolkit.statistics.funding.dispersion_summary`."""
    return schema_of("funding.dispersion_summary")


def dispersion_sheet(asked: Selection, bucket: str, min_coverage: float) -> Sheet:
    """Measure how far venues are apart, from each leg once, whatever pairs it is part of."""
    legs = funding.legs(_of_settlements(asked, funding.legs))
    found = funding.dispersion_summary(
        legs, *asked.window, bucket=bucket, min_coverage=min_coverage
    )
    return Sheet(
        f"Funding of the venues of a symbol, highest less lowest, per {bucket} of {asked.window}",
        asked.store.source.label,
        found,
        _DISPERSION_COLUMNS,
        order="-range_mean_apr_pct",
    )


def _of_settlements(asked: Selection, measure: Analysis) -> pl.DataFrame:
    """Measure settlements some trajectories at a time, and name those without any."""
    if asked.polls is not None:
        named = ", ".join(each.key for each in asked.held)
        raise InputError("trajectories", named, "pairs, which settle: a rate in force pays nothing")
    return with_rows(asked, measure)[0]


_NET_COLUMNS = (
    "net_median_bps",
    "net_positive_share",
    "breakeven_median_h",
    "net_apr_median_pct",
)


def _columns(*, funding_only: bool, net: bool) -> list[str]:
    """Return the columns: of gross figures with prices, or of funding alone, which is named so."""
    of, only = ("funding", FUNDING_ONLY) if funding_only else ("gross", "")
    return [
        "trajectory",
        "horizon_s",
        f"{of}_median_bps",
        *(f"{only}{name}" for name in _NET_COLUMNS if net),
        *(f"{of}_{name}_bps" for name in ("q05", "q95")),
        *([] if funding_only else ["funding_median_bps", "basis_mean_bps"]),
        "n",
        "coverage",
        *(f"{of}_{name}_bps" for name in ("mean", "mean_lower", "mean_upper")),
        f"{only}drawdown_median_bps",
    ]


class Entered(NamedTuple):
    """How positions are held: for how long, how far apart, and with what becomes of receipts.

    ``funding_only`` leaves prices out.
    """

    horizons: Sequence[str]
    every: str
    compound: bool
    funding_only: bool = False


def carry_columns() -> Schema:
    """Return the columns of holdings, of both modes."""
    of_prices = ("net_", "breakeven_", "drawdown_")
    names = [each.name for each in columns_of("funding.holdings")]
    only = [f"{FUNDING_ONLY}{name}" for name in names if name.startswith(of_prices)]
    return schema_of("funding.holdings", also=only)


def carry_sheet(asked: Selection, entered: Entered, costs: Costs | None, *, legs: bool) -> Sheet:
    """Hold the positions from each entry on, in one pass over all their rows.

    With ``legs`` a position is short one leg alone, of each that the pairs have: of these there is
    funding only.
    """
    entered = entered._replace(funding_only=entered.funding_only or legs)
    held = asked.prices
    prices: LegPrices | Callable[[pl.Series], LegPrices] | None = None
    if not entered.funding_only:
        # workers have no store: they are given what they need
        prices = partial(held.over, window=asked.window)
        prices = prices(asked.keys) if asked.passes.cluster else prices
    measure = partial(_held, window=asked.window, entered=entered, costs=costs, prices=prices)
    found = with_rows(asked, funding_statistics.legs if legs else measure)[0]
    if legs:
        found = measure(funding_statistics.legs(found))
    kept = "Funding only, kept by" if entered.funding_only else "Kept with prices by"
    return Sheet(
        kept
        + (" short positions of one leg alone" if legs else " positions")
        + f" entered each {entered.every} of {asked.stretch}, "
        + ("compounded, " if entered.compound else "")
        + (costs.heading if costs else "before fees"),
        asked.store.source.label,
        found,
        _columns(funding_only=entered.funding_only, net=costs is not None),
        order="trajectory",
        notes=priced_notes(held, found, asked.window),
    )


def _held(
    rows: pl.DataFrame,
    window: Interval,
    entered: Entered,
    costs: Costs | None,
    prices: LegPrices | Callable[[pl.Series], LegPrices] | None = None,
) -> pl.DataFrame:
    known = prices(rows["trajectory"].unique()) if callable(prices) else prices
    measure = partial(funding_statistics.holdings, rows, *window, **entered._asdict(), prices=known)
    return measure(**costs.arguments) if costs else measure()
