"""httpx's connections, with a deadline for a whole answer and a proxy for https alone.

httpx's own time-outs are for each part of an answer: a service that sends one byte a second never
passes them. An asyncio task can be cancelled at its deadline, and a thread cannot. So here each
read and write of a thread waits no longer than its deadline allows.
"""

from __future__ import annotations

import functools
import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=32, keepalive_expiry=30.0)


class Deadline(threading.local):
    """When the answer that this thread waits for is to be whole, by the monotonic clock (s).

    >>> deadline = Deadline()
    >>> deadline.set(300.0)
    >>> deadline.passed, 299.0 < deadline.left(None) <= 300.0, deadline.left(5.0)
    (False, True, 5.0)
    """

    at = float("inf")

    def set(self, seconds: float) -> None:
        """Begin an answer that is to be whole in so many seconds."""
        self.at = time.monotonic() + seconds

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.at

    def left(self, timeout: float | None) -> float:
        """Return the seconds that one step may take. Raises `httpcore.ReadTimeout` for none."""
        left_s = self.at - time.monotonic()
        if left_s <= 0:
            raise httpcore.ReadTimeout("the time for the whole answer is over")
        return left_s if timeout is None else min(timeout, left_s)


class _Stream(httpcore.NetworkStream):
    """A connection whose every step ends by the deadline of the thread that takes it."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left_s = self._deadline.left(timeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left_s), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore.SyncBackend):
    """Opens connections that keep the deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left_s = self._deadline.left(timeout)
        stream = super().connect_tcp(host, port, left_s, local_address, socket_options)
        return _Stream(stream, self._deadline)


@functools.cache
def tls() -> ssl.SSLContext:
    """Return the one TLS context of this process: to load the authorities takes 45 ms."""
    return httpx.create_ssl_context()


class Transport(httpx.HTTPTransport):
    """Connections of threads, each of which keeps to its deadline."""

    def __init__(self, deadline: Deadline, proxy: str | None) -> None:
        super().__init__(verify=tls(), limits=LIMITS)
        options: dict[str, Any] = {
            "ssl_context": tls(),
            "max_connections": LIMITS.max_connections,
            "max_keepalive_connections": LIMITS.max_keepalive_connections,
            "keepalive_expiry": LIMITS.keepalive_expiry,
            "network_backend": _Backend(deadline),
        }
        if proxy is None:
            self._pool = httpcore.ConnectionPool(**options)
        else:
            through = httpx.Proxy(proxy)
            self._pool = httpcore.HTTPProxy(
                str(through.url), proxy_auth=through.raw_auth, **options
            )


def async_transport(proxy: str | None) -> httpx.AsyncHTTPTransport:
    """Return connections of tasks, which are cancelled at their deadline."""
    return httpx.AsyncHTTPTransport(verify=tls(), limits=LIMITS, proxy=proxy)
