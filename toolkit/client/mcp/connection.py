"""The connection of the MCP client: the SDK's session in a thread of its own, its errors ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import httpx2
import msgspec
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client as SdkClient
from mcp import ClientSession, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND, REQUEST_TIMEOUT
from pydantic import ValidationError

from toolkit.client.contact import answer_without_key, checked_key, key_pattern
from toolkit.errors import (
    BadRequestError,
    NotFoundError,
    ServiceError,
    UnreachableError,
    WireError,
)
from toolkit.wire.exchange import UNREADABLE, Answer, refusal

__all__ = ["Connection", "Refusal"]

_T = TypeVar("_T")

_LONGEST_EVENT = 64 * 1024 * 1024  # bytes; the SDK's own limit is less than a page of 10,000 rows


@dataclass(frozen=True, slots=True)
class Refusal:
    """The facts of a refusal: HTTP status, the problem's code, ``Retry-After`` (s), the challenge.

    ``code`` and ``challenge`` are "" and ``retry_after_s`` is None where the service gave none.

    Examples
    --------
    >>> Refusal(429, "quota_exhausted", 12.0).retry_after_s
    12.0
    """

    status: int
    code: str
    retry_after_s: float | None = None
    challenge: str = ""


class Connection:
    """One MCP endpoint, asked with one key; connects at the first question, and anew after a loss.

    Not for two threads at once. What the SDK raises becomes a `ServiceError`: of the status where
    the service answered with one, whose facts then stay in ``refused``.

    Examples
    --------
    >>> Connection("http://127.0.0.1:9/mcp", "a-key", timeout_s=1.0)
    Connection('http://127.0.0.1:9/mcp')
    """

    def __init__(self, url: str, api_key: str, *, timeout_s: float) -> None:
        key = checked_key(api_key)
        self.url = url
        self.refused: Refusal | None = None
        self._headers = {"Authorization": f"Bearer {key}"}
        self._key_pattern = key_pattern(key)
        self._timeout_s = timeout_s
        self._bad_answer: Answer | None = None
        self._held = ExitStack()
        self._sdk: tuple[BlockingPortal, ClientSession] | None = None

    def __repr__(self) -> str:
        return f"Connection({self.url!r})"

    def close(self) -> None:
        """Let go of it; the next question opens another."""
        self._let_go()

    @property
    def version(self) -> str:
        """The protocol version agreed on."""
        return self._opened()[1].protocol_version or ""

    def carried_out(self, work: Callable[[ClientSession], Awaitable[_T]]) -> _T:
        """Do something with the session."""
        portal, session = self._opened()
        with self._failing_as_ours():
            return portal.call(work, session)

    def tool_error(self, tool: str, document: object) -> ServiceError:
        """The error for a result that says it is one: the problem's, where it is a problem."""
        body = document.encode() if isinstance(document, str) else msgspec.json.encode(document)
        status = self._problem(body).get("status")
        if type(status) is int:
            return self._refusal(Answer(status, {}, body, f"{self.url}#{tool}"))
        said = self._without_key(" ".join(body.decode().split()))[:300]
        return ServiceError(f"{self.url}: {tool} failed: {said}", url=self.url, detail=said)

    def _opened(self) -> tuple[BlockingPortal, ClientSession]:
        if self._sdk is None:
            with self._failing_as_ours(), ExitStack() as opening:
                portal = opening.enter_context(start_blocking_portal(name="rail-mcp"))
                session = opening.enter_context(portal.wrap_async_context_manager(self._session()))
                self._held = opening.pop_all()
                self._sdk = portal, session
        assert self._sdk is not None
        return self._sdk

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[ClientSession]:
        timeout = httpx2.Timeout(self._timeout_s, connect=min(self._timeout_s, 10.0))
        hooks = {"response": [self._note]}
        async with (
            httpx2.AsyncClient(headers=self._headers, timeout=timeout, event_hooks=hooks) as http,
            SdkClient(
                streamable_http_client(
                    self.url, http_client=http, max_sse_event_size=_LONGEST_EVENT
                ),
                read_timeout_seconds=self._timeout_s,
            ) as client,
        ):
            yield client.session

    async def _note(self, response: httpx2.Response) -> None:
        """Keep what the SDK forgets of a refusal: the status, the headers and the body."""
        if response.is_success:
            self._bad_answer = None
            return
        headers, body = response.headers.items(), await response.aread()
        self._bad_answer = answer_without_key(
            self._without_key, response.status_code, headers, body, self.url
        )

    def _let_go(self) -> Exception | None:
        """What had broken the connection, which the SDK tells only when it is left."""
        self._sdk = None
        held, self._held = self._held, ExitStack()
        try:
            held.close()
        except (MCPError, httpx2.HTTPError, ExceptionGroup) as broken:
            return _innermost(broken)
        return None

    @contextmanager
    def _failing_as_ours(self) -> Iterator[None]:
        self._bad_answer = None
        try:
            yield
        except (MCPError, httpx2.HTTPError, ValidationError, ExceptionGroup) as raised:
            error = self._error(_innermost(raised))
            broken = self._let_go() if isinstance(error, UnreachableError) else None
            raise (self._error(broken) if broken else error) from None

    def _error(self, raised: Exception) -> ServiceError:
        """The error for what the SDK raised; by the status where the service answered with one."""
        if self._bad_answer is not None:
            return self._refusal(self._bad_answer)
        said = self._without_key(" ".join(str(raised).split()))[:300]
        told = f"{type(raised).__name__}: {said}".rstrip(": ")
        code = raised.code if isinstance(raised, MCPError) else None
        problem = raised.data if isinstance(raised, MCPError) else None
        if isinstance(problem, dict) and type(problem.get("status")) is int:
            body = msgspec.json.encode(problem)
            return self._refusal(Answer(problem["status"], {}, body, self.url))
        if isinstance(raised, httpx2.HTTPError) or code in {CONNECTION_CLOSED, REQUEST_TIMEOUT}:
            return UnreachableError(
                f"no answer from {self.url} ({told}); is the service running, and is the address "
                "right?",
                url=self.url,
            )
        known = {INVALID_PARAMS: BadRequestError, METHOD_NOT_FOUND: NotFoundError}
        kind = known.get(code, WireError) if code is not None else WireError
        return kind(f"{self.url}: {said or told}", url=self.url, detail=said)

    def _refusal(self, answer: Answer) -> ServiceError:
        """The error of a refusal, its facts kept; the problem may stand in a JSON-RPC error."""
        problem = msgspec.json.encode(self._problem(answer.body))
        error = refusal(replace(answer, body=problem))
        challenge = answer.headers.get("www-authenticate", "")
        self.refused = Refusal(answer.status, error.code, error.retry_after_s, challenge)
        return error

    def _problem(self, body: bytes) -> dict[str, Any]:
        """The problem document in a body, or in the JSON-RPC error that it is; else nothing."""
        try:
            said = msgspec.json.decode(self._without_key(body.decode()))
        except UNREADABLE:
            return {}
        error = said.get("error") if isinstance(said, dict) else None
        if isinstance(error, dict):
            data = error.get("data")
            said = data if isinstance(data, dict) else {"detail": error.get("message")}
        return said if isinstance(said, dict) else {}

    def _without_key(self, text: str) -> str:
        return self._key_pattern.sub("***", text)


def _innermost(raised: Exception) -> Exception:
    """The one error in the groups that the SDK's task groups make of it."""
    while isinstance(raised, ExceptionGroup):
        raised = raised.exceptions[0]
    return raised
