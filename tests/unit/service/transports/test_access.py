from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Iterator, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import jsonschema
import pytest

from toolkit.market import Plan
from toolkit.service import Clock, Config, Simulated, running
from toolkit.service.accounts import TERMS, Policy
from toolkit.service.api.calls import Service
from toolkit.service.api.registry import TOOLS
from toolkit.service.transports.access import KEY_PARAMETERS
from toolkit.service.transports.rest import application

from .sockets import PAIR, PRICE

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
def test_without_one_valid_key_the_answer_is_401(anonymous, headers, challenge) -> None:
    answer = anonymous.get(ROUTE, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["code"] == "unauthorized"
    assert answer.headers["www-authenticate"] == challenge


@pytest.mark.parametrize(("headers", "maximum"), ACCEPTED)
def test_a_valid_key_in_either_header_is_served_by_its_owners_plan(anonymous, headers, maximum):
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
def test_a_key_in_the_query_string_is_a_400_whatever_the_headers(anonymous, name, headers) -> None:
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
def test_a_machine_surface_asks_for_the_key_before_it_says_that_nothing_is_there(anonymous, path):
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


@pytest.mark.parametrize(
    "header", [(b"apikey", b" demo-pro\t"), (b"authorization", b"\tBearer \tdemo-pro ")]
)
def test_an_upgrade_with_a_good_key_passes_the_key_check(replay, header) -> None:
    """Blanks are not left to the server in front: not every one strips them."""
    sent: list[MutableMapping[str, Any]] = []
    scope = {
        "type": "websocket",
        "path": "/api/v1/data/nothing/ws",
        "query_string": b"",
        "headers": [header],
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
    assert (sent[0]["status"], json.loads(sent[1]["body"])["code"]) == (404, "not_found")


NOW = 1_795_953_607
WINDOW = {"start_time": NOW - 86_400, "end_time": NOW}
GIVEN: dict[str, dict[str, Any]] = {
    "history/price": PRICE,
    "history/spread": PAIR,
    "history/funding": PAIR,
    **{f"history/{family}-events": WINDOW for family in ("spread", "splash", "funding")},
}


@pytest.fixture(scope="module")
def rail() -> Iterator[httpx.Client]:
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW))
    with running(config) as service, httpx.Client(base_url=service.base_url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def document(rail: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = rail.get("/openapi.json").json()
    return found


def schema_of(document: dict[str, Any], answer: httpx.Response) -> dict[str, Any]:
    """The schema that the document has for an answer, and its components beside it."""
    responses = document["paths"][answer.url.path]["get"]["responses"]
    described = responses[f"{answer.status_code}"]
    (schema,) = [described["content"][answer.headers["content-type"]]["schema"]]
    assert set(map(str.lower, described["headers"])) <= set(answer.headers)
    return {**schema, "components": document["components"]}


def test_the_document_is_for_everybody_and_costs_no_quota(rail: httpx.Client) -> None:
    answer = rail.get("/openapi.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert "ratelimit" not in answer.headers
    assert answer.json()["openapi"] == "3.1.0"


def test_it_has_the_eleven_routes_and_both_key_headers(document: dict[str, Any]) -> None:
    assert list(document["paths"]) == [tool.route for tool in TOOLS]
    assert len(document["paths"]) == 11
    schemes = document["components"]["securitySchemes"]
    assert schemes["apikey"] == {"type": "apiKey", "in": "header", "name": "apikey"}
    assert schemes["bearer"] == {"type": "http", "scheme": "bearer"}
    assert document["security"] == [{"bearer": []}, {"apikey": []}]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_it_has_the_parameters_of_the_largest_plan_and_every_status(document, tool) -> None:
    statuses = {"200", "400", "401", "429", "500", "503"}
    if tool.minimum_plan is not Plan.FREE:
        statuses.add("403")
    operation = document["paths"][tool.route]["get"]
    assert set(operation["responses"]) == statuses
    schema, parameters = tool.input_schema(TERMS[Plan.PRO]), operation["parameters"]
    assert {each["name"] for each in parameters} == set(schema["properties"])
    for each in parameters:
        said = schema["properties"][each["name"]]
        assert each["required"] == (each["name"] in schema["required"])
        assert each["description"] == said["description"]
        assert {"description": each["description"], **each["schema"]} == said


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_each_answer_is_as_described(rail, document, tool) -> None:
    answer = rail.get(tool.route, params=GIVEN.get(tool.path, {}), headers={"apikey": "demo-pro"})
    assert answer.status_code == 200
    assert answer.json().get("items", answer.json())
    jsonschema.validate(answer.json(), schema_of(document, answer))


@pytest.mark.parametrize(
    ("path", "key", "status"),
    [
        ("history/price", "demo-pro", 400),
        ("history/price", "nobody", 401),
        ("history/funding", "demo-free", 403),
    ],
)
def test_each_refusal_is_as_described(rail, document, path, key, status) -> None:
    answer = rail.get(f"/api/v1/data/{path}", headers={"apikey": key})
    assert answer.status_code == status
    jsonschema.validate(answer.json(), schema_of(document, answer))


def test_a_spent_quota_is_refused_as_described(document: dict[str, Any]) -> None:
    with running(Config(Simulated(7), port=0, quota=1)) as service:
        url = f"{service.base_url}/api/v1/data/schemas"
        answers = [httpx.get(url, headers={"apikey": "demo-pro"}) for _ in range(2)]
    assert answers[1].status_code == 429
    jsonschema.validate(answers[1].json(), schema_of(document, answers[1]))
