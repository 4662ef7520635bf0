"""The MCP client against servers that are built here, over real sockets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from starlette.types import ASGIApp, Receive, Scope, Send

from tests import miniature
from toolkit.client.mcp import McpClient
from toolkit.errors import (
    BadRequestError,
    InputError,
    NotFoundError,
    PagingError,
    ServiceError,
    UnreachableError,
    WireError,
)
from toolkit.market import Leg
from toolkit.service import Clock, Config, running
from toolkit.serving import ServerSettings, run_in_thread
from toolkit.wire.user_profile import UserProfile

KEY = "any-key"
PAGE = {"type": "object", "required": ["items"], "properties": {"items": {"type": "array"}}}
ROW = {"type": "object", "required": ["ts"], "properties": {"price": {"type": "number"}}}
ROWS = PAGE | {"properties": {"items": {"type": "array", "items": ROW}}}
LEG = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}
Calls = list[tuple[str, dict[str, Any]]]


def tool(name: str, output_schema: dict[str, Any] | None = PAGE) -> Tool:
    return Tool(name=name, input_schema={"type": "object"}, output_schema=output_schema)


def structured(document: dict[str, Any], *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[], structured_content=document, is_error=is_error)


def text(said: str, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=said)], is_error=is_error)


def serving(app: ASGIApp) -> AbstractContextManager[str]:
    """The address of an application that runs in a thread."""
    return run_in_thread(ServerSettings(app, grace_s=3), "127.0.0.1", 0)


class Shop:
    """An MCP server: its tools on pages of two, what each answers, and what it was asked."""

    def __init__(self, answers: dict[str, CallToolResult], *tools: Tool, loops: bool = False):
        self.answers = answers
        self.tools = list(tools) or [tool(name) for name in answers]
        self.loops = loops
        self.calls: Calls = []
        self.pages = 0

    def app(self) -> ASGIApp:
        server: Server[Any] = Server("shop", on_list_tools=self.list, on_call_tool=self.call)
        return server.streamable_http_app(stateless_http=True, json_response=True)

    async def list(
        self, _: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        self.pages += 1
        first = int(params.cursor) if params and params.cursor else 0
        more = "0" if self.loops else f"{first + 2}" if first + 2 < len(self.tools) else None
        return ListToolsResult(tools=self.tools[first : first + 2], next_cursor=more)

    async def call(
        self, _: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult:
        self.calls.append((params.name, params.arguments or {}))
        return self.answers[params.name]


@contextmanager
def asking(shop: Shop, profile: UserProfile | None = None) -> Iterator[McpClient]:
    with serving(shop.app()) as base_url, McpClient(base_url, KEY, profile=profile) as client:
        yield client


@pytest.fixture
def users(tmp_path: Path) -> Callable[[str], UserProfile]:
    def written(said: str) -> UserProfile:
        (tmp_path / "profile.toml").write_text(said)
        return UserProfile.read(tmp_path / "profile.toml")

    return written


@pytest.fixture(scope="module")
def rail() -> Iterator[str]:
    clock = Clock(fixed_at=miniature.END)
    with running(Config(miniature.source(), port=0, clock=clock, quota=1_000_000)) as service:
        yield service.base_url


def test_the_newest_version_is_agreed_on_and_every_role_has_its_tool(rail: str) -> None:
    with McpClient(rail, "demo-pro") as client:
        assert client.version == "2026-07-28"
        assert {each.role for each in client.tools()} == set(client.profile().tools)
        assert all(each.read_only for each in client.tools())
        assert client.profile().findings == ()
        assert client.profile().source is not None
        assert client.profile().source.kind == "simulated"


def test_a_service_of_the_handshake_era_is_met_by_its_newest_version() -> None:
    shop = Shop({"data.search_symbols": structured({"items": []})})
    app = shop.app()

    async def elder(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        if headers.get(b"mcp-protocol-version") == b"2026-07-28":
            scope = scope | {"path": "/nothing"}
        await app(scope, receive, send)

    with serving(elder) as base_url, McpClient(base_url, KEY) as client:
        assert client.call("symbols").document == {"items": []}
        assert client.version == "2025-11-25"


def test_a_call_gives_the_document_of_the_role(rail: str) -> None:
    with McpClient(rail, "demo-builder") as client:
        result = client.call("price_history", **LEG, limit=2, end_time=None)
    assert (result.role, result.tool) == ("price_history", "data.get_price_history")
    held = miniature.source().bars("BTC_USDT", Leg.parse("AURORA.spot"))
    assert [item["price"] for item in result.document["items"]] == held.price[:-3:-1].tolist()
    assert result.findings == ()


def test_tools_are_listed_over_all_pages_and_once() -> None:
    names = [f"t{number}" for number in range(5)]
    shop = Shop(dict.fromkeys(names, structured({"items": []})))
    with asking(shop) as client:
        assert [each.name for each in client.tools()] == names
        assert client.tools()[0].role is None
    assert shop.pages == 3


def test_a_listing_without_end_is_noticed() -> None:
    with (
        asking(Shop({"t": structured({})}, loops=True)) as client,
        pytest.raises(PagingError, match="lists its tools without end"),
    ):
        client.tools()


def test_a_renamed_tool_and_argument_are_met_by_lines_of_the_users_profile(
    users: Callable[[str], UserProfile],
) -> None:
    shop = Shop({"market.prices": structured({"items": [1]})})
    profile = users(
        '[tools]\nprice_history = "market.prices"\n'
        '[history.price]\nparameters = { end_time = "before" }'
    )
    with asking(shop, profile) as client:
        assert client.call("price_history", **LEG, end_time=60).document == {"items": [1]}
    assert shop.calls == [("market.prices", LEG | {"before": 60})]


def test_mcp_elsewhere_is_met_by_a_line_of_the_users_profile(
    rail: str, users: Callable[[str], UserProfile]
) -> None:
    with (
        McpClient(rail, "demo-pro", profile=users('mcp_path = "/api/mcp"')) as client,
        pytest.raises(NotFoundError, match="/api/mcp is not there"),
    ):
        client.tools()


def test_schemas_names_the_tool_of_each_route() -> None:
    described = {"market.find": {"route": "/api/v1/data/symbols/search"}, "odd": {"route": []}}
    answers = {
        "data.get_schemas": structured({"tools": described}),
        "market.find": structured({"items": ["found"]}),
    }
    with asking(Shop(answers)) as client:
        assert client.call("symbols").document == {"items": ["found"]}
        missing = [each for each in client.profile().findings if each.says.endswith("our symbols")]
    assert missing == []


def test_a_tool_that_is_not_listed_is_a_finding_and_its_call_says_what_to_do() -> None:
    shop = Shop({"prices": structured({"items": []})})
    with asking(shop) as client:
        found = {(each.kind, each.where) for each in client.profile().findings}
        assert ("tool_missing", "data.get_price_history") in found
        with pytest.raises(NotFoundError) as refused:
            client.call("price_history", **LEG)
    assert "it lists prices" in str(refused.value)
    assert '[tools] price_history = "..."' in str(refused.value)
    assert shop.calls == []


def test_a_role_that_there_is_none_of_is_an_input_error(rail: str) -> None:
    with (
        McpClient(rail, "demo-pro") as client,
        pytest.raises(InputError, match="role: 'prices' is not allowed; allowed: schemas, symbols"),
    ):
        client.call("prices")


def test_a_result_that_drifts_from_its_schema_is_kept_and_recorded() -> None:
    document = {"items": [{"ts": 1, "price": 1.5}, {"price": "2.5"}, {"price": "3.5"}]}
    shop = Shop({"data.search_symbols": structured(document)}, tool("data.search_symbols", ROWS))
    with asking(shop) as client:
        result = client.call("symbols")
    assert result.document == document
    assert {(each.kind, each.where, each.says) for each in result.findings} == {
        ("result_differs", "data.search_symbols.items[]", "'ts' is a required property (2 times)"),
        ("result_differs", "data.search_symbols.items[].price", "is not type 'number' (2 times)"),
    }


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (None, "schema_missing"),
        ({"type": "object", "properties": {"items": {"type": 5}}}, "schema_unusable"),
        ({"type": "object", "$ref": "http://127.0.0.1:9/elsewhere"}, "schema_unusable"),
    ],
)
def test_a_schema_that_cannot_be_used_costs_no_result(
    schema: dict[str, Any] | None, kind: str
) -> None:
    name = "data.search_symbols"
    with asking(Shop({name: structured({"items": []})}, tool(name, schema))) as client:
        result = client.call("symbols")
    assert result.document == {"items": []}
    assert [each.kind for each in result.findings] == [kind]


@pytest.mark.parametrize(
    ("said", "document", "kinds"),
    [
        ('{"items": []}', {"items": []}, ["structured_content_missing"]),
        ("no JSON", "no JSON", ["structured_content_missing", "result_differs"]),
    ],
)
def test_text_stands_for_structured_content_where_there_is_none(
    said: str, document: object, kinds: list[str]
) -> None:
    with asking(Shop({"data.search_symbols": text(said)})) as client:
        result = client.call("symbols")
    assert result.document == document
    assert [each.kind for each in result.findings] == kinds


def test_a_tool_error_with_a_problem_is_the_error_of_its_status(rail: str) -> None:
    with McpClient(rail, "demo-pro") as client:
        with pytest.raises(BadRequestError, match="market: 'perp' is not allowed") as refused:
            client.call("price_history", **LEG | {"market": "perp"})
        assert refused.value.status == 400
        assert refused.value.code == "bad_request"


@pytest.mark.parametrize("failed", [text("it broke", is_error=True), structured({"a": 1})])
def test_a_tool_error_without_a_problem_is_told_as_it_is(failed: CallToolResult) -> None:
    failed = failed.model_copy(update={"is_error": True})
    with (
        asking(Shop({"data.search_symbols": failed})) as client,
        pytest.raises(ServiceError, match=r"data.search_symbols failed: (it broke|\{\"a\":1\})"),
    ):
        client.call("symbols")


def test_a_failure_inside_the_service_is_told_as_one() -> None:
    shop = Shop({}, tool("data.search_symbols"))  # the call of which raises there
    with asking(shop) as client, pytest.raises(WireError, match="Internal server error"):
        client.call("symbols")


def test_a_service_that_went_away_is_unreachable_until_it_is_back() -> None:
    def config(port: int) -> Config:
        return Config(miniature.source(), port=port, clock=Clock(fixed_at=miniature.END))

    with running(config(0)) as service:
        port = int(service.base_url.rpartition(":")[2])
        client = McpClient(service.base_url, "demo-pro")
        assert len(client.tools()) == 11
    with pytest.raises(UnreachableError, match="is the service running"):
        client.call("symbols")
    with running(config(port)), client:
        assert client.call("symbols").document["type"] == "symbols_page"


def test_threads_may_share_a_client(rail: str) -> None:
    with McpClient(rail, "demo-pro") as client, ThreadPoolExecutor(4) as pool:
        limits = list(range(1, 9))
        pages = pool.map(lambda limit: client.call("price_history", **LEG, limit=limit), limits)
        assert [len(page.document["items"]) for page in pages] == limits


@pytest.mark.parametrize("result", [structured, lambda document: text(json.dumps(document))])
def test_a_key_that_comes_back_is_struck_out_of_results_and_of_the_tools_that_are_listed(
    result: Callable[[dict[str, Any]], CallToolResult],
) -> None:
    key = 'k9-"very"/secret-0042'
    listed = Tool(
        name="data.search_symbols",
        description=f"for {key}",
        input_schema={"type": "object", "title": key},
    )
    shop = Shop({listed.name: result({"items": [], "by": key, key: 1})}, listed)
    with serving(shop.app()) as base_url, McpClient(base_url, key) as client:
        assert client.call("symbols").document == {"items": [], "by": "***", "***": 1}
        (shown,) = client.tools()
        assert shown.description == "for ***"
        assert shown.input_schema == {"type": "object", "title": "***"}


@pytest.mark.slow
def test_a_listing_whose_cursors_never_repeat_is_ended() -> None:
    class Endless(Shop):
        async def list(self, *_: Any) -> ListToolsResult:
            self.pages += 1
            return ListToolsResult(tools=[], next_cursor=str(self.pages))

    shop = Endless({})
    with asking(shop) as client, pytest.raises(PagingError, match="without end"):
        client.tools()
    assert shop.pages == 100
