"""How wide did a pair go, when, for how long, and what is left after four fills?"""

from __future__ import annotations

import polars as pl

import toolkit as tk


def main(store: str, pair: str, start: str, end: str, *, fill_bps: float = 10) -> pl.DataFrame:
    spread = tk.open(store).spread(pair, start, end)
    costs_bps = 4 * fill_bps
    widest = spread.df.sort(pl.col("spread_log_bps").abs(), nulls_last=False).row(-1, named=True)
    return spread.time_above(costs_bps).select(
        "n",
        "coverage",
        pl.lit(widest["time"]).alias("widest_at"),
        pl.lit(widest["spread_log_bps"]).alias("widest_log_bps"),
        pl.lit(abs(widest["spread_log_bps"]) - costs_bps).alias("left_bps"),
        "time_above_share",
        pl.lit(spread.episodes(costs_bps)["duration_s"].max()).alias("longest_s"),
    )
