"""machine-rail.md, section 2: resources, event pages and documents; a trace is kept intact."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import miniature
from tests.adversary import Adversary, RestSwitches, adverse
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.loader.follow.reader import Message, Messages
from toolkit.market import EventFamily, EventLog, Trajectory
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.signatures import read_delivery


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


NOW = 1_795_953_607
TRACED = b'{ "schema":"svc.splash.v1", "ts":60, "trace":"k\\u00e9y-7", "event_id":"e1" }'


@pytest.fixture
def marked() -> Config:
    """A service that puts a trace into every record and document, which the live one does not."""
    switches = RestSwitches(extra_fields={"trace": "of-ann"})
    return Config(
        Simulated(7),
        port=0,
        clock=Clock(fixed_at=NOW),
        application=adverse(Adversary(rest=switches)),
    )


@pytest.mark.slow
def test_a_trace_in_the_retained_documents_is_in_the_store_as_it_came(
    marked: Config, tmp_path: Path
) -> None:
    store = Store(tmp_path / "rail.duckdb")
    with running(marked) as service, Client(service.base_url, "demo-pro") as client:
        sync(client, store, [EventLog(EventFamily.FUNDING)], Interval(NOW - 86_400, NOW))
        held = store.events(EventFamily.FUNDING, Interval(NOW - 86_400, NOW))
    assert held.height > 5
    assert {json.loads(text)["trace"] for text in held["document"]} == {"of-ann"}


@pytest.mark.slow
def test_a_trace_in_a_record_is_kept_beside_its_columns(marked: Config) -> None:
    with running(marked) as service, Client(service.base_url, "demo-pro") as client:
        one = Trajectory.parse("BTC_USDT:AURORA.spot")
        rows = client.history(one, NOW - 600, NOW)
    assert rows.height > 5
    assert {json.loads(text)["trace"] for text in rows["extra"]} == {"of-ann"}


def test_a_trace_on_a_stream_or_in_a_webhook_is_kept_to_the_byte() -> None:
    pending = Messages(BUILT_IN)
    pending.add(Message(EventLog(EventFamily.SPLASH), TRACED))
    batch, _, _ = pending.batch_of_all()
    assert batch.documents[0]["document"].to_list() == [TRACED.decode()]
    assert read_delivery(BUILT_IN_EVENTS, TRACED).body.encode() == TRACED


DAY = {"start_time": NOW - 86_400, "end_time": NOW}
FAMILIES = ["spread", "splash", "funding"]
ADVICE = re.compile(r"advice|recommend|signal|suggest|should|action|strategy", re.IGNORECASE)


def page(market: httpx.Client, family: str, **query: Any) -> dict[str, Any]:
    answer = market.get(f"history/{family}-events", params=DAY | query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


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


def test_advice_branded_fields_of_funding_are_never_published(market: httpx.Client) -> None:
    def names(document: dict[str, Any]) -> set[str]:
        nested = [names(value) for value in document.values() if isinstance(value, dict)]
        return set(document).union(*nested)

    for item in page(market, "funding", limit=500)["items"]:
        assert not [name for name in names(item) if ADVICE.search(name)]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_trace_is_absent_from_the_live_documents(market: httpx.Client, family: str) -> None:
    assert all("trace" not in item for item in page(market, family)["items"])
