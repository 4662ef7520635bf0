"""From a Parquet file through the service into the store: each row once, none more."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from toolkit.market import Trajectory
from toolkit.service import miniature
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
    rail: Rail, simulated_service: str, tmp_path: Path
) -> None:
    rows = pl.read_parquet(miniature.PATH)

    status = journey(rail, simulated_service, "--start", "2026-11-01", "--end", "2026-11-04")

    check_store(Store(tmp_path / "rail.duckdb"), rows)
    assert "SIMULATED" in status
    measured = rail("stats", "spread", "BTC_USDT:AURORA.spot:BOREAS.spot")
    assert measured.returncode == 0
    assert "SIMULATED" in measured.stdout
    assert re.search(r"rows with both prices\s+4,320", measured.stdout)
    assert re.search(r"half-life\s+5 min", measured.stdout)


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
    assert re.search(r"rows with both prices\s+29,889", measured.stdout)
    assert re.search(r"longest gap\s+4 h 38 min", measured.stdout)


def test_the_demo_prints_the_statistics_of_a_simulated_market(rail: Rail) -> None:
    shown = rail("demo", "--once")

    assert shown.returncode == 0, shown.stderr
    assert "SIMULATED" in shown.stdout
    assert shown.stdout.count("half-life, upper 95 %") == 1


def test_the_symbols_are_listed_with_their_legs(rail: Rail, simulated_service: str) -> None:
    shown = rail("symbols", "btc", base_url=simulated_service)

    assert shown.stdout.splitlines()[0].startswith("1 symbols, 4 legs · SIMULATED market")
    assert "AURORA.spot  BOREAS.spot  CORONA.futures  DEX-SOLARIS.dex" in shown.stdout


@pytest.mark.parametrize(
    "command",
    ["serve", "symbols", "sync", "status", "stats", "stats spread", "app", "demo"],
)
def test_every_command_has_help_with_an_example(rail: Rail, command: str) -> None:
    shown = rail(*command.split(), "--help")

    assert shown.returncode == 0
    assert command == "stats" or f"Example: rail {command}" in shown.stdout
