"""The local service on its miniature market, asked over a real socket."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from toolkit.market import Plan
from toolkit.service import DEMO_OWNERS, Clock, Config, Owner, miniature, running

DATA = "/api/v1/data"
LEG = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}
LEGS = {
    "symbol": "BTC_USDT",
    "buy_exchange": "AURORA",
    "buy_market": "spot",
    "sell_exchange": "DEX-SOLARIS",
    "sell_market": "dex",
}


@pytest.fixture(scope="session")
def rail() -> Iterator[httpx.Client]:
    """Asks without a key, at the service's address."""
    owners = (*DEMO_OWNERS, Owner("ann", Plan.BUILDER, ("ann-1", "ann-2")))
    config = Config(miniature.source(), port=0, clock=Clock(fixed_at=miniature.END), owners=owners)
    with running(config) as service, httpx.Client(base_url=service.base_url) as client:
        yield client


@pytest.fixture(params=list(Plan))
def key(request: pytest.FixtureRequest) -> dict[str, str]:
    """The key header of each plan in turn."""
    return {"apikey": f"demo-{request.param}"}


@pytest.fixture(
    params=[
        ("schemas", {}),
        ("symbols/search", {"q": "BTC"}),
        ("history/price", {**LEG, "limit": "3"}),
        ("history/spread", {**LEGS, "limit": "3"}),
    ],
    ids=lambda route: route[0],
)
def route(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """Each live route in turn: its path, and a query that it understands."""
    path, query = request.param
    return f"{DATA}/{path}", query
