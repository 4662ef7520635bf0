"""One attempt at a delivery: an HTTP/1.1 POST. Only status and headers of the answer are used.

The service sends to addresses that others choose. So the connection goes to an address that was
checked, not to a name, redirects are not followed, and every attempt has a time limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from toolkit.service.market.clock import WALL_CLOCK
from toolkit.service.transports.webhooks.addresses import Target, may_reach
from toolkit.service.transports.webhooks.settings import WebhookSettings

_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: .*)?")
_BODY_READ = 4096  # longer bodies of answers are not read, and the connection closes
_LONGEST_WAIT_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of an attempt: the answer's status (None: no answer, see ``reason``).

    ``retry_after_s`` (s) is how long the answer asks to wait, at most one day.
    """

    status: int | None
    retry_after_s: float = 0.0
    reason: str = ""

    @property
    def taken(self) -> bool:
        """Whether the receiver took the delivery."""
        return self.status is not None and 200 <= self.status < 300


class Post:
    """Makes attempts one after another, over a connection that is kept open if possible.

    >>> from toolkit.service.transports.webhooks.addresses import target_of
    >>> post = Post(WebhookSettings(loopback=True))
    >>> nobody = target_of("http://127.0.0.1:9/", loopback=True)
    >>> asyncio.run(post.send(nobody, {}, b"{}")).status is None
    True
    """

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings
        self._target: Target | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

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
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = self._target = None

    async def _exchange(self, target: Target, message: bytes) -> Reply | None:
        """Send one request. Returns None if a kept connection was closed before the answer."""
        if self._target != target:
            self.close()
        kept = self._writer is not None
        reader, writer = await self._connected(target)
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

    async def _connected(self, target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await self._connect(target)
            self._target = target
        return self._reader, self._writer

    async def _connect(self, target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except RuntimeError as error:  # the process ends: its threads take no more work
            raise ConnectionError(f"the service ends ({error})") from None
        here = self._settings.loopback
        reachable = [str(at[0]) for *_, at in found if may_reach(str(at[0]), loopback=here)]
        if not reachable:
            raise ConnectionError("the host resolves to no address that deliveries may go to")
        context = _context(self._settings) if target.encrypted else None
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


def _context(settings: WebhookSettings) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if settings.authorities is not None:
        context.load_verify_locations(settings.authorities)
    return context


async def _answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Read the status and headers (names in lower case) of the final answer."""
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
    """Read the rest of a short answer. Returns whether the connection can be used again."""
    length = "0" if status in (204, 304) else headers.get("content-length", "")
    reusable = headers.get("connection", "").lower() != "close" and len(length) < 6
    if not (reusable and length.isascii() and length.isdigit() and int(length) <= _BODY_READ):
        return False
    with contextlib.suppress(asyncio.IncompleteReadError):  # the answer's status counts anyway
        await reader.readexactly(int(length))
        return True
    return False


def _retry_after_s(text: str) -> float:
    """Return the seconds of a ``Retry-After`` in either of its forms, 0 if it has none."""
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), _LONGEST_WAIT_S)
    try:
        wait_s = email.utils.parsedate_to_datetime(text).timestamp() - WALL_CLOCK.now()
    except (ValueError, OverflowError):
        return 0.0
    return min(max(wait_s, 0.0), _LONGEST_WAIT_S)
