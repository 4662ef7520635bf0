"""What the MCP client makes of refusals, and of answers that are none; the key shows nowhere."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests import miniature
from tests.listening import Handler, listening
from toolkit.client.mcp import McpClient
from toolkit.errors import (
    BadRequestError,
    InputError,
    KeyRefusedError,
    NotFoundError,
    PlanRefusedError,
    QuotaError,
    RailError,
    ServiceError,
    UnavailableError,
    UnreachableError,
    WireError,
)
from toolkit.service import Config, running

KEY = "k7-very-secret-0815"


@pytest.fixture(scope="module")
def rail() -> Iterator[str]:
    with running(Config(miniature.source(), port=0)) as service:
        yield service.base_url


def test_free_is_refused_with_status_code_and_challenge(rail: str) -> None:
    with pytest.raises(PlanRefusedError, match="lowest plan with MCP is builder") as refused:
        McpClient(rail, "demo-free").listing()
    assert refused.value.status == 403
    assert refused.value.code == "tier_required"
    assert "insufficient_scope" in refused.value.challenge


def test_a_spent_quota_keeps_when_to_come_back() -> None:
    with (
        running(Config(miniature.source(), port=0, quota=1)) as service,
        pytest.raises(QuotaError) as refused,
    ):
        McpClient(service.base_url, "demo-pro").listing()
    assert (refused.value.status, refused.value.code) == (429, "quota_exhausted")
    assert refused.value.retry_after_s is not None
    assert 0 < refused.value.retry_after_s <= 60


class Refusing(Handler):
    """Answers every request alike."""

    protocol_version = "HTTP/1.1"
    answer: tuple[int, dict[str, str], bytes]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        status, headers, body = self.answer
        if status:
            self.reply(status, body, headers)
        else:
            self.close_connection = True


@contextmanager
def refusing(status: int, headers: dict[str, str], body: bytes) -> Iterator[str]:
    """The address of a service that answers every request so; 0 hangs up."""
    handler = type("Handler", (Refusing,), {"answer": (status, headers, body)})
    with listening(handler) as address:
        yield address


HTML, JSON = {"content-type": "text/html"}, {"content-type": "application/json"}
PROBLEM = {"content-type": "application/problem+json"}


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind"),
    [
        (400, PROBLEM, b'{"detail": "no"}', BadRequestError),
        (401, HTML, b"<html>", KeyRefusedError),
        (402, PROBLEM, b"", PlanRefusedError),
        (403, PROBLEM, b'{"detail": 1', PlanRefusedError),
        (404, {}, b"", NotFoundError),
        (429, PROBLEM, b"[]", QuotaError),
        (500, HTML, b"\xff", UnavailableError),
        (503, JSON, b'{"jsonrpc": "2.0", "id": null, "error": 5}', UnavailableError),
        (307, {"location": "http://127.0.0.1:9/"}, b"", WireError),
    ],
)
def test_a_refusal_is_told_by_its_status_alone(
    status: int, headers: dict[str, str], body: bytes, kind: type[ServiceError]
) -> None:
    told = headers | {"retry-after": "7"}
    with refusing(status, told, body) as base_url:
        with pytest.raises(ServiceError) as refused:
            McpClient(base_url, KEY).listing()
        assert type(refused.value) is kind
        assert refused.value.status == status
        assert refused.value.retry_after_s == 7.0


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind"),
    [
        (200, HTML, b"<html>", WireError),
        (200, JSON, b'{"jsonrpc": ', WireError),
        (200, JSON, b"[]", WireError),
        (202, {}, b"", WireError),
        (0, {}, b"", UnreachableError),
    ],
)
def test_an_answer_that_is_none_is_an_error_of_ours(
    status: int, headers: dict[str, str], body: bytes, kind: type[ServiceError]
) -> None:
    with refusing(status, headers, body) as base_url:
        with pytest.raises(ServiceError) as refused:
            McpClient(base_url, KEY).listing()
        assert type(refused.value) is kind
        assert refused.value.status is None


def test_the_key_shows_nowhere(rail: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = json.dumps({"detail": f"no such key {KEY}", "code": KEY}).encode()
    said = ""
    with refusing(401, PROBLEM, echo) as base_url:
        for address in (base_url, rail, "http://127.0.0.1:9"):
            client = McpClient(address, KEY)
            with pytest.raises(RailError) as refused:
                client.listing()
            said += "".join(traceback.format_exception(refused.value))
            said += f"{client!r} {vars(refused.value)}"
    assert "KeyRefusedError" in said
    assert caplog.records
    assert KEY not in said + caplog.text


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak"])
def test_a_key_that_no_header_can_carry_is_refused_unshown(key: str) -> None:
    with pytest.raises(InputError, match=r"api_key: '\*\*\*'"):
        McpClient("http://127.0.0.1:9", key)
