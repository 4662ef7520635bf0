"""What every kind keeps of the interface document, over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import polars as pl
import pytest

from tests.other_services.data import NOW, sample
from tests.other_services.kinds import KINDS, running_other
from tests.other_services.server import API_KEY
from tests.other_services.service import FAMILIES

KEY = {"Authorization": f"Bearer {API_KEY}"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: status, headers, and the body as JSON."""

    status: int
    headers: Mapping[str, str]
    body: Any


def ask(
    base_url: str, path: str, headers: Mapping[str, str] | None = None, **parameters: object
) -> Reply:
    """Send a GET request to a path below ``/api/v1/data/``, with the valid key by default."""
    url = f"{base_url}/api/v1/data/{path}?{urlencode(parameters)}"
    request = Request(url, headers=dict(KEY if headers is None else headers))
    try:
        with urlopen(request, timeout=30) as answer:
            return Reply(answer.status, answer.headers, json.load(answer))
    except HTTPError as refusal:
        with refusal:
            return Reply(refusal.code, refusal.headers, json.load(refusal))


def event_pages(base_url: str, family: str, **parameters: object) -> Iterator[list[Any]]:
    """Yield the items of each page of the last seven days, as the interface document pages them."""
    window = {"start_time": NOW - 7 * 86_400, "end_time": NOW, **parameters}
    cursor: dict[str, object] = {}
    while True:
        page = ask(base_url, f"history/{family}-events", **window, **cursor).body
        yield page["items"]
        if not page["has_more"]:
            return
        cursor = {"cursor": page["next_cursor"]}


PATHS = [
    *("symbols/search", "event-activity", "dashboards/spread", "dashboards/funding-overview"),
    *(f"history/{family}-events?start_time={NOW - 60}&end_time={NOW}&" for family in FAMILIES),
]
OWN_LOGS = {"oldest"}
"""Kinds whose event logs depart from the document: `test_loaded` pages through them."""


@pytest.fixture(params=KINDS, scope="module")
def base_url(request: pytest.FixtureRequest):
    with running_other(request.param, sample()) as address:
        yield address


@pytest.fixture(params=[kind for kind in KINDS if kind not in OWN_LOGS], scope="module")
def log_url(request: pytest.FixtureRequest):
    with running_other(request.param, sample()) as address:
        yield address


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"apikey": "wrong"}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"apikey": API_KEY}, 200),
        (KEY, 200),
        ({"apikey": API_KEY, "Authorization": "Bearer wrong"}, 401),
        ({"apikey": "wrong", **KEY}, 200),
    ],
)
def test_the_key_comes_in_either_header_and_authorization_wins(base_url, headers, status) -> None:
    assert ask(base_url, "symbols/search", headers).status == status


@pytest.mark.parametrize("path", PATHS)
def test_each_path_answers_and_is_dated_by_the_service_s_clock(base_url: str, path: str) -> None:
    reply = ask(base_url, path)
    assert reply.status == 200
    assert parsedate_to_datetime(reply.headers["Date"]).timestamp() == NOW


def test_what_is_planned_only_is_not_found(base_url: str) -> None:
    assert ask(base_url, "../../../v1/spread/recent").status == 404


def test_the_tools_that_no_kind_has_are_not_found(base_url: str) -> None:
    asked = Request(f"{base_url}/mcp", data=b"{}", headers=KEY)
    with pytest.raises(HTTPError) as refusal:
        urlopen(asked, timeout=30)
    assert refusal.value.code == 404
    refusal.value.close()


@pytest.mark.parametrize(
    ("family", "limit"), [*((family, 200) for family in FAMILIES), ("splash", 7), ("spread", 500)]
)
def test_pages_of_an_event_log_give_each_document_once_newest_first(log_url, family, limit) -> None:
    log = sample().events[family].filter(pl.col("ts_ms") >= (NOW - 7 * 86_400) * 1_000)
    pages = list(event_pages(log_url, family, limit=limit))
    assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    found = [item for page in pages for item in page]
    assert len(found) == log.height > 500
    assert log.height < sample().events[family].height
    assert {item["schema"] for item in found} == {f"svc.{family}.v1"}
    assert {item["instrument"]["symbol"] for item in found} == {"BTC_USDT"}
    assert [item["event_type"] for item in found] == log["event_type"].reverse().to_list()


def test_the_filter_lifecycle_keeps_open_events_alone(log_url: str) -> None:
    found = [item for page in event_pages(log_url, "spread", lifecycle="open") for item in page]
    assert found
    assert {item["event_type"] for item in found} == {"spread.opened"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"start_time": NOW - 8 * 86_400},
        {"start_time": NOW},
        {"start_time": "today"},
        {"limit": "all"},
        {"cursor": "bm90aGluZw"},
    ],
)
def test_a_question_that_breaks_a_rule_of_the_logs_is_refused(log_url, wrong) -> None:
    window = {"start_time": NOW - 60, "end_time": NOW, **wrong}
    assert ask(log_url, "history/spread-events", **window).status == 400
