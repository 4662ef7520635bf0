"""A real store with two trajectories, and the page over it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from toolkit.dashboard.settings import MAIN
from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, Store

START = 1_678_406_400  # 2023-03-10 00:00 UTC
MINUTES = 600
HOLE = (200, 260)
"""Minutes that the service, asked, had no row for."""
LEG = Trajectory.parse("BTC_USD:KRAKEN.spot")
PAIR = Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.spot")
SERVED_AT = START + 60 * MINUTES
EDGE = Edge(served_at=SERVED_AT, delay_s=0, retention_s=None, step_s=60)


def price_rows() -> pl.DataFrame:
    """Minutes without the hole; the second has no price."""
    minutes = [m for m in range(MINUTES) if not HOLE[0] <= m < HOLE[1]]
    return pl.DataFrame(
        {
            "ts": [START + 60 * m for m in minutes],
            "price": [None if m == 1 else 20_000.0 + m % 7 for m in minutes],
            "mark_price": None,
            "volume": 1.5,
            "extra": None,
        },
        schema_overrides={"mark_price": pl.Float64, "extra": pl.String},
    )


def spread_rows() -> pl.DataFrame:
    prices = price_rows()
    return prices.select(
        "ts",
        pl.col("price").alias("buy_price"),
        (pl.col("price") * (1 + 1e-4 * (pl.col("ts") // 60 % 5))).alias("sell_price"),
        spread_pct=pl.lit(0.01),
        extra=pl.lit(None, pl.String),
    )


def fill(store: Store, source: Source) -> None:
    """One load of ten hours of a leg and a pair."""
    store.bind(source)
    load = store.start_load(LoadOrigin("http://127.0.0.1:1", SERVED_AT, None, "0.1.0"))
    batch = Batch()
    whole = Interval(START, SERVED_AT)
    batch.add(LEG, price_rows(), whole, EDGE)
    batch.add(PAIR, spread_rows(), whole, EDGE)
    store.commit(load, batch)
    store.finish_load(load, [])


@pytest.fixture
def make_store(tmp_path: Path) -> Callable[[Source], Store]:
    """A store of a source with one load of ten hours of a leg and a pair."""

    def made(source: Source) -> Store:
        store = Store(tmp_path / "held.duckdb")
        fill(store, source)
        return store

    return made


@pytest.fixture
def held(make_store: Callable[[Source], Store]) -> Store:
    """A store that replays recorded data."""
    return make_store(Source("replay", "depeg-77aa"))


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """The page over a store, opened by a link with the given parameters."""

    def opened(path: Path, timezone: str = "UTC", **params: str) -> AppTest:
        monkeypatch.setenv("RAIL_STORE", str(path))
        st.cache_data.clear()
        page = AppTest.from_file(str(MAIN), default_timeout=60)
        page.context = {"timezone": timezone}
        for name, value in params.items():
            page.query_params[name] = value
        page.run()
        assert not page.exception
        return page

    return opened
