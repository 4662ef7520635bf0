"""By how many steps is a vendor's CSV of closes shifted against a stored price?"""

from __future__ import annotations

import polars as pl

import toolkit as tk


def main(store: str, leg: str, csv: str, *, steps: int = 3) -> pl.DataFrame:
    held = tk.open(store).prices(leg)
    vendor = pl.read_csv(csv).select("ts", vendor_price="close")
    step_s = held.coverage()["step_s"].item()
    found = []
    for shift in range(-steps, steps + 1):
        moved = vendor.with_columns(pl.col("ts") + shift * step_s)
        both = held.df.join(moved, on="ts")
        error = 1e4 * (pl.col("vendor_price") / pl.col("price")).log()
        found.append(
            both.select(
                pl.lit(shift).alias("steps"),
                pl.len().alias("n"),
                error.abs().mean().alias("error_bps"),
            )
        )
    return pl.concat(found).sort("error_bps")
