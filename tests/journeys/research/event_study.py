"""How does a price move in the 30 minutes around the splashes of its leg?"""

from __future__ import annotations

import polars as pl

import toolkit as tk


def main(store: str) -> pl.DataFrame:
    rail = tk.open(store)
    splashes = rail.events("splash")
    rows, found = rail.around(splashes), splashes.detections()
    return tk.statistics.events.study(found, rows, before_s=1_800, after_s=1_800)
