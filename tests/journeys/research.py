"""Scripts as an analyst writes them, a function for each research task, run by `test_research`."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import toolkit as tk


def carry(store: str, fees: str, pairs: list[str], start: str, end: str) -> list[pl.DataFrame]:
    """What did holding a funding pair earn, over all times at which it could have been entered?"""
    rail, only = tk.open(store, window=(start, end), fees=fees), {"funding_only": True}
    series = [rail.funding(pair) for pair in pairs]
    earned = pl.concat(each.summary(**only) for each in series)  # what was received, APR
    steady = pl.concat(each.persistence() for each in series)  # flips, share positive
    return [earned, steady, pl.concat(each.holdings(**only) for each in series)]  # break even


def depeg(store: str, pair: str, start: str, end: str, *, fill_bps: float = 10) -> pl.DataFrame:
    """How wide did a pair go, when, for how long, and what is left after four fills?"""
    episodes = tk.open(store).spread(pair, start, end).episodes(4 * fill_bps, absolute=True)
    left_bps = pl.col("peak_bps").abs() - 4 * fill_bps
    return episodes.with_columns(left_bps=left_bps).sort("left_bps", descending=True)


def event_study(store: str) -> pl.DataFrame:
    """How does a price move in the 30 minutes around the splashes of its leg?"""
    rail = tk.open(store)
    splashes = rail.events("splash")
    rows, found = rail.around(splashes), splashes.detections()
    return tk.statistics.events.study(found, rows, before_s=1_800, after_s=1_800)


def lead_lag(store: str, pair: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Which of two legs moves first?"""
    spread = tk.open(store).spread(pair)
    return spread.lead_lag(), spread.cross_correlation(max_lag_steps=5)


def screen(store: str, fees: str) -> pl.DataFrame:
    """Which of all the spreads that are held return within the hour, and what do they leave net?"""
    rail = tk.open(store, fees=fees)
    return rail.screen(where="half_life_s < 3600 and coverage > 0.95", sort="-net_edge_bps")


def share(store: str, pair: str, folder: Path, as_of: int | None = None) -> str:
    """Save what was found, share the chart as one file, and run it again as it was known then."""
    rail = tk.open(store) if as_of is None else tk.open(store).as_of(as_of)
    spread = rail.spread(pair)
    spread.save(folder / "spread.parquet")
    spread.plot().write_html(folder / "spread.html")
    spread.pandas()["spread_log_bps"].describe()
    return spread.data_hash


def survival(store: str, by: str = "legs") -> pl.DataFrame:
    """How long do spread events last, by pair and by hour of the day?"""
    lives = tk.open(store).events("spread").lifecycles()
    hour = (pl.col("t_open") // 3_600 % 24).alias("hour")
    return tk.statistics.survival.median_life(lives.with_columns(hour), ["symbol", by]).sort(
        "median_life_s", descending=True, nulls_last=True
    )


def vendor_shift(store: str, leg: str, csv: str) -> pl.DataFrame:
    """By how many steps is a vendor's CSV of closes shifted against a stored price?"""
    symbol = leg.partition(":")[0]
    vendor = tk.series.own_series(csv, f"{symbol}:VENDOR.spot", columns={"price": "close"})
    return tk.open(store).pair(leg, vendor).flags()
