"""The look at a service's MCP over real sockets: tools, refusals, and answers that are none."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Iterator
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
from tests.listening import Handler, listening
from toolkit.client.mcp import McpClient, McpListing
from toolkit.errors import (
    BadRequestError,
    InputError,
    KeyRefusedError,
    NotFoundError,
    PagingError,
    PlanRefusedError,
    QuotaError,
    RailError,
    ServiceError,
    UnavailableError,
    UnreachableError,
    WireError,
)
from toolkit.service import Config, running
from toolkit.serving import ServerSettings, run_in_thread
from toolkit.wire.profile.user_profile import UserProfile

KEY = "k7-very-secret-0815"
SCHEMAS = "data.get_schemas"


def tool(name: str) -> Tool:
    return Tool(name=name, input_schema={"type": "object"})


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
        return self.answers[params.name]


def looked(shop: Shop, profile: UserProfile | None = None, key: str = KEY) -> McpListing:
    with serving(shop.app()) as base_url:
        return McpClient(base_url, key, profile=profile).listing()


def users(said: str) -> UserProfile:
    return UserProfile.parsed(Path("profile.toml"), said)


def test_the_newest_version_is_agreed_on_and_every_role_has_its_tool(base_url: str) -> None:
    found = McpClient(base_url, "demo-pro").listing()
    assert found.version == "2026-07-28"
    assert set(found.tools) == set(found.profile.tools.values())
    assert found.profile.findings == ()
    assert found.profile.source is not None
    assert found.profile.source.kind == "simulated"


def test_a_service_of_the_handshake_era_is_met_by_its_newest_version() -> None:
    app = Shop({"data.search_symbols": structured({"items": []})}).app()

    async def elder(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        if headers.get(b"mcp-protocol-version") == b"2026-07-28":
            scope = scope | {"path": "/nothing"}
        await app(scope, receive, send)

    with serving(elder) as base_url:
        found = McpClient(base_url, KEY).listing()
    assert (found.version, found.tools) == ("2025-11-25", ("data.search_symbols",))


def test_tools_are_listed_over_all_pages_and_once() -> None:
    names = [f"t{number}" for number in range(5)]
    shop = Shop(dict.fromkeys(names, structured({"items": []})))
    assert [*looked(shop).tools] == names
    assert shop.pages == 3


def test_a_listing_without_end_is_noticed() -> None:
    with pytest.raises(PagingError, match="lists its tools without end"):
        looked(Shop({"t": structured({})}, loops=True))


@pytest.mark.slow
def test_a_listing_whose_cursors_never_repeat_is_ended() -> None:
    class Endless(Shop):
        async def list(self, *_: Any) -> ListToolsResult:
            self.pages += 1
            return ListToolsResult(tools=[], next_cursor=str(self.pages))

    shop = Endless({})
    with pytest.raises(PagingError, match="without end"):
        looked(shop)
    assert shop.pages == 100


def test_mcp_and_names_elsewhere_are_met_by_lines_of_the_users_profile(base_url: str) -> None:
    renamed = users('[tools]\nprice_history = "market.prices"')
    assert McpClient(base_url, "demo-pro", profile=renamed).listing().profile.tools[
        "price_history"
    ] == ("market.prices")
    elsewhere = McpClient(base_url, "demo-pro", profile=users('mcp_path = "/api/mcp"'))
    with pytest.raises(NotFoundError, match="/api/mcp is not there"):
        elsewhere.listing()


@pytest.mark.parametrize("result", [structured, lambda document: text(json.dumps(document))])
def test_schemas_names_the_tool_of_each_route_in_either_form_of_a_result(
    result: Callable[[dict[str, Any]], CallToolResult],
) -> None:
    described = {"market.find": {"route": "/api/v1/data/symbols/search"}, "odd": {"route": []}}
    found = looked(Shop({SCHEMAS: result({"tools": described}), "market.find": structured({})}))
    assert found.profile.tools["symbols"] == "market.find"


@pytest.mark.parametrize("failed", [text("it broke", is_error=True), structured({"a": 1})])
def test_a_tool_error_without_a_problem_is_told_as_it_is(failed: CallToolResult) -> None:
    failed = failed.model_copy(update={"is_error": True})
    with pytest.raises(ServiceError, match=r"data.get_schemas failed: (it broke|\{\"a\":1\})"):
        looked(Shop({SCHEMAS: failed}))


def test_a_tool_error_with_a_problem_is_the_error_of_its_status() -> None:
    problem = structured({"status": 400, "detail": "no"}, is_error=True)
    with pytest.raises(BadRequestError) as refused:
        looked(Shop({SCHEMAS: problem}))
    assert refused.value.status == 400


def test_a_failure_inside_the_service_is_told_as_one() -> None:
    with pytest.raises(WireError, match="Internal server error"):
        looked(Shop({}, tool(SCHEMAS)))  # the call of which raises there


def test_nobody_there_is_unreachable_and_the_next_look_is_another() -> None:
    with running(Config(miniature.source(), port=0)) as service:
        client = McpClient(service.base_url, "demo-pro")
        assert len(client.listing().tools) == 11
        assert len(client.listing().tools) == 11
    with pytest.raises(UnreachableError, match="is the service running"):
        client.listing()


def test_a_key_that_comes_back_is_struck_out() -> None:
    key = 'k9-"very"/secret-0042'
    listed = Tool(name=f"for-{key}", input_schema={"type": "object"})
    found = looked(Shop({SCHEMAS: structured({"by": key})}, tool(SCHEMAS), listed), key=key)
    assert found.tools == (SCHEMAS, "for-***")
    assert key not in str(found)


def test_free_is_refused_with_status_code_and_challenge(base_url: str) -> None:
    with pytest.raises(PlanRefusedError, match="lowest plan with MCP is builder") as refused:
        McpClient(base_url, "demo-free").listing()
    assert refused.value.status == 403
    assert refused.value.code == "tier_required"
    assert "insufficient_scope" in refused.value.challenge


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
        (200, HTML, b"<html>", WireError),
        (200, JSON, b'{"jsonrpc": ', WireError),
        (200, JSON, b"[]", WireError),
        (202, {}, b"", WireError),
        (0, {}, b"", UnreachableError),
    ],
)
def test_a_refusal_is_told_by_its_status_alone_and_no_answer_is_an_error_of_ours(
    status: int, headers: dict[str, str], body: bytes, kind: type[ServiceError]
) -> None:
    told = headers | {"retry-after": "7"}
    with refusing(status, told, body) as base_url:
        with pytest.raises(ServiceError) as refused:
            McpClient(base_url, KEY).listing()
        assert type(refused.value) is kind
        told_by_it = (status, 7.0) if status > 299 else (None, None)
        assert (refused.value.status, refused.value.retry_after_s) == told_by_it


def test_the_key_shows_nowhere(base_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = json.dumps({"detail": f"no such key {KEY}", "code": KEY}).encode()
    said = ""
    with refusing(401, PROBLEM, echo) as refuses:
        for address in (refuses, base_url, "http://127.0.0.1:9"):
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
