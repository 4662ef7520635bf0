"""machine-rail.md 4.2, and what sections 1, 5, 7 and 8 say of MCP; the SDK's own client asks."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import anyio
import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS

from tests import miniature
from toolkit.market import EventFamily, Family
from toolkit.service import Config, running
from toolkit.service.api.registry import TOOLS

from .conftest import BUILDER_ROUTES, DATA, FREE_ROUTES

T = TypeVar("T")

MODES = ["auto", "legacy", "2026-07-28"]
HEADERS = {
    "apikey": lambda key: {"apikey": key},
    "bearer": lambda key: {"Authorization": f"Bearer {key}"},
}
NAMES = {
    *("data.get_schemas", "data.search_symbols"),
    *(f"data.get_{family}_history" for family in Family),
    *(f"data.get_{family}_events" for family in EventFamily),
    *("data.get_event_activity", "data.get_spread_dashboard", "data.get_funding_overview"),
}
BY_ROUTE = {tool.route: tool.name for tool in TOOLS}
PRICES = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot", "limit": 3}


def asked(
    base_url: str, headers: dict[str, str], work: Callable[[Client], Awaitable[T]], mode: str
) -> T:
    """What a connected client of the SDK finds out."""

    async def run() -> T:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{base_url}/mcp", http_client=http), mode=mode) as found,
        ):
            return await work(found)

    return anyio.run(run)


def refused(
    base_url: str, headers: dict[str, str], work: Callable[[Client], Awaitable[T]], mode: str
) -> MCPError:
    """The error that a client of the SDK raises, out of the groups of its tasks."""
    with pytest.raises((MCPError, ExceptionGroup)) as caught:
        asked(base_url, headers, work, mode)
    error: BaseException = caught.value
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, MCPError)
    return error


async def listed(client: Client) -> list[Any]:
    return list((await client.list_tools()).tools)


async def called(name: str, arguments: dict[str, Any], client: Client) -> CallToolResult:
    return await client.call_tool(name, arguments)


async def call(client: Client) -> CallToolResult:
    """A call that any of the two plans may make."""
    return await called("data.get_price_history", PRICES, client)


def arguments_of(query: dict[str, str]) -> dict[str, Any]:
    """A REST query as the arguments of a tool."""
    return {name: int(text) if text.isdigit() else text for name, text in query.items()}


@pytest.fixture
def base_url(rail: httpx.Client) -> str:
    return str(rail.base_url).rstrip("/")


@pytest.fixture(params=["builder", "pro"])
def key(request: pytest.FixtureRequest) -> str:
    return f"demo-{request.param}"


@pytest.mark.parametrize("mode", MODES)
def test_builder_and_pro_receive_eleven_tools_with_the_prefix_data(
    base_url: str, key: str, mode: str
) -> None:
    tools = asked(base_url, {"apikey": key}, listed, mode)
    assert len(tools) == 11
    assert {tool.name for tool in tools} == NAMES
    assert all(name.startswith("data.") for name in NAMES)


def test_every_tool_is_read_only_and_has_both_schemas(base_url: str) -> None:
    for tool in asked(base_url, {"apikey": "demo-pro"}, listed, "auto"):
        assert tool.annotations.read_only_hint
        assert not tool.annotations.destructive_hint
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
        assert tool.output_schema["properties"]["type"]["enum"]


@pytest.mark.parametrize("mode", MODES)
def test_schema_discovery_gives_units_signs_keys_and_both_pagination_contracts(
    base_url: str, mode: str
) -> None:
    ask = partial(called, "data.get_schemas", {})
    tools = asked(base_url, {"apikey": "demo-pro"}, ask, mode).structured_content["tools"]
    assert set(tools) == NAMES
    spread = tools["data.get_spread_history"]["record"]
    assert spread["key"] == ["ts"]
    assert spread["fields"]["spread_pct"]["unit"] == "percent"
    assert "Positive where" in spread["fields"]["spread_pct"]["sign"]
    kinds = {tool["pagination"]["kind"] for tool in tools.values() if tool["pagination"]}
    assert kinds == {"end_time", "cursor"}


def test_a_client_is_told_to_call_schema_discovery_first(base_url: str) -> None:
    async def instructions(client: Client) -> str:
        return client.instructions or ""

    for mode in ("auto", "legacy"):
        said = asked(base_url, {"apikey": "demo-pro"}, instructions, mode)
        assert "Call data.get_schemas first" in said


@pytest.mark.parametrize("mode", MODES)
def test_free_is_rejected_and_the_client_sees_why(base_url: str, mode: str) -> None:
    error = refused(base_url, {"apikey": "demo-free"}, listed, mode)
    assert error.code == 403
    assert error.message == "The lowest plan with MCP is builder; this key's plan is free."
    assert error.data["code"] == "tier_required"
    assert (error.data["plan"], error.data["minimum_plan"]) == ("free", "builder")


@pytest.mark.parametrize("mode", MODES)
def test_structured_content_equals_the_rest_body_of_the_same_owner(
    rail: httpx.Client, base_url: str, key: str, mode: str
) -> None:
    async def each(client: Client) -> dict[str, CallToolResult]:
        return {
            path: await called(BY_ROUTE[f"{DATA}/{path}"], arguments_of(query), client)
            for path, query in FREE_ROUTES + BUILDER_ROUTES
        }

    results = asked(base_url, {"apikey": key}, each, mode)
    for path, query in FREE_ROUTES + BUILDER_ROUTES:
        body = rail.get(f"{DATA}/{path}", params=query, headers={"apikey": key})
        assert body.status_code == 200, path
        assert not results[path].is_error, path
        assert results[path].structured_content == body.json(), path
        assert json.loads(results[path].content[0].text) == body.json(), path


@pytest.mark.parametrize("path", ["history/funding", "dashboards/funding-overview"])
def test_funding_that_was_settled_equals_the_rest_body(market: httpx.Client, path: str) -> None:
    legs = {"symbol": "BTC_USDT", "buy_exchange": "AURORA", "buy_market": "spot", "limit": 5}
    legs |= {"sell_exchange": "BOREAS", "sell_market": "futures"}
    query = legs if path == "history/funding" else {}
    body = market.get(path, params=query).json()
    ask = partial(called, BY_ROUTE[f"{DATA}/{path}"], query)
    result = asked(str(market.base_url).split("/api")[0], {"apikey": "demo-pro"}, ask, "auto")
    assert result.structured_content == body
    assert len(body["items"]) >= 5


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", HEADERS)
def test_an_invalid_key_yields_http_401(base_url: str, form: str, mode: str) -> None:
    error = refused(base_url, HEADERS[form]("nobody's"), listed, mode)
    assert (error.code, error.data["status"], error.data["code"]) == (401, 401, "unauthorized")


@pytest.mark.parametrize(("plan", "most"), [("builder", 5_000), ("pro", 10_000)])
def test_limits_are_those_of_the_key_s_plan(base_url: str, plan: str, most: int) -> None:
    key = {"apikey": f"demo-{plan}"}
    tools = {tool.name: tool for tool in asked(base_url, key, listed, "auto")}
    schema = tools["data.get_price_history"].input_schema
    assert schema["properties"]["limit"]["maximum"] == most
    for limit, refused in ((most, False), (most + 1, True)):
        few = PRICES | {"limit": limit, "end_time": miniature.START + 600}
        ask = partial(called, "data.get_price_history", few)
        assert asked(base_url, key, ask, "auto").is_error is refused


def test_rest_and_mcp_spend_one_quota_and_a_call_spends_one() -> None:
    """A client that pins its version asks nothing before its first question."""
    schemas = CallToolRequest(params=CallToolRequestParams(name="data.get_schemas", arguments={}))

    async def thrice(client: Client) -> None:
        for _ in range(3):
            await client.session.send_request(schemas, CallToolResult)

    headers = {"apikey": "demo-pro"}
    config = Config(miniature.source(), port=0, quota=4)
    with running(config) as service, httpx.Client(base_url=service.base_url) as rest:
        asked(service.base_url, headers, thrice, "2026-07-28")
        answers = [rest.get("/api/v1/data/schemas", headers=headers) for _ in range(2)]
        error = refused(service.base_url, headers, listed, "2026-07-28")
        bare = rest.post("/mcp", json={"id": 1}, headers=headers)
    assert [answer.status_code for answer in answers] == [200, 429]
    assert (error.code, error.data["code"]) == (429, "quota_exhausted")
    assert bare.status_code == 429
    assert 0 < int(bare.headers["retry-after"]) <= 60
    assert bare.headers["ratelimit-policy"] == answers[1].headers["ratelimit-policy"]
    assert bare.headers["ratelimit"].startswith('"pro";r=0;t=')


@pytest.mark.parametrize("mode", MODES)
def test_bad_arguments_are_a_tool_error_with_the_problem_that_rest_gives(
    rail: httpx.Client, base_url: str, mode: str
) -> None:
    bad = PRICES | {"exchange": "NOWHERE", "limit": 0}
    headers = {"apikey": "demo-pro"}
    ask = partial(called, "data.get_price_history", bad)
    result = asked(base_url, headers, ask, mode)
    answer = rail.get("/api/v1/data/history/price", params=bad, headers=headers)
    assert answer.status_code == 400
    assert result.is_error
    assert result.structured_content == answer.json() == json.loads(result.content[0].text)


def test_missing_arguments_are_named_and_unknown_ones_ignored(base_url: str) -> None:
    ask = partial(called, "data.get_price_history", {"symbol": "BTC_USDT", "color": "red"})
    problem = asked(base_url, {"apikey": "demo-pro"}, ask, "auto").structured_content
    assert [error["parameter"] for error in problem["errors"]] == ["exchange", "market"]
    ask = partial(called, "data.get_price_history", PRICES | {"color": "red"})
    assert not asked(base_url, {"apikey": "demo-pro"}, ask, "auto").is_error


@pytest.mark.parametrize("mode", MODES)
def test_an_unknown_tool_is_a_json_rpc_error(base_url: str, mode: str) -> None:
    ask = partial(called, "data.get_everything", {})
    error = refused(base_url, {"apikey": "demo-pro"}, ask, mode)
    assert (error.code, error.message) == (-32602, "Unknown tool: data.get_everything")


@pytest.mark.parametrize("family", EventFamily)
def test_retained_logs_come_by_mcp_within_seven_days_and_five_hundred_events(
    base_url: str, family: EventFamily
) -> None:
    end = miniature.END

    def page(**window: int) -> CallToolResult:
        ask = partial(called, f"data.get_{family}_events", window)
        return asked(base_url, {"apikey": "demo-builder"}, ask, "2026-07-28")

    found = page(start_time=end - 7 * 86_400, end_time=end).structured_content
    assert found["type"] == f"{family}_events_page"
    assert len(found["items"]) <= 200
    assert page(start_time=end - 7 * 86_400 - 1, end_time=end).is_error
    assert page(start_time=end - 60, end_time=end, limit=501).is_error
    assert not page(start_time=end - 60, end_time=end, limit=500).is_error


def test_a_page_of_events_goes_on_by_its_cursor(market: httpx.Client) -> None:
    base_url = str(market.base_url).split("/api")[0]
    window = {"start_time": 1_795_953_600 - 86_400, "end_time": 1_795_953_600, "limit": 2}

    async def two_pages(client: Client) -> list[Any]:
        first = await called("data.get_spread_events", window, client)
        following = window | {"cursor": first.structured_content["next_cursor"]}
        second = await called("data.get_spread_events", following, client)
        return first.structured_content["items"] + second.structured_content["items"]

    items = asked(base_url, {"apikey": "demo-pro"}, two_pages, "auto")
    whole = market.get("history/spread-events", params=window | {"limit": 4}).json()
    assert items == whole["items"]
    assert len(items) == 4


@pytest.mark.parametrize("version", KNOWN_PROTOCOL_VERSIONS)
def test_every_protocol_version_that_the_sdk_speaks_is_served(
    rail: httpx.Client, version: str
) -> None:
    headers = {"apikey": "demo-pro", "mcp-protocol-version": version}
    params: dict[str, Any] = {"name": "data.get_price_history", "arguments": PRICES}
    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        client = {"protocolVersion": version, "capabilities": {}}
        client["clientInfo"] = {"name": "test", "version": "1"}
        begun = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
        greeted = rail.post("/mcp", json=begun, headers=headers)
        assert greeted.json()["result"]["protocolVersion"] == version
    else:
        headers |= {"mcp-method": "tools/call", "mcp-name": params["name"]}
        prefix = "io.modelcontextprotocol"
        params["_meta"] = {f"{prefix}/protocolVersion": version, f"{prefix}/clientCapabilities": {}}
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    answer = rail.post("/mcp", json=message, headers=headers)
    assert answer.headers["content-type"] == "application/json"
    body = rail.get("/api/v1/data/history/price", params=PRICES, headers={"apikey": "demo-pro"})
    assert json.loads(answer.json()["result"]["content"][0]["text"]) == body.json()


def test_mcp_is_a_post_to_one_path(rail: httpx.Client) -> None:
    headers = {"apikey": "demo-pro"}
    for method in ("GET", "DELETE", "PUT"):
        answer = rail.request(method, "/mcp", headers=headers)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        assert answer.json()["error"]["data"]["code"] == "method_not_allowed"
    for path in ("/mcp/", "/api/v1/mcp", "/v1/mcp", "/api/mcp"):
        assert rail.post(path, headers=headers).status_code == 404
