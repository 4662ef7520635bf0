"""machine-rail.md, sections 2.3 and 3, from the client's side."""

from __future__ import annotations

import json

import pytest

from tests.spec.told_service import NOW, document, told_service
from toolkit.client import Client
from toolkit.workspace.events.event_selection import open_events

PRICE = "BTC_USDT:KRAKEN.spot"
SPREAD = "BTC_USDT:KRAKEN.spot:BYBIT.futures"
MINUTES = [{"ts": NOW - 60 * n, "price": 100.0 + n} for n in range(250)]
HOUR = (NOW - 3_600, NOW + 1)


def test_a_trace_beside_a_row_is_kept_with_it() -> None:
    rows = [row | {"trace": "for-you-alone"} for row in MINUTES[:3]]
    with told_service(rows=rows) as told, Client(told.base_url, "key") as client:
        extra = client.history(PRICE, *HOUR)["extra"].to_list()
    assert [json.loads(text) for text in extra] == [{"trace": "for-you-alone"}] * 3


@pytest.mark.parametrize("page", [1, 2, 7, 249, 250, 1_000])
def test_next_end_time_is_followed_to_the_end_of_a_history(page: int) -> None:
    minutes = MINUTES[: 30 * page]  # the client keeps to the quota, which takes time
    with told_service(rows=minutes, page=page) as told, Client(told.base_url, "key") as client:
        found = client.history(PRICE, NOW - 300 * 60, NOW + 1)
        ends = [int(query["end_time"]) for query in told.queries("history/price")]
    assert found["ts"].to_list() == sorted(row["ts"] for row in minutes)
    assert ends == sorted(ends, reverse=True)


def test_units_and_signs_are_those_that_schemas_gives_at_run_time() -> None:
    fields = {
        "ts": {"unit": "ms"},
        "buy_price": {"unit": "quote"},
        "sell_price": {"unit": "quote"},
        "spread_pct": {"unit": "bps", "positive_means": "long the sell leg, short the buy leg"},
    }
    tool = {"route": "/api/v1/data/history/spread", "record": {"key": ["ts"], "fields": fields}}
    row = {"ts": (NOW - 60) * 1_000, "buy_price": 100.0, "sell_price": 101.0, "spread_pct": -100.0}
    schemas = {"tools": {"data.get_spread_history": tool}}
    pages = {"history/spread": [json.dumps({"items": [row], "next_end_time": None})] * 9}
    with (
        told_service(schemas=schemas, bodies=pages) as told,
        Client(told.base_url, "key") as client,
    ):
        found = client.history(SPREAD, *HOUR)
    assert found.select("ts", "spread_pct").rows() == [(NOW - 60, 1.0)]


def test_what_is_open_is_asked_by_the_filter_lifecycle_with_the_value_open() -> None:
    with told_service(documents=[document("e1", "opened", NOW - 9)]) as told:
        with Client(told.base_url, "key") as client:
            found = open_events(client, "spread", "1h")
        values = [query.get("lifecycle") for query in told.queries("history/spread-events")]
    assert values[0] == "open"
    assert found.rows["event_id"].to_list() == ["e1"]


@pytest.mark.parametrize("lifecycle", ["open", "closed", "paused", None])
def test_a_document_of_any_state_is_kept(lifecycle: str | None) -> None:
    sent = document("e1", "changed", NOW - 9, lifecycle=lifecycle)
    with told_service(documents=[sent]) as told, Client(told.base_url, "key") as client:
        (page,) = client.event_pages("spread", HOUR)
    assert page.frame.select("lifecycle", "document").rows() == [(lifecycle, sent)]
