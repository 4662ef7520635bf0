"""Which of two legs moves first? Correlation of their minute returns at each lag."""

from __future__ import annotations

import polars as pl

import toolkit as tk


def main(store: str, pair: str, *, lags: int = 5) -> pl.DataFrame:
    rows = tk.open(store).spread(pair).df.select("ts", "buy_price", "sell_price").sort("ts")
    step = pl.col("ts").diff() == pl.col("ts").diff().mode().first()
    returns = rows.select(
        "ts",
        buy=pl.when(step).then(pl.col("buy_price").log().diff()),
        sell=pl.when(step).then(pl.col("sell_price").log().diff()),
    )
    found = [
        returns.select(
            lag_minutes=pl.lit(lag), correlation=pl.corr("buy", pl.col("sell").shift(-lag))
        )
        for lag in range(-lags, lags + 1)
    ]
    return pl.concat(found).sort(pl.col("correlation").abs(), descending=True)
