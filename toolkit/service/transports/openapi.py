"""The OpenAPI 3.1 document of the REST routes, made from the registry.

It is served at ``/openapi.json`` without a key. Limits are those of the largest plan. ``/schemas``
has those of the caller's own plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolkit.market import Plan
from toolkit.service.accounts.policy import Policy
from toolkit.service.api.body_schemas import body_schema
from toolkit.service.api.registry import VERSION
from toolkit.service.api.tools import Tool

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
    """Return the document, with the limits that the policy gives the largest plan.

    >>> from toolkit.service.api.registry import TOOLS
    >>> made = document(TOOLS, Policy())
    >>> made["openapi"], len(made["paths"])
    ('3.1.0', 11)
    """
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


def openapi_route(tools: Sequence[Tool[Any]], policy: Policy) -> Route:
    """Return the route that serves the document."""

    async def endpoint(_: Request) -> Response:
        body = msgspec.json.encode(document(tools, policy))
        return Response(body, media_type="application/json")

    return Route(PATH, endpoint, methods=["GET"])


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
            _parameter(name, said, required=name in schema["required"])
            for name, said in schema["properties"].items()
        ],
        "responses": responses,
    }


def _parameter(name: str, said: Mapping[str, Any], *, required: bool) -> dict[str, Any]:
    schema = {key: value for key, value in said.items() if key != "description"}
    shown = {"name": name, "in": "query", "required": required, "schema": schema}
    return shown | {"description": said["description"]}
