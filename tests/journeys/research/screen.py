"""Which of all the spreads that are held return within the hour, and what do they leave net?"""

from __future__ import annotations

import polars as pl

import toolkit as tk


def main(store: str, fees: str) -> pl.DataFrame:
    rail = tk.open(store, fees=fees)
    return rail.screen(where="half_life_s < 3600 and coverage > 0.95", sort="-net_edge_bps")
