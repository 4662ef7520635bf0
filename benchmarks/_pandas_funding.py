"""What the toolkit's analyses of funding are in plain pandas, and the figures that have to agree.

Each reads the Parquet file of `benchmarks._walks`: the buy leg settles each hour and the sell leg
each 8 h, and no settlement is missing. The toolkit finds intervals, gaps and cover by itself. Its
further figures (autocorrelations, caps, drawdowns, bands, coverage) have no peer, so that
pandas does less.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

from benchmarks._walks import HOUR_S, START

_APR = 100 * 8760
_HORIZONS_H = (1, 8, 24, 72, 168, 720)


def _rows(folder: Path) -> pd.DataFrame:
    columns = ["trajectory", "ts", "buy_rate", "sell_rate"]
    return pd.read_parquet(folder / "funding.parquet", columns=columns)


def _paid(folder: Path, last: int) -> pd.DataFrame:
    """The settlements in the window that both legs cover: until the sell leg's last."""
    rows = _rows(folder)
    rows = rows[(rows.ts > START) & (rows.ts <= last)]
    until = rows[rows.sell_rate.notna()].groupby("trajectory").ts.max()
    return rows[rows.ts <= rows.trajectory.map(until)]


def summary(folder: Path, last: int) -> list[pl.DataFrame]:
    """Sum what was received, and average the rates: one row per trajectory."""
    rows = _paid(folder, last)
    hours = np.minimum(rows.ts - START, HOUR_S) / HOUR_S
    eight = np.minimum(rows.ts - START, 8 * HOUR_S) / (8 * HOUR_S)
    rows["accrued"] = rows.sell_rate.fillna(0) * eight - rows.buy_rate * hours
    by_key = rows.groupby("trajectory")
    out = pd.DataFrame({"buy_funding_bps": -1e4 * by_key.buy_rate.sum()})
    out["sell_funding_bps"] = 1e4 * by_key.sell_rate.sum()
    out["funding_bps"] = out.buy_funding_bps + out.sell_funding_bps
    covered_h = (by_key.ts.max() - START) / HOUR_S
    out["funding_apr_pct"] = _APR * by_key.accrued.sum() / covered_h
    return [pl.from_pandas(out.reset_index(drop=True))]


def persistence(folder: Path, last: int) -> list[pl.DataFrame]:
    """Count changes of sign of the differential in force, and sum the time of each sign."""
    rows = _rows(folder)
    by_key = rows.groupby("trajectory")
    rows["hourly"] = by_key.sell_rate.ffill() / 8 - rows.buy_rate
    until = by_key.ts.shift(-1).fillna(rows.ts + 2 * HOUR_S)
    rows["length_s"] = np.minimum(until, last) - np.maximum(rows.ts, START)
    rows = rows[rows.hourly.notna() & (rows.length_s > 0)]
    sign = np.sign(rows.hourly)
    rows["positive_s"] = rows.length_s.where(sign > 0, 0)
    rows["negative_s"] = rows.length_s.where(sign < 0, 0)
    before = sign.groupby(rows.trajectory).shift(1)
    rows["flips"] = before.notna() & (sign != before)
    by_key = rows.groupby("trajectory")
    out = pd.DataFrame({"n": by_key.size(), "flips": by_key.flips.sum()})
    known_s = by_key.length_s.sum()
    for name in ("positive", "negative"):
        out[f"{name}_share"] = by_key[f"{name}_s"].sum() / known_s
    return [pl.from_pandas(out.reset_index(drop=True))]


def holdings(folder: Path, last: int) -> list[pl.DataFrame]:
    """Enter at each hour: one row per trajectory and horizon."""
    rows = _paid(folder, last)
    rows["paid"] = 1e4 * (rows.sell_rate.fillna(0) - rows.buy_rate)
    rows["total"] = rows.groupby("trajectory").paid.cumsum()
    total = rows.groupby("trajectory").total
    parts = []
    for hours in _HORIZONS_H:
        rows["kept"] = total.shift(-hours) - rows.total
        kept = rows.dropna(subset="kept").groupby("trajectory").kept
        out = pd.DataFrame({"horizon_s": hours * HOUR_S, "n": kept.size()})
        out["funding_mean_bps"] = kept.mean()
        for name, share in (("q05", 0.05), ("q25", 0.25), ("median", 0.5), ("q75", 0.75)):
            out[f"funding_{name}_bps"] = kept.quantile(share)
        parts.append(out)
    found = pd.concat(parts).sort_values(["trajectory", "horizon_s"])
    return [pl.from_pandas(found.reset_index(drop=True))]
