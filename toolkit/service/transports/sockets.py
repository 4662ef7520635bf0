"""The four WebSocket paths: market subscriptions with history actions, and three event streams.

The service's one `Feed` watches clock and source for all connections, and fills a queue for each.
A reader with too many waiting messages is closed with 1013, one with a revoked key with 1008.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from toolkit.market import EventFamily, Family, Leg, Market, Plan, Symbol, Trajectory
from toolkit.service.accounts import Owner
from toolkit.service.api.calls import Service
from toolkit.service.api.registry import answer
from toolkit.service.api.tools import Tool
from toolkit.service.events.archive import EventArchive
from toolkit.service.problems import Problem, bad_request, json_object, tier_required
from toolkit.service.transports.access import key_of_scope, owner_of_scope
from toolkit.serving import in_worker

_log = logging.getLogger(__name__)

LOOK_S = 0.05
"""The time between two readings of the clock (s)."""

KEPT_MESSAGES = 10_000
"""The most messages that wait for one reader; with more it is too slow."""

_EventStream = tuple[EventFamily, int]  # and how late its openings are (s)
_Span = tuple[int, int]
_AT_ONCE = 100  # messages handed to listeners before the loop turns, so that they are sent

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


@dataclass(eq=False, slots=True)
class Listener:
    """One socket's subscriptions, and the messages that wait to be sent to it.

    ``families``: event streams. ``subscriptions``: trajectories by the caller's id. ``ended``: set
    when the service ends the connection. The repr does not show the key.
    """

    owner: Owner
    key: str = field(repr=False)
    families: Collection[EventFamily] = ()
    subscriptions: dict[Hashable, Trajectory] = field(default_factory=dict)
    too_slow: bool = False
    revoked: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: asyncio.Queue[bytes] = field(default_factory=lambda: asyncio.Queue(KEPT_MESSAGES))

    def offer(self, messages: Sequence[bytes]) -> None:
        """Queue messages to be sent, or mark the listener as too slow."""
        for message in messages:
            if self.waiting.full():
                self.too_slow = True
                self.ended.set()
                return
            self.waiting.put_nowait(message)


class Feed:
    """Sends new rows and documents to the listeners of a service."""

    def __init__(self, service: Service) -> None:
        self.listeners: set[Listener] = set()
        self._service = service
        self._told = 0
        self._task: asyncio.Task[None] | None = None

    def join(self, listener: Listener) -> None:
        """Add a listener for what is new from now on."""
        self.listeners.add(listener)
        if self._task is None or self._task.done():
            self._told = self._service.clock.now()
            self._task = asyncio.get_running_loop().create_task(self._watch())

    def leave(self, listener: Listener) -> None:
        """Remove a listener."""
        self.listeners.discard(listener)

    async def _watch(self) -> None:
        while self.listeners:
            await asyncio.sleep(LOOK_S)
            now = self._service.clock.now()
            if now <= self._told:
                continue
            self._end_revoked()
            try:
                await self._tell(self._told, now)
            except Exception:  # noqa: BLE001 - logged, and every connection ends
                _log.exception("the feed failed at %s", now)
                for listener in self.listeners:
                    listener.ended.set()
            self._told = now

    def _end_revoked(self) -> None:
        owners = self._service.policy.owners
        for listener in self.listeners:
            if owners.owner_of(listener.key) != listener.owner:
                listener.revoked = True
                listener.ended.set()

    async def _tell(self, told: int, now: int) -> None:
        streams = {stream for listener in self.listeners for stream in self._streams(listener)}
        wanted = {t for listener in self.listeners for t in listener.subscriptions.values()}
        documents, rows = await in_worker(self._news, streams, wanted, (told, now))
        handed = 0
        for listener in list(self.listeners):
            fresh = self._messages(listener, documents, rows)
            for first in range(0, len(fresh), _AT_ONCE):
                part = fresh[first : first + _AT_ONCE]
                listener.offer(part)
                handed += len(part)
                if handed >= _AT_ONCE:
                    handed = 0
                    await asyncio.sleep(0)

    def _streams(self, listener: Listener) -> list[_EventStream]:
        delay_s = self._service.policy.terms(listener.owner.plan).stream_open_delay_s
        return [(family, delay_s) for family in listener.families]

    def _news(
        self, streams: Collection[_EventStream], wanted: Collection[Trajectory], span: _Span
    ) -> tuple[dict[_EventStream, list[bytes]], dict[Trajectory, list[bytes]]]:
        archive, pages = self._service.archive, self._service.pages
        documents = {stream: fresh_documents(archive, *stream, *span) for stream in streams}
        return documents, {each: pages.fresh(each, *span) for each in wanted}

    def _messages(
        self,
        listener: Listener,
        documents: Mapping[_EventStream, Sequence[bytes]],
        rows: Mapping[Trajectory, Sequence[bytes]],
    ) -> list[bytes]:
        streams = self._streams(listener)
        said = [body for stream in streams for body in documents.get(stream, ())]
        said = self._documents(listener, said)
        for identity, trajectory in listener.subscriptions.items():
            head = msgspec.json.encode({"type": trajectory.family, "id": identity})
            said += [b'%b,"item":%b}' % (head[:-1], row) for row in rows.get(trajectory, ())]
        return said

    def _documents(self, _listener: Listener, documents: list[bytes]) -> list[bytes]:
        """Return the new documents that a listener is sent now."""
        return documents


def fresh_documents(
    archive: EventArchive, family: EventFamily, open_delay_s: int, since: int, now: int
) -> list[bytes]:
    """Return the documents whose second was over in ``(since, now]``, delayed openings first.

    Openings of spreads are ``open_delay_s`` (s) late. They and the others are each oldest first.
    """
    prompt = archive.documents(family, since, now)
    if family is not EventFamily.SPREAD or not open_delay_s:
        return [body for _, body in prompt]
    late = archive.documents(family, since - open_delay_s, now - open_delay_s)
    openings = [body for kind, body in late if kind == "spread.opened"]
    return openings + [body for kind, body in prompt if kind != "spread.opened"]


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


@dataclass(eq=False, slots=True)
class _SocketSession:
    """One socket: sends its listener's messages, and answers its requests in order."""

    websocket: WebSocket
    service: Service
    tools: Mapping[str, Tool[Any]]
    listener: Listener

    async def serve(self) -> None:
        """Serve until either side ends it. A close by this side has a code for the reason."""
        parts = self._read(), self._write(), self.listener.ended.wait()
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
        listener = self.listener
        code = _TOO_SLOW if listener.too_slow else _POLICY if listener.revoked else _FAILED
        try:
            # A reader that reads nothing does not read this either: the connection is cut.
            await asyncio.wait_for(self.websocket.close(code), _GOODBYE_S)
        except (TimeoutError, WebSocketDisconnect):
            return

    async def _write(self) -> None:
        while True:
            message = await self.listener.waiting.get()
            await self.websocket.send_text(message.decode())

    async def _read(self) -> None:
        while True:
            message = await self.websocket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message["code"])
            if not self.listener.families:
                said = message.get("text") or message.get("bytes") or b""
                await self.listener.waiting.put(await self._answer(said))

    async def _answer(self, said: str | bytes) -> bytes:
        identity: object = None
        try:
            asked = json_object(said, "message")
            identity = asked.pop("id", None)
            action = asked.pop("action", None)
            if action in ("subscribe", "unsubscribe"):
                return self._subscribed(str(action), identity, asked)
            if action not in self.tools:
                names = ", ".join(["subscribe", "unsubscribe", *self.tools])
                raise bad_request([("action", f"{action!r:.80} is not allowed; allowed: {names}")])
            return await self._history(self.tools[str(action)], identity, _query(asked))
        except Problem as problem:
            wait_s = (problem.headers or {}).get("Retry-After")
            asked = {} if wait_s is None else {"retry_after_s": int(wait_s)}
            document = {**problem.document, **asked, "type": "error", "id": identity}
            return msgspec.json.encode(document)

    async def _history(
        self, tool: Tool[Any], identity: object, query: Sequence[tuple[str, str]]
    ) -> bytes:
        """Return the REST body with the caller's id. It counts towards the quota."""
        service, owner = self.service, self.listener.owner
        quota = service.policy.terms(owner.plan).quota
        service.quotas.spend(owner.name, quota, policy=owner.plan)
        body = await in_worker(answer, service, tool, owner, query)
        return b'%b,"id":%b}' % (body[:-1], msgspec.json.encode(identity))

    def _subscribed(self, action: str, identity: object, asked: dict[str, Any]) -> bytes:
        """Confirm a subscription or its end. What REST would refuse is refused here."""
        if not isinstance(identity, str | int):
            raise bad_request([("id", "is missing; send a text or a number of your own")])
        subscriptions = self.listener.subscriptions
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
        tool = self.tools[f"history/{family}"]
        answer(self.service, tool, self.listener.owner, [*probe.items()])
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
