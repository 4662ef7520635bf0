"""A service over a small file whose every row is written down here, and a simulated one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest

from toolkit.service import Clock, Config, Replay, Simulated, running
from toolkit.service.market.simulator.catalogue import MARKETS

NOW = 1_700_000_400  # a full minute
KEYS = {"apikey": "demo-pro"}
DAY = 20_786
SIMULATED_NOW = 86_400 * DAY + 43_207  # noon, and some seconds


def bars(
    exchange: str,
    prices: dict[int, float],
    *,
    symbol: str = "BTC_USDT",
    market: str = "spot",
    interval_s: int = 60,
    dataset: str = "one",
) -> pl.DataFrame:
    """Bars of one leg, by ts."""
    return pl.DataFrame(
        {"ts": list(prices), "price": list(prices.values())},
        schema={"ts": pl.Int64, "price": pl.Float64},
    ).select(
        "ts",
        symbol=pl.lit(symbol),
        exchange=pl.lit(exchange),
        market=pl.lit(market),
        interval_s=pl.lit(interval_s, dtype=pl.Int32),
        price="price",
        dataset=pl.lit(dataset),
    )


@pytest.fixture(scope="session")
def make_bars() -> Callable[..., pl.DataFrame]:
    return bars


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Writes frames as one prices.parquet in a directory of its own."""

    def write(*frames: pl.DataFrame, **options: Any) -> Path:
        path = tmp_path_factory.mktemp("replay") / "prices.parquet"
        pl.concat(frames).write_parquet(path, **options)
        return path

    return write


@pytest.fixture(scope="session")
def replay(written: Callable[..., Path]) -> Replay:
    """ALPHA: the last 8 minutes before NOW. BETA: each second one of them, and the one at NOW.

    SLOW has bars of an hour, DEX-SOLARIS rows that are moments; ETH_BTC trades on ALPHA alone.
    """
    minutes = range(NOW - 480, NOW, 60)
    return Replay.read(
        written(
            bars("ALPHA", {ts: 100.0 + i for i, ts in enumerate(minutes)}),
            bars("BETA", dict.fromkeys(range(NOW - 480, NOW + 120, 120), 99.5), market="futures"),
            bars("SLOW", {NOW - 7200: 90.0, NOW - 3600: 91.0, NOW: 92.0}, interval_s=3600),
            bars("DEX-SOLARIS", {NOW - 1: 0.1 + 0.2, NOW: 1e-7}, market="dex", interval_s=0),
            bars("ALPHA", {NOW - 60: 0.05}, symbol="ETH_BTC"),
        )
    )


@pytest.fixture(scope="session")
def base_url(replay: Replay) -> Iterator[str]:
    with running(Config(replay, port=0, clock=Clock(fixed_at=NOW), quota=1_000_000)) as service:
        yield service.base_url


@pytest.fixture(scope="session")
def anonymous(base_url: str) -> Iterator[httpx.Client]:
    """Asks without a key."""
    with httpx.Client(base_url=base_url) as client:
        yield client


@pytest.fixture(scope="session")
def pro(base_url: str) -> Iterator[httpx.Client]:
    """Asks with the key of the Pro demo owner."""
    with httpx.Client(base_url=f"{base_url}/api/v1/data/", headers=KEYS) as client:
        yield client


@pytest.fixture(scope="session")
def page(pro: httpx.Client) -> Callable[..., dict[str, Any]]:
    """A page of history/price, or with two legs of history/spread, of BTC_USDT."""

    def ask(*legs: str, client: httpx.Client = pro, **query: object) -> dict[str, Any]:
        prefixes = ("",) if len(legs) == 1 else ("buy_", "sell_")
        named: dict[str, object] = {"symbol": "BTC_USDT"}
        for prefix, leg in zip(prefixes, legs, strict=True):
            named[f"{prefix}exchange"], _, named[f"{prefix}market"] = leg.rpartition(".")
        route = "history/price" if len(legs) == 1 else "history/spread"
        answer = client.get(route, params={**named, **query})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    return ask


@pytest.fixture(scope="session")
def market() -> Simulated:
    """The simulated market that `simulated` serves: five of its symbols."""
    symbols = ("BTC_USDT", "ETH_USDT", "PEPE_USDT", "SOL_USDT", "SUN_USDT")
    return Simulated(7, markets={symbol: MARKETS[symbol] for symbol in symbols})


@pytest.fixture(scope="session")
def simulated(market: Simulated) -> Iterator[httpx.Client]:
    """Asks a service on a simulated market, at noon, with the key of the Pro demo owner."""
    clock = Clock(fixed_at=SIMULATED_NOW)
    with (
        running(Config(market, port=0, clock=clock, quota=1_000_000)) as service,
        httpx.Client(
            base_url=f"{service.base_url}/api/v1/data/", headers=KEYS, timeout=60
        ) as client,
    ):
        yield client
