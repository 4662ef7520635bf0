"""How does a price move in the 30 minutes around the splashes of its leg?

A price is used from when it was known, so that no bar looks into the splash.
"""

from __future__ import annotations

import polars as pl

import toolkit as tk


def main(store: str, leg: str, *, minutes: int = 30) -> pl.DataFrame:
    rail = tk.open(store)
    symbol, _, place = leg.partition(":")
    opened = rail.events("splash").lifecycles().filter(symbol=symbol, legs=place)
    prices = rail.prices(leg).df.select("known_at", "price").sort("known_at")
    around = (
        opened.drop_nulls("t_open")
        .select(
            "event", at=pl.from_epoch("t_open").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        )
        .join(pl.DataFrame({"minute": range(-minutes, minutes + 1)}), how="cross")
        .with_columns(known_at=pl.col("at") + pl.duration(minutes="minute"))
        .sort("known_at")
        .join_asof(prices, on="known_at", strategy="backward", tolerance="3m")
        .sort("event", "at", "minute")
    )
    start = pl.col("price").filter(pl.col("minute") == 0).first().over("event", "at")
    moved = around.with_columns(move_bps=1e4 * (pl.col("price") / start).log()).drop_nulls(
        "move_bps"
    )
    return (
        moved.group_by("minute")
        .agg(
            n=pl.len(),
            mean_abs_bps=pl.col("move_bps").abs().mean(),
            mean_bps=pl.col("move_bps").mean(),
        )
        .sort("minute")
    )
