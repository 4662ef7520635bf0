"""What did holding a funding pair earn, and how often did it change its sign?"""

from __future__ import annotations

import polars as pl

import toolkit as tk


def main(store: str, pairs: list[str], start: str, end: str) -> pl.DataFrame:
    rail = tk.open(store, window=(start, end))
    series = [rail.funding(pair) for pair in pairs]
    flips = (
        pl.concat(each.carry() for each in series)
        .group_by("trajectory")
        .agg(
            flips=(pl.col("payment_bps").sign().diff().abs() == 2).sum(),
            positive_share=(pl.col("payment_bps") > 0).mean(),
        )
    )
    return (
        pl.concat(each.summary() for each in series)
        .select("trajectory", "n", "coverage", "carry_bps", "funding_apr_pct")
        .join(flips, on="trajectory")
        .sort("carry_bps", descending=True)
    )
