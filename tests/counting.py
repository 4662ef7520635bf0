"""A service that counts the requests it gets, and whose clock a test sets."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from toolkit.service import Clock, Config
from toolkit.service.server import server_settings
from toolkit.serving import run_in_thread


@dataclass(frozen=True)
class SetClock(Clock):
    """A clock that shows the last of its moments (Unix s)."""

    moments: list[int] = field(default_factory=lambda: [0])

    def now(self) -> int:
        return self.moments[-1]


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
