"""machine-rail.md, sections 2.1 and 2.2: event pages and event documents."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

NOW = 1_795_953_607
DAY = {"start_time": NOW - 86_400, "end_time": NOW}
FAMILIES = ["spread", "splash", "funding"]
ADVICE = re.compile(r"advice|recommend|signal|suggest|should|action|strategy", re.IGNORECASE)


def page(market: httpx.Client, family: str, **query: Any) -> dict[str, Any]:
    answer = market.get(f"history/{family}-events", params=DAY | query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_the_type_of_a_spread_event_page_is_spread_events_page(market: httpx.Client) -> None:
    assert page(market, "spread")["type"] == "spread_events_page"


@pytest.mark.parametrize("family", FAMILIES)
def test_items_are_complete_canonical_documents_newest_first(
    market: httpx.Client, family: str
) -> None:
    tools = market.get("schemas").json()["tools"]
    schema = tools[f"data.get_{family}_events"]["document"]
    items = page(market, family, limit=500)["items"]
    for item in items:
        assert item.keys() == schema["properties"].keys() == set(schema["required"])
    times = [item["ts_ms"] for item in items]
    assert times == sorted(times, reverse=True)


def test_has_more_is_true_when_further_events_exist_in_the_window(market: httpx.Client) -> None:
    whole = page(market, "funding", limit=500)
    assert whole["has_more"] is False
    count = len(whole["items"])
    assert page(market, "funding", limit=count)["has_more"] is False
    assert page(market, "funding", limit=count - 1)["has_more"] is True


def test_next_cursor_is_opaque_base64url_and_leads_to_the_next_page(market: httpx.Client) -> None:
    whole = page(market, "funding", limit=500)["items"]
    first = page(market, "funding", limit=3)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", first["next_cursor"])
    second = page(market, "funding", limit=3, cursor=first["next_cursor"])
    assert first["items"] + second["items"] == whole[:6]


@pytest.mark.parametrize("family", FAMILIES)
def test_three_canonical_schemas_are_known_by_the_schema_field(
    market: httpx.Client, family: str
) -> None:
    schemas = {item["schema"] for item in page(market, family)["items"]}
    assert schemas == {f"svc.{family}.v1"}


@pytest.mark.parametrize("family", FAMILIES)
def test_known_fields_are_schema_event_type_and_instrument_with_symbol(
    market: httpx.Client, family: str
) -> None:
    for item in page(market, family)["items"]:
        assert item["event_type"].startswith(f"{family}.")
        symbol = item["instrument"]["symbol"]
        assert symbol == f"{item['instrument']['base']}_{item['instrument']['quote']}"


def test_spread_opened_is_an_event_type(market: httpx.Client) -> None:
    found = page(market, "spread", event_type="spread.opened")["items"]
    assert {(item["event_type"], item["lifecycle"]) for item in found} == {
        ("spread.opened", "open")
    }


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


def test_advice_branded_fields_of_funding_are_never_published(market: httpx.Client) -> None:
    def names(document: dict[str, Any]) -> set[str]:
        nested = [names(value) for value in document.values() if isinstance(value, dict)]
        return set(document).union(*nested)

    for item in page(market, "funding", limit=500)["items"]:
        assert not [name for name in names(item) if ADVICE.search(name)]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_trace_is_absent_from_the_live_documents(market: httpx.Client, family: str) -> None:
    assert all("trace" not in item for item in page(market, family)["items"])
