"""Accidents of single answers: refusals, failures, and bodies that arrive late or incomplete."""

from __future__ import annotations

import asyncio
from collections import Counter
from email.utils import formatdate

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.adversary.rest import Accident
from tests.adversary.settings import ActiveSwitches, Adversary
from toolkit.service.market.source import Clock
from toolkit.service.problems import Problem

_DATA = "/api/v1/data/"
_PAGE = "<!doctype html><title>Sign in</title><p>This page is not the service's."
_PARTS = 4
_CODES = {
    400: "bad_request",
    401: "unauthorized",
    402: "payment_required",
    403: "tier_required",
    404: "not_found",
    429: "quota_exhausted",
    500: "internal",
    503: "unavailable",
}


class Accidents:
    """ASGI middleware: causes the accidents that the service's switches name.

    Requests are counted per accident, from 0 again when the switches are changed.
    """

    def __init__(self, app: ASGIApp, active: ActiveSwitches, clock: Clock) -> None:
        self.app = app
        self._active = active
        self._clock = clock
        self._counted: Adversary | None = None
        self._requests: Counter[Accident] = Counter()
        self._befallen: Counter[Accident] = Counter()

    def _befalls(self, path: str) -> Accident | None:
        """Count a request of a path below ``/api/v1/data/``, and return its accident, if any."""
        adversary = self._active.adversary
        if adversary is not self._counted:
            self._counted = adversary
            self._requests.clear()
            self._befallen.clear()
        found = None
        for accident in adversary.rest.accidents:
            if accident.routes and path not in accident.routes:
                continue
            self._requests[accident] += 1
            due = self._requests[accident] % accident.every == 0
            spent = accident.times is not None and self._befallen[accident] >= accident.times
            if due and not spent and found is None:
                self._befallen[accident] += 1
                found = accident
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection, with its accident if there is one."""
        accident = None
        if scope["type"] == "http" and scope["path"].startswith(_DATA):
            accident = self._befalls(scope["path"].removeprefix(_DATA))
        if accident is None:
            await self.app(scope, receive, send)
        elif accident.kind == "html":
            await HTMLResponse(_PAGE)(scope, receive, send)
        elif accident.kind == "502":
            await HTMLResponse(_PAGE, status_code=502)(scope, receive, send)
        elif accident.kind.isdigit():
            raise self._problem(accident)
        else:
            await self._hinder(accident, scope, receive, send)

    def _problem(self, accident: Accident) -> Problem:
        status = int(accident.kind)
        headers = {}
        if status in (429, 503) and accident.retry_after != "none":
            then = self._clock.now() + accident.retry_after_s
            dated = accident.retry_after == "date"
            wait = formatdate(then, usegmt=True) if dated else str(accident.retry_after_s)
            headers = {"Retry-After": wait}
        return Problem(status, _CODES[status], "Set by the adversary's switches.", headers=headers)

    async def _hinder(self, accident: Accident, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a body that arrives incomplete or slowly."""
        start: Message = {}
        body = b""

        async def held(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
            else:
                body += message.get("body", b"")

        await self.app(scope, receive, held)
        half = body[: len(body) // 2]
        if accident.kind == "truncated":
            MutableHeaders(scope=start)["content-length"] = str(len(half))
            await send(start)
            await send({"type": "http.response.body", "body": half})
            return
        await send(start)
        if accident.kind == "reset":
            # The server cuts the connection of an unfinished answer.
            await send({"type": "http.response.body", "body": half, "more_body": True})
            return
        size = -(-len(body) // _PARTS)
        for begin in range(0, size * _PARTS, size or 1):
            await asyncio.sleep(accident.slow_s)
            part = body[begin : begin + size]
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


_NO_BODY = Response(status_code=204)


class EmptyPages:
    """ASGI middleware: answers an empty page with 204 where the switches want it."""

    def __init__(self, app: ASGIApp, active: ActiveSwitches) -> None:
        self.app = app
        self._active = active

    def wanted(self, scope: Scope) -> bool:
        """Return whether an empty answer to this connection is to be a 204."""
        return scope["type"] == "http" and self._active.adversary.rest.no_content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection, without a body where the body is an empty page."""
        if not self.wanted(scope):
            await self.app(scope, receive, send)
            return
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        await self.app(scope, receive, hold)
        if _is_empty_page(b"".join(message.get("body", b"") for message in held)):
            await _NO_BODY(scope, receive, send)
            return
        for message in held:
            await send(message)


def _is_empty_page(body: bytes) -> bool:
    try:
        page = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return False
    return isinstance(page, dict) and page.get("items") == []
