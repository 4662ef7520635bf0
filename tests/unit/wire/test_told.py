"""Errors told with status 200, and empty pages of real services, which are none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolkit.market import Family, Trajectory
from toolkit.wire.exchange import Response
from toolkit.wire.findings import Finding
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.profile.told import Ok, told
from toolkit.wire.rows.rows import read_history_page

KEY = Trajectory.parse("BTC_USD:KRAKEN.spot")
EMPTY = [
    {"code": "0", "msg": "", "data": []},
    {"code": 0, "message": "success", "data": []},
    {"code": "00000", "msg": "success", "requestTime": 1645911960000, "data": []},
    {"retCode": 0, "retMsg": "OK", "result": {"symbol": "BTCUSD", "list": []}, "retExtInfo": {}},
    {"code": "200000", "data": []},
    {"code": 200, "msg": "Success", "data": []},
    {"code": 1000, "message": "OK", "trace": "a", "data": {"klines": []}},
    {"code": 1, "msg": "成功", "data": []},
    {"success": True, "code": 0, "data": {"time": [], "open": []}},
    {"success": True, "message": "", "result": []},
    {"error": [], "result": {"XETHXXBT": [], "last": 1591517580}},
    {"error": None, "id": 0, "result": {"rows": []}},
    {"error": {"code": 0, "message": ""}, "data": []},
    {"jsonrpc": "2.0", "result": {"status": "no_data", "ticks": [], "close": []}, "usDiff": 374},
    {"status": {"error_code": 0, "error_message": None, "elapsed": 10}, "data": []},
    {"Response": "Success", "Message": "", "Type": 100, "RateLimit": {}, "Data": {"Data": []}},
    {"result": "success", "serverTime": "2026-02-08T17:33:58.322Z", "tickers": []},
    {"status": "0000", "data": []},
    {"status": "error", "message": "No data for these dates", "data": []},
    {"code": 404, "msg": "no records", "data": None},
    {"candles": [], "more_candles": False},
    {"items": [], "next_end_time": None},
    {},
]
"""Pages without rows, as services write them."""

TOLD: list[tuple[dict[str, Any], int]] = [
    ({"code": "50011", "msg": "Too Many Requests", "data": []}, 429),
    ({"retCode": 10006, "retMsg": "Too many visits!", "result": {}, "retExtInfo": {}}, 429),
    ({"error": ["EAPI:Rate limit exceeded"]}, 429),
    ({"code": "429000", "msg": "slow down"}, 429),
    ({"Note": "Our standard API call frequency is 5 calls per minute."}, 429),
    ({"status": {"error_code": 429, "error_message": "You've exceeded the Rate Limit."}}, 429),
    (
        {
            "Response": "Error",
            "Message": "You are over your rate limit please upgrade your account!",
            "RateLimit": {"calls_made": {"second": 21}, "max_calls": {"second": 20}},
            "Data": {},
        },
        429,
    ),
    ({"code": "30001", "msg": "API key missing.", "data": []}, 401),
    ({"success": False, "message": "This is not in your plan", "data": []}, 403),
    ({"code": 510, "success": False, "message": "Service unavailable"}, 510),
    ({"status": "error", "err-code": "x-1", "err-msg": "system busy"}, 503),
    ({"code": "51000", "msg": "Parameter limit exceeds the maximum"}, 200),
    ({"code": -1121, "msg": "Invalid symbol."}, 200),
    ({"code": "51001", "data": []}, 200),
    ({"label": "X", "message": "Invalid currency pair", "rows": []}, 200),
    ({"error": {"code": 13, "message": "no such pair"}, "items": []}, 200),
]
"""Errors, and as which status each counts."""


def answer(body: object, **headers: str) -> Response:
    return Response(200, headers, json.dumps(body).encode(), "http://h/p")


@pytest.mark.parametrize("body", EMPTY, ids=json.dumps)
def test_an_empty_page_of_a_real_service_is_no_error_and_no_finding(body: object) -> None:
    assert told(answer(body)) == (None, "")


@pytest.mark.parametrize(("body", "status"), TOLD, ids=json.dumps)
def test_an_error_with_status_200_counts_as_the_status_that_it_tells(
    body: dict[str, Any], status: int
) -> None:
    assert told(answer(body)) == (status, "")


def test_a_page_with_rows_is_no_error_whatever_it_says() -> None:
    said = {"code": "50011", "msg": "Too Many Requests"}
    for rows in ({"data": [[60, 1]]}, {"data": {"60": {"p": 1}}}, {"t": [60], "p": [1.0]}):
        assert told(answer(said | rows))[0] is None


@pytest.mark.parametrize(
    ("ok", "good", "bad"),
    [
        (Ok("code", 1), {"code": "1", "data": []}, {"code": 0, "data": []}),
        (Ok("error", []), {"error": [], "result": {}}, {"error": ["x"], "result": {"a": [1]}}),
        (Ok("head.ok", True), {"head": {"ok": True}}, {"head": {"ok": False}, "rows": [[60, 1]]}),
        (Ok("fault", ""), {"fault": None, "msg": "failed"}, {"fault": "x"}),
    ],
)
def test_the_ok_of_the_profile_decides_alone(ok: Ok, good: object, bad: object) -> None:
    assert told(answer(good), ok)[0] is None
    assert told(answer(bad), ok)[0] == 200


def test_an_ok_in_a_header_decides_and_where_its_place_is_absent_the_words_do() -> None:
    ok = Ok("header:X-State", "fine")
    assert told(answer({}, **{"x-state": "fine"}), ok)[0] is None
    assert told(answer({}, **{"x-state": "broken"}), ok)[0] == 200
    assert told(answer({"msg": "Too many requests"}), ok)[0] == 429


def test_what_an_empty_page_says_that_is_neither_is_a_finding() -> None:
    weekend = answer({"code": 7, "msg": "weekend", "data": []})
    assert told(weekend) == (None, "weekend (code 7)")
    assert told(weekend, Ok("code", 7)) == (None, "")
    route = replace(BUILT_IN.histories[Family.PRICE], items="data")
    page = read_history_page(route, KEY, replace(weekend, message="weekend (code 7)"))
    assert Finding("empty_page_says", route.path, "weekend (code 7)") in page.findings


def emptied(value: object) -> object:
    """Return an answer with all its rows taken away."""
    if isinstance(value, list):
        return []
    return {n: emptied(v) for n, v in value.items()} if isinstance(value, dict) else value


def test_no_recorded_answer_of_an_exchange_is_an_error_with_its_rows_or_without(
    real_data: Path,
) -> None:
    recorded = [
        each["response"]
        for path in sorted((real_data / "exchanges").glob("*.json"))
        for calls in json.loads(path.read_text()).values()
        for each in calls
    ]
    assert len(recorded) > 40
    for body in [*recorded, *map(emptied, recorded)]:
        assert told(answer(body)) == (None, ""), body
