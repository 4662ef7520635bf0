"""A service and a client that count their requests, and a clock that a test sets."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from toolkit.client import Client
from toolkit.service import Clock, Config, server_settings
from toolkit.serving import run_in_thread


@dataclass(frozen=True)
class SetClock(Clock):
    """A clock that shows the last of its moments (Unix s)."""

    moments: list[int] = field(default_factory=lambda: [0])

    def now(self) -> int:
        return self.moments[-1]


class Ticks:
    """A monotonic clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class CountingClient(Client):
    """Counts what it asks, which is not more than is allowed."""

    allowed: int
    requests = 0

    def _send(self, request):
        self.requests += 1
        assert self.requests <= self.allowed, "the walk does not end"
        return super()._send(request)


@dataclass
class Counted:
    """The service's address, and its answers by the end of the path and by status."""

    base_url: str
    paths: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)

    def taken(self) -> dict[str, int]:
        """Return the requests by the end of their path since the last call."""
        found = dict(self.paths)
        self.paths.clear()
        return found


@contextlib.contextmanager
def counted(config: Config) -> Iterator[Counted]:
    """Serve in a thread for the length of a ``with`` block, and count what comes."""
    settings = server_settings(config)
    found = Counted("")

    async def app(scope, receive, send) -> None:
        async def noted(message) -> None:
            if message["type"] == "http.response.start":
                found.paths[scope["path"].rpartition("/")[2]] += 1
                found.statuses[message["status"]] += 1
            await send(message)

        await settings.app(scope, receive, noted if scope["type"] == "http" else send)

    with run_in_thread(replace(settings, app=app), config.host, config.port) as found.base_url:
        yield found
