"""The HTTP application: the registry's routes with key check, problem documents and clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolkit.service.accounts.problems import Problems, problem_response
from toolkit.service.api.calls import Service
from toolkit.service.api.feed import Feed
from toolkit.service.api.registry import TOOLS, answer
from toolkit.service.api.tools import Tool
from toolkit.service.market.clock import Clock
from toolkit.service.transports.access import Access, owner_of_scope, with_headers
from toolkit.service.transports.capacity import Capacity, Gate
from toolkit.service.transports.mcp import PATH as MCP_PATH
from toolkit.service.transports.mcp import Mcp, RpcProblems
from toolkit.service.transports.openapi import openapi_route
from toolkit.service.transports.sockets import socket_routes
from toolkit.service.transports.webhooks.routes import Webhooks
from toolkit.serving import in_worker


class Dated:
    """ASGI middleware: every answer's ``Date`` is the service's time when the request came.

    The answer can contain everything that was over at that time.
    """

    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        self.app = app
        self.clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection, dated."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        date = {"date": self.clock.http_date()}
        await self.app(scope, receive, with_headers(date, send))
        if scope["type"] == "websocket":
            await asyncio.sleep(0)  # else uvicorn logs an error for a refused upgrade


def application(
    service: Service,
    tools: Sequence[Tool[Any]] = TOOLS,
    *,
    gate: Gate | None = None,
    webhooks: Webhooks | None = None,
    feed: Feed | None = None,
    routes: Sequence[Route] = (),
    middleware: Sequence[Middleware] = (),
) -> Starlette:
    """Return the ASGI application of a service. ``gate`` limits its concurrent requests.

    ``webhooks`` and ``feed`` default to the service's own. ``routes`` come after all others,
    ``middleware`` innermost, where a request's key is known.

    >>> from toolkit.service import Simulated
    >>> service = Service(Simulated(7))
    >>> application(service).routes[0].path
    '/api/v1/data/schemas'
    """
    mcp, deliveries = Mcp(service, tools), webhooks or Webhooks(service)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with mcp.lifespan(app), deliveries.lifespan():
            yield

    app = Starlette(
        routes=[
            *(_route(service, tool) for tool in tools),
            *socket_routes(service, tools, feed or Feed(service)),
            Route(MCP_PATH, mcp),
            *deliveries.routes,
            openapi_route(tools, service.policy),
            *routes,
        ],
        middleware=[
            Middleware(Dated, service.clock),
            Middleware(RpcProblems),
            Middleware(Problems),
            Middleware(Capacity, gate or Gate()),
            Middleware(Access, service.policy, service.quotas),
            *middleware,
        ],
        exception_handlers={HTTPException: _refused},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # an unknown path is a 404, not a redirect
    app.router.default = _nothing_there
    return app


def _route(service: Service, tool: Tool[Any]) -> Route:
    async def endpoint(request: Request) -> Response:
        owner = owner_of_scope(request.scope)
        said = partial(answer, service, tool, owner, request.query_params.multi_items())
        body = await in_worker(said) if tool.slow else said()
        return Response(body, media_type="application/json")

    return Route(tool.route, endpoint, methods=["GET"])


async def _nothing_there(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise HTTPException(404)  # for an upgrade too, which the router would close without an answer


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem_response(error)
