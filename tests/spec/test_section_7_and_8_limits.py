"""machine-rail.md, sections 7 to 9: errors, limits and versioning."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests import miniature
from toolkit.service import Clock, Config, running

from .conftest import tools_listed
from .sockets import PATHS, status_of

NOW = 1_795_953_607
DAY_S = 86_400
FREE, BUILDER, PRO = ({"apikey": f"demo-{plan}"} for plan in ("free", "builder", "pro"))
LEG = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}


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


def test_a_tier_below_the_minimum_is_refused_access(
    rail: httpx.Client, builder_route: tuple[str, dict[str, str]]
) -> None:
    path, query = builder_route
    answer = rail.get(path, params=query, headers=FREE)
    assert (answer.status_code, answer.json()["code"]) == (403, "tier_required")
    assert "insufficient_scope" in answer.headers["www-authenticate"]


def test_a_spent_quota_is_refused_until_it_is_said_to_come_back() -> None:
    config = Config(miniature.source(), port=0, clock=Clock(fixed_at=miniature.END), quota=1)
    with running(config) as service, httpx.Client(base_url=service.base_url) as client:
        answers = [client.get("/api/v1/data/schemas", headers=PRO) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert answers[1].json()["code"] == "quota_exhausted"
    assert int(answers[1].headers["retry-after"]) > 0


def test_an_event_log_page_is_200_by_default_and_500_at_most(market: httpx.Client) -> None:
    tools = market.get("schemas").json()["tools"]
    for family in ("spread", "splash", "funding"):
        limit = tools[f"data.get_{family}_events"]["input_schema"]["properties"]["limit"]
        assert (limit["default"], limit["maximum"]) == (200, 500)


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


def test_the_spread_dashboard_is_thirty_seconds_old_on_builder_and_live_on_pro(
    market: httpx.Client,
) -> None:
    for key, delay_s in ((BUILDER, 30), (PRO, 0)):
        tools = market.get("schemas", headers=key).json()["tools"]
        assert tools["data.get_spread_dashboard"]["delay_s"] == delay_s
        assert market.get("dashboards/spread", headers=key).json()["ts"] == NOW - delay_s


def test_spread_events_on_free_are_a_delayed_one_hour_lane(market: httpx.Client) -> None:
    shown = market.get("schemas", headers=FREE).json()["tools"]["data.get_spread_events"]
    assert (shown["retention_s"], shown["delay_s"]) == (3_600, 60)
    lane = {"start_time": NOW - 3_600, "end_time": NOW, "limit": 500}
    items = market.get("history/spread-events", params=lane, headers=FREE).json()["items"]
    assert items
    assert max(item["ts"] for item in items) < NOW - 60


def test_the_history_limit_is_capped_per_tier(market: httpx.Client) -> None:
    for key, maximum in ((FREE, 1_000), (BUILDER, 5_000), (PRO, 10_000)):
        for limit, expected in ((maximum, 200), (maximum + 1, 400)):
            answer = market.get("history/price", params={**LEG, "limit": limit}, headers=key)
            assert answer.status_code == expected


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


def test_schemas_states_its_version(rail: httpx.Client) -> None:
    document = rail.get("/api/v1/data/schemas", headers={"apikey": "demo-free"}).json()
    assert document["version"] == "2026-11-01"


@pytest.mark.parametrize("path", PATHS)
def test_the_socket_paths_are_versioned_by_the_same_prefix(rail: httpx.Client, path: str) -> None:
    base_url, key = str(rail.base_url).rstrip("/"), [("apikey", "demo-pro")]
    assert status_of(base_url, path, key) == 101
    for other in ("", "/api", "/api/v2", "/v1"):
        assert status_of(base_url, path.replace("/api/v1", other), key) == 404


def test_mcp_has_one_path_without_a_version(rail: httpx.Client) -> None:
    key = {"apikey": "demo-pro"}
    assert tools_listed(rail, key).status_code == 200
    for path in ("/api/v1/mcp", "/v1/mcp", "/api/mcp"):
        assert tools_listed(rail, key, path).status_code == 404


@pytest.mark.parametrize("family", ["spread", "splash", "funding"])
def test_the_schema_identifier_of_event_documents_has_a_version_suffix(
    market: httpx.Client, family: str
) -> None:
    tool = market.get("schemas").json()["tools"][f"data.get_{family}_events"]
    assert tool["document"]["properties"]["schema"]["enum"] == [f"svc.{family}.v1"]
