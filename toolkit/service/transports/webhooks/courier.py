"""Delivery of an owner's new event documents to their endpoint, at least once.

A watching task queues new documents, working tasks make the attempts, and a failed delivery returns
to the queue later. If too many wait, the watching pauses and later goes on from there: the archive
keeps what is not queued yet.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolkit.market import EventFamily, Plan
from toolkit.service.accounts.owners import Owner
from toolkit.service.api.calls import Service
from toolkit.service.api.feed import LOOK_S, fresh_documents
from toolkit.service.market.clock import WALL_CLOCK
from toolkit.service.transports.webhooks.addresses import Target
from toolkit.service.transports.webhooks.posting import Post, Reply
from toolkit.service.transports.webhooks.settings import WebhookSettings
from toolkit.serving import in_worker

_PREFIX = "whsec_"


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """A body and its id, the number of failed attempts, and whether it is retried."""

    identity: str
    body: bytes
    failed: int = 0
    retried: bool = True

    @classmethod
    def of(cls, owner: str, body: bytes) -> WebhookMessage:
        """Make the delivery of a body to an owner, always with the same id."""
        digest = hashlib.blake2b(owner.encode() + b"\n" + body, digest_size=12)
        return cls(f"msg_{digest.hexdigest()}", body)

    def request(self, secret: str, ts: int) -> tuple[dict[str, str], bytes]:
        """Return the headers and the body of an attempt at ``ts`` (s), signed with the secret."""
        return signed_headers(secret, self.identity, ts, self.body), self.body


def new_secret() -> str:
    """Return a secret for signatures: ``whsec_`` and the base64 of 32 random bytes."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signed_headers(secret: str, identity: str, ts: int, body: bytes) -> dict[str, str]:
    """Return the three headers of a delivery that is attempted at ``ts`` (s).

    >>> key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    >>> body = b'{"test": 2432232314}'
    >>> signed_headers(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)["webhook-signature"]
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    digest = hmac.digest(key, f"{identity}.{ts}.".encode() + body, "sha256")
    return {
        "webhook-id": identity,
        "webhook-timestamp": str(ts),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


MINIMUM_PLAN = Plan.BUILDER
"""The lowest plan that includes webhooks."""

_MOST_UNDER_WAY = 100_000
_AFTER_A_FAILURE_S = 1.0
_GONE, _TOO_MANY, _UNAVAILABLE = 410, 429, 503

_log = logging.getLogger(__name__)


class Courier:
    """An owner's endpoint and the tasks that deliver to it, all in one event loop.

    A delivery succeeds when it is answered 2xx. 410 ends deliveries until the endpoint is set
    again. After any other answer, or none, it is attempted again after each of the settings' waits,
    and then given up, which is logged. 429 or 503 with ``Retry-After`` pauses the endpoint for that
    long. Redirects are not followed.
    """

    def __init__(
        self,
        service: Service,
        settings: WebhookSettings,
        owner: str,
        *,
        url: str,
        target: Target,
        families: list[EventFamily],
    ) -> None:
        self.secret = new_secret()
        self.enabled = True
        self.url = url
        self.families = families
        self._target = target
        self._service = service
        self._settings = settings
        self._owner = owner
        self._queue: asyncio.Queue[WebhookMessage] = asyncio.Queue()
        self._under_way = 0
        self._resumes_at = 0.0
        self._told = service.clock.now()
        loop = asyncio.get_running_loop()
        works = (self._work() for _ in range(settings.in_flight))
        self._tasks = [loop.create_task(each) for each in (self._watch(), *works)]

    def __repr__(self) -> str:
        return f"Courier({self._owner!r}, {self._target!r})"

    def change(self, url: str, target: Target, families: list[EventFamily]) -> None:
        """Set URL and families, also for waiting deliveries, and enable the endpoint."""
        self.url, self._target, self.families = url, target, families
        self.enabled = True

    async def stop(self) -> None:
        """End the tasks. What is not delivered is dropped."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def try_once(self, body: bytes) -> Reply:
        """Make one attempt at delivering a body now, outside the queue."""
        post = Post(self._settings)
        try:
            return await self._attempt(post, WebhookMessage.of(self._owner, body))
        finally:
            post.close()

    async def _watch(self) -> None:
        clock = self._service.clock
        while True:
            await asyncio.sleep(LOOK_S)
            now = clock.now()
            if now <= self._told or self._under_way >= _MOST_UNDER_WAY:
                continue
            owner = self._service.policy.owners.named.get(self._owner)
            if owner is None or owner.plan.rank < MINIMUM_PLAN.rank or not self.enabled:
                self._told = now
                continue
            try:
                documents = await in_worker(self._news, owner, self._told, now)
            except Exception:  # noqa: BLE001 - logged, and tried again
                if not threading.main_thread().is_alive():
                    return  # the process ends: no thread can be begun
                _log.exception("new documents at %s could not be read", now)
                await asyncio.sleep(_AFTER_A_FAILURE_S)
                continue
            self._told = now
            self._bring(documents)

    def _news(self, owner: Owner, told: int, now: int) -> list[bytes]:
        delay_s = self._service.policy.terms(owner.plan).stream_open_delay_s
        archive = self._service.archive
        return [
            document
            for family in self.families
            for document in fresh_documents(archive, family, delay_s, told, now)
        ]

    def _bring(self, documents: Sequence[bytes]) -> None:
        made = [WebhookMessage.of(self._owner, document) for document in documents]
        for delivery in self._planned(made):
            self._under_way += 1
            self._queue.put_nowait(delivery)

    def _planned(self, deliveries: Sequence[WebhookMessage]) -> Sequence[WebhookMessage]:
        """Return the deliveries to make, in their order."""
        return deliveries

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        post = Post(self._settings)
        try:
            while True:
                delivery = await self._queue.get()
                while (pause_s := self._resumes_at - loop.time()) > 0:
                    await asyncio.sleep(pause_s)
                if self.enabled:
                    self._settle(delivery, await self._attempt(post, delivery))
                else:
                    self._under_way -= 1
        finally:
            post.close()

    async def _attempt(self, post: Post, delivery: WebhookMessage) -> Reply:
        headers, body = delivery.request(self.secret, WALL_CLOCK.now())
        try:
            return await post.send(self._target, headers, body)
        except Exception:  # noqa: BLE001 - logged, so that deliveries go on
            _log.exception("an attempt at a delivery to %s failed", self._owner)
            return Reply(None, reason="an error of the service")

    def _settle(self, delivery: WebhookMessage, reply: Reply) -> None:
        loop, waits_s = asyncio.get_running_loop(), self._settings.retries_s
        if reply.status == _GONE:
            self.enabled = False
            _log.warning("the endpoint of %s is gone (410) and is disabled", self._owner)
        if reply.status in (_TOO_MANY, _UNAVAILABLE):
            self._resumes_at = max(self._resumes_at, loop.time() + reply.retry_after_s)
        if reply.taken or not delivery.retried or not self.enabled:
            self._under_way -= 1
        elif delivery.failed < len(waits_s):
            wait_s = max(waits_s[delivery.failed], reply.retry_after_s)
            again = replace(delivery, failed=delivery.failed + 1)
            loop.call_later(wait_s, self._queue.put_nowait, again)
        else:
            self._under_way -= 1
            facts = self._owner, delivery.failed + 1, reply.reason or f"status {reply.status}"
            _log.warning("a delivery to %s is given up after %s attempts; the last: %s", *facts)
