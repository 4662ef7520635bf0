from __future__ import annotations

from typing import Any

import httpx
import pytest

from toolkit.market import EventFamily, Family, Market, Plan
from toolkit.service import Config, Replay, running
from toolkit.service.accounts import TERMS
from toolkit.service.api.registry import TOOLS
from toolkit.service.events.documents import document_schema

PRICE = {"symbol": "BTC_USDT", "exchange": "ALPHA", "market": "spot"}
SPREAD = {
    "symbol": "BTC_USDT",
    "buy_exchange": "ALPHA",
    "buy_market": "spot",
    "sell_exchange": "BETA",
    "sell_market": "futures",
}
HISTORIES = [("history/price", PRICE), ("history/spread", SPREAD)]
ROUTES = [("symbols/search", {}), *HISTORIES]
BY_NAME = {tool.name: tool for tool in TOOLS}
HOUR_S, DAY_S = 3_600, 86_400


def faults(answer: httpx.Response) -> dict[str, str]:
    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] == "bad_request"
    return {error["parameter"]: error["detail"] for error in answer.json()["errors"]}


def test_schemas_lists_the_tools_that_are_routed(pro: httpx.Client) -> None:
    document = pro.get("schemas").json()
    assert document["type"] == "schemas"
    assert document["version"] == "2026-11-01"
    assert {name: tool["route"] for name, tool in document["tools"].items()} == {
        "data.get_schemas": "/api/v1/data/schemas",
        "data.search_symbols": "/api/v1/data/symbols/search",
        "data.get_price_history": "/api/v1/data/history/price",
        "data.get_spread_history": "/api/v1/data/history/spread",
        "data.get_funding_history": "/api/v1/data/history/funding",
        "data.get_spread_events": "/api/v1/data/history/spread-events",
        "data.get_splash_events": "/api/v1/data/history/splash-events",
        "data.get_funding_events": "/api/v1/data/history/funding-events",
        "data.get_event_activity": "/api/v1/data/event-activity",
        "data.get_spread_dashboard": "/api/v1/data/dashboards/spread",
        "data.get_funding_overview": "/api/v1/data/dashboards/funding-overview",
    }


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_each_entry_of_schemas_has_the_fields_of_the_contract(pro: httpx.Client, tool: Any) -> None:
    shown = pro.get("schemas").json()["tools"][tool.name]
    assert set(shown) == {
        *("route", "minimum_plan", "retention_s", "delay_s"),
        *("input_schema", "record", "pagination"),
        *(["document"] if tool.documents else []),
    }
    assert shown["minimum_plan"] == tool.minimum_plan
    assert (shown["record"] is None) is (tool.name.endswith(("_events", "_schemas")))
    retained = 30 * 86_400 if tool.pagination else None
    assert (shown["retention_s"], shown["delay_s"]) == (retained, 0)
    assert shown["input_schema"]["type"] == "object"


@pytest.mark.parametrize("name", [f"data.get_{each}_history" for each in Family])
def test_histories_page_backwards_by_an_exclusive_end_time(pro: httpx.Client, name: str) -> None:
    assert pro.get("schemas").json()["tools"][name]["pagination"] == {
        "kind": "end_time",
        "order": "desc",
        "end_time": "exclusive",
        "next": "next_end_time",
    }


@pytest.mark.parametrize("family", EventFamily)
def test_event_logs_page_by_cursor_and_show_the_schema_of_their_documents(pro, family) -> None:
    shown = pro.get("schemas").json()["tools"][f"data.get_{family}_events"]
    assert shown["pagination"] == {
        "kind": "cursor",
        "parameter": "cursor",
        "next": "next_cursor",
        "more": "has_more",
        "max_window_s": 604_800,
        "max_limit": 500,
    }
    assert shown["document"] == document_schema(family)
    properties = shown["input_schema"]["properties"]
    assert (properties["limit"]["default"], properties["limit"]["maximum"]) == (200, 500)
    assert set(shown["input_schema"]["required"]) == {"start_time", "end_time"}
    types = shown["document"]["properties"]["event_type"]["enum"]
    assert properties["event_type"]["enum"] == sorted(types)


@pytest.mark.parametrize(
    ("plan", "depths"),
    [
        (Plan.FREE, [7 * DAY_S, 7 * DAY_S, None, HOUR_S, None, None]),
        (Plan.BUILDER, [30 * DAY_S] * 6),
        (Plan.PRO, [30 * DAY_S] * 6),
    ],
)
def test_depth_and_delay_are_the_callers_plans(anonymous, plan, depths) -> None:
    """What a plan is refused has neither."""
    answer = anonymous.get("/api/v1/data/schemas", headers={"apikey": f"demo-{plan}"})
    tools = answer.json()["tools"]
    names = [f"data.get_{each}_history" for each in Family]
    names += [f"data.get_{each}_events" for each in EventFamily]
    assert [tools[name]["retention_s"] for name in names] == depths
    delays = {name: tool["delay_s"] for name, tool in tools.items() if tool["delay_s"]}
    assert (
        delays
        == {
            Plan.FREE: {
                "data.search_symbols": 600,
                "data.get_spread_history": 60,
                "data.get_spread_events": 60,
            },
            Plan.BUILDER: {"data.get_spread_dashboard": 30},
            Plan.PRO: {},
        }[plan]
    )


def test_records_state_type_unit_nullability_and_sign(pro: httpx.Client) -> None:
    tools = pro.get("schemas").json()["tools"]
    price = tools["data.get_price_history"]["record"]
    assert price["key"] == ["ts"]
    assert price["fields"] == {
        "ts": {"type": "integer", "unit": "s", "nullable": False},
        "price": {"type": "number", "unit": "quote", "nullable": False},
        "mark_price": {"type": "number", "unit": "quote", "nullable": True},
        "volume": {"type": "number", "unit": "quote", "nullable": True},
    }
    funding = tools["data.get_funding_history"]["record"]["fields"]
    assert {name: field["unit"] for name, field in funding.items()} == {
        "ts": "s",
        "buy_rate": "fraction_per_interval",
        "sell_rate": "fraction_per_interval",
        "buy_interval_hours": "hours",
        "sell_interval_hours": "hours",
        "differential_pct_8h": "percent_per_8h",
    }
    assert [name for name, field in funding.items() if not field["nullable"]] == ["ts"]
    record = tools["data.get_spread_history"]["record"]
    assert record["key"] == ["ts"]
    assert {name: field["unit"] for name, field in record["fields"].items()} == {
        "ts": "s",
        "buy_price": "quote",
        "sell_price": "quote",
        "spread_pct": "percent",
    }
    spread = record["fields"]["spread_pct"]
    assert "long the buy leg and short the sell leg" in spread["positive_means"]
    assert "sell_price / buy_price - 1" in spread["sign"]
    asked = tools["data.get_spread_history"]["input_schema"]["properties"]
    assert "BASE_QUOTE" in asked["symbol"]["description"]


@pytest.mark.parametrize("plan", Plan)
def test_the_limit_shown_is_the_callers_plans(anonymous: httpx.Client, plan: Plan) -> None:
    answer = anonymous.get("/api/v1/data/schemas", headers={"apikey": f"demo-{plan}"})
    for name in ("data.get_price_history", "data.get_spread_history"):
        limit = answer.json()["tools"][name]["input_schema"]["properties"]["limit"]
        assert limit["minimum"] == 1
        assert (limit["default"], limit["maximum"]) == (500, TERMS[plan].page.maximum)


def test_a_service_s_own_retention_is_stated_for_the_histories_alone(replay: Replay) -> None:
    with running(Config(replay, port=0, retention_s=3600)) as service:
        answer = httpx.get(
            f"{service.base_url}/api/v1/data/schemas", headers={"apikey": "demo-pro"}
        )
    stated = {name: tool["retention_s"] for name, tool in answer.json()["tools"].items()}
    assert [name for name, seconds in stated.items() if seconds == 3600] == [
        f"data.get_{family}_history" for family in Family
    ]


def test_required_parameters_are_those_without_a_default(pro: httpx.Client) -> None:
    tools = pro.get("schemas").json()["tools"]
    required = {name: set(tool["input_schema"]["required"]) for name, tool in tools.items()}
    assert required["data.search_symbols"] == set()
    assert required["data.get_price_history"] == set(PRICE)
    assert required["data.get_spread_history"] == set(SPREAD)


@pytest.mark.parametrize(("route", "query"), HISTORIES)
def test_each_missing_parameter_is_named(pro, route, query) -> None:
    assert faults(pro.get(route)) == dict.fromkeys(query, "is missing")
    for name in query:
        rest = {other: value for other, value in query.items() if other != name}
        assert faults(pro.get(route, params=rest)) == {name: "is missing"}


@pytest.mark.parametrize("value", ["", "0", "-1", "1.5", "ten", "null", "1_0", "0x1", "1,2"])
@pytest.mark.parametrize(("route", "query"), ROUTES)
def test_a_limit_that_is_no_whole_number_from_1_is_refused(pro, route, query, value) -> None:
    assert faults(pro.get(route, params={**query, "limit": value})).keys() == {"limit"}


@pytest.mark.parametrize(
    "value", ["", "null", "now", "-1", "1.5", "1700000000000", "99999999999999999999", "1e400"]
)
@pytest.mark.parametrize(("route", "query"), HISTORIES)
def test_an_end_time_that_is_no_unix_second_is_refused(pro, route, query, value) -> None:
    assert faults(pro.get(route, params={**query, "end_time": value})).keys() == {"end_time"}


@pytest.mark.parametrize("value", ["", "SPOT", "perp", "spot "])
def test_a_market_that_is_none_is_refused(pro: httpx.Client, value: str) -> None:
    refused = faults(pro.get("history/price", params={**PRICE, "market": value}))
    assert refused == {"market": f"{value!r} is not allowed; allowed: spot, futures or dex"}


@pytest.mark.parametrize("name", ["data.get_price_history", "data.get_spread_history"])
def test_the_markets_are_those_of_the_vocabulary(pro: httpx.Client, name: str) -> None:
    properties = pro.get("schemas").json()["tools"][name]["input_schema"]["properties"]
    found = [shown["enum"] for parameter, shown in properties.items() if "market" in parameter]
    assert found
    assert all(sorted(values) == sorted(Market) for values in found)


def test_all_wrong_parameters_are_named_at_once(pro: httpx.Client) -> None:
    query = {"symbol": "BTC_USDT", "market": "perp", "limit": "0", "end_time": "soon"}
    found = faults(pro.get("history/price", params=query))
    assert found.keys() == {"exchange", "market", "limit", "end_time"}


@pytest.mark.parametrize(("route", "query"), ROUTES)
def test_a_parameter_that_comes_twice_is_refused(pro, route, query) -> None:
    twice = [*query.items(), ("limit", "5"), ("limit", "5")]
    assert faults(pro.get(route, params=twice)) == {"limit": "sent 2 times; send it once"}


@pytest.mark.parametrize(("route", "query"), [("schemas", {}), *ROUTES])
def test_unknown_parameters_are_ignored(pro, route, query) -> None:
    plain = pro.get(route, params=query)
    more = pro.get(route, params=[*query.items(), ("shape", "round"), ("shape", "square")])
    assert plain.status_code == 200
    assert more.content == plain.content


def test_what_was_sent_is_shown_shortened(pro: httpx.Client) -> None:
    refused = faults(pro.get("symbols/search", params={"limit": "9" * 5000 + "x"}))
    assert "9" * 80 in refused["limit"]
    assert len(refused["limit"]) < 200
