"""machine-rail.md, section 4.1, from the client's side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.spec.told_service import DATA, NOW, Told, document, told_service
from toolkit.client import Client
from toolkit.errors import InputError
from toolkit.loader import sync
from toolkit.market import EventLog, SnapshotKind, Stream
from toolkit.store import Store
from toolkit.wire.exchange import Request
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.socket_steps import action_of

KEYS = {
    "history/price": "BTC_USDT:KRAKEN.spot",
    "history/spread": "BTC_USDT:KRAKEN.spot:BYBIT.futures",
    "history/funding": "funding/BTC_USDT:KRAKEN.spot:BYBIT.futures",
}
LOGS = ["spread", "splash", "funding"]
HOUR = (NOW - 3_600, NOW)
DAY_S = 86_400


def of_all_routes(told: Told) -> None:
    """Ask everything that the client asks."""
    with Client(told.base_url, "sekrit-0815") as client:
        client.symbols("BTC")
        for key in KEYS.values():
            client.history(key, *HOUR)
        for family in LOGS:
            list(client.event_pages(family, HOUR))
        for kind in SnapshotKind:
            client.snapshot(kind)


def test_every_question_is_a_get_of_a_live_route_with_the_key_in_a_header() -> None:
    with told_service() as told:
        of_all_routes(told)
    assert {method for method, *_ in told.asked} == {"GET"}
    assert {path.removeprefix(DATA) for _, path, *_ in told.asked} == {
        "schemas",
        "symbols/search",
        *KEYS,
        *(f"history/{family}-events" for family in LOGS),
        "event-activity",
        "dashboards/spread",
        "dashboards/funding-overview",
    }
    assert {h["authorization"] for *_, h in told.asked} == {"Bearer sekrit-0815"}
    assert not any("sekrit" in path + json.dumps(query) for _, path, query, _ in told.asked)


def test_a_search_has_q_and_limit() -> None:
    with told_service() as told, Client(told.base_url, "key") as client:
        client.symbols("BTC")
    (query,) = told.queries("symbols/search")
    assert query["q"] == "BTC"
    assert query["limit"].isdecimal()


def test_a_price_history_is_asked_by_the_five_fields_that_are_stated() -> None:
    with told_service() as told, Client(told.base_url, "key") as client:
        client.history(KEYS["history/price"], *HOUR)
    query = told.queries("history/price")[0]
    assert {name: query[name] for name in ("symbol", "exchange", "market")} == {
        "symbol": "BTC_USDT",
        "exchange": "KRAKEN",
        "market": "spot",
    }
    assert query.keys() == {"symbol", "exchange", "market", "end_time", "limit"}
    assert int(query["end_time"]) == NOW


@pytest.mark.parametrize("route", KEYS)
def test_the_fields_of_a_history_are_those_of_its_action_on_the_socket(route: str) -> None:
    with told_service() as told, Client(told.base_url, "key") as client:
        client.history(KEYS[route], *HOUR)
        query = told.queries(route)[0]
    message = action_of(BUILT_IN, Request.get(DATA + route, query), 1)
    said: dict[str, Any] = json.loads(message or b"{}")
    assert said.pop("action") == route
    assert said.pop("id") == 1
    assert {name: str(value) for name, value in said.items()} == query


@pytest.mark.parametrize("family", LOGS)
@pytest.mark.parametrize("page", [1, 3, 500])
def test_all_pages_of_a_window_are_asked_by_one_query_and_the_cursor(
    family: str, page: int
) -> None:
    sent = [document(f"e{n}", "opened", NOW - 60 * (n // 4) - 1) for n in range(20)]
    with told_service(documents=sent, page=page) as told, Client(told.base_url, "key") as client:
        pages = list(client.event_pages(family, HOUR))
    queries = told.queries(f"history/{family}-events")
    cursors = [query.pop("cursor", None) for query in queries]
    assert queries == [queries[0]] * len(pages)
    assert queries[0].keys() == {"start_time", "end_time", "limit"}
    assert (int(queries[0]["start_time"]), int(queries[0]["end_time"])) == HOUR
    assert 1 <= int(queries[0]["limit"]) <= 500
    assert cursors[0] is None
    assert None not in cursors[1:]
    kept = pl.concat([each.frame for each in pages])  # also where a second spans two pages
    assert sorted(kept["document"].to_list()) == sorted(sent)


@pytest.mark.parametrize("cursor", ["AA==", "not base64 at all", "é ü &=?#", "x" * 500, "0"])
def test_a_cursor_is_sent_back_as_it_came(cursor: str) -> None:
    first = json.dumps({"items": [json.loads(document("e1", "opened", NOW - 9))]})[:-1]
    more = f'{first},"has_more":true,"next_cursor":{json.dumps(cursor)}}}'
    bodies = {"history/spread-events": [more, '{"items":[],"has_more":false}']}
    with told_service(bodies=bodies) as told, Client(told.base_url, "key") as client:
        list(client.event_pages("spread", HOUR))
    assert told.queries("history/spread-events")[1]["cursor"] == cursor


def test_an_empty_page_ends_the_window() -> None:
    with told_service() as told, Client(told.base_url, "key") as client:
        (page,) = client.event_pages("spread", HOUR)
    assert page.frame.is_empty()
    assert len(told.queries("history/spread-events")) == 1


def test_no_question_covers_more_than_seven_days() -> None:
    with told_service() as told, Client(told.base_url, "key") as client:
        with pytest.raises(InputError, match="at most 604800 s"):
            list(client.event_pages("spread", (NOW - 8 * DAY_S, NOW)))
        list(client.event_pages("spread", (NOW - 7 * DAY_S, NOW)))
    assert len(told.queries("history/spread-events")) == 1


def test_a_load_of_the_whole_archive_asks_thirty_days_in_parts_of_at_most_seven(
    tmp_path: Path,
) -> None:
    sent = [document(f"e{n}", "opened", NOW - 40 * DAY_S + n * DAY_S + 9) for n in range(40)]
    log = EventLog.of("spread")
    with told_service(documents=sent) as told, Client(told.base_url, "key") as client:
        store = Store(tmp_path / "s.duckdb")
        done = sync(client, store, [log], (NOW - 40 * DAY_S, NOW))
        windows = sorted(
            (int(query["start_time"]), int(query["end_time"]))
            for query in told.queries("history/spread-events")
        )
    assert max(end - start for start, end in windows) <= 7 * DAY_S
    assert NOW - 30 * DAY_S - 120 <= windows[0][0] <= NOW - 30 * DAY_S + 120
    assert sum(b - a for a, b in done.unrecoverable[log]) == pytest.approx(10 * DAY_S, abs=120)
    held = store.events("spread", (0, NOW))["document"].to_list()
    assert set(sent[11:]) <= set(held) <= set(sent)


def test_a_loaded_document_is_complete_to_the_byte(tmp_path: Path) -> None:
    sent = [document("e1", "opened", NOW - 900, more={"a": [1, 2.50, None, "é"]})]
    with told_service(documents=sent) as told, Client(told.base_url, "key") as client:
        store = Store(tmp_path / "s.duckdb")
        sync(client, store, [Stream.parse("events/spread")], HOUR)
    assert store.events("spread", HOUR)["document"].to_list() == sent
