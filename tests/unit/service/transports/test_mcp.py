"""What the service's MCP endpoint does around the SDK: refusals, senders, schemas, failures."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from tests import miniature
from toolkit.service.accounts import Policy
from toolkit.service.api.calls import Call, Service
from toolkit.service.api.registry import TOOLS
from toolkit.service.api.tools import NoQuery
from toolkit.service.market.source import Clock
from toolkit.service.problems import Problem
from toolkit.service.transports.access import Gate
from toolkit.service.transports.mcp import _check_sender
from toolkit.service.transports.mcp_server import arguments_as_query
from toolkit.service.transports.rest import application
from toolkit.serving import ServerSettings, run_in_thread

PRO = {"apikey": "demo-pro"}
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
BY_NAME = {tool.name: tool for tool in TOOLS}


def service() -> Service:
    clock = Clock(fixed_at=miniature.END)
    return Service(miniature.source(), clock, Policy(quota=1_000_000))


@contextmanager
def serving(app: Starlette) -> Iterator[httpx.Client]:
    """Asks an application that runs in a thread."""
    with (
        run_in_thread(ServerSettings(app, grace_s=3), "127.0.0.1", 0) as base_url,
        httpx.Client(base_url=base_url, timeout=60) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with serving(application(service())) as found:
        yield found


def called(client: httpx.Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The JSON-RPC answer to a call."""
    headers = PRO | {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": name}
    params = {"name": name, "arguments": arguments, "_meta": META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    found: dict[str, Any] = client.post("/mcp", json=message, headers=headers).json()
    return found


@pytest.mark.slow
def test_the_sdk_is_not_imported_before_the_first_request() -> None:
    program = "import sys, toolkit.service; print({'mcp', 'pydantic'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("body", "request_id"),
    [
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/list"}', 7),
        (b'{"id": "seven"}', "seven"),
        (b'{"method": "notifications/initialized"}', None),
        (b'{"id": [1]}', None),
        (b'[{"id": 1}]', None),
        (b'{"id": 1', None),
        (b"\xff", None),
        (b"", None),
    ],
)
@pytest.mark.parametrize("key", ["nobody", "demo-free"])
def test_a_refusal_is_a_json_rpc_error_with_the_id_that_can_be_read(client, key, body, request_id):
    answer = client.post("/mcp", content=body, headers={"apikey": key})
    said = answer.json()
    assert answer.status_code == {"nobody": 401, "demo-free": 403}[key]
    assert answer.headers["content-type"] == "application/json"
    assert said["jsonrpc"] == "2.0"
    assert said["id"] == request_id
    assert said["error"]["code"] == said["error"]["data"]["status"] == answer.status_code
    assert said["error"]["message"] == said["error"]["data"]["detail"]


@pytest.mark.slow
def test_a_refusal_does_not_wait_for_a_body_that_never_comes(client: httpx.Client) -> None:
    host, port = client.base_url.host, client.base_url.port
    head = f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 99\r\n\r\n"
    with socket.create_connection((host, port), timeout=30) as line:
        line.sendall(head.encode() + b'{"id": 1')
        assert line.recv(4096).startswith(b"HTTP/1.1 401")


def test_the_challenge_says_what_is_wrong_with_the_key(client: httpx.Client) -> None:
    challenges = [
        client.post("/mcp", headers=headers).headers["www-authenticate"]
        for headers in ({}, {"apikey": "nobody"}, {"apikey": "demo-free"})
    ]
    realm = 'Bearer realm="machine-rail"'
    errors = ["", ', error="invalid_token"', ', error="insufficient_scope"']
    assert challenges == [realm + error for error in errors]


def test_a_service_under_full_load_refuses_with_when_to_come_back() -> None:
    with serving(application(service(), gate=Gate(1, under_way=1))) as client:
        answer = client.post("/mcp", json={"id": 5}, headers=PRO)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["error"]["data"]["code"] == "unavailable"


def test_elsewhere_a_refusal_stays_a_problem_document(client: httpx.Client) -> None:
    for path in ("/mcp/", "/mcp/x", "/api/v1/data/schemas"):
        answer = client.post(path, headers=PRO)
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("server", "host", "origin", "status"),
    [
        ("127.0.0.1", "127.0.0.1:8700", None, None),
        ("127.0.0.1", "localhost:8700", "http://localhost:6274", None),
        ("::1", "[::1]:8700", "http://[::1]:6274", None),
        ("127.0.0.1", "rail.example", None, 421),
        ("127.0.0.1", "rail.example:8700", "http://rail.example:8700", 421),
        ("127.0.0.1", "127.0.0.1.rail.example", None, 421),
        ("127.0.0.1", "", None, 421),
        ("127.0.0.1", "[::1", None, 421),
        ("127.0.0.1", "localhost", "http://rail.example", 403),
        ("127.0.0.1", "localhost", "null", 403),
        ("192.0.2.7", "rail.example", None, None),
        ("192.0.2.7", "192.0.2.7:8700", None, None),
        ("192.0.2.7", "rail.example", "http://rail.example", 403),
    ],
)
def test_a_web_page_cannot_ask_by_a_name_of_its_own(server, host, origin, status) -> None:
    headers = [(b"host", host.encode())] + ([(b"origin", origin.encode())] if origin else [])
    scope = {"type": "http", "server": (server, 8700), "headers": headers}
    if status is None:
        _check_sender(scope)
        return
    with pytest.raises(Problem) as refused:
        _check_sender(scope)
    assert refused.value.status_code == status


@pytest.mark.parametrize(
    ("value", "text"), [(2, "2"), (2.0, "2"), (10**30, f"{10**30}"), (-1, "-1")]
)
def test_a_whole_number_is_a_whole_number_however_json_writes_it(value: float, text: str) -> None:
    schema = {"properties": {"limit": {"type": "integer"}}}
    assert arguments_as_query(schema, {"limit": value}) == [("limit", text)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        ("2", '"2"'),
        (2.5, "'2.5'"),
        ([2], "[2]"),
        ({"a": 2}, '{"a":2}'),
    ],
)
def test_what_is_no_whole_number_is_not_taken_for_one(client, value, shown) -> None:
    result = called(client, "data.search_symbols", {"limit": value})["result"]
    assert result["isError"]
    (error,) = result["structuredContent"]["errors"]
    assert error["parameter"] == "limit"
    assert error["detail"].startswith(f"{shown} is not allowed; allowed: a whole number")


def test_an_argument_of_an_unlisted_type_of_text_is_refused_by_name(client: httpx.Client) -> None:
    result = called(client, "data.search_symbols", {"q": 5})["result"]
    assert "5 is not allowed; allowed: part of a name" in result["structuredContent"]["detail"]


def test_a_slow_tool_does_not_hold_up_the_others() -> None:
    asked, may_go = threading.Event(), threading.Event()

    def slowly(_: Call[NoQuery]) -> bytes:
        asked.set()
        assert may_go.wait(60)
        return b'{"type":"schemas"}'

    slow = replace(BY_NAME["data.get_schemas"], answer=slowly, slow=True)
    tools = (slow, BY_NAME["data.search_symbols"])
    with serving(application(service(), tools)) as client, ThreadPoolExecutor(1) as other:
        waiting = other.submit(called, client, slow.name, {})
        assert asked.wait(60)
        assert called(client, "data.search_symbols", {"q": "BTC"})["result"]["structuredContent"]
        assert not waiting.done()
        may_go.set()
        assert waiting.result()["result"]["structuredContent"] == {"type": "schemas"}


def test_an_unforeseen_failure_is_logged_and_its_text_not_told(caplog) -> None:
    def broken(_: Call[NoQuery]) -> bytes:
        raise RuntimeError("the sekrit of the house")

    tool = replace(BY_NAME["data.get_schemas"], answer=broken)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool.name}}
    with serving(application(service(), (tool,))) as client:
        answers = [
            called(client, tool.name, {}),
            client.post("/mcp", json=message, headers=PRO).json(),
        ]
    for said in answers:
        assert said["error"]["code"] == -32603
        assert said["error"]["data"]["code"] == "internal"
        assert "sekrit" not in json.dumps(said)
    assert "unforeseen failure in answering data.get_schemas" in caplog.text
    assert "the sekrit of the house" in caplog.text


def test_a_cursor_of_the_listing_that_is_none_is_refused(client: httpx.Client) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": "2"}}
    said = client.post("/mcp", json=message, headers=PRO).json()
    assert said["error"]["code"] == -32602


def test_an_application_starts_and_stops_without_a_question() -> None:
    async def lived() -> None:
        app = application(service())
        async with app.router.lifespan_context(app):
            await asyncio.sleep(0)

    asyncio.run(lived())
