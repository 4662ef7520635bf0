"""How wide did a pair go, when, for how long, and what is left after four fills?"""

from __future__ import annotations

import polars as pl

import toolkit as tk


def main(store: str, pair: str, start: str, end: str, *, fill_bps: float = 10) -> pl.DataFrame:
    episodes = tk.open(store).spread(pair, start, end).episodes(4 * fill_bps, absolute=True)
    left_bps = pl.col("peak_bps").abs() - 4 * fill_bps
    return episodes.with_columns(left_bps=left_bps).sort("left_bps", descending=True)
