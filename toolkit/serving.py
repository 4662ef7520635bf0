"""ASGI applications under uvicorn, blocking or in a thread."""

from __future__ import annotations

import asyncio
import atexit
import errno
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar

import uvicorn
import uvicorn.config
from starlette.concurrency import run_in_threadpool
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolkit.errors import InputError, UnavailableError
from toolkit.interrupts import later_interrupt

_LET_IN = 5  # rounds of the loop, more than an accepted socket takes to become a connection
_LEAST_BYTES_A_SECOND = 1_000
_DRAIN_S = 3  # for answers under way, before connections are closed
_IDLE_S = 75  # longer than a client keeps an idle connection, or it would send into a closed one

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class RequestCount(Protocol):
    """Requests under way, and whether the server closes and refuses further ones."""

    closing: bool

    @property
    def under_way(self) -> int:
        """The number of requests being answered."""


class WholeRequests(H11Protocol):
    """HTTP/1.1 that closes a connection whose request is slow, where uvicorn would wait forever.

    Head and body have ``most_s`` (s) each, the body a second more per kB that arrived.
    """

    most_s = 10.0
    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own has the type of its sockets
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait_until(self.loop.time() + self.most_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._wait_until(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take data, and set the time limit of the rest of the request."""
        before = self.cycle
        super().data_received(data)
        cycle = self.cycle
        begun = cycle is not before
        in_head = cycle is None or (cycle.response_complete and not begun)
        upgraded = self.transport.get_protocol() is not self
        more_s = 0.0 if in_head else len(data) / _LEAST_BYTES_A_SECOND
        if upgraded or not (in_head or cycle.more_body):
            self._wait_until(None)
        elif begun or self._due is None:
            self._wait_until(self.loop.time() + self.most_s + more_s)
        else:
            self._wait_until(self._due.when() + more_s)

    def _wait_until(self, at: float | None) -> None:
        if self._due is not None:
            self._due.cancel()
        self._due = None if at is None else self.loop.call_at(at, self._drop)

    def _drop(self) -> None:
        if self.flow.read_paused:  # it is the application that has not read on
            self._wait_until(self.loop.time() + self.most_s)
        else:
            self.transport.close()


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """An ASGI application and how uvicorn runs it.

    A stopping server waits ``grace_s`` for open connections. With ``requests`` it first refuses new
    ones, and waits up to 3 s for those under way. ``notify`` is awaited every ``notify_every_s``.
    h11 as ``http``, unlike httptools, strips blanks from header values.
    """

    app: Callable[..., Awaitable[Any]]
    grace_s: int
    websockets: bool = False
    date_header: bool = True
    requests: RequestCount | None = None
    notify: Callable[[], Awaitable[None]] | None = None
    notify_every_s: int = 30
    http: type[WholeRequests] = WholeRequests


def bind(host: str, port: int) -> tuple[socket.socket, str]:
    """Bind a listening socket, and return it with its base URL. ``port`` 0 takes a free one.

    Raises `InputError` for a port that is taken or out of range, or a host of another machine.

    >>> listener, base_url = bind("127.0.0.1", 0)
    >>> listener.close()
    >>> base_url.startswith("http://127.0.0.1:")
    True
    """
    if not 0 <= port <= 65_535:
        raise InputError("port", port, "0 to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        # The protocol is named because asyncio switches Nagle's delay (40 ms per answer) off only
        # for a socket that is known to be TCP.
        listener = socket.socket(family, kind, protocol)
    except socket.gaierror as error:
        raise InputError("host", host, "a name or address of this machine") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError("host", host, "a name or address of this machine") from error
        reason = (error.strerror or str(error)).lower()
        advice = f"at {host}: {reason}; choose another, or 0 for any free one"
        raise InputError("port", port, "a free port", advice=advice) from error
    at, number = listener.getsockname()[:2]
    return listener, f"http://[{at}]:{number}" if ":" in at else f"http://{at}:{number}"


def run(
    settings: ServerSettings, host: str, port: int, *, ready: Callable[[str], object] | None = None
) -> None:
    """Serve until SIGINT or SIGTERM. Raises as `bind`.

    ``ready`` is called once with the base URL, when connections are accepted.

    >>> import os
    >>> async def app(scope, receive, send): ...
    >>> settings = ServerSettings(app, grace_s=1)
    >>> run(settings, "127.0.0.1", 0, ready=lambda url: os.kill(os.getpid(), signal.SIGTERM))
    """
    listener, base_url = bind(host, port)
    with listener:
        _Uvicorn(settings, lambda: ready and ready(base_url)).run(sockets=[listener])


@contextmanager
def run_in_thread(settings: ServerSettings, host: str, port: int) -> Iterator[str]:
    """Serve in a thread for the length of a ``with`` block, which gets the base URL.

    The block ends after all work `in_worker`. The server also stops with the main thread. Raises as
    `bind`, and `UnavailableError` for an application that does not start.

    >>> async def app(scope, receive, send): ...
    >>> with run_in_thread(ServerSettings(app, grace_s=1), "127.0.0.1", 0) as base_url:
    ...     base_url.startswith("http://127.0.0.1:")
    True
    """
    accepting = threading.Event()
    listener, base_url = bind(host, port)
    with listener:
        server = _Uvicorn(settings, accepting.set)
        thread = threading.Thread(
            target=_run_whole, args=(server, listener), name="rail-service", daemon=True
        )
        try:
            with later_interrupt():  # a thread that nobody joins ends the process with status 1
                thread.start()
                atexit.register(thread.join)
            while not accepting.wait(0.05):
                if not thread.is_alive():
                    raise UnavailableError("the service did not start", url=base_url)
            yield base_url
        finally:
            server.should_exit = True
            thread.join()
            atexit.unregister(thread.join)


async def in_worker(
    work: Callable[_Parameters, _Result], *args: _Parameters.args, **kwargs: _Parameters.kwargs
) -> _Result:
    """Run blocking work in a worker thread, outside the event loop.

    The thread of `run_in_thread` ends after that work, as the end of the process in polars or
    pyarrow would abort it with status 134.

    >>> asyncio.run(in_worker(sum, [1, 2]))
    3
    """
    call, calls = Future[None](), _here.calls
    calls.add(call)
    call.add_done_callback(calls.discard)

    def whole() -> _Result:
        if not call.set_running_or_notify_cancel():
            raise asyncio.CancelledError
        try:
            return work(*args, **kwargs)
        finally:
            call.set_result(None)

    try:
        return await run_in_threadpool(whole)
    finally:
        call.cancel()  # what no worker has begun, none begins


def expect_whole_requests() -> None:
    """Use `WholeRequests` in servers set up by others, such as Streamlit."""
    uvicorn.config.HTTP_PROTOCOLS["auto"] = f"{__name__}:{WholeRequests.__name__}"


class _Here(threading.local):
    """Unfinished work that this thread's event loop gave to worker threads."""

    def __init__(self) -> None:
        self.calls = set[Future[None]]()


_here = _Here()


def _run_whole(server: uvicorn.Server, listener: socket.socket) -> None:
    try:
        server.run([listener])
    finally:
        wait(_here.calls)


class _Uvicorn(uvicorn.Server):
    """A uvicorn server that reports when it accepts, and returns after a signal."""

    def __init__(self, settings: ServerSettings, accepting: Callable[[], object]) -> None:
        super().__init__(
            uvicorn.Config(
                settings.app,
                loop="asyncio",
                http=settings.http,
                ws="websockets-sansio" if settings.websockets else "none",
                log_config=None,
                log_level="warning",  # lower levels log the headers and queries of upgrades
                access_log=False,  # its lines hold query strings
                date_header=settings.date_header,
                server_header=False,
                proxy_headers=False,
                callback_notify=settings.notify,
                timeout_notify=settings.notify_every_s,
                timeout_graceful_shutdown=settings.grace_s,
                timeout_keep_alive=_IDLE_S,
            )
        )
        self._accepting = accepting
        self._requests = settings.requests

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._accepting()

    async def on_tick(self, counter: int) -> bool:
        # The interpreter waits for the application's worker threads before it runs any function
        # registered with atexit, and they end only with the server.
        return await super().on_tick(counter) or not threading.main_thread().is_alive()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        requests = self._requests
        if requests is not None:
            requests.closing = True
            clock = asyncio.get_running_loop().time
            began = clock()
            if self.server_state.connections:
                await asyncio.sleep(0.1)  # for requests on their way
            while requests.under_way and not self.force_exit and clock() < began + _DRAIN_S:
                await asyncio.sleep(0.02)
        for server in self.servers:
            server.close()
        for _ in range(_LET_IN):  # a connection that is made later would never be closed
            await asyncio.sleep(0)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM. uvicorn would raise them again."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        signals = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
