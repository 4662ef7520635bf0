from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from toolkit.service import Clock, Replay
from toolkit.service.accounts.policy import Policy
from toolkit.service.api.calls import Service
from toolkit.service.transports.access import KEY_PARAMETERS
from toolkit.service.transports.rest import application

ROUTE = "/api/v1/data/symbols/search"
CHALLENGE = 'Bearer realm="machine-rail"'
INVALID = f'{CHALLENGE}, error="invalid_token"'
GOOD, BAD = ("apikey", "demo-free"), ("apikey", "nobody's")
BEARER, BAD_BEARER = ("authorization", "Bearer demo-pro"), ("authorization", "Bearer nobody's")

REFUSED = [
    ([], CHALLENGE),
    ([("apikey", "")], CHALLENGE),
    ([("authorization", "")], CHALLENGE),
    ([("authorization", "Bearer")], CHALLENGE),
    ([("authorization", "demo-pro")], CHALLENGE),
    ([("authorization", "Basic ZGVtbzpwcm8=")], CHALLENGE),
    ([BAD], INVALID),
    ([("apikey", "demo-fre")], INVALID),
    ([("apikey", "demo-free, demo-free")], INVALID),
    ([("apikey", "Bearer demo-free")], INVALID),
    ([BAD_BEARER], INVALID),
    ([BAD_BEARER, GOOD], INVALID),
    ([GOOD, BAD_BEARER], INVALID),
    ([GOOD, ("authorization", "")], CHALLENGE),
    ([GOOD, GOOD], INVALID),
    ([GOOD, BAD], INVALID),
    ([BAD, GOOD], INVALID),
    ([GOOD, ("APIKEY", "demo-free")], INVALID),
    ([BEARER, GOOD, GOOD], INVALID),
    ([BEARER, BEARER], INVALID),
]
ACCEPTED = [
    ([GOOD], 1_000),
    ([("ApiKey", "demo-free")], 1_000),
    ([BEARER], 10_000),
    ([("authorization", "bearer demo-pro")], 10_000),
    ([("authorization", "BEARER   demo-pro")], 10_000),
    ([BEARER, GOOD], 10_000),
    ([GOOD, BEARER], 10_000),
    ([BAD, BEARER], 10_000),
]


@pytest.mark.parametrize(("headers", "challenge"), REFUSED)
def test_without_one_valid_key_the_answer_is_401(
    anonymous: httpx.Client, headers: list[tuple[str, str]], challenge: str
) -> None:
    answer = anonymous.get(ROUTE, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["code"] == "unauthorized"
    assert answer.headers["www-authenticate"] == challenge


@pytest.mark.parametrize(("headers", "maximum"), ACCEPTED)
def test_a_valid_key_in_either_header_is_served_by_its_owners_plan(
    anonymous: httpx.Client, headers: list[tuple[str, str]], maximum: int
) -> None:
    answer = anonymous.get("/api/v1/data/schemas", headers=headers)
    assert answer.status_code == 200
    schema = answer.json()["tools"]["data.get_price_history"]["input_schema"]
    assert schema["properties"]["limit"]["maximum"] == maximum


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("apikey:   demo-pro  \t", b"200"),
        ("Authorization: Bearer   demo-pro  ", b"200"),
        ("APIKEY:demo-pro", b"200"),
        ("apikey:    ", b"401"),
        ("Authorization: Bearer   ", b"401"),
    ],
)
def test_blanks_around_a_key_are_stripped(base_url: str, header: str, status: bytes) -> None:
    address = urlsplit(base_url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        request = f"GET {ROUTE} HTTP/1.1\r\nHost: x\r\n{header}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        status_line = connection.makefile("rb").readline()
    assert status_line.split()[1] == status


@pytest.mark.parametrize(
    "name", ["apikey", "api_key", "API-KEY", "key", "token", "access_token", "Authorization"]
)
@pytest.mark.parametrize("headers", [[], [GOOD], [BAD]])
def test_a_key_in_the_query_string_is_a_400_whatever_the_headers(
    anonymous: httpx.Client, name: str, headers: list[tuple[str, str]]
) -> None:
    answer = anonymous.get(ROUTE, params={name: "demo-pro"}, headers=headers)
    assert answer.status_code == 400
    assert [error["parameter"] for error in answer.json()["errors"]] == [name]
    assert "demo-pro" not in answer.text


def test_no_route_has_a_parameter_that_would_be_taken_for_a_key(pro: httpx.Client) -> None:
    tools = pro.get("schemas").json()["tools"].values()
    names = {name for tool in tools for name in tool["input_schema"]["properties"]}
    assert {"limit", "symbol", "buy_exchange"} <= names
    assert not {name.replace("_", "") for name in names} & KEY_PARAMETERS


@pytest.mark.parametrize("path", ["/api/v1/data", "/api/v1/data/nothing", "/mcp/", "/mcp/x"])
def test_a_machine_surface_asks_for_the_key_before_it_says_that_nothing_is_there(
    anonymous: httpx.Client, path: str
) -> None:
    assert anonymous.get(path).status_code == 401
    assert anonymous.get(path, headers=[GOOD]).status_code == 404


@pytest.mark.parametrize("path", ["/", "/v1/spread/recent", "/api/v1/database", "/mcpx"])
def test_elsewhere_no_key_is_asked_for(anonymous: httpx.Client, path: str) -> None:
    assert anonymous.get(path).status_code == 404


def test_no_key_is_ever_logged(anonymous: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for headers in ([GOOD], [BAD], [BEARER, GOOD]):
            anonymous.get(ROUTE, headers=headers)
        answer = anonymous.get(f"{ROUTE}?limit=0", headers=[GOOD])
    assert answer.status_code == 400
    ours = [r for r in caplog.records if r.name.startswith(("toolkit", "uvicorn"))]
    assert not [r for r in ours if "demo-" in r.getMessage() or "nobody" in r.getMessage()]


def upgrade(replay: Replay, path: str, headers: list[tuple[bytes, bytes]]) -> tuple[int, Any]:
    """What a WebSocket upgrade is answered, on the application itself."""
    sent: list[MutableMapping[str, Any]] = []
    scope = {
        "type": "websocket",
        "path": path,
        "query_string": b"",
        "headers": headers,
        "extensions": {"websocket.http.response": {}},
    }

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    service = Service(replay, Clock(fixed_at=0), Policy())
    asyncio.run(application(service)(scope, receive, send))
    assert [message["type"] for message in sent] == [
        "websocket.http.response.start",
        "websocket.http.response.body",
    ]
    assert (b"date", b"Thu, 01 Jan 1970 00:00:00 GMT") in sent[0]["headers"]
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_a_refused_upgrade_is_a_plain_http_answer(replay: Replay) -> None:
    status, problem = upgrade(replay, "/api/v1/data/ws", [])
    assert (status, problem["code"]) == (401, "unauthorized")


@pytest.mark.parametrize(
    "header", [(b"apikey", b" demo-pro\t"), (b"authorization", b"\tBearer \tdemo-pro ")]
)
def test_an_upgrade_with_a_good_key_passes_the_key_check(
    replay: Replay, header: tuple[bytes, bytes]
) -> None:
    """Blanks are not left to the server in front: not every one strips them."""
    status, problem = upgrade(replay, "/api/v1/data/nothing/ws", [header])
    assert (status, problem["code"]) == (404, "not_found")
