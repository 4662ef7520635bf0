"""The yearly rate over the hours that both legs cover, against a plain sum by the hour.

Of real pairs it is every fifth month. RAIL_EVERY_MONTH=1, as `make soak` sets, takes them all.
"""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Iterable
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from toolkit.statistics import funding

HOUR, DAY = 3600, 86400
EVERY = 1 if os.environ.get("RAIL_EVERY_MONTH") else 5
Leg = pl.DataFrame  # ts (s), rate, hours: one row per settlement


def by_the_hour(leg: Leg) -> tuple[np.ndarray, np.ndarray]:
    """Which hours some settlement paid for, and the rate of each, as two rising arrays.

    Hour k begins k hours after 1970. A settlement pays for its declared hours before it, at most
    back to the settlement before.
    """
    hours, rates, before = [], [], -(10**9)
    for ts, rate, interval in leg.rows():
        at = ts // HOUR
        for hour in range(max(before, at - int(interval)), at):
            hours.append(hour)
            rates.append(rate / interval)
        before = at
    return np.array(hours), np.array(rates)


class Pair:
    """The hours that both legs cover, and what the sell leg pays more than the buy leg in each."""

    def __init__(
        self, buy: tuple[np.ndarray, np.ndarray], sell: tuple[np.ndarray, np.ndarray]
    ) -> None:
        self.hours, of_buy, of_sell = np.intersect1d(
            buy[0], sell[0], assume_unique=True, return_indices=True
        )
        self.more = sell[1][of_sell] - buy[1][of_buy]

    def expected(self, start: int, end: int) -> tuple[float, float | None]:
        """The part of the window's hours that both legs cover, and the yearly rate in percent."""
        first, last = np.searchsorted(self.hours, (start // HOUR, end // HOUR))
        coverage = (last - first) / ((end - start) // HOUR)
        apr = float(100 * 8760 * self.more[first:last].mean()) if last > first else None
        return coverage, apr


def joined(buy: Leg, sell: Leg, trajectory: str) -> pl.DataFrame:
    return buy.join(sell, on="ts", how="full", coalesce=True, suffix="_sell").select(
        pl.lit(trajectory).alias("trajectory"),
        "ts",
        buy_rate="rate",
        sell_rate="rate_sell",
        buy_interval_hours="hours",
        sell_interval_hours="hours_sell",
    )


def check_every_pair_and_window(legs: dict[str, Leg], windows: Iterable[tuple[int, int]]) -> int:
    """Compare each pair of legs over each window; return how many had a rate."""
    hourly = {name: by_the_hour(leg) for name, leg in legs.items()}
    both = list(combinations(legs, 2))
    pairs = {f"{buy}:{sell}": Pair(hourly[buy], hourly[sell]) for buy, sell in both}
    frame = pl.concat(joined(legs[buy], legs[sell], f"{buy}:{sell}") for buy, sell in both)
    frame = frame.sort("ts")
    compared = 0
    for start, end in windows:
        rows = frame.filter(pl.col("ts").is_between(start - 3 * DAY, end + 3 * DAY))
        if rows.is_empty():
            continue
        found = funding.summary(rows, start, end, min_coverage=0)
        gated = funding.summary(rows, start, end)
        assert gated["coverage"].equals(found["coverage"])
        for row, strict in zip(found.to_dicts(), gated.to_dicts(), strict=True):
            coverage, apr = pairs[row["trajectory"]].expected(start, end)
            assert math.isclose(row["coverage"], coverage, abs_tol=1e-12)
            assert (row["funding_bps"] is None) == (apr is None)
            assert (strict["funding_bps"] is None) == (coverage < 0.9)
            if apr is not None and row["n"]:
                compared += 1
                assert math.isclose(row["funding_apr_pct"], apr, rel_tol=1e-9, abs_tol=1e-9)
    return compared


def months(first: int, last: int) -> list[int]:
    """The first second of every month from one year to another."""
    return [
        int(dt.datetime(year, month, 1, tzinfo=dt.UTC).timestamp())
        for year in range(first, last)
        for month in range(1, 13)
    ]


def made_up(hours: int, phase: int, rng: np.random.Generator, *, holes: int, days: int) -> Leg:
    """Settlements from the start of 2024 on, without some stretches of up to ten days."""
    start = months(2024, 2025)[0]
    ts = start + HOUR * np.arange(phase, 24 * days, hours)
    kept = np.ones(len(ts), dtype=bool)
    for at in rng.integers(0, 24 * days, holes):
        kept &= ~((ts >= start + HOUR * at) & (ts < start + HOUR * (at + rng.integers(1, 240))))
    level = rng.normal(0, 2e-5)
    rates = hours / 8 * rng.normal(level, 1e-4, len(ts))
    return pl.DataFrame({"ts": ts, "rate": rates, "hours": np.full(len(ts), float(hours))}).filter(
        kept
    )


def test_made_up_legs_of_every_kind_agree_with_the_hours() -> None:
    rng = np.random.default_rng(11)
    legs = {
        "whole": made_up(8, 0, rng, holes=0, days=100),
        "hourly": made_up(1, 0, rng, holes=0, days=95),
        "pages": made_up(1, 0, rng, holes=6, days=100),
        "short": made_up(8, 0, rng, holes=1, days=40),
        "other hours": made_up(8, 4, rng, holes=2, days=100),
        "daily": made_up(24, 0, rng, holes=1, days=100),
    }
    assert check_every_pair_and_window(legs, pairwise(months(2024, 2025)[:5])) > 40


def recorded(real_data: Path) -> pl.DataFrame:
    rows = pl.read_parquet(real_data / "funding.parquet")
    return rows.select(
        pl.col("symbol", "exchange", "dataset").cast(pl.String),
        pl.col("ts").cast(pl.Int64),
        pl.col("rate").cast(pl.Float64),
        pl.col("interval_hours").cast(pl.Float64).alias("hours"),
    ).sort("ts", "dataset")


def one_leg(rows: pl.DataFrame, **which: str) -> Leg:
    found = rows.filter(**which).unique("ts", keep="first", maintain_order=True)
    return found.select("ts", "rate", "hours")


@pytest.mark.slow
@pytest.mark.parametrize("base", ["BTC", "ETH"])
def test_real_pairs_and_months_agree_with_the_hours(real_data: Path, base: str) -> None:
    rows = recorded(real_data).filter(pl.col("symbol").str.starts_with(base))
    names = rows.select("symbol", "exchange").unique().sort("symbol", "exchange").rows()
    legs = {
        f"{symbol} {exchange}": one_leg(rows, symbol=symbol, exchange=exchange)
        for symbol, exchange in names
    }
    every = list(pairwise(months(2016, 2026)))
    assert check_every_pair_and_window(legs, every[::EVERY]) > 1000 / EVERY


def test_real_uneven_pairs_have_the_rate_of_their_common_hours(real_data: Path) -> None:
    rows = recorded(real_data)
    fetched = rows.filter(dataset="supervik")
    pairs = {
        "bybit": [one_leg(fetched, symbol="BTC_USDT", exchange=e) for e in ("BYBIT", "BINANCE")],
        "hyperliquid": [
            one_leg(rows, symbol="ETH_USDT", exchange="BINANCE"),
            one_leg(rows, symbol="ETH_USDC", exchange="HYPERLIQUID"),
        ],
    }
    for name, apr in (("bybit", -2.50), ("hyperliquid", 5.87)):
        frame = joined(*pairs[name], name)
        window = frame["ts"].min() - 8 * HOUR, frame["ts"].max()
        (row,) = funding.summary(frame, *window, min_coverage=0).to_dicts()
        assert round(row["funding_apr_pct"], 2) == apr
        assert funding.summary(frame, *window)["funding_reason"].to_list() == ["low_coverage"]
