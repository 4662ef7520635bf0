"""Save what was found, share the chart as one file, and run it again as it was known then."""

from __future__ import annotations

from pathlib import Path

import toolkit as tk


def main(store: str, pair: str, folder: Path, as_of: int | None = None) -> str:
    rail = tk.open(store) if as_of is None else tk.open(store).as_of(as_of)
    spread = rail.spread(pair)
    spread.save(folder / "spread.parquet")
    spread.plot().write_html(folder / "spread.html")
    spread.pandas()["spread_log_bps"].describe()
    return spread.data_hash
