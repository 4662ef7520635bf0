"""machine-rail.md, section 4: endpoints, sockets, webhooks, and the planned event API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import miniature
from tests.unit.service.transports.sockets import ask, opened
from toolkit.service import Config, Simulated, SpedClock, WebhookSettings, running
from toolkit.wire.profile.profile import BUILT_IN

from .conftest import DATA, FAMILIES, PRO
from .sockets import MARKET, STREAMS, status_of

LEG = {"symbol": "ETH_USDT", "exchange": "AURORA", "market": "spot"}
LEGS = {
    "symbol": "ETH_USDT",
    "buy_exchange": "CORONA",
    "buy_market": "futures",
    "sell_exchange": "BOREAS",
    "sell_market": "spot",
}
HISTORIES = [("history/price", LEG), ("history/spread", LEGS)]


def get(rail: httpx.Client, path: str, **query: object) -> dict[str, Any]:
    answer = rail.get(f"{DATA}/{path}", params=query, headers=PRO)  # type: ignore[arg-type] # plain
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_all_live_rest_routes_are_get(
    rail: httpx.Client, route: tuple[str, dict[str, str]], method: str
) -> None:
    path, query = route
    answer = rail.request(method, path, params=query, headers=PRO)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_all_live_rest_routes_are_authenticated(
    rail: httpx.Client, route: tuple[str, dict[str, str]]
) -> None:
    path, query = route
    for headers in ({}, {"apikey": "nobody's"}, {"Authorization": "Bearer nobody's"}):
        assert rail.get(path, params=query, headers=headers).status_code == 401
    assert rail.get(path, params=query, headers=PRO).status_code == 200


def test_search_schemas_price_spread_and_spread_events_begin_at_free(
    rail: httpx.Client, key: dict[str, str], free_route: tuple[str, dict[str, str]]
) -> None:
    path, query = free_route
    assert rail.get(path, params=query, headers=key).status_code == 200


def test_schemas_is_authoritative_for_every_data_tool(rail: httpx.Client) -> None:
    tools = get(rail, "schemas")["tools"]
    assert tools
    for name, tool in tools.items():
        assert name.startswith("data.")
        assert rail.get(tool["route"], headers=PRO).status_code in (200, 400)


@pytest.mark.parametrize(("path", "legs"), HISTORIES)
def test_history_is_of_one_trajectory_and_takes_end_time_in_unix_seconds_and_limit(
    rail: httpx.Client, path: str, legs: dict[str, str]
) -> None:
    end = miniature.START + 86_400
    page = get(rail, path, **legs, end_time=end, limit=7)
    assert {name: page[name] for name in legs} == legs
    assert len(page["items"]) == 7
    assert max(item["ts"] for item in page["items"]) < end


def test_every_rest_route_is_an_action_whose_message_is_the_rest_body(
    rail: httpx.Client, route: tuple[str, dict[str, str]]
) -> None:
    path, query = route
    body = rail.get(path, params=query, headers=PRO).json()
    numbers = {name: int(text) for name, text in query.items() if text.isdigit()}
    with opened(str(rail.base_url).rstrip("/"), MARKET) as socket:
        for fields in (query, query | numbers):
            said = ask(socket, action=path.removeprefix(f"{DATA}/"), id=7, **fields)
            assert said == {**body, "id": 7}


ROOT = Path(__file__).parents[2]
PLANNED = [
    *(f"/v1/{family}/{what}" for family in FAMILIES for what in ("recent", "history", "live")),
    *("/v1/prices/latest", "/v1/prices/live", "/v1/prices/meta", "/v1/meta", "/v1"),
]


@pytest.mark.parametrize("path", PLANNED)
@pytest.mark.parametrize("headers", [{}, PRO, {"apikey": "nobody's"}], ids=["none", "good", "bad"])
def test_a_planned_url_answers_404_to_get_whatever_the_key(
    rail: httpx.Client, path: str, headers: dict[str, str]
) -> None:
    answer = rail.get(path, headers=headers, params={"min_pct": "1", "delay": "60"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", PLANNED)
def test_a_planned_url_answers_404_to_an_upgrade(rail: httpx.Client, path: str) -> None:
    base_url = str(rail.base_url).rstrip("/")
    assert status_of(base_url, path, PRO) == 404
    assert status_of(base_url, path, {}) == 404


def test_no_code_of_ours_names_a_planned_url() -> None:
    planned = re.compile(r"(?<!/api)/v1\b")
    assert planned.search('f"{base}/v1/{family}/history"')
    files = [*(ROOT / "toolkit").rglob("*.py"), *ROOT.glob("app.py")]
    assert len(files) > 100
    assert [path for path in files if planned.search(path.read_text(encoding="utf-8"))] == []


def test_every_address_that_the_client_knows_is_a_live_one() -> None:
    known = {
        *BUILT_IN.routes.values(),
        *BUILT_IN.snapshots.values(),
        BUILT_IN.mcp_path,
        BUILT_IN.streams.market,
        *BUILT_IN.streams.events.values(),
    }
    assert STREAMS.keys() <= known
    assert all(path == "/mcp" or path.startswith("/api/v1/") for path in known)


SESSION, WEBHOOKS = "/api/v1/auth/session", "/api/v1/auth/webhooks"
ELSEWHERE = {"url": "https://hooks.example/rail", "families": ["spread"]}


@pytest.fixture(scope="module")
def config() -> Config:
    """A simulated market whose hours last three seconds, and webhooks to this machine."""
    clock = SpedClock(start=1_795_046_400, speed=1200.0)
    return Config(Simulated(7), port=0, clock=clock, webhooks=WebhookSettings(loopback=True))


@pytest.fixture(scope="module")
def address(config: Config) -> Iterator[str]:
    with running(config) as service:
        yield service.base_url


@contextmanager
def dashboard(config: Config, address: str, plan: str) -> Iterator[httpx.Client]:
    """A browser that is signed in as the demo owner of a plan."""
    with httpx.Client(base_url=address, timeout=60) as client:
        code = config.sessions.issue(f"demo-{plan}")
        assert client.post(SESSION, json={"code": code}).status_code == 200
        yield client
        client.delete(WEBHOOKS)


@pytest.mark.parametrize("plan", ["builder", "pro"])
def test_builder_and_pro_configure_one_signed_https_endpoint(
    config: Config, address: str, plan: str
) -> None:
    with dashboard(config, address, plan) as client:
        assert client.put(WEBHOOKS, json=ELSEWHERE).json()["secret"].startswith("whsec_")
        other = {"url": "https://other.example/", "families": ["splash"]}
        assert client.put(WEBHOOKS, json=other).status_code == 200
        shown = client.get(WEBHOOKS).json()
        assert {"url": shown["url"], "families": shown["families"]} == other
        plain = client.put(WEBHOOKS, json=ELSEWHERE | {"url": "http://hooks.example/"})
        assert plain.status_code == 400


def test_free_configures_none(config: Config, address: str) -> None:
    with dashboard(config, address, "free") as client:
        for method, path in [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/test")]:
            answer = client.request(method, f"{WEBHOOKS}{path}", json=ELSEWHERE)
            assert (answer.status_code, answer.json()["code"]) == (403, "tier_required")
