"""From a Parquet file through the service into the store: each row once, none more."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests import miniature
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory
from toolkit.store import Store

from .conftest import serving

Rail = Callable[..., subprocess.CompletedProcess[str]]
WINDOW = ("--start", "2023-03-01", "--end", "2023-03-22")


def legs_of(rows: pl.DataFrame) -> dict[str, dict[str, pl.DataFrame]]:
    """ts and price of each symbol's each leg."""
    found: dict[str, dict[str, pl.DataFrame]] = {}
    keys = ["symbol", "exchange", "market"]
    for (symbol, exchange, market), part in rows.group_by(keys):
        series = part.select("ts", "price").sort("ts")
        found.setdefault(str(symbol), {})[f"{exchange}.{market}"] = series
    return found


def check_store(store: Store, rows: pl.DataFrame) -> None:
    """Every row of the file once, and every spread the inner join of its legs."""
    legs = legs_of(rows)
    total = 0
    for symbol, series in legs.items():
        for leg, wanted in series.items():
            held = store.series(Trajectory.parse(f"{symbol}:{leg}"))
            assert held.select("ts", "price").equals(wanted), f"{symbol}:{leg}"
            total += held.height
        for buy, sell in itertools.combinations(sorted(series), 2):
            held = store.series(Trajectory.parse(f"{symbol}:{buy}:{sell}"))
            joined = series[buy].join(series[sell], on="ts", suffix="_sell").sort("ts")
            wanted = joined.rename({"price": "buy_price", "price_sell": "sell_price"})
            assert held.select(wanted.columns).equals(wanted), f"{symbol}:{buy}:{sell}"
    assert total == rows.height


def journey(rail: Rail, base_url: str, *window: str) -> str:
    """Load all prices and spreads, load again, and give back what `rail status` says."""
    loading = ("sync", "--all-prices", "--all-spreads", *window)
    first = rail(*loading, base_url=base_url)
    assert first.returncode == 0, first.stderr
    again = rail(*loading, base_url=base_url)
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("0 rows new,")
    status = rail("status")
    assert status.returncode == 0, status.stderr
    return status.stdout


def test_the_miniature_market_is_loaded_whole_and_measured(
    rail: Rail, miniature_service: str, tmp_path: Path
) -> None:
    rows = miniature.rows()
    status = journey(rail, miniature_service, "--start", "2026-11-01", "--end", "2026-11-04")
    check_store(Store(tmp_path / "rail.duckdb"), rows)
    assert "SIMULATED" in status
    spread = "BTC_USDT:AURORA.spot:BOREAS.spot"
    measured = rail("stats", "spread", spread)
    assert measured.returncode == 0
    assert "SIMULATED" in measured.stdout
    legs = legs_of(rows)["BTC_USDT"]
    both = legs["AURORA.spot"].join(legs["BOREAS.spot"], on="ts", suffix="_sell").sort("ts")
    assert re.search(rf"observations\s+{both.height:,}", measured.stdout)
    deviation = np.log(both["price_sell"] / both["price"]).to_numpy()
    neighbours = np.diff(both["ts"]) == 60
    phi, _ = np.polyfit(deviation[:-1][neighbours], deviation[1:][neighbours], 1)
    (told,) = map(
        json.loads, rail("stats", "spread", spread, "--format", "json").stdout.splitlines()
    )
    assert told["half_life_ar1_s"] == pytest.approx(-60 * np.log(2) / np.log(phi), rel=1e-6)


def test_real_minutes_of_march_2023_are_loaded_whole_and_measured(
    rail: Rail, real_data: Path, tmp_path: Path
) -> None:
    dataset = "iaqf_dhruvk1432"
    rows = pl.read_parquet(real_data / "prices.parquet").filter(pl.col("dataset") == dataset)
    rows = rows.with_columns(pl.col("symbol", "exchange", "market").cast(pl.String))
    now = "2023-03-22T00:00:00Z"
    with serving("--replay", str(real_data), "--dataset", dataset, "--now", now) as base_url:
        status = journey(rail, base_url, *WINDOW)
    check_store(Store(tmp_path / "rail.duckdb"), rows)
    assert "Replay of recorded data" in status
    measured = rail("stats", "spread", "BTC_USD:COINBASE.spot:KRAKEN.spot")
    assert re.search(r"observations\s+29,889", measured.stdout)
    assert re.search(r"longest gap\s+4 h 38 min", measured.stdout)


def test_real_funding_of_two_years_is_loaded_whole_and_its_carry_printed(
    rail: Rail, real_data: Path, tmp_path: Path
) -> None:
    """DYDX lists BTC against USD: under its own symbol no trajectory joins it with BINANCE."""
    key, window = "BTC_USDT:BINANCE.futures:DYDX.futures", Interval(1_640_995_200, 1_704_067_200)
    rates = pl.read_parquet(real_data / "funding.parquet").filter(pl.col("dataset") == "supervik")
    rates = rates.with_columns(pl.col("symbol", "exchange").cast(pl.String))
    bought, sold = (
        rates.filter(exchange=exchange, symbol=symbol)
        for exchange, symbol in (("BINANCE", "BTC_USDT"), ("DYDX", "BTC_USD"))
    )
    replayed = ("--replay", str(real_data), "--dataset", "supervik", "--rename", "BTC_USD=BTC_USDT")
    times = ("--start", "2022-01-01", "--end", "2024-01-01")
    with serving(*replayed, "--now", "2024-01-01") as base_url:
        loaded = rail("sync", f"funding/{key}", *times, base_url=base_url)
    assert loaded.returncode == 0, loaded.stderr
    held = Store(tmp_path / "rail.duckdb").series(Trajectory.parse(key, Family.FUNDING))
    legs = [
        frame.filter(pl.col("ts").is_between(*window, closed="left")).select(
            "ts", pl.col("rate").alias(side)
        )
        for side, frame in (("buy_rate", bought), ("sell_rate", sold))
    ]
    joined = legs[0].join(legs[1], on="ts", how="full", coalesce=True).sort("ts")
    assert held.select("ts", "buy_rate", "sell_rate").equals(joined)
    row = json.loads(rail("stats", "funding", key, *times, "--format", "json").stdout)
    received = joined.filter(pl.col("ts") > window.start)
    assert row["n"] == received.height == 17_519
    # the seven hours after the slower leg's last settlement are known of one leg alone
    both = received.filter(pl.col("ts") <= bought["ts"].max())
    carry_bps = 1e4 * (both["sell_rate"].sum() - both["buy_rate"].sum())
    assert row["funding_bps"] == pytest.approx(carry_bps, rel=1e-12)
    printed = rail("stats", "funding", key, *times).stdout
    assert re.search(rf"\nfunding \(bps\)\s+{carry_bps:.2f}", printed)
    assert re.search(rf"funding APR \(%\)\s+{row['funding_apr_pct']:.2f}", printed)


def test_one_sync_brings_spreads_funding_events_and_snapshots_and_they_are_measured(
    rail: Rail, tmp_path: Path
) -> None:
    funding = "funding/BTC_USDT:AURORA.futures:BOREAS.futures"
    window = ("--start", "2026-11-17", "--end", "2026-11-19")
    logs = ("events/spread", "events/splash", "events/funding")
    loading = ("sync", "BTC_USDT:AURORA.spot:BOREAS.spot", funding, *logs, "snapshot/activity")
    with serving("--seed", "7", "--now", "2026-11-20") as base_url:
        first, again = (rail(*loading, *window, base_url=base_url) for _ in range(2))
    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    # Only the snapshot is asked for again: it is of another moment.
    counts = "1 new, 0 held already; 1 page, 2 trajectories, 3 event logs, 1 snapshot, "
    assert again.stdout.startswith(counts)
    store = Store(tmp_path / "rail.duckdb")
    assert store.snapshots("activity").height == 2
    assert (
        store.series(Trajectory.parse(funding, Family.FUNDING)).height == 7
    )  # the one at the end too
    funding = rail("stats", "funding", funding, *window)
    events = rail("stats", "events", *window, "--format", "json")
    assert "SIMULATED" in funding.stdout
    assert "funding APR (%)" in funding.stdout
    counted = {row["family"]: row for row in map(json.loads, events.stdout.splitlines())}
    assert set(counted) == {"spread", "splash", "funding"}
    for row in counted.values():
        assert row["n"] == row["closed"] + row["open"] + row["reopened"] + row["orphans"]
        assert "SIMULATED" in row["source"]
