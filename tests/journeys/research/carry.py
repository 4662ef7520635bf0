"""What did holding a funding pair earn, over all times at which it could have been entered?"""

from __future__ import annotations

import polars as pl

import toolkit as tk


def main(store: str, fees: str, pairs: list[str], start: str, end: str) -> list[pl.DataFrame]:
    rail, only = tk.open(store, window=(start, end), fees=fees), {"funding_only": True}
    series = [rail.funding(pair) for pair in pairs]
    earned = pl.concat(each.summary(**only) for each in series)  # what was received, APR
    steady = pl.concat(each.persistence() for each in series)  # flips, share positive
    return [earned, steady, pl.concat(each.holdings(**only) for each in series)]  # break even
