"""What the mistakes are made with: hours of a SIMULATED market, its service, frames and figures."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import toolkit as tk
from tests.empty_store import empty_store
from tests.once import store_once
from toolkit.client import AsyncClient, Client
from toolkit.intervals import Interval
from toolkit.service import Clock, Config, Simulated, running
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store
from toolkit.wire.exchange import RetryPolicy
from toolkit.workspace import Workspace

NOW = 1_793_750_400  # 2026-11-04 00:00 UTC
WINDOW = (NOW - 3 * 3_600, NOW)
PRICE = "BTC_USDT:AURORA.spot"
PAIR = "BTC_USDT:AURORA.spot:CORONA.futures"
RATES = "funding/BTC_USDT:AURORA.futures:CORONA.futures"


@pytest.fixture(scope="session")
def service() -> Iterator[str]:
    """The address of a SIMULATED market whose clock stands at NOW."""
    with running(Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)) as local:
        yield local.base_url


@pytest.fixture(scope="session")
def rail(service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """One stream of every kind."""
    with Client(service, "demo-pro") as client:

        def load(path: Path) -> None:
            rail = Workspace(client, Store(path))
            rail.sync([PRICE, PAIR, "events/spread", "snapshot/spread"], *WINDOW, progress=False)
            rail.sync(RATES, NOW - 2 * 86_400, NOW, progress=False)

        yield Workspace(client, Store(store_once(tmp_path_factory, "mistakes", load)))


@pytest.fixture(scope="session")
def names(rail: Workspace, service: str) -> dict[str, Any]:
    """What a line that is typed may name."""
    fees = 'name = "mine"\n[[fee]]\nexchange = "AURORA"\nvalid_from = 2017-01-01\n'
    modules = {"tk": tk, "pl": pl, "pd": pd, "np": np, "dt": dt, "charts": tk.charts}
    keys = {"PRICE": PRICE, "PAIR": PAIR, "RATES": RATES, "NOW": NOW}
    classes = {"Client": Client, "AsyncClient": AsyncClient, "Interval": Interval}
    return {
        **modules,
        **keys,
        **classes,
        "rail": rail,
        "service": service,
        "pair": rail.spread(PAIR),
        "price": rail.prices(PRICE),
        "rates": rail.funding(RATES),
        "events": rail.events("spread"),
        "snapshots": rail.snapshots("spread"),
        "frame": rail.spread(PAIR).df,
        "of_ms": rail.spread(PAIR).df.with_columns(pl.col("ts") * 1_000),
        "rates_of_ms": rail.funding(RATES).rows.with_columns(pl.col("ts") * 1_000),
        "two": pl.concat(
            rail.prices(PRICE).df.with_columns(trajectory=pl.lit(key))
            for key in (PRICE, "A_B:X.spot")
        ),
        "source": rail.store.source,
        "spread": tk.statistics.spread,
        "of_asyncio": lambda key: asyncio.run(of_asyncio(service, key)),
        "once": RetryPolicy(attempts=1),
        "fees": FeeModel,
        "example": FeeModel.example(),
        "lacking": FeeModel.parse(f"{fees}taker_bps = 5.0\nslippage_bps = 1.0"),
    }


async def of_asyncio(service: str, key: Any) -> None:
    """Ask for a minute by a client of asyncio."""
    async with AsyncClient(service, "demo-pro") as client:
        await client.history(key, NOW - 60, NOW)


@pytest.fixture
def ground(names: dict[str, Any], workdir: Path) -> Iterator[dict[str, Any]]:
    """The names, and an empty folder that is the working directory. What is opened is closed."""
    (workdir / "prices.csv").write_text("ts,price\n1,2\n")
    (workdir / "folder").mkdir()
    empty_store(workdir / "replay.duckdb", tk.Source("replay", "iaqf-77aa"))
    with contextlib.ExitStack() as closing:

        def closed(opened: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *given, **named: closing.enter_context(opened(*given, **named))

        public = {name: getattr(tk, name) for name in dir(tk)} | {"open": closed(tk.open)}
        yield names | {"tk": SimpleNamespace(**public), "Client": closed(Client)}
