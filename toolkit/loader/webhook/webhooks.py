"""The webhook receiver: an ASGI application that stores what is genuine before it answers.

Deliveries that come during a commit are committed together with the next: a commit takes about 40
ms, whatever is in it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from typing import NamedTuple

from toolkit.errors import InputError, StoreError, WireError, needs_extra
from toolkit.market import EventFamily
from toolkit.store import WEBHOOK, Delivered, Kept, LoadOrigin, Store, StoreWriter, keep_deliveries
from toolkit.wire.event_log import document_frame
from toolkit.wire.finding_words import as_rows
from toolkit.wire.findings import Findings
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS, EventRoute
from toolkit.wire.profile.profile import BUILT_IN, Profile
from toolkit.wire.secrets import Secrets
from toolkit.wire.signatures import (
    Delivery,
    Rejected,
    StandardWebhooks,
    Verifier,
    read_delivery,
)

with needs_extra("service"):
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, Response
    from starlette.types import Receive, Scope, Send

    from toolkit.serving import ServerSettings, in_worker, run

_RETRY_AFTER = {"Retry-After": "5"}
_TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    503: "Service Unavailable",
}

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Receipts:
    """What a receiver did, counted (deliveries, but for ``events``).

    ``stored`` were new, ``repeated`` were not. Both are answered 204. ``kept`` of the stored ones
    are not event documents. ``events``: documents new to the store. ``refused``: not shown to be
    genuine (401). ``unreadable``: not a JSON object, not sent with POST, or not whole in time (400,
    405, 408). ``too_large`` (413). ``postponed``: the store could not take them (503). ``unkept``:
    further versions of events that are stored in a hundred.

    >>> str(Receipts(stored=3, events=2, repeated=1, kept=1))
    '3 stored (2 new events, 1 kept whole), 1 repeated, 0 refused'
    """

    stored: int = 0
    repeated: int = 0
    kept: int = 0
    events: int = 0
    refused: int = 0
    unreadable: int = 0
    too_large: int = 0
    postponed: int = 0
    unkept: int = 0

    def __str__(self) -> str:
        counts = f"{self.stored:,} stored ({self.events:,} new events"
        counts += f", {self.kept:,} kept whole)" if self.kept else ")"
        counts += f", {self.repeated:,} repeated, {self.refused:,} refused"
        rest = ("unreadable", "too_large", "postponed", "unkept")
        odd = [f.name for f in fields(self) if f.name in rest and getattr(self, f.name)]
        return counts + "".join(
            f", {getattr(self, name):,} {name.replace('_', ' ')}" for name in odd
        )


def webhook_app(
    store: Store,
    *,
    secrets: Sequence[str] = (),
    verifier: Verifier | None = None,
    limits: Limits = LIMITS,
    routes: Mapping[EventFamily, EventRoute] = BUILT_IN_EVENTS,
    withheld: Sequence[str] = (),
    profile_hash: str | None = None,
) -> WebhookApp:
    """Make an ASGI application that receives deliveries into a store, to be run or mounted.

    ``secrets`` are those of Standard Webhooks, any of which may have signed. ``verifier`` is
    another scheme with its own. The store must exist. ``limits`` bound a body in bytes and seconds,
    what waits, and what is kept. TLS and a limit on connections belong to the server in front.
    ``routes`` say where a document has its fields, and ``profile_hash`` is that of the user's file
    that says so. ``secrets`` and ``withheld``, such as an API key, are struck out of a body before
    it is stored.

    Raises `InputError` for no or two ways to verify, `StoreError` where there is no store.

    >>> webhook_app(Store("none.duckdb"), secrets=[])
    Traceback (most recent call last):
    toolkit.errors.InputError: verifier: nothing is given; allowed: secrets, or a verifier ...
    """
    if (verifier is None) == (not secrets):
        raise InputError("verifier", verifier, "secrets, or a verifier with secrets of its own")
    writer = StoreWriter(store)
    writer.bind(store.source)  # raises where there is none
    store.keep_lean(limits)
    scheme = verifier or StandardWebhooks(secrets)
    return WebhookApp(
        writer,
        scheme,
        profile=replace(BUILT_IN, events=routes, users_hash=profile_hash).within(limits),
        withheld=Secrets([*secrets, *withheld]),
    )


class WebhookApp:
    """The application that `webhook_app` makes. It takes POST at whatever path it is mounted.

    Size and signature are checked on the body's exact bytes. What is genuine is in the store when
    204 is answered, as for a repeat of it. A store that another process holds, or that fails, is
    answered 503 with ``Retry-After``. ``receipts`` counts. A server of the application alone calls
    `close` at its end. Whoever mounts it calls `close`.
    """

    def __init__(
        self, writer: StoreWriter, verifier: Verifier, *, profile: Profile, withheld: Secrets
    ) -> None:
        self.receipts = Receipts()
        self._verifier = verifier
        self._limits = profile.limits
        self._routes = profile.events
        self._withheld = withheld
        self._keeper = _Keeper(writer, self.receipts, profile)

    def __repr__(self) -> str:
        return f"WebhookApp({self._keeper.store!r}, {self._verifier!r})"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow a server's start and end."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except ClientDisconnect:
            return
        await answer(scope, receive, send)

    async def close(self) -> None:
        """Record in the store that the receiver ended well, and what it found odd."""
        await in_worker(self._keeper.finish)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        try:
            await self.close()
        except StoreError as error:
            _log.warning("the run could not be marked as ended: %s", error)
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, request: Request) -> Response:
        if request.method != "POST":
            self.receipts.unreadable += 1
            return _problem(405, "Deliveries come with POST.", {"Allow": "POST"})
        try:
            async with asyncio.timeout(self._limits.delivery_s):
                body = await self._body(request)
        except TimeoutError:
            self.receipts.unreadable += 1
            detail = f"The body was not whole after {self._limits.delivery_s:g} s."
            return _problem(408, detail, {"Connection": "close"})
        if body is None:
            self.receipts.too_large += 1
            return _problem(413, f"A body has at most {self._limits.delivery_bytes} bytes here.")
        verdict = self._verifier.check(request.headers.raw, body)
        if isinstance(verdict, Rejected):
            self.receipts.refused += 1
            challenge = {"WWW-Authenticate": "Webhook-Signature"}
            return _problem(401, f"Not shown to be genuine: {verdict.reason}.", challenge)
        try:
            delivery = read_delivery(self._routes, self._withheld.struck(body))
        except WireError as error:
            self.receipts.unreadable += 1
            return _problem(400, f"Not understood: {error}.")
        return await self._kept(verdict.delivery_id, delivery)

    async def _body(self, request: Request) -> bytes | None:
        """Read the body's exact bytes, None where they are too many. No more are read then."""
        declared = request.headers.get("content-length", "").lstrip("0")
        if declared.isascii() and declared.isdigit():
            # First by its length: Python makes no number of thousands of digits.
            limit = str(self._limits.delivery_bytes)
            if (len(declared), declared) > (len(limit), limit):
                return None
        parts, length = [], 0
        async for part in request.stream():
            length += len(part)
            if length > self._limits.delivery_bytes:
                return None
            parts.append(part)
        return b"".join(parts)

    async def _kept(self, delivery_id: str, delivery: Delivery) -> Response:
        try:
            await self._keeper.keep(delivery_id, delivery)
        except StoreError as error:
            self.receipts.postponed += 1
            _log.warning("a delivery could not be stored and is to come again: %s", error)
            return _problem(503, "It could not be stored now; send it again.", _RETRY_AFTER)
        return Response(status_code=204)


def _problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    document = {"type": "about:blank", "title": _TITLES[status], "status": status, "detail": detail}
    return JSONResponse(document, status, headers, "application/problem+json")


class _Waiting(NamedTuple):
    delivered: Delivered
    delivery: Delivery
    done: asyncio.Future[None]


class _Keeper:
    """Commits deliveries, those together that came during the commit before."""

    def __init__(self, writer: StoreWriter, receipts: Receipts, profile: Profile) -> None:
        self.store = writer.store
        self._writer = writer
        self._receipts = receipts
        self._load_id: int | None = None
        self._profile = profile
        self._limits = profile.limits
        self._findings = Findings(profile.limits)
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._writing = threading.Lock()
        self._task: asyncio.Task[None] | None = None

    async def keep(self, delivery_id: str, delivery: Delivery) -> None:
        """Return when the delivery is committed. Raises `StoreError` if it is not."""
        size = len(delivery.body)
        if self._bytes + size > self._limits.waiting_delivery_bytes:
            raise StoreError("too much waits to be written already", path=str(self.store.path))
        loop = asyncio.get_running_loop()
        row = delivery.row
        kept = (None, delivery.body) if row is None else (row["family"], None)
        waiting = _Waiting(Delivered(delivery_id, *kept), delivery, loop.create_future())
        self._waiting.append(waiting)
        self._bytes += size
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._commit_all())
        try:
            await waiting.done
        finally:
            self._bytes -= size

    async def _commit_all(self) -> None:
        while self._waiting:
            group = self._next_group()
            failure: Exception | None = None
            try:
                kept = await in_worker(self._commit, group)
                self._count(group, kept)
            except Exception as error:  # noqa: BLE001 - raised in each request that waits for it
                failure = error
            for done in (each.done for each in group if not each.done.done()):
                if failure is None:
                    done.set_result(None)
                else:
                    done.set_exception(failure)

    def _next_group(self) -> list[_Waiting]:
        """Take what is committed together: what waits, up to the bytes that a commit takes."""
        group, size = list[_Waiting](), 0
        while self._waiting and size < self._limits.waiting_bytes // 2:
            group.append(self._waiting.popleft())
            size += len(group[-1].delivery.body)
        return group

    def _commit(self, group: Sequence[_Waiting]) -> Kept:
        rows = [each.delivery.row for each in group if each.delivery.row is not None]
        delivered = [each.delivered for each in group]
        with self._writing:
            return keep_deliveries(
                self._writer, self._begun(), delivered, document_frame(rows), self._limits
            )

    def _count(self, group: Sequence[_Waiting], kept: Kept) -> None:
        self._receipts.stored += kept.deliveries
        self._receipts.repeated += len(group) - kept.deliveries
        self._receipts.kept += kept.whole
        self._receipts.events += kept.events.new + kept.events.revised
        for each in group:
            self._findings.add(each.delivery.findings)
        self._findings.add(kept.events.findings)
        self._receipts.unkept += sum(kept.events.unkept.values())

    def _begun(self) -> int:
        if self._load_id is None:
            now, by = int(time.time()), version("machine-rail-toolkit")
            under = self._profile
            origin = LoadOrigin(
                WEBHOOK, now, None, by, profile_hash=under.users_hash, logs=under.events
            )
            self._load_id = self._writer.start_load(origin)
        return self._load_id

    def finish(self) -> None:
        """Mark the run in the store as ended well, if it brought anything."""
        with self._writing:
            if self._load_id is not None:
                found = as_rows(self._findings.listed(), self._profile)
                self._writer.finish_load(self._load_id, found)
                self._load_id = None


_GRACE_S = 15  # for deliveries under way; a sender waits no longer
_NOTIFY_EVERY_S = 10


def receive(
    app: WebhookApp,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[str], object],
    on_progress: Callable[[Receipts], object] | None = None,
) -> Receipts:
    """Receive until SIGINT or SIGTERM. What is under way then is stored and answered first.

    ``ready`` is called once with the address, when it accepts, ``on_progress`` with the counts so
    far every 10 seconds. Returns the counts. Raises `InputError` for a port that is taken and a
    host that is not this machine's.

    >>> import os, signal, tempfile
    >>> from toolkit.loader.webhook.webhooks import webhook_app
    >>> from toolkit.market import Source
    >>> from toolkit.store import Store, StoreWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/rail.duckdb")
    ...     StoreWriter(store).bind(Source("replay", "example"))
    ...     app = webhook_app(store, secrets=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
    ...     print(receive(app, ready=lambda address: os.kill(os.getpid(), signal.SIGTERM)))
    0 stored (0 new events), 0 repeated, 0 refused
    """

    async def report() -> None:
        if on_progress is not None:
            on_progress(app.receipts)

    settings = ServerSettings(app, grace_s=_GRACE_S, notify=report, notify_every_s=_NOTIFY_EVERY_S)
    run(settings, host, port, ready=lambda base_url: ready(f"{base_url}/"))
    return app.receipts
