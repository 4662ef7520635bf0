"""The local service, on its miniature market and on the simulated one, over a real socket."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests import miniature
from toolkit.market import Plan
from toolkit.service import DEMO_OWNERS, Clock, Config, Owner, Simulated, running
from toolkit.service.market.simulator.catalogue import MARKETS

DATA = "/api/v1/data"
LEG = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}
LEGS = {
    "symbol": "BTC_USDT",
    "buy_exchange": "AURORA",
    "buy_market": "spot",
    "sell_exchange": "DEX-SOLARIS",
    "sell_market": "dex",
}
FUNDING_LEGS = LEGS | {"sell_exchange": "CORONA", "sell_market": "futures"}
WINDOW = {"start_time": f"{miniature.END - 3 * 86_400}", "end_time": f"{miniature.END}"}
FREE_ROUTES = [
    ("schemas", {}),
    ("symbols/search", {"q": "BTC"}),
    ("history/price", {**LEG, "limit": "3"}),
    ("history/spread", {**LEGS, "limit": "3"}),
    ("history/spread-events", {**WINDOW, "limit": "3"}),
]
BUILDER_ROUTES = [
    ("history/funding", {**FUNDING_LEGS, "limit": "3"}),
    ("history/splash-events", {**WINDOW, "limit": "3"}),
    ("history/funding-events", {**WINDOW, "limit": "3"}),
    ("event-activity", {}),
    ("dashboards/spread", {}),
    ("dashboards/funding-overview", {}),
]
NOW = 1_795_953_607
"""Noon of a simulated day, and some seconds."""
DAY_S = 86_400
DAY = {"start_time": NOW - DAY_S, "end_time": NOW}
FAMILIES = ["spread", "splash", "funding"]
FREE, BUILDER, PRO = ({"apikey": f"demo-{plan}"} for plan in Plan)


def tools_listed(
    client: httpx.Client, headers: dict[str, str], path: str = "/mcp"
) -> httpx.Response:
    """What MCP answers to ``tools/list``, as it came over HTTP."""
    said = {"mcp-protocol-version": "2025-11-25", "accept": "application/json, text/event-stream"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    return client.post(path, json=message, headers=headers | said)


@pytest.fixture(scope="session")
def rail() -> Iterator[httpx.Client]:
    """Asks without a key, at the service's address."""
    owners = (*DEMO_OWNERS, Owner("ann", Plan.BUILDER, ("ann-1", "ann-2")))
    clock = Clock(fixed_at=miniature.END)
    config = Config(miniature.source(), port=0, clock=clock, owners=owners, quota=1_000_000)
    with running(config) as service, httpx.Client(timeout=60) as client:
        client.base_url = httpx.URL(service.base_url)
        yield client


@pytest.fixture(params=list(Plan))
def key(request: pytest.FixtureRequest) -> dict[str, str]:
    """The key header of each plan in turn."""
    return {"apikey": f"demo-{request.param}"}


@pytest.fixture(scope="session")
def market() -> Iterator[httpx.Client]:
    """Asks the Pro demo owner's questions of five symbols of the simulated market."""
    symbols = ("BTC_USDT", "ETH_USDT", "PEPE_USDT", "SOL_USDT", "SUN_USDT")
    source = Simulated(7, markets={symbol: MARKETS[symbol] for symbol in symbols})
    config = Config(source, port=0, clock=Clock(fixed_at=NOW), quota=1_000_000)
    with running(config) as service, httpx.Client(timeout=60) as client:
        client.base_url = httpx.URL(f"{service.base_url}{DATA}/")
        client.headers["apikey"] = "demo-pro"
        yield client


@pytest.fixture(params=FREE_ROUTES + BUILDER_ROUTES, ids=lambda route: route[0])
def route(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """Each live route in turn: its path, and a query that it understands."""
    path, query = request.param
    return f"{DATA}/{path}", query


@pytest.fixture(params=FREE_ROUTES, ids=lambda route: route[0])
def free_route(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """Each live route that begins at Free."""
    path, query = request.param
    return f"{DATA}/{path}", query


@pytest.fixture(params=BUILDER_ROUTES, ids=lambda route: route[0])
def builder_route(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """Each live route that begins at Builder."""
    path, query = request.param
    return f"{DATA}/{path}", query
