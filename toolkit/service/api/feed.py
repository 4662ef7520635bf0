"""New rows and documents for listeners: one task watches clock and source for all sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from toolkit.market import EventFamily, Trajectory
from toolkit.service.accounts import Owner
from toolkit.service.api.calls import Service
from toolkit.service.events.archive import EventArchive
from toolkit.serving import in_worker

_log = logging.getLogger(__name__)

LOOK_S = 0.05
"""The time between two readings of the clock (s)."""

KEPT_MESSAGES = 10_000
"""The most messages that wait for one reader; with more it is too slow."""

_EventStream = tuple[EventFamily, int]  # and how late its openings are (s)
_Span = tuple[int, int]
_AT_ONCE = 100  # messages handed to listeners before the loop turns, so that they are sent


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
