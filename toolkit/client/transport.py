"""Connections of threads and tasks, with a deadline for a whole answer.

httpx's time-outs are per part of an answer: one byte per second never exceeds them. A thread cannot
be cancelled at its deadline as a task can, so each of its reads and writes is bounded by it.
"""

from __future__ import annotations

import functools
import os
import ssl
import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import urlencode

import httpcore
import httpx

from toolkit.client.contact import Contact
from toolkit.errors import InputError, RailError, UnreachableError
from toolkit.wire.exchange import Request
from toolkit.wire.rows.body import ACCEPTED_ENCODINGS
from toolkit.wire.secrets import SecretBytes

FAILURES = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)
"""What `Connections` raise where no whole answer comes."""

LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=32, keepalive_expiry=30.0)


def options_of(contact: Contact) -> dict[str, Any]:
    """Return the address, headers and time-outs of a client's connections."""
    try:
        url = httpx.URL(contact.base_url)
    except httpx.InvalidURL:
        raise InputError("base_url", contact.base_url, "the address of a host") from None
    asked = {
        "Accept": "application/json",
        "Accept-Encoding": ACCEPTED_ENCODINGS,
        "User-Agent": f"python-httpx/{httpx.__version__}",
    }
    return {
        "base_url": url,
        "headers": contact.key_header | asked,
        "timeout": httpx.Timeout(contact.limits.silence_s, connect=contact.limits.connect_s),
    }


def check_open(client: Connections | httpx.AsyncClient) -> None:
    """Raise `RailError` if the client was closed."""
    if client.is_closed:
        raise RailError("this client was closed; make another")


def named(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by lower-case name, the values of one name joined.

    >>> named([(b"Vary", b"a"), (b"vary", b"b"), (b"Age", b"3")])
    {'vary': 'a, b', 'age': '3'}
    """
    found: dict[str, str] = {}
    for raw, value in headers:
        name, text = raw.decode("latin-1").lower(), value.decode(errors="replace")
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


class Deadline(threading.local):
    """The time by which this thread's answer must be whole (monotonic clock, s).

    >>> deadline = Deadline()
    >>> deadline.set(300.0)
    >>> deadline.passed, 299.0 < deadline.left(None) <= 300.0, deadline.left(5.0)
    (False, True, 5.0)
    """

    at = float("inf")

    def set(self, seconds: float) -> None:
        """Start an answer that is to be whole in so many seconds."""
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


class _DeadlineStream(httpcore.NetworkStream):
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
        return _DeadlineStream(
            self._stream.start_tls(ssl_context, server_hostname, left_s), self._deadline
        )

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _DeadlineBackend(httpcore.SyncBackend):
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
        return _DeadlineStream(stream, self._deadline)


@functools.cache
def tls() -> ssl.SSLContext:
    """Return the process's TLS context, which takes 45 ms to load.

    Raises `InputError` if SSL_CERT_FILE or SSLKEYLOGFILE names no usable file.
    """
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        why = error.strerror or str(error)
    authorities = os.environ.get("SSL_CERT_FILE")
    if authorities:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(authorities)
        except OSError:
            raise InputError(
                "SSL_CERT_FILE", authorities, "a file of certificates", advice=f"{why}; or unset it"
            ) from None
    keys = os.environ.get("SSLKEYLOGFILE")
    raise InputError(
        "SSLKEYLOGFILE", keys, "a file that can be written", advice=f"{why}; or unset it"
    )


class Connections:
    """Connections of threads, each of which keeps to its deadline.

    They are httpcore's: httpx would double the cost of a request. Unless closed, they close when
    garbage collected.
    """

    def __init__(self, contact: Contact, deadline: Deadline) -> None:
        asked = options_of(contact)
        self.is_closed = False
        self._url: httpx.URL = asked["base_url"]
        headers = [(n.encode(), SecretBytes(v.encode())) for n, v in asked.pop("headers").items()]
        self._headers = [(b"Host", self._url.netloc), *headers]
        self._timeout = {"timeout": asked["timeout"].as_dict()}
        self._target = functools.lru_cache(256)(
            lambda path: httpx.URL(contact.base_url + path).raw_path
        )
        options: dict[str, Any] = {
            "ssl_context": tls() if self._url.scheme == "https" else None,
            "max_connections": LIMITS.max_connections,
            "max_keepalive_connections": LIMITS.max_keepalive_connections,
            "keepalive_expiry": LIMITS.keepalive_expiry,
            "network_backend": _DeadlineBackend(deadline),
        }
        if contact.proxy is None:
            self._pool = httpcore.ConnectionPool(**options)
        else:
            through = httpx.Proxy(contact.proxy)
            self._pool = httpcore.HTTPProxy(
                str(through.url), proxy_auth=through.raw_auth, **options
            )
        weakref.finalize(self, self._pool.close).atexit = False

    def get(self, request: Request) -> AbstractContextManager[httpcore.Response]:
        """Send a GET for a block that reads the answer. Raises `FAILURES`."""
        target = self._target(request.path)
        if request.query:
            target += (b"&" if b"?" in target else b"?") + urlencode(request.query).encode()
        at = self._url
        return self._pool.stream(
            "GET",
            httpcore.URL(scheme=at.raw_scheme, host=at.raw_host, port=at.port, target=target),
            headers=[*self._headers, *((n.encode(), v.encode()) for n, v in request.headers)],
            extensions=self._timeout,
        )

    def close(self) -> None:
        """Close them."""
        self.is_closed = True
        self._pool.close()


def post(url: str, headers: Mapping[str, str], body: bytes, *, within_s: float) -> int:
    """Send a body with POST, and return the status of the answer, whole ``within_s``.

    It uses no redirect or proxy. Raises `UnreachableError`, without the address, which may be a
    secret.
    """
    deadline = Deadline()
    deadline.set(within_s)
    context = tls() if url.startswith("https:") else None
    asked = [("User-Agent", "machine-rail-toolkit"), *headers.items()]
    steps = dict.fromkeys(("connect", "read", "write", "pool"), within_s)
    try:
        with (
            httpcore.ConnectionPool(
                ssl_context=context, network_backend=_DeadlineBackend(deadline)
            ) as to,
            to.stream(
                "POST", url, headers=asked, content=body, extensions={"timeout": steps}
            ) as answer,
        ):
            return answer.status
    except (*FAILURES, OSError) as error:
        raise UnreachableError(f"no answer: {type(error).__name__}") from None
