"""Which of all the spreads that are held return within the hour, and how often are they wide?"""

from __future__ import annotations

import polars as pl

import toolkit as tk


def main(store: str, *, half_life_s: float = 3_600, coverage: float = 0.95) -> pl.DataFrame:
    rail = tk.open(store)
    keys = rail.store.catalogue().filter(pl.col("rows") > 0, kind="spread")["stream"]
    spreads = [rail.spread(key) for key in keys]
    found = pl.concat(each.summary() for each in spreads).join(
        pl.concat(each.time_above(10) for each in spreads).select("trajectory", "time_above_share"),
        on="trajectory",
    )
    return found.filter(pl.col("half_life_s") < half_life_s, pl.col("coverage") > coverage).sort(
        "time_above_share", descending=True
    )
