"""Streams with faults: sockets that close, drop or are mute, documents repeated or reordered."""

from __future__ import annotations

import asyncio
import random

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.adversary.settings import ActiveSwitches
from toolkit.service.api.calls import Service
from toolkit.service.transports.sockets import Feed, Listener

_FAILED = 1011


class FaultyFeed(Feed):
    """A feed that repeats and delays documents by the switches."""

    def __init__(self, service: Service, active: ActiveSwitches) -> None:
        super().__init__(service)
        self._active = active
        self._draw = random.Random(active.adversary.seed)
        self._held_back: dict[Listener, list[bytes]] = {}

    def leave(self, listener: Listener) -> None:
        """Remove a listener, and what it was to be sent later."""
        super().leave(listener)
        self._held_back.pop(listener, None)

    def _documents(self, listener: Listener, documents: list[bytes]) -> list[bytes]:
        adversary = self._active.adversary
        if not (adversary.duplicate_share or adversary.reorder_share):
            return documents
        sent = self._held_back.pop(listener, [])
        later: list[bytes] = []
        for document in documents:
            reordered = self._draw.random() < adversary.reorder_share
            (later if reordered else sent).append(document)
            if self._draw.random() < adversary.duplicate_share:
                later.append(document)
        if adversary.reorder_share:
            self._draw.shuffle(sent)
        self._held_back[listener] = later
        return sent


class SocketFaults:
    """ASGI middleware: WebSockets that are accepted and then fail, by the switches."""

    def __init__(self, app: ASGIApp, active: ActiveSwitches) -> None:
        self.app = app
        self.active = active
        self.muted = 0
        self.draw = random.Random(active.adversary.seed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        socket = _FaultySocket(self, receive, send)
        try:
            await self.app(scope, socket.receive, socket.send)
        finally:
            socket.stop()


class _FaultySocket:
    """The two ends of one WebSocket, as the application sees them."""

    def __init__(self, faults: SocketFaults, receive: Receive, send: Send) -> None:
        self._faults = faults
        self._receive = receive
        self._send = send
        self._sending = asyncio.Lock()
        self._closed = self._mute = False
        self._left: int | None = None
        self._drop: asyncio.Task[None] | None = None

    async def receive(self) -> Message:
        """Receive a message. A mute socket receives none between its connect and disconnect."""
        while True:
            message = await self._receive()
            if not (self._mute and message["type"] == "websocket.receive"):
                return message

    async def send(self, message: Message) -> None:
        """Send a message, unless the socket is mute or already closed."""
        async with self._sending:
            if self._closed or (self._mute and message["type"] == "websocket.send"):
                return
            drops = message["type"] == "websocket.send" and self._left == 0
            if self._left and message["type"] == "websocket.send":
                self._left -= 1
            if not drops:
                await self._send(message)
        if drops:
            await self._close(_FAILED)
        if message["type"] == "websocket.accept":
            await self._begin()

    def stop(self) -> None:
        """Cancel the drop that is due later."""
        if self._drop is not None:
            self._drop.cancel()

    async def _begin(self) -> None:
        faults, adversary = self._faults, self._faults.active.adversary
        if adversary.accept_then_close is not None:
            await self._close(adversary.accept_then_close)
            return
        if faults.muted < adversary.mute_sockets:
            faults.muted += 1
            self._mute = True
        if adversary.drop_at_message is not None:
            self._left = faults.draw.randint(*adversary.drop_at_message) - 1
        if adversary.drop_after_s is not None:
            after_s = faults.draw.uniform(*adversary.drop_after_s)
            self._drop = asyncio.create_task(self._close(_FAILED, after_s))

    async def _close(self, code: int, after_s: float = 0.0) -> None:
        """Close the connection. The server then sends the application its disconnect."""
        await asyncio.sleep(after_s)
        async with self._sending:
            if not self._closed:
                self._closed = True
                await self._send({"type": "websocket.close", "code": code})
