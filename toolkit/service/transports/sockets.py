"""The four WebSocket paths: market subscriptions with history actions, and three event streams.

The service's one `Feed` fills a queue per connection. A reader with too many waiting messages is
closed with 1013, one with a revoked key with 1008.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from toolkit.market import EventFamily, Family, Leg, Market, Plan, Symbol, Trajectory
from toolkit.service.api.calls import Service
from toolkit.service.api.feed import Feed, Listener
from toolkit.service.api.registry import answer
from toolkit.service.api.tools import Tool
from toolkit.service.problems import Problem, bad_request, json_object, tier_required
from toolkit.service.transports.access import key_of_scope, owner_of_scope
from toolkit.serving import in_worker

STREAMS: Mapping[str, EventFamily] = {
    "/api/v1/spreadbot/ws": EventFamily.SPREAD,
    "/api/v1/xbot/ws": EventFamily.SPLASH,
    "/api/v1/fundingbot/ws": EventFamily.FUNDING,
}
"""The event streams, by path."""

MOST_SUBSCRIPTIONS = 1_000
"""The most subscriptions of one connection."""

_MARKET = "/api/v1/data/ws"
_MINIMUM = Plan.BUILDER
_GOODBYE_S = 20
_TOO_SLOW, _POLICY, _FAILED = 1013, 1008, 1011


def socket_routes(service: Service, tools: Sequence[Tool[Any]], feed: Feed) -> list[WebSocketRoute]:
    """Return the routes of a service's sockets on one feed. ``tools`` answer history actions."""
    by_path = {tool.path: tool for tool in tools}

    async def serve(websocket: WebSocket) -> None:
        owner, path = owner_of_scope(websocket.scope), websocket.scope["path"]
        if owner.plan.rank < _MINIMUM.rank:
            raise tier_required("the streams", _MINIMUM, owner.plan)
        await websocket.accept()
        families = [STREAMS[path]] if path in STREAMS else []
        listener = Listener(owner, key_of_scope(websocket.scope), families)
        feed.join(listener)
        try:
            await _SocketSession(websocket, service, by_path, listener).serve()
        finally:
            feed.leave(listener)

    return [WebSocketRoute(path, serve) for path in (_MARKET, *STREAMS)]


class _SocketSession:
    """One socket: sends its listener's messages, and answers its requests in order."""

    def __init__(
        self,
        websocket: WebSocket,
        service: Service,
        tools: Mapping[str, Tool[Any]],
        listener: Listener,
    ) -> None:
        self._websocket, self._listener = websocket, listener
        self._service, self._tools = service, tools

    async def serve(self) -> None:
        """Serve until either side ends it. A close by this side has a code for the reason."""
        parts = self._read(), self._write(), self._listener.ended.wait()
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(part) for part in parts]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        gone = any(isinstance(outcome, WebSocketDisconnect) for outcome in outcomes)
        for task in done - {tasks[2]}:
            if not isinstance(task.exception(), WebSocketDisconnect | None):
                task.result()  # an unforeseen failure, which the server logs
        if not gone:
            await self._close()

    async def _close(self) -> None:
        listener = self._listener
        code = _TOO_SLOW if listener.too_slow else _POLICY if listener.revoked else _FAILED
        try:
            # A reader that reads nothing does not read this either: the connection is cut.
            await asyncio.wait_for(self._websocket.close(code), _GOODBYE_S)
        except (TimeoutError, WebSocketDisconnect):
            return

    async def _write(self) -> None:
        while True:
            message = await self._listener.waiting.get()
            await self._websocket.send_text(message.decode())

    async def _read(self) -> None:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message["code"])
            if not self._listener.families:
                said = message.get("text") or message.get("bytes") or b""
                await self._listener.waiting.put(await self._answer(said))

    async def _answer(self, said: str | bytes) -> bytes:
        identity: object = None
        try:
            asked = json_object(said, "message")
            identity = asked.pop("id", None)
            action = asked.pop("action", None)
            if action in ("subscribe", "unsubscribe"):
                return self._subscribed(str(action), identity, asked)
            if action not in self._tools:
                names = ", ".join(["subscribe", "unsubscribe", *self._tools])
                raise bad_request([("action", f"{action!r:.80} is not allowed; allowed: {names}")])
            return await self._history(self._tools[str(action)], identity, _query(asked))
        except Problem as problem:
            wait_s = (problem.headers or {}).get("Retry-After")
            asked = {} if wait_s is None else {"retry_after_s": int(wait_s)}
            document = {**problem.document, **asked, "type": "error", "id": identity}
            return msgspec.json.encode(document)

    async def _history(
        self, tool: Tool[Any], identity: object, query: Sequence[tuple[str, str]]
    ) -> bytes:
        """Return the REST body with the caller's id. It counts towards the quota."""
        service, owner = self._service, self._listener.owner
        quota = service.policy.terms(owner.plan).quota
        service.quotas.spend(owner.name, quota, policy=owner.plan)
        body = await in_worker(answer, service, tool, owner, query)
        return b'%b,"id":%b}' % (body[:-1], msgspec.json.encode(identity))

    def _subscribed(self, action: str, identity: object, asked: dict[str, Any]) -> bytes:
        """Confirm a subscription or its end. What REST would refuse is refused here."""
        if not isinstance(identity, str | int):
            raise bad_request([("id", "is missing; send a text or a number of your own")])
        subscriptions = self._listener.subscriptions
        if action == "unsubscribe":
            if subscriptions.pop(identity, None) is None:
                raise bad_request([("id", f"{identity!r:.80} is not subscribed")])
            return msgspec.json.encode({"type": "unsubscribed", "id": identity})
        if identity not in subscriptions and len(subscriptions) >= MOST_SUBSCRIPTIONS:
            detail = f"this connection has {MOST_SUBSCRIPTIONS} subscriptions, the maximum"
            raise bad_request([("id", detail)])
        channel = asked.pop("channel", None)
        if channel not in list(Family):
            raise bad_request([("channel", f"is not one of {', '.join(Family)}")])
        family, fields = Family(channel), dict(_query(asked))
        # A page that ends at 0 is empty, and is refused for the same reasons as a subscription.
        probe = {**fields, "limit": "1", "end_time": "0"}
        tool = self._tools[f"history/{family}"]
        answer(self._service, tool, self._listener.owner, [*probe.items()])
        subscriptions[identity] = _trajectory(family, fields)
        return msgspec.json.encode({"type": "subscribed", "id": identity})


def _query(asked: Mapping[str, Any]) -> list[tuple[str, str]]:
    odd = [name for name, value in asked.items() if isinstance(value, dict | list | bool)]
    if odd:
        raise bad_request([(name, "is neither a text nor a number") for name in odd])
    return [(name, str(value)) for name, value in asked.items() if value is not None]


def _trajectory(family: Family, fields: Mapping[str, str]) -> Trajectory:
    sides = [""] if family is Family.PRICE else ["buy_", "sell_"]
    legs = (Leg(fields[f"{s}exchange"], Market(fields[f"{s}market"])) for s in sides)
    return Trajectory(family, Symbol.parse(fields["symbol"]), tuple(legs))
