"""The service's half of the golden messages: asked so, over a socket, it writes exactly that.

`test_client_reads` holds the client to the same files; the two sides share no code.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests import miniature
from toolkit.service import Clock, Config, running

MESSAGES = sorted(Path(__file__).parent.glob("*.json"))
PROSE = {"title", "detail", "description", "sign", "positive_means"}
"""Fields for people to read: they have to say something, in whatever words."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the local service serves the miniature, its clock at the market's end."""
    config = Config(miniature.source(), port=0, clock=Clock(fixed_at=miniature.END))
    with running(config) as service:
        yield urlsplit(service.base_url).netloc


def asked(address: str, path: str, query: dict[str, str]) -> tuple[int, str | None, Any]:
    """Status, content type and body of one question, with a Builder key."""
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request(
            "GET",
            f"{path}?{urlencode(query)}" if query else path,
            headers={"Authorization": "Bearer demo-builder"},
        )
        answer = connection.getresponse()
        return answer.status, answer.getheader("content-type"), json.loads(answer.read())
    finally:
        connection.close()


def exactly(value: Any) -> str:
    """The JSON text of a value, which tells 1 from 1.0 and true, with any prose as one word."""

    def without_prose(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {each: without_prose(of, each) for each, of in value.items()}
        if isinstance(value, list):
            return [without_prose(each) for each in value]
        return "prose" if name in PROSE and isinstance(value, str) and value else value

    return json.dumps(without_prose(value), sort_keys=True, indent=1)


@pytest.mark.parametrize("file", MESSAGES, ids=lambda file: file.stem)
def test_the_service_writes_the_golden_message(address: str, file: Path) -> None:
    message = json.loads(file.read_text("utf-8"))
    status, content_type, body = asked(address, **message["request"])
    if file.stem == "schemas":  # tools that no golden message is for are none of its business
        tools = message["body"]["tools"]
        body["tools"] = {name: tool for name, tool in body["tools"].items() if name in tools}
    assert (status, content_type) == (message["status"], message["content_type"])
    assert exactly(body) == exactly(message["body"])


def test_there_is_a_golden_message_of_every_kind() -> None:
    kinds = [file.stem for file in MESSAGES]
    assert kinds == ["price_page", "problem", "schemas", "spread_page", "symbols_page"]
