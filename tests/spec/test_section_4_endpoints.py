"""machine-rail.md, section 4: endpoints."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests import miniature

DATA = "/api/v1/data"
PRO = {"apikey": "demo-pro"}
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
    assert rail.get(path, params=query).status_code == 401
    assert rail.get(path, params=query, headers=PRO).status_code == 200


def test_search_schemas_price_spread_and_spread_events_begin_at_free(
    rail: httpx.Client, key: dict[str, str], free_route: tuple[str, dict[str, str]]
) -> None:
    path, query = free_route
    assert rail.get(path, params=query, headers=key).status_code == 200


def test_symbol_search_looks_up_symbols_and_venues(rail: httpx.Client) -> None:
    (found,) = get(rail, "symbols/search", q="ETH")["items"]
    assert found["symbol"] == "ETH_USDT"
    assert [(venue["exchange"], venue["market"]) for venue in found["venues"]] == [
        ("AURORA", "spot"),
        ("BOREAS", "spot"),
        ("CORONA", "futures"),
        ("DEX-SOLARIS", "dex"),
    ]


def test_symbol_search_takes_q_and_limit(rail: httpx.Client) -> None:
    assert len(get(rail, "symbols/search")["items"]) == 2
    assert len(get(rail, "symbols/search", limit=1)["items"]) == 1
    assert get(rail, "symbols/search", q="no such symbol")["items"] == []


def test_schemas_is_authoritative_for_every_data_tool(rail: httpx.Client) -> None:
    tools = get(rail, "schemas")["tools"]
    assert tools
    for name, tool in tools.items():
        assert name.startswith("data.")
        assert rail.get(tool["route"], headers=PRO).status_code in (200, 400)


def test_history_price_is_of_a_single_venue(rail: httpx.Client) -> None:
    page = get(rail, "history/price", **LEG, limit=5)
    assert {name: page[name] for name in LEG} == LEG
    assert len(page["items"]) == 5


def test_history_spread_is_of_one_selected_trajectory(rail: httpx.Client) -> None:
    page = get(rail, "history/spread", **LEGS, limit=5)
    assert {name: page[name] for name in LEGS} == LEGS
    assert len(page["items"]) == 5


@pytest.mark.parametrize(("path", "legs"), HISTORIES)
def test_history_takes_end_time_in_unix_seconds_and_limit(
    rail: httpx.Client, path: str, legs: dict[str, str]
) -> None:
    end = miniature.START + 86_400
    items = get(rail, path, **legs, end_time=end, limit=7)["items"]
    assert len(items) == 7
    assert max(item["ts"] for item in items) < end


@pytest.mark.parametrize(("path", "legs"), HISTORIES)
def test_a_trajectory_is_reconstructed_by_paging_backwards_with_next_end_time(
    rail: httpx.Client, path: str, legs: dict[str, str]
) -> None:
    stamps: list[int] = []
    end: dict[str, int] = {}
    while True:
        page = get(rail, path, **legs, limit=1_000, **end)
        stamps += [item["ts"] for item in page["items"]]
        if page["next_end_time"] is None:
            break
        end = {"end_time": page["next_end_time"]}
    source = miniature.source()
    held = [
        set(source.bars("ETH_USDT", leg).ts.tolist())
        for leg in source.listing["ETH_USDT"]
        if leg.exchange in legs.values()
    ]
    assert stamps == sorted(set.intersection(*held), reverse=True)


@pytest.mark.parametrize("family", ["spread", "splash", "funding"])
@pytest.mark.parametrize("method", ["recent", "history", "live"])
@pytest.mark.parametrize("headers", [{}, PRO], ids=["no key", "key"])
def test_planned_v1_urls_currently_answer_404(
    rail: httpx.Client, family: str, method: str, headers: dict[str, str]
) -> None:
    answer = rail.get(f"/v1/{family}/{method}", headers=headers)
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"
