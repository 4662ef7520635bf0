"""A store with one stream of every kind, of hours of a SIMULATED market."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolkit.client import Client
from toolkit.series import FundingSeries, PriceSeries, SpreadSeries
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store
from toolkit.workspace import Workspace

NOW = 1_793_750_400  # 2026-11-04 00:00 UTC
WINDOW = (NOW - 6 * 3_600, NOW)
PRICE = "BTC_USDT:AURORA.spot"
PAIR = "BTC_USDT:AURORA.spot:CORONA.futures"
SWAPPED = "BTC_USDT:CORONA.futures:AURORA.spot"
RATES = "funding/BTC_USDT:AURORA.futures:CORONA.futures"
KEYS = (PRICE, PAIR, RATES, "events/spread", "snapshot/spread")


@pytest.fixture(scope="session")
def rail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)
    store = Store(tmp_path_factory.mktemp("series") / "rail.duckdb")
    with running(config) as service, Workspace(Client(service.base_url, "demo-pro"), store) as rail:
        rail.sync([PRICE, PAIR, "events/spread", "snapshot/spread"], *WINDOW, progress=False)
        rail.sync(RATES, NOW - 2 * 86_400, NOW, progress=False)
        yield rail


@pytest.fixture(scope="session")
def pair(rail: Workspace) -> SpreadSeries:
    return rail.spread(PAIR)


@pytest.fixture(scope="session")
def price(rail: Workspace) -> PriceSeries:
    return rail.prices(PRICE)


@pytest.fixture(scope="session")
def rates(rail: Workspace) -> FundingSeries:
    return rail.funding(RATES)
