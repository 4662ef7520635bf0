"""The OpenAPI document against the routes that it describes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema
import pytest

from toolkit.market import Plan
from toolkit.service import Clock, Config, Simulated, running
from toolkit.service.accounts.policy import TERMS
from toolkit.service.api.registry import TOOLS

NOW = 1_795_953_607
LEG = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}
PAIR = {
    "symbol": "BTC_USDT",
    "buy_exchange": "AURORA",
    "buy_market": "spot",
    "sell_exchange": "BOREAS",
    "sell_market": "futures",
}
WINDOW = {"start_time": NOW - 86_400, "end_time": NOW}
GIVEN: dict[str, dict[str, Any]] = {
    "history/price": LEG,
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
def test_its_parameters_are_those_of_the_largest_plan(document: dict[str, Any], tool: Any) -> None:
    schema = tool.input_schema(TERMS[Plan.PRO])
    parameters = document["paths"][tool.route]["get"]["parameters"]
    assert {each["name"] for each in parameters} == set(schema["properties"])
    for each in parameters:
        said = schema["properties"][each["name"]]
        assert each["required"] == (each["name"] in schema["required"])
        assert each["description"] == said["description"]
        assert {"description": each["description"], **each["schema"]} == said


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_it_states_every_status_that_a_route_can_have(document: dict[str, Any], tool: Any) -> None:
    statuses = {"200", "400", "401", "429", "500", "503"}
    if tool.minimum_plan is not Plan.FREE:
        statuses.add("403")
    assert set(document["paths"][tool.route]["get"]["responses"]) == statuses


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_each_answer_is_as_described(
    rail: httpx.Client, document: dict[str, Any], tool: Any
) -> None:
    answer = rail.get(tool.route, params=GIVEN.get(tool.path, {}), headers={"apikey": "demo-pro"})
    assert answer.status_code == 200
    jsonschema.validate(answer.json(), schema_of(document, answer))


@pytest.mark.parametrize(
    ("path", "key", "status"),
    [
        ("history/price", "demo-pro", 400),
        ("history/price", "nobody", 401),
        ("history/funding", "demo-free", 403),
    ],
)
def test_each_refusal_is_as_described(
    rail: httpx.Client, document: dict[str, Any], path: str, key: str, status: int
) -> None:
    answer = rail.get(f"/api/v1/data/{path}", headers={"apikey": key})
    assert answer.status_code == status
    jsonschema.validate(answer.json(), schema_of(document, answer))


def test_a_spent_quota_is_refused_as_described(document: dict[str, Any]) -> None:
    headers = {"apikey": "demo-pro"}
    with running(Config(Simulated(7), port=0, quota=1)) as service:
        url = f"{service.base_url}/api/v1/data/schemas"
        answer = [httpx.get(url, headers=headers) for _ in range(2)][1]
    assert answer.status_code == 429
    jsonschema.validate(answer.json(), schema_of(document, answer))
