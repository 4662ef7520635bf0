"""Net figures beside gross ones: which lines and columns of tables they are, and their notes."""

from __future__ import annotations

from collections import Counter

import polars as pl

from toolkit.cards import counted
from toolkit.cli.fees import Costs
from toolkit.cli.figures import Figure
from toolkit.cli.tables import TableColumn

_MOST_NAMED = 5

NET_SPREAD: tuple[Figure, ...] = (
    ("round trip cost", "cost_bps", "bps"),
    ("mean distance before cost", "gross_mean_bps", "bps"),
    ("95 % quantile before cost", "gross_q95_bps", "bps"),
    ("break-even fee per fill, at the mean", "breakeven_bps", "bps"),
    ("break-even fee per fill, at 95 %", "breakeven_q95_bps", "bps"),
    ("time beyond the cost", "net_share", "share"),
    ("time beyond half the cost", "net_share_at_half_cost", "share"),
    ("time beyond twice the cost", "net_share_at_twice_cost", "share"),
    ("net mean of that time", "net_mean_bps", "bps"),
    ("net mean at half the cost", "net_mean_at_half_cost_bps", "bps"),
    ("net mean at twice the cost", "net_mean_at_twice_cost_bps", "bps"),
    ("net median of all time", "net_q50_bps", "bps"),
    ("net 95 % quantile", "net_q95_bps", "bps"),
    ("net 99 % quantile", "net_q99_bps", "bps"),
)
"""The lines of `toolkit.statistics.spread.net_summary`."""

NET_SPREAD_COLUMNS = (
    TableColumn("cost bps", "cost_bps", "bps"),
    TableColumn("net % of time", "net_share", "share"),
    TableColumn("net mean bps", "net_mean_bps", "bps"),
)
NET_FUNDING: tuple[Figure, ...] = (
    ("round trip cost", "cost_bps", "bps"),
    ("break-even fee per fill", "breakeven_bps", "bps"),
    ("net carry after one round trip", "net_carry_bps", "bps"),
    ("net carry at half the cost", "net_carry_at_half_cost_bps", "bps"),
    ("net carry at twice the cost", "net_carry_at_twice_cost_bps", "bps"),
    ("net APR over the window", "net_apr_pct", "%"),
    ("net APR at half the cost", "net_apr_at_half_cost_pct", "%"),
    ("net APR at twice the cost", "net_apr_at_twice_cost_pct", "%"),
    ("days to break even at the mean rate", "breakeven_days", "days"),
)
"""The lines of `toolkit.statistics.funding.net_summary`."""

NET_FUNDING_COLUMNS = (
    TableColumn("net APR %", "net_apr_pct", "%"),
    TableColumn("net bps", "net_carry_bps", "bps"),
    TableColumn("break-even days", "breakeven_days", "days"),
)


def net_notes(found: pl.DataFrame, costs: Costs) -> list[str]:
    """Return the lines below net figures: by which table they are, and what it lacks."""
    lacks = Counter(
        lack for words in found["cost_lacks"].drop_nulls() for lack in words.split(", ")
    )
    named = [
        f"{lack} ({counted(number, 'row')})" for lack, number in lacks.most_common(_MOST_NAMED)
    ]
    named += [f"{len(lacks) - _MOST_NAMED} more"] if len(lacks) > _MOST_NAMED else []
    return [costs.heading, *([f"the fee table lacks {', '.join(named)}"] if named else [])]
