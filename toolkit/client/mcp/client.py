"""The MCP client: the service's tools, called by role, from ordinary synchronous code."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, Self

import msgspec
from mcp import ClientSession
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    PaginatedRequestParams,
    TextContent,
)
from mcp_types import Tool as ListedTool

from toolkit.client.mcp.connection import Connection, Refusal
from toolkit.client.mcp.drift import drift
from toolkit.errors import InputError, NotFoundError, PagingError
from toolkit.wire.exchange import UNREADABLE, base_address
from toolkit.wire.profile import BUILT_IN, Finding, Profile, with_schemas
from toolkit.wire.user_profile import UserProfile

__all__ = ["McpClient", "McpResult", "McpTool"]


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as the service lists it; ``role`` is what the profile calls it, None for a stranger.

    Examples
    --------
    >>> McpTool("data.get_schemas", "schemas", "", {}, None, read_only=True).role
    'schemas'
    """

    name: str
    role: str | None
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    read_only: bool


@dataclass(frozen=True, slots=True)
class McpResult:
    """What a tool answered.

    ``document`` is its structured content as it came; where there is none, its text, read as JSON
    if it is any. ``findings`` say where it differs from the schema that the service declared.

    Examples
    --------
    >>> McpResult("schemas", "data.get_schemas", "2026-07-28", {"type": "schemas"}).findings
    ()
    """

    role: str
    tool: str
    version: str
    document: Any
    findings: tuple[Finding, ...] = ()


class McpClient:
    """A machine-rail service's tools, asked by key over MCP.

    Connects at the first question, and anew after the connection was lost. Safe to share between
    threads; their questions go one after the other. No question is tried again: a refusal is raised
    at once, as the same `ServiceError` that REST raises for its status, and its facts stay in
    ``refused``.

    Parameters
    ----------
    base_url
        Where the service is, e.g. ``http://127.0.0.1:8700``; the profile says where MCP is below.
    api_key
        The subscription key; sent as ``Authorization: Bearer``, shown nowhere.
    profile
        The user's own words for the wire, over what the service says; None where none are needed.
    timeout_s
        Seconds to wait for each answer.

    Examples
    --------
    >>> from toolkit.service import Clock, Config, Simulated, running
    >>> config = Config(Simulated(7), port=0, clock=Clock(fixed_at=1_795_046_400))
    >>> with running(config) as service, McpClient(service.base_url, "demo-pro") as client:
    ...     page = client.call(
    ...         "price_history", symbol="BTC_USDT", exchange="AURORA", market="spot", limit=1)
    ...     len(client.tools()), page.document["items"][0]["ts"], page.findings
    (11, 1795046340, ())
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        profile: UserProfile | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        self._users = profile
        self._assumed = profile.applied(BUILT_IN) if profile else BUILT_IN
        self.url = base_address(base_url) + self._assumed.mcp_path
        self._connection = Connection(self.url, api_key, timeout_s=timeout_s)
        self._line = threading.RLock()
        self._tools: tuple[McpTool, ...] | None = None
        self._profile: Profile | None = None

    def __repr__(self) -> str:
        return f"McpClient({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection; the next question would open another."""
        with self._line:
            self._connection.close()

    @property
    def refused(self) -> Refusal | None:
        """The facts of the last refusal, None where nothing was refused."""
        return self._connection.refused

    @property
    def version(self) -> str:
        """The protocol version that client and service have agreed on; connects at first use."""
        with self._line:
            return self._connection.version

    @property
    def profile(self) -> Profile:
        """How this service speaks, as its own schemas tool says; asked once, at first use.

        A tool of the profile that the service does not list is a finding in it.
        """
        with self._line:
            if self._profile is None:
                self._profile = self._ask_profile()
            return self._profile

    def tools(self) -> tuple[McpTool, ...]:
        """The tools that the service lists, on however many pages; asked once.

        Raises `ServiceError`; a cursor that comes again is a `PagingError`.
        """
        with self._line:
            listed, roles = self._listed(), {n: role for role, n in self.profile.tools.items()}
            return tuple(replace(tool, role=roles.get(tool.name)) for tool in listed)

    def call(self, role: str, **arguments: object) -> McpResult:
        """Call the tool of a role, with arguments by our own names; a None is left out.

        Roles are the names in ``profile.tools``; the profile also says what the service calls the
        tool and its arguments. A result that differs from its declared schema is kept, and the
        difference is a finding.

        Raises
        ------
        InputError
            for a role that there is none of.
        NotFoundError
            where the service lists no tool of the role's name.
        ServiceError
            as over REST: `BadRequestError`, `KeyRefusedError`, `PlanRefusedError`, `QuotaError`,
            `UnavailableError`, `UnreachableError`, `WireError`.
        """
        with self._line:
            names = self.profile.tools
            if role not in names:
                raise InputError("role", role, ", ".join(names))
            parameters = _parameters(self.profile, role)
            given = {parameters.get(k, k): v for k, v in arguments.items() if v is not None}
            return self._call(role, names[role], given)

    def _ask_profile(self) -> Profile:
        """Built in < what the schemas tool says < the user's own."""
        names = {tool.name for tool in self._listed()}
        found = self._assumed
        if (name := found.tools["schemas"]) in names:
            document = self._call("schemas", name, {}).document
            found = with_schemas(found, msgspec.json.encode(document))
        found = self._users.applied(found) if self._users else found
        missing = [
            Finding("tool_missing", name, f"the service lists no such tool; it is our {role}")
            for role, name in found.tools.items()
            if name not in names
        ]
        return replace(found, findings=(*found.findings, *missing))

    def _call(self, role: str, name: str, arguments: dict[str, Any]) -> McpResult:
        tool = next((tool for tool in self._listed() if tool.name == name), None)
        if tool is None:
            listed = ", ".join(each.name for each in self._listed())
            raise NotFoundError(
                f"{self.url} lists no tool {name!r}, our {role}; it lists {listed}; name the one "
                f'meant in the profile: [tools] {role} = "..."',
                url=self.url,
            )
        request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments))
        result = self._connection.carried_out(lambda sdk: sdk.send_request(request, CallToolResult))
        document, findings = self._read(tool, result)
        if result.is_error:
            raise self._connection.tool_error(name, document)
        findings += drift(tool.name, tool.output_schema, document)
        return McpResult(role, name, self.version, document, tuple(findings))

    def _read(self, tool: McpTool, result: CallToolResult) -> tuple[Any, list[Finding]]:
        """The structured content, or the text, which stands for it before protocol 2025-06-18."""
        if result.structured_content is not None:
            return result.structured_content, []
        text = "".join(part.text for part in result.content if isinstance(part, TextContent))
        if result.is_error:
            return text, []
        says = "its text was read"
        try:
            document = msgspec.json.decode(text)
        except UNREADABLE:
            document, says = text, "its text is not JSON and stays as it is"
        return document, [Finding("structured_content_missing", tool.name, says)]

    def _listed(self) -> tuple[McpTool, ...]:
        """The tools as listed, without their roles."""
        if self._tools is None:
            found: list[ListedTool] = []
            cursor, seen = None, set[str]()
            while True:
                asked = PaginatedRequestParams(cursor=cursor)
                page = self._connection.carried_out(partial(ClientSession.list_tools, params=asked))
                found.extend(page.tools)
                cursor = page.next_cursor
                if cursor is None:
                    break
                if cursor in seen:
                    raise PagingError(f"{self.url} lists its tools without end", url=self.url)
                seen.add(cursor)
            self._tools = tuple(_tool(each) for each in found)
        return self._tools


def _parameters(profile: Profile, role: str) -> dict[str, str]:
    """What the service calls the arguments of a role's tool."""
    named = {f"{family}_history": route.parameters for family, route in profile.histories.items()}
    named |= {f"{family}_events": route.parameters for family, route in profile.events.items()}
    return dict(named.get(role, {}))


def _tool(listed: ListedTool) -> McpTool:
    return McpTool(
        name=listed.name,
        role=None,
        description=listed.description or "",
        input_schema=listed.input_schema,
        output_schema=listed.output_schema,
        read_only=bool(listed.annotations and listed.annotations.read_only_hint),
    )
