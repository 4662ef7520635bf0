"""The connections of the MCP client: bodies are bounded, and a proxy is used for https alone."""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncIterator, Callable, Iterator

import anyio
import httpx2

from toolkit.client.transport import tls
from toolkit.errors import ServiceError
from toolkit.wire.body import ACCEPTED_ENCODINGS, Body

_MOST_VALUES = 250_000  # the SDK holds each several times; a page of 10,000 rows has 100,000


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Passes on answers with their bodies inflated, each at most ``largest`` bytes.

    An answer is to be whole in ``timeout_s``. A stream of events may go on for ever, and the SDK
    bounds each of its events: only its head is bounded here. ``unread`` is called with why a body
    was given up.
    """

    def __init__(
        self,
        proxy: str | None,
        largest: int,
        timeout_s: float,
        unread: Callable[[ServiceError], object],
    ) -> None:
        self._inner = httpx2.AsyncHTTPTransport(verify=tls(), proxy=proxy)
        self._largest = largest
        self._timeout_s = timeout_s
        self._unread = unread

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and return the answer with a bounded body."""
        request.headers["Accept-Encoding"] = ACCEPTED_ENCODINGS
        until = anyio.current_time() + self._timeout_s
        with _ends(until):
            response = await self._inner.handle_async_request(request)
        events = response.headers.get("content-type", "").startswith("text/event-stream")
        try:
            largest = 2**60 if events else self._largest
            body = Body(response.headers, largest, most_values=_MOST_VALUES, events=events)
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
