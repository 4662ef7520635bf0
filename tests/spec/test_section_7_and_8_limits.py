"""machine-rail.md, sections 7 to 9: errors, limits and versioning."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from .conftest import BUILDER, DAY_S, FREE, LEG, LEGS, NOW, PRO
from .sockets import PATHS, status_of


def oldest(market: httpx.Client, key: dict[str, str]) -> int:
    """The oldest minute of one leg that a plan is shown."""
    maximum = {"demo-free": 1_000, "demo-builder": 5_000, "demo-pro": 10_000}[key["apikey"]]
    end: int | None = NOW
    while end is not None:
        query: dict[str, Any] = {**LEG, "limit": maximum, "end_time": end}
        page = market.get("history/price", params=query, headers=key).json()
        end = page["next_end_time"]
    found: int = page["items"][-1]["ts"]
    return found


@pytest.mark.parametrize("family", ["spread", "splash", "funding"])
def test_the_event_archive_retains_thirty_days(market: httpx.Client, family: str) -> None:
    edge = NOW - 30 * DAY_S
    beyond = {"start_time": edge - DAY_S, "end_time": edge, "limit": 500}
    across = {"start_time": edge - DAY_S, "end_time": edge + DAY_S, "limit": 1}
    assert market.get(f"history/{family}-events", params=beyond).json()["items"] == []
    (newest,) = market.get(f"history/{family}-events", params=across).json()["items"]
    assert newest["ts"] >= edge
    tools = market.get("schemas").json()["tools"]
    assert tools[f"data.get_{family}_events"]["retention_s"] == 30 * DAY_S


def test_free_symbol_metadata_is_at_least_ten_minutes_old(market: httpx.Client) -> None:
    tools = market.get("schemas", headers=FREE).json()["tools"]
    assert tools["data.search_symbols"]["delay_s"] == 600
    items = market.get("symbols/search", headers=FREE).json()["items"]
    assert {item["updated_at"] for item in items} == {NOW - 600}
    for key in (BUILDER, PRO):
        items = market.get("symbols/search", headers=key).json()["items"]
        assert {item["updated_at"] for item in items} == {NOW}


@pytest.mark.parametrize(("route", "query"), [("history/price", LEG), ("history/spread", LEGS)])
def test_the_history_limit_is_capped_per_tier(
    market: httpx.Client, route: str, query: dict[str, str]
) -> None:
    for plan, most in (("free", 1_000), ("builder", 5_000), ("pro", 10_000)):
        key = {"apikey": f"demo-{plan}"}
        served = market.get(route, params={**query, "limit": most}, headers=key)
        assert served.status_code == 200
        refused = market.get(route, params={**query, "limit": most + 1}, headers=key)
        (error,) = refused.json()["errors"]
        assert (refused.status_code, error["parameter"]) == (400, "limit")
        assert f"at most {most} on the {plan} plan" in error["detail"]


def test_history_is_as_deep_as_the_plan(market: httpx.Client) -> None:
    """Outside it the answer is 200 with what there is."""
    for key, days in ((FREE, 7), (BUILDER, 30), (PRO, 30)):
        edge = NOW - days * DAY_S
        assert edge <= oldest(market, key) < edge + 60
        beyond = market.get("history/price", params={**LEG, "end_time": edge}, headers=key)
        assert beyond.status_code == 200
        assert (beyond.json()["items"], beyond.json()["next_end_time"]) == ([], None)


def test_the_live_interface_is_versioned_by_its_path_prefix(
    rail: httpx.Client, route: tuple[str, dict[str, str]]
) -> None:
    path, query = route
    key = {"apikey": "demo-pro"}
    assert rail.get(path, params=query, headers=key).status_code == 200
    for other in ("/data", "/api/data", "/api/v2/data", "/v1/data"):
        moved = path.replace("/api/v1/data", other)
        assert rail.get(moved, params=query, headers=key).status_code == 404


@pytest.mark.parametrize("path", PATHS)
def test_the_socket_paths_are_versioned_by_the_same_prefix(rail: httpx.Client, path: str) -> None:
    base_url, key = str(rail.base_url).rstrip("/"), PRO
    assert status_of(base_url, path, key) == 101
    for other in ("", "/api", "/api/v2", "/v1"):
        assert status_of(base_url, path.replace("/api/v1", other), key) == 404
