from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.adversary import ArchiveSettings, FaultyArchive, adverse
from toolkit.market import EventFamily
from toolkit.service import Clock, Config, Simulated, running
from toolkit.service.market.simulator.catalogue import MARKETS

DAY_S = 86_400
NOW = DAY_S * 20_786 + 43_207
DAY = {"start_time": NOW - DAY_S, "end_time": NOW}
BURST = 700


@pytest.fixture(scope="module")
def client(market: Simulated) -> Iterator[httpx.Client]:
    """A service each of whose days has 700 documents in one second."""
    config = Config(
        market,
        port=0,
        clock=Clock(fixed_at=NOW),
        quota=1_000_000,
        application=adverse(events=ArchiveSettings(burst=BURST)),
    )
    with running(config) as service, httpx.Client(timeout=60) as found:
        found.base_url = httpx.URL(f"{service.base_url}/api/v1/data/history/")
        yield found


@pytest.fixture(scope="module")
def ask(client: httpx.Client) -> Callable[..., httpx.Response]:
    def asked(family: str = "spread", *, plan: str = "pro", **query: object) -> httpx.Response:
        given: Any = {name: value for name, value in query.items() if value is not None}
        return client.get(f"{family}-events", params=given, headers={"apikey": f"demo-{plan}"})

    return asked


def page(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def read_all(ask: Callable[..., httpx.Response], family: str, **query: object) -> list[Any]:
    found: list[Any] = []
    cursor = None
    while True:
        one = page(ask(family, **query, cursor=cursor))
        found += one["items"]
        assert one["has_more"] is ("next_cursor" in one)
        if not one["has_more"]:
            return found
        cursor = one["next_cursor"]


def identity(document: dict[str, Any]) -> tuple[Any, ...]:
    return document["ts_ms"], document["event_id"], document["event_type"]


@pytest.mark.parametrize("family", EventFamily)
def test_every_document_of_a_window_arrives_once_newest_first(ask, family) -> None:
    """Though 700 of them are of one second, and many of one millisecond."""
    keys = [identity(document) for document in read_all(ask, family, limit=77, **DAY)]
    assert keys == sorted(set(keys), reverse=True)
    seconds = [ts_ms // 1_000 for ts_ms, *_ in keys]
    assert all(DAY["start_time"] <= ts < DAY["end_time"] for ts in seconds)
    assert max(map(seconds.count, set(seconds))) >= BURST
    for limit in (200, 499, 500, None):
        found = read_all(ask, family, limit=limit, **DAY)
        assert [identity(document) for document in found] == keys, limit
        assert [document["ts"] for document in found] == seconds
    later = DAY | {"start_time": NOW - 6 * 3_600}
    found = read_all(ask, family, limit=7, **later)
    assert [identity(document) for document in found] == [
        key for key, ts in zip(keys, seconds, strict=True) if ts >= later["start_time"]
    ]


def test_a_window_is_start_included_and_end_excluded(ask: Callable[..., httpx.Response]) -> None:
    newest, *_, oldest = read_all(ask, "funding", **DAY)
    inner = {"start_time": oldest["ts"], "end_time": newest["ts"]}
    found = read_all(ask, "funding", **inner)
    assert found[-1] == oldest
    assert newest["ts"] not in {document["ts"] for document in found}
    wider = inner | {"end_time": newest["ts"] + 1}
    assert newest in read_all(ask, "funding", **wider)


def exchanges(document: dict[str, Any]) -> set[str | None]:
    legs = (document, document.get("buy", {}), document.get("sell", {}))
    return {leg.get("exchange") for leg in legs}


def size(document: dict[str, Any]) -> float:
    """What ``min_pct`` is compared with."""
    for name, of in (("spread", "pct"), ("differential", "pct_8h")):
        if name in document:
            return abs(document[name][of])
    return abs(document["pct"])


FILTERS: list[tuple[dict[str, object], Callable[[dict[str, Any]], bool]]] = [
    ({"symbol": "BTC_USDT"}, lambda d: d["instrument"]["symbol"] == "BTC_USDT"),
    ({"exchange": "DRACO"}, lambda d: "DRACO" in exchanges(d)),
    ({"min_pct": "1.5"}, lambda d: size(d) >= 1.5),
    ({"min_pct": "0.11"}, lambda d: size(d) >= 0.11),
    ({"lifecycle": "open"}, lambda d: d["lifecycle"] == "open"),
    (
        {"lifecycle": "closed", "symbol": "ETH_USDT", "min_pct": "0.1"},
        lambda d: (
            d["lifecycle"] == "closed"
            and d["instrument"]["symbol"] == "ETH_USDT"
            and size(d) >= 0.1
        ),
    ),
]


OF_TYPE = ({"event_type": "spread.closed"}, lambda d: d["event_type"] == "spread.closed")


@pytest.mark.parametrize(
    ("family", "filters", "wanted"),
    [*((family, *each) for family in EventFamily for each in FILTERS), ("spread", *OF_TYPE)],
)
def test_filters_leave_what_matches_all_of_them(ask, family, filters, wanted) -> None:
    whole = read_all(ask, family, limit=500, **DAY)
    found = read_all(ask, family, limit=500, **DAY, **filters)
    assert found == [document for document in whole if wanted(document)]
    if family == "spread" and filters != {"min_pct": "0.11"}:  # every spread is wider
        assert 0 < len(found) < len(whole)


CHANGES = [
    {"start_time": NOW - DAY_S + 1},
    {"end_time": NOW - 1},
    {"limit": 4},
    {"symbol": "BTC_USDT"},
    {"lifecycle": "closed"},
    {"min_pct": 1.2},
    {"exchange": "AURORA"},
    {"event_type": "spread.closed"},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_cursor_with_another_window_filter_or_limit_is_a_400(ask, change) -> None:
    query: dict[str, object] = {**DAY, "limit": 3, "lifecycle": "open"}
    cursor = page(ask(**query))["next_cursor"]
    assert page(ask(**query, cursor=cursor))["items"]
    answer = ask(**(query | change), cursor=cursor)
    assert answer.status_code == 400
    assert [error["parameter"] for error in answer.json()["errors"]] == ["cursor"]


def test_a_cursor_of_another_log_is_a_400(ask: Callable[..., httpx.Response]) -> None:
    cursor = page(ask(**DAY, limit=3))["next_cursor"]
    assert ask("splash", **DAY, limit=3, cursor=cursor).status_code == 400


@pytest.mark.parametrize("cursor", ["", "x", "null", "AAAA", "*", "%00", "\u00e9", "A" * 5_000])
def test_a_cursor_that_is_none_is_a_400(ask: Callable[..., httpx.Response], cursor: str) -> None:
    answer = ask(**DAY, cursor=cursor)
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["parameter"] == "cursor"
    assert len(error["detail"]) < 300


def test_a_default_limit_written_out_is_the_same_question(ask) -> None:
    cursor = page(ask(**DAY))["next_cursor"]
    assert page(ask(**DAY, limit=200, cursor=cursor))["items"]


def test_a_cursor_outlives_the_service(ask, market: Simulated) -> None:
    first = page(ask("funding", **DAY, limit=5))
    config = Config(
        Simulated(7, markets={symbol: MARKETS[symbol] for symbol in market.listing}),
        port=0,
        clock=Clock(fixed_at=NOW),
        application=adverse(events=ArchiveSettings(burst=BURST)),
    )
    query = {**DAY, "limit": 5, "cursor": first["next_cursor"]}
    with running(config) as service:
        answer = httpx.get(
            f"{service.base_url}/api/v1/data/history/funding-events",
            params=query,
            headers={"apikey": "demo-builder"},
            timeout=60,
        )
    assert answer.content == ask("funding", **query).content


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"start_time": None}, "start_time"),
    ({"end_time": None}, "end_time"),
    ({"start_time": NOW}, "start_time"),
    ({"start_time": NOW + 1}, "start_time"),
    ({"start_time": NOW - 7 * DAY_S - 1}, "end_time"),
    ({"start_time": "yesterday"}, "start_time"),
    ({"end_time": 1000 * NOW}, "end_time"),
    ({"start_time": -1}, "start_time"),
    ({"limit": 0}, "limit"),
    ({"limit": 501}, "limit"),
    ({"lifecycle": "opened"}, "lifecycle"),
    ({"lifecycle": ""}, "lifecycle"),
    ({"event_type": "splash.pump"}, "event_type"),
    ({"event_type": "spread"}, "event_type"),
    ({"min_pct": "wide"}, "min_pct"),
    ({"min_pct": "-1"}, "min_pct"),
    ({"min_pct": "nan"}, "min_pct"),
    ({"min_pct": "inf"}, "min_pct"),
]


@pytest.mark.parametrize(("change", "parameter"), REFUSED, ids=str)
def test_what_cannot_be_answered_is_a_400_naming_the_parameter(ask, change, parameter) -> None:
    answer = ask(**(DAY | change))
    assert answer.status_code == 400
    assert answer.json()["code"] == "bad_request"
    assert [error["parameter"] for error in answer.json()["errors"]] == [parameter]


def test_nothing_of_the_future_is_shown(ask: Callable[..., httpx.Response]) -> None:
    ahead = {"start_time": NOW - DAY_S, "end_time": NOW + 3 * DAY_S}
    assert read_all(ask, "spread", limit=500, **ahead) == read_all(ask, "spread", limit=500, **DAY)
    assert page(ask(start_time=NOW, end_time=NOW + DAY_S))["items"] == []


def test_documents_are_sent_as_the_archive_has_them_byte_for_byte(market, ask) -> None:
    archive = FaultyArchive(market, ArchiveSettings(burst=BURST))
    window = DAY["start_time"], DAY["end_time"]
    items, _ = archive.page(EventFamily.FUNDING, *window, limit=200, visible_until=NOW)
    body = ask("funding", **DAY).content
    assert body.startswith(b'{"type":"funding_events_page","items":[%b],' % b",".join(items))
