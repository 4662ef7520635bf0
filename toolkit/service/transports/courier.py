"""Delivery of an owner's new event documents to their endpoint, at least once.

A watching task queues new documents, working tasks make the attempts by HTTP/1.1, and a failed
delivery returns to the queue later. If too many wait, the watching pauses, and later goes on from
there.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import email.utils
import hashlib
import hmac
import ipaddress
import logging
import re
import secrets
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from toolkit.errors import InputError
from toolkit.market import EventFamily, Plan
from toolkit.service.accounts import Owner
from toolkit.service.api.calls import Service
from toolkit.service.market.source import WALL_CLOCK
from toolkit.service.transports.sockets import LOOK_S, fresh_documents
from toolkit.serving import in_worker

_LONGEST_URL = 2048
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_TUNNELS = [ipaddress.ip_network("2002::/16"), ipaddress.ip_network("2001::/32")]


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint's URL in the parts that a request needs. The repr does not show the path."""

    encrypted: bool
    host: str
    port: int
    authority: str
    resource: str

    def __repr__(self) -> str:
        return f"Target({self.authority!r})"


def target_of(url: str, *, loopback: bool) -> Target:
    """Return the target of a URL, or raise `InputError` if no delivery may go there.

    The error does not show the URL. With ``loopback``, http is allowed to ``localhost`` and
    loopback addresses.
    """
    allowed = "https://HOST[:PORT][/PATH] at a public address, without user name or fragment"
    if loopback:
        allowed += ", or http to this machine"
    refusal = InputError("url", "***", allowed)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise refusal from None
    plain = url.isascii() and url.isprintable() and " " not in url and len(url) <= _LONGEST_URL
    odd = "@" in parts.netloc or "#" in url or "\\" in url or port == 0 or not host
    if not plain or odd or parts.scheme not in ("https", "http"):
        raise refusal
    address = _address(host)
    here = host == "localhost" or (address is not None and address.is_loopback)
    encrypted = parts.scheme == "https"
    if not encrypted and not (loopback and here):
        raise refusal
    if address is not None and not may_reach(host, loopback=loopback):
        raise refusal
    resource = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(encrypted, host, port or (443 if encrypted else 80), parts.netloc, resource)


def may_reach(address: str, *, loopback: bool) -> bool:
    """Return whether a delivery may be made to an IP address, as the system writes it.

    Only public unicast addresses are, and with ``loopback`` loopback ones. An IPv6 address that
    maps an IPv4 one is checked as that. Tunnels into IPv4 are refused.
    """
    found = _address(address)
    if found is None:
        return False
    if found.is_loopback:
        return loopback
    odd = found.version == 6 and found not in _GLOBAL_UNICAST
    if odd or any(found in tunnel for tunnel in _TUNNELS):
        return False
    return found.is_global and not found.is_multicast and not found.is_reserved


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: .*)?")
_BODY_READ = 4096  # longer bodies of answers are not read, and the connection closes
_LONGEST_WAIT_S = 86_400.0
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of an attempt: the answer's status (None: no answer, see ``reason``).

    ``retry_after_s``: how long the answer asks to wait (s), at most one day.
    """

    status: int | None
    retry_after_s: float = 0.0
    reason: str = ""

    @property
    def taken(self) -> bool:
        """Whether the receiver took the delivery."""
        return self.status is not None and 200 <= self.status < 300


class Post:
    """Makes attempts one after another, over one connection if possible.

    Others choose the addresses. So the connection goes to one that was checked, not to a name,
    redirects are not followed, and every attempt has a time limit. Only status and headers of the
    answer are used.
    """

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings
        self._target: Target | None = None
        self._connection: _Streams | None = None

    async def send(self, target: Target, headers: Mapping[str, str], body: bytes) -> Reply:
        """POST the body's exact bytes. Every failure is a reply without a status."""
        lines = {
            "Host": target.authority,
            "User-Agent": "machine-rail-webhooks",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **headers,
        }
        head = f"POST {target.resource} HTTP/1.1\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        message = head.encode("ascii") + b"\r\n" + body
        whole = False
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                reply = await self._exchange(target, message)
                if reply is None:
                    self.close()
                    reply = await self._exchange(target, message)
                whole = reply is not None
                return reply or Reply(None, reason="the connection was closed without an answer")
        except TimeoutError:
            return Reply(None, reason=f"no answer within {self._settings.timeout_s:g} s")
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            return Reply(None, reason=f"{type(error).__name__}: {error}")
        finally:
            if not whole:
                self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection[1].close()
        self._connection = self._target = None

    async def _exchange(self, target: Target, message: bytes) -> Reply | None:
        """Send one request. Return None if a kept connection was closed before the answer."""
        if self._target != target:
            self.close()
        kept = self._connection is not None
        if self._connection is None:
            self._connection, self._target = await self._connect(target), target
        reader, writer = self._connection
        try:
            writer.write(message)
            await writer.drain()
            status, headers = await _answer(reader)
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            unanswered = not isinstance(error, asyncio.IncompleteReadError) or not error.partial
            if kept and unanswered:
                return None
            raise
        if not await _is_read(reader, status, headers):
            self.close()
        return Reply(status, _retry_after_s(headers.get("retry-after", "")))

    async def _connect(self, target: Target) -> _Streams:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except RuntimeError as error:  # the process ends: its threads take no more work
            raise ConnectionError(f"the service ends ({error})") from None
        here = self._settings.loopback
        reachable = [str(at[0]) for *_, at in found if may_reach(str(at[0]), loopback=here)]
        if not reachable:
            raise ConnectionError("the host resolves to no address that deliveries may go to")
        context = ssl.create_default_context() if target.encrypted else None
        if context is not None and self._settings.authorities is not None:
            context.load_verify_locations(self._settings.authorities)
        failure = OSError("no address was tried")
        for address in reachable:
            try:
                reader, writer = await asyncio.open_connection(
                    address,
                    target.port,
                    ssl=context,
                    server_hostname=target.host if context else None,
                )
            except OSError as error:
                failure = error
                continue
            if may_reach(writer.get_extra_info("peername")[0], loopback=here):
                return reader, writer
            writer.close()
            failure = ConnectionError("the connection went to an address that is not allowed")
        raise failure


async def _answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].split(b"\r\n")
        match = _STATUS.fullmatch(first)
        if match is None:
            raise ConnectionError("the answer is not HTTP")
        if int(match[1]) >= 200:
            pairs = (line.decode("latin-1").partition(":") for line in lines)
            return int(match[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _is_read(reader: asyncio.StreamReader, status: int, headers: Mapping[str, str]) -> bool:
    """Read the rest of a short answer. Return whether the connection can be used again."""
    length = "0" if status in (204, 304) else headers.get("content-length", "")
    reusable = headers.get("connection", "").lower() != "close" and len(length) < 6
    if not (reusable and length.isascii() and length.isdigit() and int(length) <= _BODY_READ):
        return False
    with contextlib.suppress(asyncio.IncompleteReadError):  # the answer's status counts anyway
        await reader.readexactly(int(length))
        return True
    return False


def _retry_after_s(text: str) -> float:
    """Return the wait (s) of a ``Retry-After`` in either of its forms, 0 if it has none."""
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), _LONGEST_WAIT_S)
    try:
        wait_s = email.utils.parsedate_to_datetime(text).timestamp() - WALL_CLOCK.now()
    except (ValueError, OverflowError):
        return 0.0
    return min(max(wait_s, 0.0), _LONGEST_WAIT_S)


RETRIES_S = (5.0, 30.0, 120.0, 600.0, 3600.0)
"""The waits (s) before each further attempt of a failed delivery."""


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """How deliveries are retried and limited, and whether they may go to this machine.

    Endpoints are https and public. ``loopback`` also allows loopback addresses, over http or https,
    but no other private ones. ``retries_s``: the waits before further attempts. ``timeout_s``: the
    longest attempt. ``in_flight``: the most concurrent ones per endpoint. ``authorities``: a PEM
    file of further trusted certificate authorities.

    >>> WebhookSettings(in_flight=0)
    Traceback (most recent call last):
    toolkit.errors.InputError: in_flight: 0 is not allowed; allowed: 1 or more
    """

    loopback: bool = False
    retries_s: tuple[float, ...] = RETRIES_S
    timeout_s: float = 15.0
    in_flight: int = 16
    authorities: Path | None = None

    def __post_init__(self) -> None:
        if self.in_flight < 1:
            raise InputError("in_flight", self.in_flight, "1 or more")
        if self.timeout_s <= 0:
            raise InputError("timeout_s", self.timeout_s, "seconds above 0")
        if any(wait_s < 0 for wait_s in self.retries_s):
            raise InputError("retries_s", self.retries_s, "seconds, none below 0")


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
    then given up and logged. 429 or 503 with ``Retry-After`` pauses the endpoint that long.
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
        self.change(url, target, families)
        self._service, self._settings, self._owner = service, settings, owner
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
            made = [WebhookMessage.of(self._owner, document) for document in documents]
            for delivery in self._planned(made):
                self._under_way += 1
                self._queue.put_nowait(delivery)

    def _news(self, owner: Owner, told: int, now: int) -> list[bytes]:
        delay_s = self._service.policy.terms(owner.plan).stream_open_delay_s
        archive = self._service.archive
        return [
            document
            for family in self.families
            for document in fresh_documents(archive, family, delay_s, told, now)
        ]

    def _planned(self, deliveries: Sequence[WebhookMessage]) -> Sequence[WebhookMessage]:
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
