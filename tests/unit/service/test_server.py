from __future__ import annotations

import gc
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from queue import SimpleQueue
from typing import Any, ClassVar

import httpx
import pytest
from websockets.sync.client import connect

from tests import miniature
from toolkit.errors import InputError
from toolkit.service import Clock, Config, Replay, running, serve
from toolkit.serving import ServerSettings, WholeRequests, bind, run_in_thread

SERVE = """
from toolkit.service import Config, Simulated, serve
serve(Config(Simulated(7), port=0), ready=lambda url: print(url, flush=True))
print("stopped", flush=True)
"""


def test_a_running_service_answers_at_its_address_until_the_block_ends(replay: Replay) -> None:
    with running(Config(replay, port=0)) as service:
        assert httpx.get(service.base_url).status_code == 404
    with pytest.raises(httpx.ConnectError):
        httpx.get(service.base_url)
    port = int(service.base_url.rpartition(":")[2])
    with running(Config(replay, port=port)) as again:
        assert again.base_url == service.base_url == f"http://127.0.0.1:{port}"


def test_services_run_beside_each_other_and_the_same_data_are_the_same_source(replay) -> None:
    mini = miniature.source()
    with ExitStack() as stack:
        addresses = [
            stack.enter_context(running(Config(source, port=0))).base_url
            for source in (replay, replay, mini)
        ]
        one, same, other = (
            httpx.get(f"{address}/api/v1/data/schemas", headers={"apikey": "demo-pro"})
            for address in addresses
        )
    assert one.content == same.content
    assert [each.json()["source"]["id"] for each in (one, other)] == [replay.id, mini.id]


def test_connections_that_come_while_it_stops_are_closed_and_not_waited_for(replay, caplog) -> None:
    came: list[socket.socket] = []

    def knock(port: int) -> None:
        with suppress(OSError):
            while True:
                came.append(socket.create_connection(("127.0.0.1", port), timeout=5))
                time.sleep(0.0002)

    for _ in range(5):
        with running(Config(replay, port=0)) as service:
            port = int(service.base_url.rpartition(":")[2])
            knocking = threading.Thread(target=knock, args=(port,))
            knocking.start()
            while len(came) < 20:
                time.sleep(0.001)
        knocking.join()
        while came:
            with came.pop() as left, suppress(ConnectionError):
                assert left.recv(1) == b""
    gc.collect()  # one left open is an unclosed socket: a warning, which is an error here
    assert "timeout graceful shutdown exceeded" not in caplog.text


def test_a_service_is_stopped_where_the_block_raises(replay: Replay) -> None:
    addresses: list[str] = []

    def use() -> None:
        with running(Config(replay, port=0)) as service:
            addresses.append(service.base_url)
            raise EOFError

    threads = threading.active_count()
    with pytest.raises(EOFError):
        use()
    with pytest.raises(httpx.ConnectError):
        httpx.get(addresses[0])
    assert threading.active_count() == threads


@pytest.mark.parametrize("start", [serve, lambda config: running(config).__enter__()])
def test_a_port_that_is_taken_is_one_clear_error(replay: Replay, start: object) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port: {port} is not allowed.*in use") as refusal:
            start(Config(replay, port=port))  # type: ignore[operator] # one of two starters
    assert refusal.value.parameter == "port"


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_that_is_none_is_refused(replay: Replay, port: int) -> None:
    with pytest.raises(InputError, match="allowed: 0 to 65535"), running(Config(replay, port=port)):
        pass


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host", "host.invalid"])
def test_a_host_that_is_not_this_machines_is_refused(replay: Replay, host: str) -> None:
    config = Config(replay, host=host, port=0)
    with pytest.raises(InputError, match=r"host: .* name or address of this machine"):
        serve(config)


def test_an_ipv6_address_is_written_in_brackets(replay: Replay) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 on this machine")
    with running(Config(replay, host="::1", port=0)) as service:
        assert service.base_url.startswith("http://[::1]:")
        assert httpx.get(service.base_url).status_code == 404


def test_answers_leave_without_nagles_delay() -> None:
    """Asyncio switches the delay off for a socket only if it says that it is TCP."""
    listener, _ = bind("127.0.0.1", 0)
    with listener:
        assert listener.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_a_signal_stops_the_service_and_the_caller_goes_on(number, tmp_path) -> None:
    with (tmp_path / "log").open("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", SERVE],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        with process:
            assert process.stdout is not None
            base_url = process.stdout.readline().strip()
            with httpx.Client(base_url=base_url) as kept_alive:
                assert kept_alive.get("/").status_code == 404
                process.send_signal(number)
                assert process.stdout.read() == "stopped\n"
            assert process.wait() == 0
        log.seek(0)
        assert log.read() == ""


ASKED_TO_THE_END = """
import asyncio, socket, sys, threading
import polars as pl
from toolkit.serving import ServerSettings, in_worker, run_in_thread

begun, given_up, after, whole = (threading.Event() for _ in range(4))

def works(_):
    begun.set()
    given_up.wait()
    if not after.wait(0.5):  # the block must not end before
        whole.set()
    return 1

async def app(scope, receive, send):
    assert scope["type"] == "http"
    try:
        await in_worker(pl.Series([1]).map_elements, works, pl.Int64)
    except asyncio.CancelledError:
        given_up.set()
        await send({"type": "http.response.start", "status": 503, "headers": []})
        await send({"type": "http.response.body"})

with run_in_thread(ServerSettings(app, grace_s=0), "127.0.0.1", 0) as url:
    asks = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
    asks.sendall(b"GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
    begun.wait()
after.set()
sys.exit(3 if whole.is_set() else "a worker thread works when the process ends")
"""


@pytest.mark.slow
def test_a_process_ends_with_its_own_status_though_its_service_gave_up_work_under_way() -> None:
    argv = [sys.executable, "-c", ASKED_TO_THE_END]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    given_up = "Cancel 1 running task(s), timeout graceful shutdown exceeded\n"
    assert (ended.returncode, ended.stderr) == (3, given_up)


def test_serve_gives_the_signal_handlers_back(replay: Replay) -> None:
    before = signal.getsignal(signal.SIGTERM)
    serve(
        Config(replay, port=0, clock=Clock(fixed_at=0)),
        ready=lambda _: signal.raise_signal(signal.SIGTERM),
    )
    assert signal.getsignal(signal.SIGTERM) is before


class Recorded(WholeRequests):
    """Gives a request a minute, and records until when each connection waits for one."""

    most_s = 60.0
    due: ClassVar[SimpleQueue[float | None]] = SimpleQueue()

    def _wait_until(self, at: float | None) -> None:
        super()._wait_until(at)
        self.due.put(at)


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve an application that tells how much came."""
    monkeypatch.setattr(Recorded, "due", SimpleQueue())

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            return
        length, more = 0, True
        while more:
            message = await receive()
            length, more = length + len(message["body"]), message.get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": f"{length} came".encode()})

    settings = ServerSettings(app, grace_s=1, websockets=True, http=Recorded)
    with run_in_thread(settings, "127.0.0.1", 0) as url:
        yield url.removeprefix("http://")


POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n"


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost:", POST, POST + b"x"])
def test_a_connection_whose_request_does_not_come_whole_is_closed(begun, reading, monkeypatch):
    monkeypatch.setattr(Recorded, "most_s", 0.2)
    # A slow machine may be late with all of it, and then finds the connection closed.
    with socket.create_connection(reading.split(":")) as connection, suppress(ConnectionError):
        connection.sendall(begun)
        assert connection.recv(100) == b""


def test_a_request_after_another_on_a_connection_has_to_come_whole_too(reading, monkeypatch):
    with socket.create_connection(reading.split(":")) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        seen = b""
        while b"0 came" not in seen:
            seen += connection.recv(100)
        monkeypatch.setattr(Recorded, "most_s", 0.1)
        connection.sendall(b"GET / HT")
        while came := connection.recv(100):
            seen += came
        assert seen.count(b"HTTP/1.1 200") == 1


def test_a_long_body_an_answer_and_a_socket_may_take_longer(reading: str) -> None:
    with socket.create_connection(reading.split(":")) as connection:
        connected = Recorded.due.get(timeout=60)
        assert connected is not None
        connection.sendall(POST + b"x" * 8_000)
        while (due := Recorded.due.get(timeout=60)) is not None and due < connected + 8:
            pass  # a second more for each kB, however many parts it comes in
        assert due is not None
        connection.sendall(b"x" * 1_000)
        assert Recorded.due.get(timeout=60) is None  # while it is answered, nothing is waited for
        assert b"200" in connection.recv(100)
    with connect(f"ws://{reading}"):
        while Recorded.due.get(timeout=60) is None:
            pass  # the end of the first connection
        assert Recorded.due.get(timeout=60) is None
