"""A receiver of alerts over a real socket, which answers as it is told and keeps what came."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer

import pytest

from tests.listening import Handler, listening


class Receiver(ThreadingHTTPServer):
    """Answers each POST with the next of ``answers``, then 204. ``came`` are headers and bodies."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.lock = threading.Condition()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def wait_for(self, count: int) -> None:
        """Return when so many have come."""
        with self.lock:
            assert self.lock.wait_for(lambda: len(self.came) >= count, 60)

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.came if "webhook-id" in headers]


class _Handler(Handler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with self.server.lock:
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.server.came.append((headers, body))
            status = self.server.answers.pop(0) if self.server.answers else 204
            self.server.lock.notify_all()
        self.reply(status)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    with listening(server):
        yield server


def event_rows(*rows: tuple[str, str, int, float]) -> list[dict[str, object]]:
    """Documents of events: id, type, time (s) and size (percent) of each."""
    names = ("event_id", "event_type", "ts", "magnitude_pct")
    alike = {"symbol": "BTC_USDT", "document": "{}"}
    return [
        {**alike, "family": row[1].partition(".")[0], "ts_ms": 1_000 * row[2]}
        | dict(zip(names, row, strict=True))
        for row in rows
    ]
