"""A store of two hours of a SIMULATED market, and the tools over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.once import store_once
from toolkit.client import Client
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store
from toolkit.workspace import Workspace

NOW = 1_793_750_400  # 2026-11-04 00:00 UTC
PRICE = "BTC_USDT:AURORA.spot"
SPREAD = "BTC_USDT:AURORA.spot:CORONA.futures"
FUNDING = "funding/BTC_USDT:AURORA.futures:CORONA.futures"


@pytest.fixture(scope="session")
def rail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)
    with running(config) as service, Client(service.base_url, "demo-pro") as client:

        def load(path: Path) -> None:
            rail = Workspace(client, Store(path))
            rail.sync([PRICE, SPREAD, "events/spread"], NOW - 7_200, NOW, progress=False)
            rail.sync(FUNDING, NOW - 2 * 86_400, NOW, progress=False)

        yield Workspace(client, Store(store_once(tmp_path_factory, "assistant", load)))
