"""A receiver that answers as it is told, and a service whose clock is set by hand."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import NamedTuple

import httpx
import pytest

from tests.listening import Handler, listening
from toolkit.service import Clock, Config, Simulated, WebhookSettings
from toolkit.service.events.archive import EventArchive

DAY = 20_786 * 86_400
ENDPOINT = "/api/v1/auth/webhooks"


class Delivered(NamedTuple):
    """A request as it came."""

    at: float
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Sink:
    """Answers with the scripted (status, headers) in turn, then with 204; remembers all."""

    script: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    requests: list[Delivered] = field(default_factory=list)
    url: str = ""
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def take(self, request: Delivered) -> tuple[int, dict[str, str]]:
        with self._turn:
            self.requests.append(request)
            return self.script.pop(0) if self.script else (204, {})

    @property
    def bodies(self) -> list[bytes]:
        return [request.body for request in self.requests]

    def wait_for(self, count: int) -> list[Delivered]:
        """The requests, once there are so many."""
        wait_until(lambda: len(self.requests) >= count)
        return self.requests

    def wait_for_silence(self, quiet_s: float) -> None:
        """Return once nothing has arrived for so long."""
        wait_until(lambda: time.monotonic() - self.requests[-1].at > quiet_s)


def wait_until(condition: Callable[[], bool], patience_s: float = 30.0) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


def serve_sink(sink: Sink) -> ThreadingHTTPServer:
    """A server for a sink, not started yet."""

    class Receiver(Handler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, told = sink.take(Delivered(time.monotonic(), self.path, headers, body))
            self.reply(status, headers=told)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    sink.url = f"http://127.0.0.1:{server.server_port}/hook?x=1"
    return server


@pytest.fixture
def sink() -> Iterator[Sink]:
    found = Sink()
    with listening(serve_sink(found)):
        yield found


@dataclass(frozen=True)
class SetClock(Clock):
    """A clock that shows the last of its moments."""

    moments: list[int] = field(default_factory=list)
    looks: Counter[int] = field(default_factory=Counter)

    def now(self) -> int:
        now = self.moments[-1]
        self.looks[now] += 1
        return now

    def looked_at(self, moment: int) -> bool:
        """Whether a task has seen this moment twice, and so acted upon it."""
        return self.looks[moment] > 2


@pytest.fixture(scope="session")
def archive() -> EventArchive:
    return EventArchive(Simulated(7))


@pytest.fixture
def clock() -> SetClock:
    return SetClock(moments=[DAY])


@pytest.fixture
def config(clock: SetClock) -> Config:
    settings = WebhookSettings(loopback=True, retries_s=(0.05, 0.05, 0.05), timeout_s=2.0)
    return Config(Simulated(7), port=0, clock=clock, webhooks=settings)


@pytest.fixture
def sign_in() -> Iterator[Callable[..., httpx.Client]]:
    """Gives a client with the session of an owner."""
    clients: list[httpx.Client] = []

    def enter(config: Config, base_url: str, owner: str = "demo-pro") -> httpx.Client:
        client = httpx.Client(base_url=base_url, timeout=30)
        clients.append(client)
        code = config.sessions.issue(owner)
        assert client.post("/api/v1/auth/session", json={"code": code}).status_code == 200
        return client

    yield enter
    for client in clients:
        client.close()
