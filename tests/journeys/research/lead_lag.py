"""Which of two legs moves first?"""

from __future__ import annotations

import polars as pl

import toolkit as tk


def main(store: str, pair: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    spread = tk.open(store).spread(pair)
    return spread.lead_lag(), spread.cross_correlation(max_lag_steps=5)
