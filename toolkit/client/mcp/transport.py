"""The connections of the MCP client: bodies are bounded, and a proxy is used for https alone."""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

import anyio
import httpx2

from toolkit.client.transport import tls
from toolkit.errors import ServiceError
from toolkit.wire.body import ACCEPTED_ENCODINGS, Body
from toolkit.wire.limits import Limits


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Passes on answers with their bodies inflated and bounded.

    An answer is to be whole in time. A stream of events may go on for ever, and the SDK
    bounds each of its events: only its head is bounded here. ``unread`` is called with why a body
    was given up.
    """

    def __init__(
        self,
        proxy: str | None,
        limits: Limits,
        unread: Callable[[ServiceError], object],
    ) -> None:
        self._inner = httpx2.AsyncHTTPTransport(verify=tls(), proxy=proxy)
        self._limits = replace(limits, body_values=limits.mcp_body_values)
        self._unread = unread

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and return the answer with a bounded body."""
        request.headers["Accept-Encoding"] = ACCEPTED_ENCODINGS
        until = anyio.current_time() + self._limits.mcp_answer_s
        with _ends(until):
            response = await self._inner.handle_async_request(request)
        events = response.headers.get("content-type", "").startswith("text/event-stream")
        try:
            body = Body(response.headers, self._limits, events=events)
        except ServiceError as error:
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

    def _given_up(self, error: ServiceError) -> httpx2.ReadError:
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


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(
        self,
        response: httpx2.Response,
        body: Body,
        until: float,
        given_up: Callable[[ServiceError], Exception],
    ) -> None:
        self._response = response
        self._body = body
        self._until = until
        self._given_up = given_up

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._response.stream)  # type: ignore[arg-type]  # it is an asynchronous one
        try:
            while True:
                with _ends(self._until):
                    piece = await anext(pieces, None)
                if piece is None:
                    break
                yield self._body.inflated(piece)
            self._body.end()
        except ServiceError as error:
            raise self._given_up(error) from error

    async def aclose(self) -> None:
        await self._response.aclose()
