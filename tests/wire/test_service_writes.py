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


def differences(wanted: Any, written: Any, where: str) -> list[str]:
    """Where two JSON values differ: in names, types, lengths or values; prose in its type alone."""
    if type(wanted) is not type(written):
        return [f"{where}: {written!r} in place of {wanted!r}"]
    if isinstance(wanted, dict):
        names = [f"{where}: has {list(written)}, not {list(wanted)}"]
        return (names if set(wanted) != set(written) else []) + [
            each
            for name in wanted.keys() & written.keys()
            for each in differences(wanted[name], written[name], f"{where}.{name}")
        ]
    if isinstance(wanted, list):
        if len(wanted) != len(written):
            return [f"{where}: has {len(written)} items, not {len(wanted)}"]
        return [
            each
            for number, (one, other) in enumerate(zip(wanted, written, strict=True))
            for each in differences(one, other, f"{where}[{number}]")
        ]
    same = written != "" if where.rpartition(".")[2] in PROSE else wanted == written
    return [] if same else [f"{where}: {written!r} in place of {wanted!r}"]


@pytest.mark.parametrize("file", MESSAGES, ids=lambda file: file.stem)
def test_the_service_writes_the_golden_message(address: str, file: Path) -> None:
    message = json.loads(file.read_text("utf-8"))
    status, content_type, body = asked(address, **message["request"])
    if file.stem == "schemas":  # tools that no golden message is for are none of its business
        tools = message["body"]["tools"]
        body["tools"] = {name: tool for name, tool in body["tools"].items() if name in tools}
    assert (status, content_type) == (message["status"], message["content_type"])
    assert differences(message["body"], body, file.stem) == []


def test_there_is_a_golden_message_of_every_kind() -> None:
    kinds = [file.stem for file in MESSAGES]
    assert kinds == ["price_page", "problem", "schemas", "spread_page", "symbols_page"]


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ({"a": 1.0, "title": "t"}, "m.a: 1.0 in place of 1"),
        ({"a": True, "title": "t"}, "m.a: True in place of 1"),
        ({"a": 2, "title": "t"}, "m.a: 2 in place of 1"),
        ({"a": 1}, "m: has ['a'], not ['a', 'title']"),
        ({"a": 1, "title": "t", "b": 2}, "m: has ['a', 'title', 'b'], not ['a', 'title']"),
        ({"a": 1, "title": ""}, "m.title: '' in place of 'x'"),
        ({"a": 1, "title": None}, "m.title: None in place of 'x'"),
    ],
)
def test_a_seeded_difference_is_found(written: dict[str, object], fault: str) -> None:
    assert differences({"a": 1, "title": "x"}, written, "m") == [fault]
    assert differences([{"a": 1, "title": "x"}], [written], "m") == [
        fault.replace("m.", "m[0].").replace("m:", "m[0]:")
    ]
