"""The MCP server: the registry's tools as the SDK lists and calls them. Imports the SDK."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ListedTool
from starlette.requests import Request

from toolkit.market import Plan
from toolkit.service.accounts import Owner
from toolkit.service.api.calls import Service
from toolkit.service.api.registry import VERSION, answer
from toolkit.service.api.tools import Tool, body_schema
from toolkit.service.problems import Problem, bad_request
from toolkit.service.transports.access import owner_of_scope
from toolkit.serving import in_worker

_log = logging.getLogger(__name__)

_INSTRUCTIONS = (
    "Market data of cryptocurrencies: prices, spreads, funding and detected events. Call "
    "data.get_schemas first: it gives field units, signs, key formats and both pagination "
    "contracts. Timestamps are Unix seconds, UTC."
)
_READ_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_LISTING_HOLDS = CacheHint(ttl_ms=60_000, scope="private")
_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "integer": (int, float),
    "number": (int, float),
    "string": (str,),
}

_Context = ServerRequestContext[dict[str, Any], Request]


def session_manager(service: Service, tools: Sequence[Tool[Any]]) -> StreamableHTTPSessionManager:
    """Return the SDK's session manager for the tools. Its ``run()`` can be entered once."""
    offered = _Tools(service, tools)
    server: Server[dict[str, Any]] = Server(
        "machine-rail",
        version=VERSION,
        instructions=_INSTRUCTIONS,
        cache_hints={"tools/list": _LISTING_HOLDS},
        get_tool_input_schema=offered.input_schema,
        on_list_tools=offered.list,
        on_call_tool=offered.call,
    )
    return StreamableHTTPSessionManager(server, stateless=True, json_response=True)


def arguments_as_query(
    schema: Mapping[str, Any], arguments: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Convert a call's arguments to the parameters of the REST route, without unknown ones.

    A value of another JSON type than the schema's, including null, is a 400 `Problem` that names
    the parameter.

    >>> arguments_as_query({"properties": {"limit": {"type": "integer"}}}, {"limit": 2, "x": 1})
    [('limit', '2')]
    """
    query, errors = [], []
    for name, value in arguments.items():
        said = schema["properties"].get(name)
        if said is None:
            continue
        kind = said.get("type", "string")  # an enum of texts has no type
        if isinstance(value, bool) or not isinstance(value, _JSON_TYPES[kind]):
            shown = msgspec.json.encode(value).decode()[:80]
            allowed = said.get("description", kind)
            errors.append((name, f"{shown} is not allowed; allowed: {allowed} (a JSON {kind})"))
        elif kind == "integer" and isinstance(value, float) and value.is_integer():
            query.append((name, str(int(value))))  # 2.0 is an integer to JSON Schema
        else:
            query.append((name, str(value)))
    if errors:
        raise bad_request(errors)
    return query


class _Tools:
    def __init__(self, service: Service, tools: Sequence[Tool[Any]]) -> None:
        self._service = service
        self._tools = {tool.name: tool for tool in tools}
        self._listed: dict[Plan, list[ListedTool]] = {}

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """Return a tool's input schema for the SDK's check of headers, which ignores limits."""
        tool = self._tools.get(name)
        return tool.input_schema(self._service.policy.terms(Plan.PRO)) if tool else None

    async def list(
        self, context: _Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "No such cursor: all tools are on the first page.")
        plan = _owner(context).plan
        if plan not in self._listed:
            terms = self._service.policy.terms(plan)
            self._listed[plan] = [
                ListedTool(
                    name=tool.name,
                    description=tool.summary,
                    input_schema=tool.input_schema(terms),
                    output_schema=body_schema(tool),
                    annotations=_READ_ONLY,
                )
                for tool in self._tools.values()
            ]
        return ListToolsResult(tools=self._listed[plan])

    async def call(self, context: _Context, params: CallToolRequestParams) -> CallToolResult:
        """Return the REST answer as structured content. A `Problem` is a tool error."""
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:80]}")
        said = partial(self._answer, tool, _owner(context), params.arguments or {})
        try:
            body = await in_worker(said) if tool.slow else said()
        except Problem as problem:
            return _result(msgspec.json.encode(problem.document), is_error=True)
        except Exception as error:
            _log.exception("unforeseen failure in answering %s", tool.name)
            failed = Problem(500, "internal", "The service failed; its log says why.")
            raise MCPError(INTERNAL_ERROR, failed.detail, failed.document) from error
        return _result(body)

    def _answer(self, tool: Tool[Any], owner: Owner, arguments: Mapping[str, Any]) -> bytes:
        terms = self._service.policy.terms(owner.plan)
        query = arguments_as_query(tool.input_schema(terms), arguments)
        return answer(self._service, tool, owner, query)


def _owner(context: _Context) -> Owner:
    assert context.request is not None, "HTTP is the one transport"
    return owner_of_scope(context.request.scope)


def _result(body: bytes, *, is_error: bool = False) -> CallToolResult:
    """Return the body as structured content, and as text for clients without support for it."""
    return CallToolResult(
        content=[TextContent(type="text", text=body.decode())],
        structured_content=msgspec.json.decode(body),
        is_error=is_error,
    )
