"""The MCP client: calls the service's tools by role, over the SDK's session in a thread."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2
import mcp_types as sdk
import msgspec
from anyio.from_thread import BlockingPortal, start_blocking_portal
from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]  # it ships no types
from jsonschema.validators import validator_for  # type: ignore[import-untyped]  # as above
from mcp import Client as SdkClient
from mcp import ClientSession, MCPError
from mcp.client.streamable_http import streamable_http_client
from referencing import Registry
from referencing.exceptions import Unresolvable

from toolkit import errors
from toolkit.client.contact import ClosingContact
from toolkit.client.mcp.transport import BoundedTransport
from toolkit.wire.exchange import UNREADABLE, Answer, Request, refusal, unreachable
from toolkit.wire.limits import Limits
from toolkit.wire.message import message_and_code
from toolkit.wire.profile import Finding, Profile
from toolkit.wire.secrets import Secret
from toolkit.wire.survey import with_listed_tools
from toolkit.wire.user_profile import UserProfile

_NO_ANSWER = {sdk.CONNECTION_CLOSED, sdk.REQUEST_TIMEOUT}
_KINDS = {sdk.INVALID_PARAMS: errors.BadRequestError, sdk.METHOD_NOT_FOUND: errors.NotFoundError}


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as listed by the service. ``role`` is our name for its task, None where unknown."""

    name: str
    role: str | None
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    read_only: bool


@dataclass(frozen=True, slots=True)
class McpResult:
    """The structured content of a tool's answer, else its text, and where it breaks its schema."""

    role: str
    tool: str
    document: Any
    findings: tuple[Finding, ...] = ()


class McpClient(ClosingContact):
    """A machine-rail service's tools, asked by key over MCP.

    It connects at the first call, and again after the connection was lost. Threads may share it:
    their calls run one after the other. No call is tried again. A refusal raises the `ServiceError`
    that REST raises for the same status. ``limits`` and ``allow_http`` are those of
    `toolkit.client.Client`.

    >>> from toolkit.service import Clock, Config, Simulated, running
    >>> config = Config(Simulated(7), port=0, clock=Clock(fixed_at=1_795_046_400))
    >>> with running(config) as service, McpClient(service.base_url, "demo-pro") as client:
    ...     page = client.call("symbols", limit=1)
    ...     len(client.tools()), page.document["items"][0]["symbol"], page.findings
    (11, '1000PEPE_USDT', ())
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | Secret,
        *,
        profile: UserProfile | None = None,
        allow_http: bool = False,
        limits: Limits | None = None,
    ) -> None:
        api_key = Secret(api_key)
        super().__init__(
            base_url,
            api_key,
            profile=profile,
            allow_http=allow_http,
            limits=limits,
        )
        self._request = Request(self.assumed.mcp_path)
        self.url = self._url(self._request)
        self._lock = threading.RLock()
        self._tools: dict[str, sdk.Tool] | None = None
        self._refused: Answer | None = None
        self._unread: errors.ServiceError | None = None
        self._connection = ExitStack()
        self._session: tuple[BlockingPortal, ClientSession] | None = None

    def close(self) -> None:
        """Close the connection. The next call opens another."""
        with self._lock:
            self._disconnect()

    @property
    def version(self) -> str:
        """The protocol version that client and service have agreed on. Connects at first use."""
        return self._carry_out(lambda session: session.protocol_version) or ""

    def profile(self) -> Profile:
        """Return what the service calls its routes and fields, by its schemas tool. Asked once.

        A tool of the profile that the service does not list is a finding in it.
        """
        with self._lock:
            if self._profile is not None:
                return self._profile
            found = self.assumed
            if (name := found.tools["schemas"]) in self._listed():
                document = self._call("schemas", name, {}).document
                found = self.learn(msgspec.json.encode(document))
            return self.speak(with_listed_tools(found, self._listed()))

    def tools(self) -> tuple[McpTool, ...]:
        """Return the tools that the service lists. `PagingError` where their pages do not end."""
        roles = {name: role for role, name in self.profile().tools.items()}
        return tuple(
            McpTool(
                *(name, roles.get(name), tool.description or "", tool.input_schema),
                *(tool.output_schema, bool(tool.annotations and tool.annotations.read_only_hint)),
            )
            for name, tool in self._listed().items()
        )

    def call(self, role: str, **arguments: object) -> McpResult:
        """Call the tool of a role with arguments by our names. An argument of None is left out.

        The roles are the keys of ``profile.tools``. A result that differs from its schema is
        returned with findings. Raises `InputError` for an unknown role, `NotFoundError` where the
        service does not list the tool, and the `ServiceError` of the status as over REST.
        """
        profile = self.profile()
        if role not in profile.tools:
            raise errors.InputError("role", role, ", ".join(profile.tools))
        return self._call(role, profile.tools[role], profile.arguments(role, arguments))

    def _listed(self) -> dict[str, sdk.Tool]:
        with self._lock:
            found, cursor, asked = dict[str, sdk.Tool](), None, set[str | None]()
            while self._tools is None:
                if cursor in asked or len(asked) == self.limits.tool_pages:
                    raise errors.PagingError(
                        f"{self.url} lists its tools without end", url=self.url
                    )
                asked.add(cursor)
                params = sdk.PaginatedRequestParams(cursor=cursor)
                page = self._carry_out(partial(ClientSession.list_tools, params=params))
                came = page.model_dump_json(by_alias=True).encode()
                if (struck := self.struck(came)) is not came:
                    page = sdk.ListToolsResult.model_validate_json(struck)
                found |= {tool.name: tool for tool in page.tools}
                cursor = page.next_cursor
                if cursor is None:
                    self._tools = found
            return self._tools

    def _call(self, role: str, name: str, arguments: dict[str, Any]) -> McpResult:
        listed = self._listed()
        if name not in listed:
            raise errors.NotFoundError(
                f"{self.url} lists no tool {name!r}, our {role}; it lists {', '.join(listed)}; "
                f'name the one meant in the profile: [tools] {role} = "..."',
                url=self.url,
            )
        call = sdk.CallToolRequest(params=sdk.CallToolRequestParams(name=name, arguments=arguments))
        result = self._carry_out(lambda session: session.send_request(call, sdk.CallToolResult))
        document, findings = result.structured_content, list[Finding]()
        if document is None:  # as before protocol 2025-06-18
            document = "".join(p.text for p in result.content if isinstance(p, sdk.TextContent))
            says = "its text was read"
            try:
                document = msgspec.json.decode(document)
            except UNREADABLE:
                says = "its text is not JSON and stays as it is"
            findings.append(Finding("structured_content_missing", name, says))
        if result.is_error:
            raise self._tool_error(name, document)
        came = msgspec.json.encode(document)
        if (struck := self.struck(came)) is not came:
            document = msgspec.json.decode(struck)
        findings += drift(name, listed[name].output_schema, document)
        return McpResult(role, name, document, tuple(findings))

    def _carry_out(self, work: Callable[[ClientSession], Any]) -> Any:
        """Run work on the session, after connecting where there is none."""
        with self._lock:
            self._refused = self._unread = None
            try:
                if self._session is None:
                    portal = self._connection.enter_context(start_blocking_portal(name="rail-mcp"))
                    connecting = portal.wrap_async_context_manager(self._connected())
                    self._session = portal, self._connection.enter_context(connecting)
                portal, session = self._session
                return portal.call(work, session)
            except (MCPError, httpx2.HTTPError, ValueError, ExceptionGroup) as raised:
                error = self._error(raised)
                lost = self._session is None or isinstance(error, errors.UnreachableError)
                broken = self._disconnect() if lost else None
                raise (self._error(broken) if broken else error) from None

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[ClientSession]:
        answer_s = self.limits.mcp_answer_s
        hooks = {"response": [self._note]}
        http = httpx2.AsyncClient(
            headers=self.key_header,
            timeout=httpx2.Timeout(answer_s, connect=self.limits.connect_s),
            event_hooks=hooks,
            transport=BoundedTransport(self.proxy, self.limits, self._give_up),
        )
        transport = streamable_http_client(
            self.url, http_client=http, max_sse_event_size=self.limits.body_bytes
        )
        async with http, SdkClient(transport, read_timeout_seconds=answer_s) as client:
            yield client.session

    def _give_up(self, unread: errors.ServiceError) -> None:
        """Keep why a body was given up, which the SDK does not pass on."""
        self._unread = unread

    async def _note(self, response: httpx2.Response) -> None:
        """Keep the status, headers and body of a refusal, which the SDK does not pass on."""
        body = b"" if response.is_success else await response.aread()
        answer = self._answered(self._request, response.status_code, response.headers.items(), body)
        self._refused = None if response.is_success else answer

    def _disconnect(self) -> Exception | None:
        """Close the connection. Return what had broken it: the SDK raises that only here."""
        self._session, connection = None, self._connection.pop_all()
        try:
            connection.close()
        except (MCPError, httpx2.HTTPError, ExceptionGroup) as broken:
            return broken
        return None

    def _error(self, raised: Exception) -> errors.ServiceError:
        """Return our error for the SDK's: that of the status where the service sent one."""
        while isinstance(raised, ExceptionGroup):
            raised = raised.exceptions[0]
        if self._unread is not None:
            return unreachable(self._failed(self._request, self._unread))
        if self._refused is not None:
            return refusal(self._refused)
        code, problem = (raised.code, raised.data) if isinstance(raised, MCPError) else (0, None)
        if isinstance(problem, dict) and type(problem.get("status")) is int:
            return self._tool_error("", problem)
        failure = self._failed(self._request, raised)
        if isinstance(raised, httpx2.HTTPError) or code in _NO_ANSWER:
            return unreachable(failure)
        said = failure.reason.removeprefix(f"{type(raised).__name__}: ")[:300]
        return _KINDS.get(code, errors.WireError)(f"{self.url}: {said}", url=self.url, detail=said)

    def _tool_error(self, tool: str, document: Any) -> errors.ServiceError:
        """Return the error for a tool's result: that of its status where it is a problem."""
        text = document if isinstance(document, str) else msgspec.json.encode(document).decode()
        said, url = self.without_key(text), f"{self.url}#{tool}".rstrip("#")
        status = document.get("status") if isinstance(document, dict) else None
        if type(status) is int:
            return refusal(Answer(status, {}, said.encode(), url))
        said = message_and_code(said.encode())[0] or " ".join(said.split())[:300]
        return errors.ServiceError(f"{self.url}: {tool} failed: {said}", url=self.url, detail=said)


def drift(tool: str, schema: dict[str, Any] | None, document: object) -> list[Finding]:
    """Return a finding per kind of difference and place, and for a schema of no use.

    References are followed inside the schema alone, never to an address.

    >>> schema = {"properties": {"items": {"items": {"required": ["ts"]}}}}
    >>> drift("prices", schema, {"items": [{"ts": 1}, {}, {}]})[0].says
    "'ts' is a required property (2 times)"
    """
    if schema is None:
        return [Finding("schema_missing", tool, "the service declares none for its results")]
    kind = validator_for(schema)
    found: Counter[tuple[str, str]] = Counter()
    try:
        kind.check_schema(schema)
        for error in kind(schema, registry=Registry()).iter_errors(document):
            place = "".join("[]" if isinstance(step, int) else f".{step}" for step in error.path)
            rule = f"is not {error.validator} {error.validator_value!r:.80}"
            says = error.message if error.validator == "required" else rule
            found[place, says] += 1
    except (SchemaError, Unresolvable) as error:
        return [Finding("schema_unusable", tool, " ".join(str(error).split())[:200])]
    return [
        Finding("result_differs", tool + place, f"{says} ({n} times)" if n > 1 else says)
        for (place, says), n in found.items()
    ]
