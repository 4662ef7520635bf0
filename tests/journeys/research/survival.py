"""How long do spread events last, by pair and by hour of the day?"""

from __future__ import annotations

import polars as pl

import toolkit as tk


def main(store: str, by: str = "legs") -> pl.DataFrame:
    lives = tk.open(store).events("spread").lifecycles()
    hour = (pl.col("t_open") // 3_600 % 24).alias("hour")
    return tk.statistics.survival.median_life(lives.with_columns(hour), ["symbol", by]).sort(
        "median_life_s", descending=True, nulls_last=True
    )
