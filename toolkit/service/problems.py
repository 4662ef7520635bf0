"""Refusals and failures as RFC 9457 ``application/problem+json`` documents."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.market import Plan

CHALLENGE = 'Bearer realm="machine-rail"'
"""The ``WWW-Authenticate`` header for a refused key."""

_log = logging.getLogger(__name__)

_ROUTING = {
    404: ("not_found", "No such path; the data routes are under /api/v1/data."),
    405: ("method_not_allowed", "This path does not take this method; Allow names those it takes."),
}


class Problem(HTTPException):
    """A refusal: status, code, detail, and further fields of the document."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(status, detail, headers)
        self.document: dict[str, object] = {
            "type": "about:blank",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": detail,
            "code": code,
            **(extra or {}),
        }


def bad_request(errors: Sequence[tuple[str, str]]) -> Problem:
    """Return the 400 that names each parameter and what is wrong with it."""
    listed = [{"parameter": parameter, "detail": detail} for parameter, detail in errors]
    detail = "Not understood: " + "; ".join(f"{name}: {text}" for name, text in errors)
    return Problem(400, "bad_request", detail, extra={"errors": listed})


def json_object(said: str | bytes, called: str) -> dict[str, Any]:
    """Decode the JSON object that a caller sent. Anything else is a 400 that names ``called``."""
    try:
        return msgspec.json.decode(said, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_request([(called, "is not a JSON object")]) from None


def tier_required(subject: str, minimum: Plan, plan: Plan, *, holder: str = "key") -> Problem:
    """Return the 403 for a plan below the minimum that includes ``subject``.

    ``holder`` has the plan. Only a key's refusal has the challenge of RFC 6750.
    """
    challenge = {"WWW-Authenticate": f'{CHALLENGE}, error="insufficient_scope"'}
    return Problem(
        403,
        "tier_required",
        f"The lowest plan with {subject} is {minimum}; this {holder}'s plan is {plan}.",
        headers=challenge if holder == "key" else None,
        extra={"plan": plan, "minimum_plan": minimum},
    )


def problem_response(error: HTTPException) -> Response:
    """Return the HTTP answer of a `Problem`, or of an error of the router (404, 405)."""
    headers = dict(error.headers or {})
    if "Allow" in headers:  # the router joins a set, in no order
        headers["Allow"] = ", ".join(sorted(headers["Allow"].split(", ")))
    if not isinstance(error, Problem):
        error = Problem(error.status_code, *_ROUTING[error.status_code])
    return Response(
        msgspec.json.encode(error.document),
        status_code=error.status_code,
        headers=headers,
        media_type="application/problem+json",
    )


class Problems:
    """ASGI middleware: an exception raised inside becomes a problem document.

    An unexpected one is logged (path without query) and answered 500 without its text. After an
    answer has begun it is raised again, which cuts the connection.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except HTTPException as error:
            await problem_response(error)(scope, receive, send)
        except Exception:
            _log.exception("unforeseen failure in answering %s", scope["path"])
            if begun:
                raise
            problem = Problem(500, "internal", "The service failed; its log says why.")
            await problem_response(problem)(scope, receive, send)
