"""The pair of a link, the figures of a pair, and its settlements as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from toolkit.charts.matrix import rate_in
from toolkit.columns import Column, column
from toolkit.dashboard.link import link_fault
from toolkit.dashboard.loads import command_words
from toolkit.errors import InputError
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory
from toolkit.reasons import Reason
from toolkit.show.values import heading_of, null_text, reason_of, reason_words, value_text
from toolkit.statistics.funding import intervals
from toolkit.statistics.funding.carry_marks import FUNDING_ONLY
from toolkit.store import held_key

COUNTED = (
    *("n_missed", "n_early", "n_changed"),
    *("n_declared_differs", "n_in_force", "n_duplicates"),
)
"""Counts of odd settlements in a window."""

_RESTS = ("n", "coverage")
_FIGURES = {
    "funding_bps": _RESTS,
    "funding_apr_pct": _RESTS,
    "basis_bps": _RESTS,
    "carry_bps": _RESTS,
    "net_carry_bps": ("net_carry_at_half_cost_bps", "net_carry_at_twice_cost_bps"),
    "net_apr_pct": ("net_apr_at_half_cost_pct", "net_apr_at_twice_cost_pct"),
    "breakeven_days": ("funding_apr_pct",),
    "breakeven_bps": ("cost_bps",),
    "buy_funding_bps": ("n_buy", "buy_coverage"),
    "sell_funding_bps": ("n_sell", "sell_coverage"),
}
"""The figures of a pair, and the basis of each."""

Figure = tuple[str, str, str]
"""The heading of a figure, its value, and its basis or why it is null."""

_FLAGS = {
    "declared_differs": "not the declared interval",
    "missed": "one before it is missing",
    "early": "before its interval was over",
}
_AGAIN = "sent again, counted once"
_HIGH = "a rate above 5 % is not plausible"


def read_pair(key: str | None, held: Sequence[str]) -> tuple[str | None, list[Markdown]]:
    """Return the funding pair of a link, and the link's faults.

    A pair stored in the other orientation is shown as in the link, one not stored is None. Without
    a pair the first stored one is taken.
    """
    if key is None:
        return (held[0] if held else None), []
    asked = f"trajectory={key}"
    try:
        pair = Trajectory.parse(key, Family.FUNDING)
    except InputError as error:
        no_pair = Markdown(", which is not a pair (allowed: {}).")
        return None, [link_fault(asked, no_pair, error.allowed)]
    if held_key(pair.key, held) is not None:
        return pair.key, []
    not_held = Markdown("; its funding is not in this store ({} loads it).")
    return None, [link_fault(asked, not_held, command_words("sync", pair.key))]


def kept_legs(streams: pl.DataFrame) -> pl.DataFrame:
    """List the legs with rates from snapshots of which no pair has settled rates.

    ``streams`` is `Store.catalogue`. Columns: its own, symbol and leg.

    >>> keys = ["funding/A_B:X.futures:Y.futures", "snapshot-funding/A_B:X.futures",
    ...         "snapshot-funding/A_B:Z.futures"]
    >>> kinds = ["funding", "snapshot-funding", "snapshot-funding"]
    >>> streams = pl.DataFrame({"stream": keys, "kind": kinds, "rows": [3, 9, 9]})
    >>> kept_legs(streams).select("symbol", "leg").rows()
    [('A_B', 'Z.futures')]
    """
    pairs = streams.filter(pl.col("rows") > 0, kind=Family.FUNDING.value)["stream"]
    settled = {f"{pair.symbol}:{leg}" for pair in map(Trajectory.parse, pairs) for leg in pair.legs}
    key = pl.col("stream").str.strip_prefix("snapshot-funding/")
    names = key.str.split_exact(":", 1).struct.rename_fields(["symbol", "leg"]).alias("names")
    kept = streams.filter(~key.is_in(list(settled)), kind="snapshot-funding")
    return kept.with_columns(names).unnest("names").sort("stream")


def pair_figures(row: Mapping[str, Any], unit: str) -> list[Figure]:
    """Return the figures of a row of `toolkit.statistics.funding.summary`, or of `net_summary`."""
    return [
        _figure(row, f"{only}{name}", [f"{only}{each}" for each in rests], unit)
        for name, rests in _FIGURES.items()
        for only in ("", FUNDING_ONLY)
        if f"{only}{name}" in row
    ]


def _figure(row: Mapping[str, Any], name: str, rests: Sequence[str], unit: str) -> Figure:
    def shown(name: str) -> tuple[Any, Column]:
        of_unit, times = rate_in(name, unit) if "apr_" in name else (name, 1)
        value = row[name] and times * row[name]
        return value, column(of_unit, "funding.summary")

    value, one = shown(name)
    if value is None:
        return heading_of(one), null_text(row, name), why_null(row, name)
    known = [shown(each if each in row else each.removeprefix(FUNDING_ONLY)) for each in rests]
    parts = (f"{of.short} {value_text(each, of, unit=True)}" for each, of in known)
    return heading_of(one), value_text(value, one), ", ".join(parts)


def why_null(row: Mapping[str, Any], name: str) -> str:
    """Return why a figure of a pair is null, for a net one also what the fee table lacks.

    >>> row = {"net_carry_bps": None, "net_carry_reason": "unknown_fee", "cost_lacks": "X.spot"}
    >>> why_null(row, "net_carry_bps")
    'the fee table lacks X.spot'
    """
    unknown = reason_of(row, name) == Reason.UNKNOWN_FEE and row.get("cost_lacks")
    return f"the fee table lacks {row['cost_lacks']}" if unknown else reason_words(row, name)


def money_text(bps: float, notional: float) -> str:
    """Format bps of a notional in the quote currency."""
    return value_text(1e-4 * notional * bps, column("kept_quote"))


def settlements(rows: pl.DataFrame, window: Interval) -> pl.DataFrame:
    """Return `toolkit.statistics.funding.intervals` in ``(start, end]``, by time."""
    inside = pl.col("ts").is_between(*window, closed="right")
    return intervals(rows).filter(inside).sort("ts", "leg")


def settlement_table(settled: pl.DataFrame) -> pl.DataFrame:
    """Return `settlements`, newest first, with a ``remark`` on odd ones.

    >>> rows = pl.DataFrame({"trajectory": ["a"] * 2, "ts": [0, 28800], "buy_rate": [0.0] * 2,
    ...     "sell_rate": [0.25] * 2, "buy_interval_hours": [None] * 2,
    ...     "sell_interval_hours": [8.0] * 2})
    >>> settlement_table(settlements(rows, Interval(0, 28800)))["remark"].to_list()
    ['a rate above 5 % is not plausible']
    """
    flags = pl.col("interval_flag").replace_strict(_FLAGS, default=None, return_dtype=pl.String)
    again = pl.when(pl.col("n_duplicates") > 0).then(pl.lit(_AGAIN))
    high = pl.when(pl.col("rate_flag").is_not_null()).then(pl.lit(_HIGH))
    remarks = pl.concat_str(flags, again, high, separator="; ", ignore_nulls=True)
    return settled.sort("ts", "leg", descending=[True, False]).with_columns(
        remark=pl.when(remarks != "").then(remarks)
    )
