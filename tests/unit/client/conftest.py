"""A service that answers as it is told, over real sockets, and the client that asks it."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from tests import miniature
from tests.listening import Handler, listening
from toolkit.client import Client
from toolkit.service import Clock, Config, running
from toolkit.wire.exchange import RetryPolicy


@dataclass(frozen=True)
class Reply:
    """One answer. ``sent`` bytes of the body go out where it is not all of them; then the
    connection is reset, or (``stalls``) nothing more happens until the test is over."""

    status: int
    body: bytes
    headers: dict[str, str]
    sent: int | None
    stalls: bool


@dataclass
class Asked:
    """One request as it arrived."""

    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]


@dataclass
class Scripted:
    """The service: what it will answer (the last answer again and again), what it was asked."""

    base_url: str
    replies: deque[Reply] = field(default_factory=deque)
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    open_connections: set[int] = field(default_factory=set)
    over: threading.Event = field(default_factory=threading.Event)
    closed: threading.Condition = field(default_factory=threading.Condition)

    def answer(
        self,
        status: int = 200,
        body: bytes | dict[str, object] = b"{}",
        *,
        headers: dict[str, str] | None = None,
        times: int = 1,
        sent: int | None = None,
        stalls: bool = False,
    ) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        reply = Reply(status, content, headers or {}, sent, stalls)
        self.replies.extend([reply] * times)

    def wait_until_closed(self) -> None:
        """Until no connection is open; 30 s at most."""
        with self.closed:
            self.closed.wait_for(lambda: not self.open_connections, timeout=30)

    @property
    def paths(self) -> list[str]:
        return [asked.path.rpartition("/")[2] for asked in self.asked]


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = Scripted(f"http://127.0.0.1:{self.server_address[1]}")

    def get_request(self) -> tuple[socket.socket, object]:
        self.script.connections += 1
        return super().get_request()


class _Handler(Handler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        script = self.server.script
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        script.asked.append(Asked(parts.path, parse_qs(parts.query), headers))
        reply = script.replies.popleft() if len(script.replies) > 1 else script.replies[0]
        if reply.status == 0:
            self._reset()
            return
        length = {"Content-Length": str(len(reply.body))}
        self.reply(reply.status, reply.body[: reply.sent], length | reply.headers)
        if reply.stalls:
            script.over.wait(30)
            self.close_connection = True
        elif reply.sent is not None:
            self._reset()

    def _reset(self) -> None:
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()
        self.close_connection = True

    def setup(self) -> None:
        super().setup()
        self.server.script.open_connections.add(id(self))

    def finish(self) -> None:
        if self.connection.fileno() != -1:
            super().finish()
        script = self.server.script
        with script.closed:
            script.open_connections.discard(id(self))
            script.closed.notify_all()


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    """A service at a free port that answers as it is told."""
    server = _Server()
    with listening(server):
        yield server.script
        server.script.over.set()


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """The local service on the miniature, its clock at the market's end."""
    settings = {"clock": Clock(fixed_at=miniature.END), "quota": 10**6, "retention_s": 30 * 86_400}
    with running(Config(miniature.source(), port=0, **settings)) as service:
        yield service.base_url


@dataclass
class Asking:
    """A client of the scripted service, and the seconds that it would have waited."""

    client: Client
    waits: list[float]


@pytest.fixture
def ask(scripted: Scripted) -> Iterator[Callable[..., Asking]]:
    """Makes clients of the scripted service; options are those of `Client`."""
    made: list[Client] = []

    def make(**options: object) -> Asking:
        waits: list[float] = []
        settings = {
            "retries": RetryPolicy(fraction=lambda: 1.0),
            "sleep": waits.append,
            "api_key": "key",
            **options,
        }
        client = Client(scripted.base_url, **settings)
        made.append(client)
        return Asking(client, waits)

    yield make
    for client in made:
        client.close()
