"""A service over three days of a small market, and a workspace over the SIMULATED one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import miniature
from toolkit.client import Client
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store
from toolkit.workspace import Workspace

NOW = 1_793_750_400  # 2026-11-04 00:00 UTC


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    config = Config(miniature.source(), port=0, clock=Clock(fixed_at=miniature.END))
    with running(config) as found:
        yield found.base_url


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)
    store = Store(tmp_path_factory.mktemp("simulated") / "rail.duckdb")
    with running(config) as service, Workspace(Client(service.base_url, "demo-pro"), store) as rail:
        yield rail
