"""Tables of how funding behaves: how long its sign lasts, and how far venues are apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import polars as pl

from toolkit.cli.fees import Costs
from toolkit.cli.figures import Figure
from toolkit.cli.held import Asked
from toolkit.cli.measured import no_rows
from toolkit.cli.received import priced_notes, settled_within
from toolkit.cli.tables import Sheet, TableColumn
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import format_ts
from toolkit.series.held_prices import HeldPrices
from toolkit.statistics import funding
from toolkit.statistics import funding as funding_statistics
from toolkit.statistics.carry_marks import FUNDING_ONLY, LegPrices
from toolkit.statistics.conditions import Schema
from toolkit.statistics.passes import Analysis, in_one_pass
from toolkit.store import Store

_PERSISTENCE: tuple[Figure, ...] = (
    ("stretches between settlements", "n", "count"),
    ("coverage", "coverage", "share"),
    ("time above the band", "positive_share", "share"),
    ("time below the band", "negative_share", "share"),
    ("time in the band", "within_band_share", "share"),
    ("flips of the sign", "flips", "count"),
    ("flips per day", "flips_per_day", "plain"),
    ("longest time of one sign", "longest_run_s", "s"),
    ("its begin or end was not seen", "longest_run_censored", "flag"),
    ("same sign at the next settlement", "same_sign_share", "share"),
    ("whole buckets of 8 h", "n_8h", "count"),
    ("autocorrelation at 8 h", "acf_8h", "plain"),
    ("autocorrelation at 24 h", "acf_24h", "plain"),
    ("autocorrelation at 72 h", "acf_72h", "plain"),
    ("carry to noise, a year", "carry_to_noise", "plain"),
    ("leg bought at a cap", "buy_at_cap_share", "share"),
    ("leg sold at a cap", "sell_at_cap_share", "share"),
    ("leg bought at the baseline", "buy_at_baseline_share", "share"),
    ("leg sold at the baseline", "sell_at_baseline_share", "share"),
)
_PERSISTENCE_COLUMNS = (
    TableColumn("trajectory", "trajectory", "text"),
    TableColumn("carry/noise", "carry_to_noise", "plain"),
    TableColumn("positive", "positive_share", "share"),
    TableColumn("flips/day", "flips_per_day", "plain"),
    TableColumn("longest run", "longest_run_s", "s"),
    TableColumn("coverage", "coverage", "share"),
    TableColumn("same next", "same_sign_share", "share"),
    TableColumn("acf 8 h", "acf_8h", "plain"),
    TableColumn("acf 24 h", "acf_24h", "plain"),
    TableColumn("acf 72 h", "acf_72h", "plain"),
    TableColumn("at a cap", "at_cap_share", "share"),
    TableColumn("at baseline", "at_baseline_share", "share"),
    TableColumn("n", "n", "count"),
)
_DISPERSION_COLUMNS = (
    TableColumn("symbol", "symbol", "text"),
    TableColumn("range APR %", "range_mean_apr_pct", "%"),
    TableColumn("sd APR %", "std_mean_apr_pct", "%"),
    TableColumn("venues", "n_venues", "count"),
    TableColumn("coverage", "coverage", "share"),
    TableColumn("IQR APR %", "iqr_mean_apr_pct", "%"),
    TableColumn("median range", "range_median_apr_pct", "%"),
    TableColumn("95 % range", "range_q95_apr_pct", "%"),
    TableColumn("n", "n", "count"),
)


def persistence_columns() -> Schema:
    """Return the columns of `toolkit.statistics.funding.persistence`."""
    return funding.persistence(no_rows("funding"), 0, 1).schema


def dispersion_columns() -> Schema:
    """Return the columns of `toolkit.statistics.funding.dispersion_summary`."""
    return funding.dispersion_summary(no_rows("funding"), 0, 1).schema


def persistence_sheet(store: Store, asked: Asked, band_apr_pct: float) -> Sheet:
    """Measure how long funding keeps its sign, in one pass over all rows."""
    found = _of_settlements(
        store,
        asked,
        partial(_persistence, window=asked.window, band_apr_pct=band_apr_pct),
    )
    band = f", beyond {band_apr_pct:g} % a year" if band_apr_pct else ""
    return Sheet(
        f"Signs of the funding in force, sell less buy, over {asked.window}{band}",
        store.source.label,
        found.sort("trajectory"),
        _PERSISTENCE_COLUMNS,
        order="-carry_to_noise",
        figures=_PERSISTENCE,
    )


def _persistence(rows: pl.DataFrame, window: Interval, band_apr_pct: float) -> pl.DataFrame:
    return funding.persistence(rows, *window, band_apr_pct=band_apr_pct)


def dispersion_sheet(store: Store, asked: Asked, bucket: str, min_coverage: float) -> Sheet:
    """Measure how far venues are apart, from each leg once, whatever pairs it is part of."""
    legs = funding.legs(_of_settlements(store, asked, funding.legs))
    found = funding.dispersion_summary(
        legs, *asked.window, bucket=bucket, min_coverage=min_coverage
    )
    return Sheet(
        f"Funding of the venues of a symbol, highest less lowest, per {bucket} of {asked.window}",
        store.source.label,
        found,
        _DISPERSION_COLUMNS,
        order="-range_mean_apr_pct",
    )


def _of_settlements(store: Store, asked: Asked, measure: Analysis) -> pl.DataFrame:
    """Measure settlements some trajectories at a time, and name those without any."""
    if asked.polls is not None:
        named = ", ".join(each.key for each in asked.held)
        raise InputError("trajectories", named, "pairs, which settle: a rate in force pays nothing")
    settled = partial(settled_within, window=asked.window)
    read = funding.rows_window(asked.window)
    found, silent = asked.in_one_pass(store, read, measure, settled)
    if silent.is_empty():
        raise EmptyWindowError(f"{store.path} holds no settlement in {asked.window}")
    asked.name_silent(silent["trajectory"], str(asked.window))
    return found


_NET_COLUMNS = (
    ("net bps", "net_median_bps", "bps"),
    ("net > 0", "net_positive_share", "share"),
    ("even after h", "breakeven_median_h", "plain"),
    ("net APR %", "net_apr_median_pct", "%"),
)


def _columns(*, funding_only: bool, net: bool) -> list[TableColumn]:
    """Return the columns: of gross figures with prices, or of funding alone, which is named so."""
    words, of, only = ("funding", "funding", FUNDING_ONLY) if funding_only else ("", "gross", "")
    apart = [
        TableColumn("funding, median", "funding_median_bps", "bps"),
        TableColumn("basis, mean", "basis_mean_bps", "bps"),
    ]
    named = [
        TableColumn(f"funding only {label}" if only else label, f"{only}{name}", unit)
        for label, name, unit in _NET_COLUMNS
    ]
    return [
        TableColumn("trajectory", "trajectory", "text"),
        TableColumn("held", "horizon_s", "s"),
        TableColumn(f"{words} median bps".strip(), f"{of}_median_bps", "bps"),
        *(named if net else []),
        TableColumn(f"{words} 5 % bps".strip(), f"{of}_q05_bps", "bps"),
        TableColumn(f"{words} 95 % bps".strip(), f"{of}_q95_bps", "bps"),
        *([] if funding_only else apart),
        TableColumn("entries", "n", "count"),
        TableColumn("coverage", "coverage", "share"),
        TableColumn(f"{words} mean bps".strip(), f"{of}_mean_bps", "bps"),
        TableColumn("mean from", f"{of}_mean_lower_bps", "bps"),
        TableColumn("to", f"{of}_mean_upper_bps", "bps"),
        TableColumn("fall, median bps", f"{only}drawdown_median_bps", "bps"),
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
    modes: Schema = {}
    for only in (True, False):
        hourly = Entered(["1h"], "1h", compound=False, funding_only=only)
        found = _held(no_rows("funding"), Interval(0, 1), hourly, None)
        modes = {**modes, **found.schema}
    return modes


def carry_sheet(
    store: Store, asked: Asked, entered: Entered, costs: Costs | None, *, legs: bool
) -> Sheet:
    """Hold the positions from each entry on, in one pass over all their rows.

    With ``legs`` a position is short one leg alone, of each that the pairs have: of these there is
    funding only.
    """
    entered = entered._replace(funding_only=entered.funding_only or legs)
    read = funding_statistics.rows_window(asked.window)
    held, on_cluster = HeldPrices(store), asked.passes is not None and asked.passes.cluster
    prices: LegPrices | Callable[[pl.Series], LegPrices] | None = None
    if not entered.funding_only:
        # workers have no store: they are given what they need
        prices = partial(held.over, window=asked.window)
        prices = prices(asked.keys) if on_cluster else prices
    measures = (
        partial(_held, window=asked.window, entered=entered, costs=costs, prices=prices),
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
    kept = "Funding only, kept by" if entered.funding_only else "Kept with prices by"
    return Sheet(
        kept
        + (" short positions of one leg alone" if legs else " positions")
        + f" entered each {entered.every} of {left_open}, "
        + ("compounded, " if entered.compound else "")
        + (costs.heading if costs else "before fees"),
        store.source.label,
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
