"""machine-rail.md, section 2: resources and their fields."""

from __future__ import annotations

import httpx
import pytest

from tests import miniature


def test_the_trace_watermark_is_absent_and_the_native_type_is_kept(
    rail: httpx.Client, route: tuple[str, dict[str, str]]
) -> None:
    path, query = route
    answer = rail.get(path, params=query, headers={"apikey": "demo-pro"})
    assert answer.status_code == 200
    assert "trace" not in answer.text
    assert (
        answer.json()["type"]
        == {
            "schemas": "schemas",
            "symbols/search": "symbols_page",
            "history/price": "price_history_page",
            "history/spread": "spread_history_page",
            "history/funding": "funding_history_page",
            "history/spread-events": "spread_events_page",
            "history/splash-events": "splash_events_page",
            "history/funding-events": "funding_events_page",
            "event-activity": "event_activity",
            "dashboards/spread": "spread_dashboard",
            "dashboards/funding-overview": "funding_overview",
        }[path.removeprefix("/api/v1/data/")]
    )


@pytest.mark.parametrize("family", ["price", "spread", "funding"])
def test_trajectory_history_pages_use_next_end_time(rail: httpx.Client, family: str) -> None:
    schemas = rail.get("/api/v1/data/schemas", headers={"apikey": "demo-free"}).json()
    pagination = schemas["tools"][f"data.get_{family}_history"]["pagination"]
    assert pagination["next"] == "next_end_time"


def test_units_signs_and_key_formats_are_obtainable_from_the_schemas_endpoint(
    rail: httpx.Client, key: dict[str, str]
) -> None:
    tools = rail.get("/api/v1/data/schemas", headers=key).json()["tools"]
    spread = tools["data.get_spread_history"]
    assert spread["record"]["key"] == ["ts"]
    assert {name: field["unit"] for name, field in spread["record"]["fields"].items()} == {
        "ts": "s",
        "buy_price": "quote",
        "sell_price": "quote",
        "spread_pct": "percent",
    }
    assert spread["record"]["fields"]["spread_pct"]["sign"]
    assert spread["record"]["fields"]["spread_pct"]["positive_means"]
    assert "BASE_QUOTE" in spread["input_schema"]["properties"]["symbol"]["description"]


def test_the_sign_stated_is_the_sign_sent(rail: httpx.Client) -> None:
    query = {
        "symbol": "BTC_USDT",
        "buy_exchange": "AURORA",
        "buy_market": "spot",
        "sell_exchange": "CORONA",
        "sell_market": "futures",
        "end_time": str(miniature.END),
    }
    answer = rail.get("/api/v1/data/history/spread", params=query, headers={"apikey": "demo-pro"})
    items = answer.json()["items"]
    assert len(items) == 500
    for item in items:
        assert (item["spread_pct"] > 0) is (item["sell_price"] > item["buy_price"])
