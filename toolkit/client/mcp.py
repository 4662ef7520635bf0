"""The tools that a service lists over MCP. Importing its SDK takes most of a second."""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from toolkit import errors
from toolkit.client.contact import Contact
from toolkit.client.transport import tls
from toolkit.wire.exchange import Request, Response, refusal, unreachable
from toolkit.wire.limits import Limits
from toolkit.wire.message import message_and_code
from toolkit.wire.profile.profile import Profile
from toolkit.wire.rows.body import ACCEPTED_ENCODINGS, Body

with errors.needs_extra("service"):
    import anyio
    import httpx2
    import mcp_types as sdk
    from anyio.from_thread import start_blocking_portal
    from mcp import Client as SdkClient
    from mcp import ClientSession, MCPError
    from mcp.client.streamable_http import streamable_http_client

_NO_ANSWER = {sdk.CONNECTION_CLOSED, sdk.REQUEST_TIMEOUT}


class McpListing(NamedTuple):
    """The version of a service's MCP, its tools' names, and the profile of its schemas."""

    version: str
    tools: tuple[str, ...]
    profile: Profile


class McpClient(Contact):
    """A service's MCP, listed once, with the options of `toolkit.client.Client`.

    >>> from toolkit.service import Clock, Config, Simulated, running
    >>> config = Config(Simulated(7), port=0, clock=Clock(fixed_at=1_795_046_400))
    >>> with running(config) as service:
    ...     found = McpClient(service.base_url, "demo-pro").listing()
    >>> len(found.tools), found.profile.tools["symbols"]
    (11, 'data.search_symbols')
    """

    _refused: Response | None = None
    _unread: errors.ServiceError | None = None

    def listing(self) -> McpListing:
        """Connect, list the tools, and read their names from the schemas tool.

        Raises the `ServiceError` of REST for the same status, `PagingError` if the pages of tools
        do not end, `WireError` for an unreadable answer.
        """
        self._refused = self._unread = None
        try:
            with start_blocking_portal(name="rail-mcp") as portal:
                return portal.call(self._listing)
        except (MCPError, httpx2.HTTPError, ValueError, ExceptionGroup) as raised:
            raise self._error(raised) from None

    @property
    def _asked(self) -> Request:
        return Request(self.assumed.mcp_path)

    async def _listing(self) -> McpListing:
        answer_s, url = self.limits.mcp_answer_s, self._url(self._asked)
        http = httpx2.AsyncClient(
            headers=self.key_header,
            timeout=httpx2.Timeout(answer_s, connect=self.limits.connect_s),
            event_hooks={"response": [self._note]},
            transport=_BoundedTransport(self.proxy, self.limits, self._give_up),
        )
        transport = streamable_http_client(
            url, http_client=http, max_sse_event_size=self.limits.body_bytes
        )
        async with http, SdkClient(transport, read_timeout_seconds=answer_s) as client:
            session = client.session
            names = await self._names(session)
            profile = self.assumed
            if (tool := profile.tools["schemas"]) in names:
                profile = self.learn(await self._schemas(session, tool))
            return McpListing(session.protocol_version or "", names, profile)

    async def _names(self, session: ClientSession) -> tuple[str, ...]:
        url = self._url(self._asked)
        names, cursor, asked = dict[str, None](), None, set[str | None]()
        while cursor not in asked and len(asked) < self.limits.tool_pages:
            asked.add(cursor)
            params = sdk.PaginatedRequestParams(cursor=cursor)
            page = await session.list_tools(params=params)
            names |= {self.without_key(tool.name): None for tool in page.tools}
            cursor = page.next_cursor
            if cursor is None:
                return tuple(names)
        raise errors.PagingError(f"{url} lists its tools without end", url=url)

    async def _schemas(self, session: ClientSession, tool: str) -> bytes:
        call = sdk.CallToolRequest(params=sdk.CallToolRequestParams(name=tool, arguments={}))
        result = await session.send_request(call, sdk.CallToolResult)
        document = result.structured_content
        if document is None:  # as before protocol 2025-06-18
            texts = (p.text for p in result.content if isinstance(p, sdk.TextContent))
            body = "".join(texts).encode()
        else:
            body = msgspec.json.encode(document)
        if result.is_error:
            raise self._tool_error(tool, document, body)
        return self.struck(body)

    def _give_up(self, unread: errors.ServiceError) -> None:
        self._unread = unread

    async def _note(self, response: httpx2.Response) -> None:
        """Keep a refusal, which the SDK does not pass on."""
        body = b"" if response.is_success else await response.aread()
        answer = self._answered(self._asked, response.status_code, response.headers.items(), body)
        self._refused = None if response.is_success else answer

    def _error(self, raised: Exception) -> errors.ServiceError:
        while isinstance(raised, ExceptionGroup):
            raised = raised.exceptions[0]
        if isinstance(raised, errors.ServiceError):
            return raised
        if self._unread is not None:
            return unreachable(self._failed(self._asked, self._unread))
        if self._refused is not None:
            return refusal(self._refused)
        failure = self._failed(self._asked, raised)
        code = raised.code if isinstance(raised, MCPError) else 0
        if isinstance(raised, httpx2.HTTPError) or code in _NO_ANSWER:
            return unreachable(failure)
        said = failure.reason.removeprefix(f"{type(raised).__name__}: ")[:300]
        return errors.WireError(f"{failure.url}: {said}", url=failure.url, detail=said)

    def _tool_error(self, tool: str, document: Any, body: bytes) -> errors.ServiceError:
        said, url = self.without_key(body.decode()), f"{self._url(self._asked)}#{tool}"
        status = document.get("status") if isinstance(document, dict) else None
        if type(status) is int:
            return refusal(Response(status, {}, said.encode(), url))
        said = message_and_code(said.encode())[0] or " ".join(said.split())[:300]
        return errors.ServiceError(f"{url} failed: {said}", url=url, detail=said)


class _BoundedTransport(httpx2.AsyncBaseTransport):
    """A transport that inflates bodies, bounded in size and time.

    Of a stream of events only the head is bounded in time: the SDK bounds each event. ``unread``
    gets the reason why a body was given up.
    """

    def __init__(
        self, proxy: str | None, limits: Limits, unread: Callable[[errors.ServiceError], object]
    ) -> None:
        self._inner = httpx2.AsyncHTTPTransport(verify=tls(), proxy=proxy)
        self._limits = replace(limits, body_values=limits.mcp_body_values)
        self._unread = unread

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and return its answer with a bounded body."""
        request.headers["Accept-Encoding"] = ACCEPTED_ENCODINGS
        until = anyio.current_time() + self._limits.mcp_answer_s
        with _ends(until):
            response = await self._inner.handle_async_request(request)
        events = response.headers.get("content-type", "").startswith("text/event-stream")
        try:
            body = Body(response.headers, self._limits, events=events)
        except errors.ServiceError as error:
            await response.aclose()
            raise self._given_up(error) from error
        left_out = ("content-encoding", "content-length")
        return httpx2.Response(
            response.status_code,
            headers=[(k, v) for k, v in response.headers.multi_items() if k not in left_out],
            stream=_BoundedStream(response, body, math.inf if events else until, self._given_up),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    def _given_up(self, error: errors.ServiceError) -> httpx2.ReadError:
        self._unread(error)
        return httpx2.ReadError(str(error))


@contextlib.contextmanager
def _ends(until: float) -> Iterator[None]:
    """Raise a time-out of httpx2 at a time of anyio's clock."""
    try:
        with anyio.fail_after(until - anyio.current_time()):
            yield
    except TimeoutError:
        raise httpx2.ReadTimeout("the time for the whole answer is over") from None


@dataclass(eq=False)
class _BoundedStream(httpx2.AsyncByteStream):
    response: httpx2.Response
    body: Body
    until: float
    given_up: Callable[[errors.ServiceError], Exception]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self.response.stream)  # type: ignore[arg-type]  # it is an asynchronous one
        try:
            while True:
                with _ends(self.until):
                    piece = await anext(pieces, None)
                if piece is None:
                    break
                yield self.body.inflated(piece)
            self.body.end()
        except errors.ServiceError as error:
            raise self.given_up(error) from error

    async def aclose(self) -> None:
        await self.response.aclose()
