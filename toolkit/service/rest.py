"""The HTTP application: the registry's routes behind key check, problem documents and clock."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.service.access import Access, owner_of_scope
from toolkit.service.calls import Service
from toolkit.service.clock import Clock
from toolkit.service.problems import Problems, problem_response
from toolkit.service.registry import TOOLS, answer
from toolkit.service.tools import Tool

__all__ = ["Dated", "application"]


class Dated:
    """ASGI middleware: every answer's ``Date`` is when its request came, by the service's clock.

    Not later: so that what was over at that moment can be in the answer.

    Examples
    --------
    >>> from starlette.routing import Router
    >>> Dated(Router(), Clock(fixed_at=0)).clock.now()
    0
    """

    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        self.app = app
        self.clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection, dated."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        date = self.clock.http_date()

        async def dated(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                MutableHeaders(scope=message)["date"] = date
            await send(message)

        await self.app(scope, receive, dated)


def application(service: Service, tools: Sequence[Tool[Any]] = TOOLS) -> Starlette:
    """The ASGI application that answers for a service.

    Examples
    --------
    >>> from toolkit.service import miniature
    >>> from toolkit.service.policy import Policy
    >>> service = Service(miniature.source(), Clock(), Policy())
    >>> application(service).routes[0].path
    '/api/v1/data/schemas'
    """
    app = Starlette(
        routes=[_route(service, tool) for tool in tools],
        middleware=[
            Middleware(Dated, service.clock),
            Middleware(Problems),
            Middleware(Access, service.policy, service.quotas),
        ],
        exception_handlers={HTTPException: _refused},
    )
    app.router.redirect_slashes = False  # an unknown path is a 404, not a redirect
    app.router.default = _nothing_there
    return app


def _route(service: Service, tool: Tool[Any]) -> Route:
    async def endpoint(request: Request) -> Response:
        owner = owner_of_scope(request.scope)
        said = partial(answer, service, tool, owner, request.query_params.multi_items())
        body = await run_in_threadpool(said) if tool.slow else said()
        return Response(body, media_type="application/json")

    return Route(tool.route, endpoint, methods=["GET"])


async def _nothing_there(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise HTTPException(404)  # for an upgrade too, which the router would close without a word


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem_response(error)
