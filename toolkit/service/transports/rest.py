"""The HTTP application: the registry's routes with key check, problem documents and clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolkit.market import Plan
from toolkit.service.accounts import Policy
from toolkit.service.api.calls import Service
from toolkit.service.api.registry import TOOLS, VERSION, answer
from toolkit.service.api.tools import Tool, body_schema
from toolkit.service.market.source import Clock
from toolkit.service.problems import Problems, problem_response
from toolkit.service.transports.access import Access, Capacity, Gate, owner_of_scope, with_headers
from toolkit.service.transports.mcp import PATH as MCP_PATH
from toolkit.service.transports.mcp import Mcp, RpcProblems
from toolkit.service.transports.sockets import Feed, socket_routes
from toolkit.service.transports.webhooks import Webhooks
from toolkit.serving import in_worker

PATH = "/openapi.json"


class Fault(msgspec.Struct):
    """A parameter, and what is wrong with it."""

    parameter: str
    detail: str


class ProblemBody(msgspec.Struct, kw_only=True):
    """RFC 9457 problem: why the request failed."""

    type: str
    title: str
    status: int
    detail: str
    code: str


class BadRequest(ProblemBody, kw_only=True):
    """Names each parameter that could not be understood."""

    errors: list[Fault]


class TierRequired(ProblemBody, kw_only=True):
    """Names the plan that the key has, and the lowest that includes the route."""

    plan: Plan
    minimum_plan: Plan


_TEXT = {"schema": {"type": "string"}}
_QUOTA = {"RateLimit-Policy": _TEXT, "RateLimit": _TEXT}
_CHALLENGE = {"WWW-Authenticate": _TEXT}
_RETRY = {"Retry-After": {"description": "seconds", "schema": {"type": "integer"}}}
_REFUSALS: dict[str, tuple[str, type[msgspec.Struct], Mapping[str, Any]]] = {
    "400": ("A parameter is missing or not understood.", BadRequest, {}),
    "401": ("No key was sent, or it is not valid.", ProblemBody, _CHALLENGE),
    "403": ("The key's plan does not include the route.", TierRequired, _CHALLENGE),
    "429": ("The quota of the key's owner is spent.", ProblemBody, _RETRY | _QUOTA),
    "500": ("The service failed.", ProblemBody, {}),
    "503": ("The service is overloaded or shutting down.", ProblemBody, _RETRY),
}


def document(tools: Sequence[Tool[Any]], policy: Policy) -> dict[str, Any]:
    """Return the OpenAPI document, with the limits that the policy gives the largest plan."""
    _, problems = msgspec.json.schema_components(
        [kind for _, kind, _ in _REFUSALS.values()], ref_template="#/components/schemas/{name}"
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "machine-rail market data",
            "version": VERSION,
            "description": "Timestamps are Unix seconds, UTC. Unknown parameters are ignored.",
        },
        "paths": {tool.route: {"get": _operation(tool, policy)} for tool in tools},
        "components": {
            "schemas": problems,
            "securitySchemes": {
                "apikey": {"type": "apiKey", "in": "header", "name": "apikey"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{"bearer": []}, {"apikey": []}],
    }


def _operation(tool: Tool[Any], policy: Policy) -> dict[str, Any]:
    schema = tool.input_schema(policy.terms(Plan.PRO))
    responses: dict[str, Any] = {
        "200": {
            "description": "The answer.",
            "headers": _QUOTA,
            "content": {"application/json": {"schema": body_schema(tool)}},
        }
    }
    for status, (description, kind, headers) in _REFUSALS.items():
        if status == "403" and tool.minimum_plan is Plan.FREE:
            continue
        reference = {"$ref": f"#/components/schemas/{kind.__name__}"}
        responses[status] = {
            "description": description,
            "headers": headers,
            "content": {"application/problem+json": {"schema": reference}},
        }
    return {
        "operationId": tool.name.removeprefix("data."),
        "summary": tool.summary,
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": name in schema["required"],
                "schema": {key: value for key, value in said.items() if key != "description"},
                "description": said["description"],
            }
            for name, said in schema["properties"].items()
        ],
        "responses": responses,
    }


class Dated:
    """ASGI middleware: every answer's ``Date`` is the service's time when the request came."""

    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        self.app, self.clock = app, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
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
    """
    mcp, deliveries = Mcp(service, tools), webhooks or Webhooks(service)

    async def openapi(_: Request) -> Response:
        body = msgspec.json.encode(document(tools, service.policy))
        return Response(body, media_type="application/json")

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
            Route(PATH, openapi, methods=["GET"]),
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
