"""The limit of concurrent requests, and the refusal of those above it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.errors import InputError
from toolkit.service.accounts.problems import Problem

DEFAULT_CAPACITY = 64
"""The default limit of concurrent requests: as many as a loader may have workers."""

_RETRY_AFTER = {"Retry-After": "1"}


@dataclass(slots=True)
class Gate:
    """The limit of concurrent HTTP requests, their number, and whether the service is closing."""

    capacity: int = DEFAULT_CAPACITY
    closing: bool = False
    under_way: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        number = isinstance(self.capacity, int) and not isinstance(self.capacity, bool)
        if not number or self.capacity < 1:
            raise InputError("capacity", self.capacity, "a whole number of 1 or more")

    def refusal(self) -> Problem | None:
        """Return the 503 for a request that comes in now, None if it may pass."""
        if self.closing:
            return _shutting_down()
        if self.under_way >= self.capacity:
            detail = "The service is at its limit of concurrent requests; retry in 1 s."
            return Problem(503, "unavailable", detail, headers=_RETRY_AFTER)
        return None


class Capacity:
    """ASGI middleware: lets requests through up to the gate's capacity, and refuses the others.

    WebSockets do not count, and are refused only while the gate is closing. An answer that ends
    then has ``Connection: close``. A request that the server cancels then, because it takes too
    long, gets the 503 if its answer has not begun. So does one whose query polars ended for a
    Ctrl-C: polars ends those of all threads of a process.
    """

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self.app = app
        self.gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] == "http":
            await self._request(scope, receive, send)
            return
        if scope["type"] == "websocket" and self.gate.closing:
            raise _shutting_down()
        await self.app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self.gate.refusal()
        if refusal is not None:
            raise refusal
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start" and self.gate.closing:
                MutableHeaders(scope=message)["connection"] = "close"
            await send(message)

        self.gate.under_way += 1
        try:
            await self.app(scope, receive, watched)
        except asyncio.CancelledError:
            if begun or not self.gate.closing:
                raise
            raise _shutting_down() from None
        except KeyboardInterrupt:
            if begun:
                raise
            detail = "An interrupt ended this answer; retry in 1 s."
            raise Problem(503, "unavailable", detail, headers=_RETRY_AFTER) from None
        finally:
            self.gate.under_way -= 1


def _shutting_down() -> Problem:
    detail = "The service is shutting down; retry when it is back."
    return Problem(503, "unavailable", detail, headers=_RETRY_AFTER | {"Connection": "close"})
