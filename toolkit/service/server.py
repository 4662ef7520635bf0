"""Runs the service: blocking for the command line, in a thread for tests and the demo."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from toolkit.errors import InputError, UnavailableError
from toolkit.service.accounts.owners import DEMO_OWNERS, Owner, Owners, OwnersFile
from toolkit.service.accounts.policy import Policy
from toolkit.service.accounts.sessions import Sessions
from toolkit.service.adversary.settings import KIND, Adversary
from toolkit.service.api.calls import Service
from toolkit.service.events.archive import ArchiveSettings
from toolkit.service.market.clock import WALL_CLOCK, Clock
from toolkit.service.market.source import Source
from toolkit.service.transports.access import is_loopback
from toolkit.service.transports.capacity import DEFAULT_CAPACITY, Gate
from toolkit.service.transports.rest import application
from toolkit.service.transports.webhooks.settings import WebhookSettings

__all__ = ["Config", "Running", "running", "serve"]

_DRAIN_S, _GRACE_S = 3, 2  # for answers under way; then for connections to close


@dataclass(frozen=True, slots=True)
class Config:
    """What to serve, where, at what time and to whom.

    ``port`` 0 takes a free one. ``owners_file``, a TOML file (`toolkit.service.accounts.owners`),
    takes the place of ``owners``. ``retention_s`` (s) and ``quota`` (requests per minute) take the
    place of every plan's own history depth and quota. None leaves each plan its own. ``events``
    says what counts as an event. Of requests, ``capacity`` are answered at once, and more are
    refused (503).
    ``adversary`` says what is to go wrong; ``control`` opens a route on which a test may change it,
    for callers of this machine and a host that is its own. ``webhooks`` says how deliveries are
    made, ``sessions`` issues the codes by which owners sign in to set them up.

    Examples
    --------
    >>> from toolkit.service import miniature
    >>> config = Config(miniature.source(), port=0)
    >>> config.host, config.retention_s, [owner.name for owner in config.owners]
    ('127.0.0.1', None, ['demo-free', 'demo-builder', 'demo-pro'])
    """

    source: Source = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 8700
    clock: Clock = WALL_CLOCK
    retention_s: int | None = None
    quota: int | None = None
    owners: tuple[Owner, ...] = DEMO_OWNERS
    owners_file: Path | None = None
    events: ArchiveSettings = field(default_factory=ArchiveSettings)
    capacity: int = DEFAULT_CAPACITY
    adversary: Adversary = KIND
    control: bool = False
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    sessions: Sessions = field(default_factory=Sessions, repr=False)


@dataclass(frozen=True, slots=True)
class Running:
    """A service that accepts connections at ``base_url``.

    Examples
    --------
    >>> Running("http://127.0.0.1:8700").base_url
    'http://127.0.0.1:8700'
    """

    base_url: str


def serve(config: Config, *, ready: Callable[[str], object] | None = None) -> None:
    """Serve until SIGINT or SIGTERM; answers under way are finished (5 s at most).

    Meanwhile whoever still asks is refused (503, ``Retry-After``).

    ``ready`` is called once with the base URL, when the service accepts connections. A port that
    is taken and a host that is not this machine's are an `InputError`.

    Examples
    --------
    >>> import os, signal
    >>> from toolkit.service import miniature
    >>> config = Config(miniature.source(), port=0)
    >>> serve(config, ready=lambda url: os.kill(os.getpid(), signal.SIGTERM))
    """
    with _bound(config) as listener:
        base_url = _base_url(listener)
        _Server(config, lambda: ready and ready(base_url)).run(sockets=[listener])


@contextmanager
def running(config: Config) -> Iterator[Running]:
    """Serve in a thread for the length of a ``with`` block.

    Errors as `serve`.

    Examples
    --------
    >>> import urllib.error, urllib.request
    >>> from toolkit.service import miniature
    >>> with running(Config(miniature.source(), port=0)) as service:
    ...     try:
    ...         urllib.request.urlopen(service.base_url)
    ...     except urllib.error.HTTPError as refusal:
    ...         with refusal:
    ...             refusal.code, refusal.headers["content-type"]
    (404, 'application/problem+json')
    """
    accepting = threading.Event()
    with _bound(config) as listener:
        base_url = _base_url(listener)
        server = _Server(config, accepting.set)
        thread = threading.Thread(target=server.run, args=([listener],), name="rail-service")
        thread.start()
        try:
            while not accepting.wait(0.05):
                if not thread.is_alive():
                    raise UnavailableError("the service did not start", url=base_url)
            yield Running(base_url)
        finally:
            server.should_exit = True
            thread.join()


class _Server(uvicorn.Server):
    """Uvicorn that says when it accepts, and that returns after a signal."""

    def __init__(self, config: Config, accepting: Callable[[], object]) -> None:
        policy = _policy(config)
        service = Service(
            config.source,
            config.clock,
            policy,
            config.events,
            config.adversary,
            config.webhooks,
            config.sessions,
        )
        self._gate = Gate(config.capacity)
        super().__init__(
            uvicorn.Config(
                application(service, gate=self._gate, control=config.control),
                loop="asyncio",
                http="h11",  # strips blanks from header values, which httptools does not
                ws="websockets-sansio",
                log_config=None,
                log_level="warning",  # below it stand the headers and queries of upgrades
                access_log=False,  # its lines hold query strings
                date_header=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )
        self._accepting = accepting

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._accepting()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._gate.closing = True
        clock = asyncio.get_running_loop().time
        began = clock()
        if self.server_state.connections:
            await asyncio.sleep(0.1)  # for requests on their way
        while self._gate.under_way and not self.force_exit and clock() < began + _DRAIN_S:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, without raising them again as uvicorn does."""
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


def _policy(config: Config) -> Policy:
    file = config.owners_file
    owners = Owners(config.owners) if file is None else OwnersFile(file)
    return Policy(owners, retention_s=config.retention_s, quota=config.quota)


def _bound(config: Config) -> socket.socket:
    """A listening socket at the address; `InputError` where there can be none."""
    if config.control and not is_loopback(config.host):
        raise InputError("host", config.host, "this machine's own, beside control")
    if not 0 <= config.port <= 65_535:
        raise InputError("port", config.port, "0 to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM
        )[0]
        # With its protocol, because asyncio switches Nagle's delay (40 ms an answer) off only for
        # a socket that says it is TCP.
        listener = socket.socket(family, kind, protocol)
    except socket.gaierror as error:
        raise InputError("host", config.host, "a name or address of this machine") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError("host", config.host, "a name or address of this machine") from error
        reason = (error.strerror or str(error)).lower()
        advice = f"at {config.host}: {reason}; choose another, or 0 for any free one"
        raise InputError("port", config.port, "a free port", advice=advice) from error
    return listener


def _base_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
