"""MCP at ``POST /mcp``: plan, sender and refusals. The SDK does the rest.

The SDK is imported with the first request (`mcp_server`), since it takes long.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import anyio.abc
import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.market import Plan
from toolkit.service.api.calls import Service
from toolkit.service.api.tools import Tool
from toolkit.service.problems import Problem, tier_required
from toolkit.service.transports.access import is_loopback, owner_of_scope
from toolkit.serving import in_worker

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"

_MINIMUM_PLAN = Plan.BUILDER
_LONGEST_REFUSED = 65_536  # bytes of a refused request that are read for its id
_PATIENCE_S = 2.0


class Mcp:
    """ASGI application: the service's tools for MCP clients of every version the SDK supports.

    Each POST is answered by itself. The application around it has to run its `lifespan`.
    """

    def __init__(self, service: Service, tools: Sequence[Tool[Any]]) -> None:
        self.service, self.tools = service, tools
        self._tasks: anyio.abc.TaskGroup | None = None
        self._manager: StreamableHTTPSessionManager | None = None
        self._starting = anyio.Lock()

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Run the SDK's own tasks as long as the application runs."""
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["method"] != "POST":
            detail = "MCP messages are sent with POST; there is no stream to GET."
            raise Problem(405, "method_not_allowed", detail, headers={"Allow": "POST"})
        _check_sender(scope)
        plan = owner_of_scope(scope).plan
        if plan.rank < _MINIMUM_PLAN.rank:
            raise tier_required("MCP", _MINIMUM_PLAN, plan)
        async with self._starting:
            if self._manager is None:
                assert self._tasks is not None, "the application's lifespan has not begun"
                self._manager = await self._tasks.start(self._run)
        await self._manager.handle_request(scope, receive, send)

    async def _run(
        self, *, task_status: anyio.abc.TaskStatus[StreamableHTTPSessionManager]
    ) -> None:
        """Run the SDK's session manager, which the same task has to enter and to leave."""
        manager = await in_worker(_new_manager, self.service, self.tools)
        async with manager.run():
            task_status.started(manager)
            await anyio.sleep_forever()


class RpcProblems:
    """ASGI middleware: on ``/mcp``, a problem document becomes the data of a JSON-RPC error.

    Status and headers stay. The error has the request's id, None if it cannot be read.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] != "http" or scope["path"] != PATH:
            await self.app(scope, receive, send)
            return
        heard = _RequestBody(receive)
        held: Message | None = None

        async def translated(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start":
                if Headers(scope=message).get("content-type") == "application/problem+json":
                    held = message
                    return
            elif held is not None:
                message = {**message, "body": _rpc_error(message["body"], await heard.request_id())}
                headers = MutableHeaders(scope=held)
                headers["content-type"] = "application/json"
                headers["content-length"] = f"{len(message['body'])}"
                await send(held)
                held = None
            await send(message)

        await self.app(scope, heard.receive, translated)


class _RequestBody:
    """A request's body as far as it was read. A refusal takes the id from it."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._body = bytearray()
        self._more = True

    async def receive(self) -> Message:
        message = await self._receive()
        self._more = message.get("more_body", False)
        if len(self._body) <= _LONGEST_REFUSED:
            self._body += message.get("body", b"")
        return message

    async def request_id(self) -> str | int | None:
        """Return the id, after reading the rest of the body if it comes soon and is short."""
        with anyio.move_on_after(_PATIENCE_S):
            while self._more and len(self._body) <= _LONGEST_REFUSED:
                await self.receive()
        try:
            return msgspec.json.decode(self._body, type=_RpcRequest).id
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None


class _RpcRequest(msgspec.Struct):
    id: str | int | None = None


def _new_manager(service: Service, tools: Sequence[Tool[Any]]) -> StreamableHTTPSessionManager:
    from toolkit.service.transports.mcp_server import session_manager  # noqa: PLC0415 - costs 0.8 s

    return session_manager(service, tools)


def _rpc_error(body: bytes, request_id: str | int | None) -> bytes:
    problem = msgspec.json.decode(body)
    error = {"code": problem["status"], "message": problem["detail"], "data": problem}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def _check_sender(scope: Scope) -> None:
    """Refuse a web page that reaches this machine by another name (DNS rebinding).

    A service on a network cannot know its own names, so it accepts any ``Host``. An ``Origin`` must
    be of this machine, since keys do not belong in browsers.
    """
    headers = Headers(scope=scope)
    server = scope.get("server")
    if server and is_loopback(server[0]) and not is_loopback(_host(f"//{headers.get('host', '')}")):
        detail = "The Host header names another machine; use 127.0.0.1, localhost or [::1]."
        raise Problem(421, "misdirected", detail)
    origin = headers.get("origin")
    if origin is not None and not is_loopback(_host(origin)):
        raise Problem(403, "origin_refused", "Web pages of other machines are refused.")


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
