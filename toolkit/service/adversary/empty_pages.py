"""Empty pages without a body: status 204, which HTTP has for an answer that holds nothing."""

from __future__ import annotations

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.service.adversary.settings import ActiveSwitches

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
