"""A store of hours of a SIMULATED market, and a report on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import toolkit as tk
from tests.once import made_once, store_once
from toolkit.client import Client
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store
from toolkit.workspace import Workspace

NOW = 1_793_750_400  # 2026-11-04 00:00 UTC
WINDOW = (NOW - 4 * 3_600, NOW)
LEGS = ("BTC_USDT:AURORA.spot", "BTC_USDT:CORONA.futures")
PAIR = "BTC_USDT:AURORA.spot:CORONA.futures"
OTHER = "BTC_USDT:AURORA.spot:BOREAS.spot"
RATES = "funding/BTC_USDT:AURORA.futures:CORONA.futures"
KEY = "demo-pro"


def service_at(now: int) -> Config:
    """A SIMULATED market whose clock stands at a time."""
    return Config(Simulated(7), port=0, clock=Clock(fixed_at=now), quota=10**6)


def load(path: Path) -> None:
    """Load hours of two prices, two spreads and spread events, and days of funding."""
    with running(service_at(NOW)) as service, Client(service.base_url, KEY) as client:
        rail = Workspace(client, Store(path))
        rail.sync([*LEGS, PAIR, OTHER, "events/spread"], *WINDOW, progress=False)
        rail.sync(RATES, NOW - 2 * 86_400, NOW, progress=False)


@pytest.fixture(scope="session")
def rail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace that reads the store."""
    store = Store(store_once(tmp_path_factory, "reports", load))
    with Workspace(Client("http://127.0.0.1:9", KEY), store) as found:
        yield found


@pytest.fixture(scope="session")
def made(rail: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of five charts: a spread, its hours, its events, their lives, and funding."""

    def make(folder: Path) -> None:
        spread, events = rail.spread(PAIR, *WINDOW), rail.events("spread", *WINDOW)
        funding = rail.funding(RATES, NOW - 2 * 86_400, NOW)
        given = (spread, spread.hour_of_week(), spread.episodes(5), funding)
        tk.report(folder / "report.html", *given, events, events.survival())

    return made_once(tmp_path_factory, "report", make) / "report.html"


@pytest.fixture(scope="session")
def brief(rail: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two results without a chart."""
    spread = rail.spread(PAIR, *WINDOW)
    file = tmp_path_factory.mktemp("brief") / "brief.html"
    return tk.report(file, spread.summary(), spread.episodes(5))
