"""machine-rail.md, section 2: resources, event pages and documents; a trace is kept intact."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from .conftest import DAY, FAMILIES


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


def page(market: httpx.Client, family: str, **query: Any) -> dict[str, Any]:
    answer = market.get(f"history/{family}-events", params=DAY | query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_has_more_is_true_when_further_events_exist_in_the_window(market: httpx.Client) -> None:
    whole = page(market, "funding", limit=500)
    assert whole["has_more"] is False
    count = len(whole["items"])
    assert page(market, "funding", limit=count)["has_more"] is False
    assert page(market, "funding", limit=count - 1)["has_more"] is True


@pytest.mark.parametrize("family", FAMILIES)
def test_known_fields_are_schema_event_type_and_instrument_with_symbol(
    market: httpx.Client, family: str
) -> None:
    for item in page(market, family)["items"]:
        assert item["event_type"].startswith(f"{family}.")
        symbol = item["instrument"]["symbol"]
        assert symbol == f"{item['instrument']['base']}_{item['instrument']['quote']}"


def test_the_net_of_fees_figures_of_funding_are_declared_and_always_null(
    market: httpx.Client,
) -> None:
    tools = market.get("schemas").json()["tools"]
    schema = tools["data.get_funding_events"]["document"]
    assert set(schema["properties"]["net_of_fees"]["properties"]) == {"pct_8h", "apr_pct"}
    items = page(market, "funding", limit=500)["items"]
    assert items
    for item in items:
        assert item["net_of_fees"] == {"pct_8h": None, "apr_pct": None}
