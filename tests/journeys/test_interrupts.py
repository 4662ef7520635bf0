"""One Ctrl-C ends whatever waits: a silent service, a quota, a drip, an upgrade that hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.forked import PYTHON
from tests.listening import Handler
from toolkit.market import Source
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store, StoreWriter
from toolkit.store.file.connection import opened

from .conftest import RAIL

NOW = 1_795_046_400
PRICE, SPREAD = "BTC_USDT:AURORA.spot", "BTC_USDT:AURORA.spot:CORONA.spot"
PATIENCE_S = 60
"""How long a test waits for what has to come by itself."""


class Relay:
    """Stands before a service. A request with ``place`` in its path gets no whole answer."""

    def __init__(self, upstream: str, place: str, way: str) -> None:
        self.reached, self.over = threading.Event(), threading.Event()
        relay = self

        class Relaying(Handler):
            def do_GET(self) -> None:
                if place in self.path and way != "whole":
                    relay.reached.set()
                    getattr(relay, f"_{way}")(self)
                    return
                answer = httpx.get(upstream + self.path, headers=dict(self.headers), timeout=60)
                coded = ("content-length", "content-encoding", "transfer-encoding")
                headers = {n: value for n, value in answer.headers.items() if n not in coded}
                self.reply(answer.status_code, answer.content, headers)
                if place in self.path:
                    relay.reached.set()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Relaying)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def _silence(self, _: BaseHTTPRequestHandler) -> None:
        self.over.wait()

    def _drip(self, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        while not self.over.wait(0.3):
            handler.wfile.write(b" ")

    def _quota(self, handler: Handler) -> None:
        handler.reply(429, b"", {"Retry-After": "55"})

    def _unavailable(self, handler: Handler) -> None:
        handler.reply(503, b"", {"Retry-After": "55"})


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with running(Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)) as local:
        yield local.base_url


@pytest.fixture
def relayed(service: str) -> Iterator[Callable[[str, str], Relay]]:
    made: list[Relay] = []

    def relay(place: str, way: str) -> Relay:
        made.append(Relay(service, place, way))
        return made[-1]

    yield relay
    for each in made:
        each.close()


def interrupted(
    argv: list[object], url: str, folder: Path, waits: Callable[[], object]
) -> subprocess.CompletedProcess[str]:
    """Run a command, send one Ctrl-C once it waits, and return how it ended."""
    environment = os.environ | {"RAIL_BASE_URL": url, "RAIL_API_KEY": "demo-pro"}
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment
    )
    try:
        assert waits()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S / 2)
    finally:
        process.kill()
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


SCHEMAS, HISTORY, EVENTS = "/schemas", "/history/price", "/history/spread-events"
STREAM = "/spreadbot/ws"
WAITS = [
    (["symbols"], SCHEMAS, "silence"),
    (["doctor"], HISTORY, "drip"),
    (["sync", PRICE], "/symbols", "unavailable"),
    (["sync", PRICE], HISTORY, "silence"),
    (["sync", PRICE], HISTORY, "drip"),
    (["sync", PRICE], HISTORY, "quota"),
    (["sync", PRICE, "--workers", "1"], HISTORY, "quota"),
    (["sync", SPREAD, PRICE], HISTORY, "silence"),
    (["sync", "events/spread"], EVENTS, "silence"),
    (["follow", "events/spread"], SCHEMAS, "silence"),
    (["follow"], "/symbols", "silence"),
]


@pytest.mark.parametrize(("words", "place", "way"), WAITS)
def test_one_ctrl_c_ends_a_command_that_waits_with_one_line(
    relayed: Callable[[str, str], Relay], tmp_path: Path, words: list[str], place: str, way: str
) -> None:
    relay = relayed(place, way)
    done = interrupted([RAIL, *words], relay.url, tmp_path, lambda: relay.reached.wait(PATIENCE_S))
    assert done.returncode == 130, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("rail: stopped")
    store = tmp_path / "rail.duckdb"
    assert not store.exists() or Store(store).source.kind == "simulated"


@pytest.mark.parametrize(
    ("words", "place", "way"),
    [
        *(([PRICE], HISTORY, way) for way in ("silence", "drip", "quota")),
        (["events/spread", "--since", "1h"], STREAM, "silence"),
    ],
)
def test_one_ctrl_c_ends_a_follow_whose_archive_or_stream_gives_no_answer_with_its_summary(
    relayed: Callable[[str, str], Relay], tmp_path: Path, words: list[str], place: str, way: str
) -> None:
    relay = relayed(place, way)
    argv = [RAIL, "follow", *words]
    done = interrupted(argv, relay.url, tmp_path, lambda: relay.reached.wait(PATIENCE_S))
    assert done.returncode == 130 or (place == STREAM and done.returncode == 0), done
    assert "0 new" in done.stdout or place == STREAM
    assert "Traceback" not in done.stderr


ROWS = f"rail.client.history(tk.Trajectory.parse({PRICE!r}), {NOW - 3600}, {NOW})"


@pytest.mark.parametrize(
    ("verb", "place", "way"),
    [
        (f"rail.sync({PRICE!r})", HISTORY, "silence"),
        (f"rail.sync({PRICE!r})", HISTORY, "quota"),
        ("rail.client.profile()", SCHEMAS, "silence"),
        ("rail.client.symbols()", "/symbols", "quota"),
        (ROWS, HISTORY, "silence"),
    ],
)
def test_one_ctrl_c_ends_a_verb_of_a_workspace(
    relayed: Callable[[str, str], Relay], tmp_path: Path, verb: str, place: str, way: str
) -> None:
    relay = relayed(place, way)
    opens = f"import toolkit as tk\nrail = tk.open(base_url={relay.url!r}, api_key='demo-pro')\n"
    argv = [PYTHON, "-c", f"{opens}{verb}"]
    done = interrupted(argv, relay.url, tmp_path, lambda: relay.reached.wait(PATIENCE_S))
    assert done.returncode in (130, -signal.SIGINT), (done.stdout, done.stderr)
    ends = [line for line in done.stderr.splitlines() if line.startswith("KeyboardInterrupt")]
    assert len(ends) == 1, done.stderr  # a worker's warning of its wait may come after it


def test_one_ctrl_c_ends_a_wait_for_a_store_that_is_in_use(
    relayed: Callable[[str, str], Relay], tmp_path: Path
) -> None:
    store, relay = Store(tmp_path / "rail.duckdb"), relayed(SCHEMAS, "whole")
    StoreWriter(store).bind(Source("simulated", Simulated(7).id))
    with opened(store.path, writable=True):
        argv = [RAIL, "sync", PRICE]
        done = interrupted(argv, relay.url, tmp_path, lambda: relay.reached.wait(PATIENCE_S))
    assert done.returncode == 130, (done.stdout, done.stderr)
    assert done.stderr.strip().splitlines()[-1].startswith("rail: stopped")
