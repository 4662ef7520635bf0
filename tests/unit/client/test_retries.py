"""What the client does when an answer is bad, late, cut, refused, or not there at all."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from toolkit.client import Client
from toolkit.errors import (
    BadRequestError,
    KeyRefusedError,
    NotFoundError,
    PlanRefusedError,
    QuotaError,
    ServiceError,
    UnavailableError,
    UnreachableError,
    WireError,
)
from toolkit.intervals import Interval
from toolkit.market import Trajectory
from toolkit.wire.exchange import RetryPolicy
from toolkit.wire.limits import Limits
from toolkit.wire.profile.user_profile import UserProfile

LISTED = {"symbol": "BTC_USD", "venues": [{"exchange": "A", "market": "spot"}]}
GOOD = {"items": [LISTED], "truncated": False}
SCHEMAS = {"source": {"kind": "live", "id": "x"}}


@pytest.mark.parametrize("status", [429, 502, 503, 504, 520, 524])
def test_a_passing_failure_is_tried_again_until_it_has_passed(scripted, ask, status) -> None:
    scripted.answer(body=SCHEMAS)
    scripted.answer(status, b"busy", times=3)
    scripted.answer(body=GOOD)
    asking = ask()
    assert len(asking.client.symbols().legs) == 1
    assert asking.waits == [0.5, 1.0, 2.0]
    assert scripted.paths == ["schemas"] + ["search"] * 4


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("headers", "waits"),
    [
        ({"Retry-After": "3"}, [3.75]),
        (
            {
                "Retry-After": "Wed, 22 Mar 2023 00:00:09 GMT",
                "Date": "Wed, 22 Mar 2023 00:00:00 GMT",
            },
            [11.25],
        ),
        ({"Retry-After": "soon"}, [0.5]),
        ({}, [0.5]),
    ],
)
def test_a_spent_quota_is_waited_for_as_long_as_the_service_asks(
    scripted, ask, status, headers, waits
) -> None:
    scripted.answer(status, headers=headers)
    scripted.answer(body=SCHEMAS)
    asking = ask()
    assert asking.client.profile().source is not None
    assert asking.waits == waits


def test_a_long_wait_is_told_with_its_reason_and_a_short_one_is_not(
    scripted, ask, caplog: pytest.LogCaptureFixture
) -> None:
    scripted.answer(429, headers={"Retry-After": "2"})
    scripted.answer(429, headers={"Retry-After": "40"})
    scripted.answer(body=SCHEMAS)
    scripted.answer(429, headers={"Retry-After": "40"})
    scripted.answer(body=GOOD)
    asking = ask()
    asking.client.symbols()
    assert asking.waits == [2.5, 50.0, 50.0]
    (line,) = caplog.messages  # the second of these is within the time that was told
    assert line == f"{scripted.base_url} is asked again in 50 s: it answered 429"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (205, WireError),
        (301, WireError),
        (304, WireError),
        (400, BadRequestError),
        (401, KeyRefusedError),
        (402, PlanRefusedError),
        (403, PlanRefusedError),
        (404, NotFoundError),
        (405, WireError),
        (500, UnavailableError),
        (501, UnavailableError),
    ],
)
@pytest.mark.parametrize(
    "body",
    [b"", b"<h1>\nno", b'{"detail": "cut', b"[1]", b'{"detail": "\xff"}', b'{"detail": ["a\\nb"]}'],
)
def test_a_refusal_is_asked_once_and_told_in_one_line(scripted, ask, status, kind, body) -> None:
    scripted.answer(status, body, headers={"Retry-After": "1"})
    asking = ask()
    with pytest.raises(kind) as caught:
        asking.client.profile()
    assert type(caught.value) is kind
    assert (caught.value.status, len(scripted.asked), asking.waits) == (status, 1, [])
    assert caught.value.url == scripted.base_url + "/api/v1/data/schemas"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("start", [b"<!DOCTYPE html><html lang='en'>", b"\n<HTML>"])
def test_a_challenge_for_browsers_says_nothing_of_the_plan(scripted, ask, start) -> None:
    scripted.answer(403, start + b"<title>Just a moment...</title>")
    with pytest.raises(WireError, match=r"a page for browsers \(403\).*: Just a moment") as caught:
        ask().client.profile()
    assert (caught.value.status, "plan" in str(caught.value)) == (403, False)


def test_a_redirect_is_not_followed(scripted, ask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        port = elsewhere.getsockname()[1]
        scripted.answer(301, headers={"Location": f"http://127.0.0.1:{port}/api/v1/data/schemas"})
        with pytest.raises(WireError, match="unexpected status 301"):
            ask().client.profile()
        elsewhere.settimeout(0)
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


@pytest.mark.parametrize("cut", [{"sent": 0}, {"sent": 4}, {"status": 0}])
def test_a_connection_reset_before_or_in_the_body_is_tried_again(scripted, ask, cut) -> None:
    scripted.answer(body=SCHEMAS, times=2, **cut)
    scripted.answer(body=SCHEMAS)
    asking = ask()
    assert asking.client.profile().source is not None
    assert asking.waits == [0.5, 1.0]


def test_a_service_that_only_resets_is_unreachable_and_the_tries_are_told(scripted, ask) -> None:
    scripted.answer(body=SCHEMAS)
    scripted.answer(body=GOOD, sent=3)
    asking = ask()
    with pytest.raises(UnreachableError, match="after 6 tries") as caught:
        asking.client.symbols()
    assert scripted.paths == ["schemas"] + ["search"] * 6
    assert asking.waits == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert caught.value.status is None
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("sent", [0, 4])
def test_a_body_that_stalls_is_a_time_out(scripted, ask, sent) -> None:
    scripted.answer(body=SCHEMAS, sent=sent, stalls=True)
    asking = ask(limits=Limits(silence_s=0.05), retries=RetryPolicy(attempts=2))
    with pytest.raises(UnreachableError, match="ReadTimeout"):
        asking.client.profile()
    while len(scripted.asked) < 2:  # the service may be slower to hear than the client to give up
        time.sleep(0.001)
    assert len(scripted.asked) == 2


def test_a_body_that_is_not_what_its_encoding_says_is_no_answer(scripted, ask) -> None:
    scripted.answer(body=b"plain", headers={"Content-Encoding": "gzip"})
    asking = ask(retries=RetryPolicy(attempts=2))
    with pytest.raises(UnreachableError, match="cannot be inflated"):
        asking.client.profile()


def test_nobody_listening_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    waits: list[float] = []
    retries = RetryPolicy(attempts=3, fraction=lambda: 0.0)
    with (
        Client(f"http://127.0.0.1:{port}", "k", retries=retries, sleep=waits.append) as client,
        pytest.raises(UnreachableError, match="ConnectError") as caught,
    ):
        client.profile()
    assert waits == [0.25, 0.5]
    assert caught.value.url == f"http://127.0.0.1:{port}/api/v1/data/schemas"


@pytest.mark.parametrize("body", [b"", b"<html>\n", b'{"items": [', b"[]", b'{"\xff": 1}', b"null"])
def test_a_good_status_with_a_bad_body_is_a_wire_error_and_not_tried_again(
    scripted, ask, body
) -> None:
    scripted.answer(body=SCHEMAS)
    scripted.answer(body=body)
    client = ask().client
    asks = [client.symbols, lambda: client.history(Trajectory.parse("BTC_USD:A.spot"), 0, 60)]
    for ask_once in asks:
        with pytest.raises(WireError) as caught:
            ask_once()
        assert "\n" not in str(caught.value)
    assert len(scripted.asked) == 3


def test_html_for_schemas_is_a_wire_error_and_asked_for_again_next_time(scripted, ask) -> None:
    scripted.answer(body=b"<html>")
    scripted.answer(body=SCHEMAS)
    client = ask().client
    with pytest.raises(WireError, match="is not JSON"):
        client.profile()
    assert client.profile().source is not None


SPENT = {"code": "50011", "msg": "Too Many Requests", "items": []}


@pytest.mark.parametrize(
    ("failures", "waits"),
    [
        ([{"status": 503}, {"sent": 10}], [0.5, 1.0]),
        ([{"body": SPENT, "headers": {"Retry-After": "3"}}] * 2, [3.75, 3.75]),
    ],
    ids=["failed and cut", "a spent quota, told with status 200"],
)
def test_a_failure_between_pages_is_tried_again_where_it_happened(
    scripted, ask, failures, waits
) -> None:
    scripted.answer(body=SCHEMAS)
    scripted.answer(body=page(360, 300))
    for failure in failures:
        scripted.answer(**{"body": page(300, 240), **failure})
    scripted.answer(body=page(300, 240, 60))
    asking = ask()
    rows = asking.client.history(Trajectory.parse("BTC_USD:A.spot"), 100, 400)
    assert rows["ts"].to_list() == [240, 300, 360]
    assert asking.waits == waits
    asked = [each.query["end_time"] for each in scripted.asked[1:]]
    assert asked == [["400"], ["301"], ["301"], ["301"]]


def test_an_error_that_stays_is_told_in_the_words_of_the_service(scripted, ask) -> None:
    scripted.answer(body=SCHEMAS)
    scripted.answer(body=page(360, 300))
    scripted.answer(body=SPENT)
    pages = ask().client.pages(Trajectory.parse("BTC_USD:A.spot"), Interval(100, 400))
    assert next(pages).answered == Interval(301, 400)
    words = r"quota is spent \(429, after 6 tries\); it says: Too Many Requests \(code 50011, told"
    with pytest.raises(QuotaError, match=words) as caught:
        next(pages)
    assert (caught.value.code, caught.value.detail) == ("50011", "Too Many Requests")


def test_the_ok_of_the_profile_tells_good_answers_from_errors(scripted, ask) -> None:
    users = UserProfile.parsed(Path("p.toml"), 'ok = { place = "state.number", value = 3 }')
    scripted.answer(body=SCHEMAS)
    scripted.answer(body=GOOD | {"state": {"number": 3, "text": "failed"}})
    scripted.answer(body=GOOD | {"state": {"number": 4}, "retMsg": "moved to v2"})
    client = ask(profile=users).client
    assert len(client.symbols().legs) == 1
    with pytest.raises(WireError, match=r"tells of an error: moved to v2 \(told with status 200\)"):
        client.symbols()


def page(*seconds: int) -> dict[str, object]:
    """A page with a row at each second."""
    items = [{"ts": ts, "price": 1.0, "mark_price": None, "volume": None} for ts in seconds]
    return {"items": items, "next_end_time": seconds[-1]}


def test_the_profile_names_the_field_of_the_services_message(scripted, ask) -> None:
    scripted.answer(400, {"message": "see the fault", "fault": {"why": ["no such pair"]}}, times=2)
    users = UserProfile.parsed(Path("p.toml"), 'error_message = "fault.why[0]"')
    with pytest.raises(ServiceError) as refused:
        ask(profile=users).client.symbols()
    assert refused.value.detail == "no such pair"
