"""By how many steps is a vendor's CSV of closes shifted against a stored price?"""

from __future__ import annotations

import polars as pl

import toolkit as tk


def main(store: str, leg: str, csv: str) -> pl.DataFrame:
    symbol = leg.partition(":")[0]
    vendor = tk.series.own_series(csv, f"{symbol}:VENDOR.spot", columns={"price": "close"})
    return tk.open(store).pair(leg, vendor).flags()
