"""Retries, refusals and the times in headers, without a socket."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.errors import (
    InputError,
    QuotaError,
    ServiceError,
    UnavailableError,
    UnreachableError,
)
from toolkit.wire.address import base_address
from toolkit.wire.exchange import (
    Failure,
    Request,
    Response,
    RetryPolicy,
    Send,
    Wait,
    http_date_ts,
    refusal,
    retry_after_s,
    with_retries,
)

REQUEST = Request.get("/p", {"limit": 5})
GOOD = Response(200, {}, b"{}", "http://h/p")
WHOLE = RetryPolicy(fraction=lambda: 1.0)
URL = "http://h/p"


def status(number: int, body: bytes = b"", **headers: str) -> Response:
    return Response(number, {k.replace("_", "-"): v for k, v in headers.items()}, body, URL)


def carried_out(
    outcomes: list[Response | Failure], policy: RetryPolicy = WHOLE
) -> tuple[Response | ServiceError, list[Wait]]:
    """What `with_retries` comes to, and how it waited; all the outcomes are used up."""
    flow = with_retries(REQUEST, policy)
    waits: list[Wait] = []
    left = iter(outcomes)
    outcome: Response | Failure | None = None
    try:
        while True:
            step = flow.send(outcome)
            if isinstance(step, Wait):
                waits.append(step)
                outcome = None
            else:
                assert step == Send(REQUEST)
                outcome = next(left)
    except StopIteration as stop:
        assert next(left, None) is None
        return stop.value, waits
    except ServiceError as error:
        assert next(left, None) is None
        return error, waits


def seconds(waits: list[Wait]) -> list[float]:
    return [wait.seconds for wait in waits]


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (status(429), QuotaError),
        (status(502), UnavailableError),
        (status(503), UnavailableError),
        (status(504), UnavailableError),
        (Failure("ReadTimeout", URL), UnreachableError),
    ],
)
def test_trying_ends_after_the_tries_allowed_and_says_how_many(bad, kind) -> None:
    error, waits = carried_out([bad] * 3, RetryPolicy(attempts=3, fraction=lambda: 0.0))
    assert type(error) is kind
    assert seconds(waits) == [0.25, 0.5]
    assert "after 3 tries" in str(error)
    assert URL in str(error)


def test_a_policy_without_an_attempt_is_refused() -> None:
    with pytest.raises(InputError, match="attempts: 0 is not allowed"):
        RetryPolicy(attempts=0)


def test_waits_grow_to_the_longest_and_are_drawn_from_its_upper_half() -> None:
    policy = RetryPolicy(attempts=9, longest_wait_s=4.0, budget_s=1e9, fraction=lambda: 0.5)
    _, waits = carried_out([Failure("reset")] * 9, policy)
    assert seconds(waits) == [0.375, 0.75, 1.5, 3.0, 3.0, 3.0, 3.0, 3.0]
    drawn = [RetryPolicy().wait_s(2, None) for _ in range(50)]
    assert all(1.0 <= wait <= 2.0 for wait in drawn)
    assert len(set(drawn)) > 1


def test_waiting_ends_before_it_would_pass_the_budget() -> None:
    policy = RetryPolicy(attempts=100, budget_s=3.5, fraction=lambda: 1.0)
    _, waits = carried_out([status(503)] * 4, policy)
    assert seconds(waits) == [0.5, 1.0, 2.0]
    error, waits = carried_out([status(429, retry_after="40")] * 3)
    assert seconds(waits) == [50.0, 50.0], "those asked for are of the budget too"
    assert isinstance(error, QuotaError)


@pytest.mark.parametrize(("asked_s", "more_s"), [(0.0, 0.25), (0.5, 0.25), (1.0, 0.25), (60.0, 15)])
def test_a_wait_asked_for_is_waited_in_full_and_up_to_a_quarter_more(asked_s, more_s) -> None:
    drawn = [RetryPolicy().wait_s(3, asked_s) for _ in range(200)]
    assert all(asked_s <= wait <= asked_s + more_s for wait in drawn)
    assert len(set(drawn)) > 100
    assert RetryPolicy(fraction=lambda: 0.0).wait_s(3, asked_s) == asked_s
    assert WHOLE.wait_s(3, asked_s) == asked_s + more_s


@pytest.mark.parametrize(
    "text", ["", "soon", "-3", "1.5", "٣", "Wed, 22 Mar 99999999999999999999 00:00:00 GMT"]
)
def test_a_wait_that_cannot_be_read_counts_as_none(text) -> None:
    assert retry_after_s(status(429, retry_after=text)) is None
    _, waits = carried_out([status(429, retry_after=text), GOOD])
    assert seconds(waits) == [0.5]


def test_a_date_to_wait_for_needs_a_clock_and_never_lies_before_it() -> None:
    then = "Wed, 22 Mar 2023 00:00:07 GMT"
    assert retry_after_s(status(429, retry_after=then)) is None
    for now, wait_s in ((":00:00", 7.0), (":01:40", 0.0)):
        dated = status(429, retry_after=then, date=f"Wed, 22 Mar 2023 00{now} GMT")
        assert retry_after_s(dated) == wait_s


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37 -0000",
    ],
)
def test_every_form_of_an_http_date_is_utc_wherever_the_client_is(
    text, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    assert http_date_ts(text) == 784111777


@settings(deadline=None)
@given(st.text() | st.from_regex(r"\w{3}, \d{1,25} [A-Z][a-z]{2} \d{1,25} \d+:\d+:\d+ .{0,6}"))
def test_no_text_breaks_the_reading_of_a_date(text) -> None:
    assert isinstance(http_date_ts(text), int | None)


BODIES = {
    "nothing": b"",
    "html": b"<html><body>\nBad gateway\n</body></html>",
    "cut": b'{"title": "Forbid',
    "number": b"7",
    "null": b"null",
    "list": b'[{"detail": 1}]',
    "wrong types": b'{"detail": {"a": [1]}, "title": 5, "errors": "x"}',
    "odd errors": b'{"errors": [1, null, {"detail": null}, {"parameter": [2]}]}',
    "not utf-8": b'{"detail": "\xff\xfe"}',
    "utf-16": '{"detail": "x"}'.encode("utf-16"),
    "nested": b"[" * 100_000,
    "lines": json.dumps({"detail": "one\ntwo\r\nthree\u2028four\x1b[31m\0"}).encode(),
    "long": json.dumps({"detail": "x" * 100_000}).encode(),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("number", [301, 400, 401, 402, 403, 404, 418, 429, 500, 503, 599])
def test_every_refusal_is_one_short_line_whatever_the_body(number, body) -> None:
    error = refusal(Response(number, {}, body, URL), tries=2)
    assert str(error).startswith(URL)
    assert str(number) in str(error)
    assert str(error).isprintable()
    assert len(str(error)) < 500
    assert error.detail.isprintable()
    assert error.status == number


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(100, 599))
def test_no_body_breaks_a_refusal(body, number) -> None:
    assert "\n" not in str(refusal(Response(number, {}, body, URL)))


@pytest.mark.parametrize("number", [301, 400, 401, 402, 403, 404, 429, 500, 503])
def test_every_refusal_keeps_the_problem_s_code_and_the_wait_asked_for(number) -> None:
    error = refusal(status(number, b'{"code": "spent", "detail": "later"}', retry_after="7"))
    assert (error.code, error.retry_after_s, error.detail) == ("spent", 7.0, "later")
    assert "later" in str(error)
    bare = refusal(status(number))
    assert (bare.code, bare.retry_after_s, bare.detail) == ("", None, "")


LONG = "a\n\x1b[31mb" + "c" * 1_000


@pytest.mark.parametrize(
    ("sent", "code"),
    [(True, ""), (None, ""), (["a"], ""), ({"a": 1}, ""), (LONG, "a �[31mb" + "c" * 51 + "…")],
)
def test_a_code_is_a_text_or_a_number_and_stays_short_and_on_one_line(sent, code) -> None:
    assert refusal(status(403, json.dumps({"code": sent}).encode())).code == code


@pytest.mark.parametrize(
    "text",
    [
        *("", "127.0.0.1:8700", "ftp://h", "http://", "http://:80", "http://h:0", "http://h:99999"),
        *("http://h:abc", "http://[::1", "http://a b", "http://h\n", "http://h\x00"),
    ],
)
def test_what_is_no_address_is_refused(text) -> None:
    with pytest.raises(InputError, match=r"^base_url: .* allowed: http://HOST"):
        base_address(text)


@pytest.mark.parametrize(
    "text",
    [
        *("http://user:s3cret@h", "user:s3cret@h", "http://s3cret@h", "http://h?apikey=s3cret"),
        *("h?s3cret", "http://h#s3cret"),
    ],
)
def test_an_address_with_something_secret_is_refused_and_not_shown(text) -> None:
    with pytest.raises(InputError) as caught:
        base_address(text)
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(vars(caught.value))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://h", "http://h"),
        ("https://h:8443//", "https://h:8443"),
        ("http://[::1]:80/", "http://[::1]:80"),
        ("https://h/rail/", "https://h/rail"),
    ],
)
def test_an_address_loses_its_trailing_slashes_alone(text, address) -> None:
    assert base_address(text) == address


@pytest.mark.parametrize("asked", ["86400", "9" * 400])
@pytest.mark.parametrize(("code", "kind"), [(429, QuotaError), (503, UnavailableError)])
def test_a_wait_over_the_ceiling_is_an_error_that_names_it(asked, code, kind) -> None:
    patient = replace(WHOLE, budget_s=float("inf"))
    error, waits = carried_out([Response(code, {"retry-after": asked}, b"", URL)], patient)
    assert type(error) is kind
    assert waits == []
    assert str(error).endswith(f"it asks to wait {float(asked):.0f} s")


def test_the_ceiling_on_waits_can_be_set() -> None:
    asked = Response(503, {"retry-after": "7200"}, b"", URL)
    policy = replace(WHOLE, budget_s=1e9, longest_asked_s=7200.0)
    _, waits = carried_out([asked, GOOD], policy)
    assert len(waits) == 1
