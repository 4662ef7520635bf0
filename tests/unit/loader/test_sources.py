"""Rows of two sources never meet, whatever is exchanged while a load is under way."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from toolkit.client import Client
from toolkit.errors import StoreSourceError
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.market import Source, Stream
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Batch, LoadOrigin, Store, StoreWriter

NOW = 1_795_046_400
MONTH = Interval(NOW - 12 * 86_400, NOW)
STREAMS = [Stream.parse(f"{symbol}_USDT:AURORA.spot") for symbol in ("BTC", "ETH", "SOL")]


class Address:
    """One address at which one service answers after another."""

    def __init__(self, first: str, second: str, exchange_after: int) -> None:
        self.asked = 0
        address = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                address.asked += "/history/" in self.path
                now = second if address.asked > exchange_after else first
                answer = httpx.get(now + self.path, headers=dict(self.headers), timeout=60)
                self.send_response(answer.status_code)
                for name in ("content-type", "date", "x-plan", "retry-after"):
                    if name in answer.headers:
                        self.send_header(name, answer.headers[name])
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, *_: object) -> None:
                """Write nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def services() -> Iterator[tuple[str, str]]:
    configs = [
        Config(Simulated(seed), port=0, clock=Clock(fixed_at=NOW), quota=10**6) for seed in (7, 8)
    ]
    with running(configs[0]) as first, running(configs[1]) as second:
        yield first.base_url, second.base_url


@pytest.mark.slow
@pytest.mark.parametrize("exchange_after", [0, 2, 5])
def test_a_service_exchanged_in_mid_sync_leaves_no_row_of_the_other(
    services: tuple[str, str], tmp_path: Path, exchange_after: int
) -> None:
    address, store = Address(*services, exchange_after), Store(tmp_path / "rail.duckdb")
    try:
        with Client(address.url, "demo-pro") as client, pytest.raises(StoreSourceError) as refused:
            sync(client, store, STREAMS, MONTH)
    finally:
        address.server.shutdown()
        address.server.server_close()
    assert Simulated(8).id in str(refused.value)
    with Client(services[0], "demo-pro") as client:
        whole = Store(tmp_path / "whole.duckdb")
        sync(client, whole, STREAMS, MONTH)
        for stream in STREAMS:
            held, true = store.series(stream), whole.series(stream)
            assert held.join(true, on=held.columns, how="anti").is_empty()
        sync(client, store, STREAMS, MONTH)
    assert all(store.series(each).equals(whole.series(each)) for each in STREAMS)


@pytest.mark.parametrize("other", ["another source", "another load of the same source"])
def test_a_file_exchanged_in_mid_sync_takes_nothing(
    services: tuple[str, str], tmp_path: Path, other: str
) -> None:
    store, swapped = Store(tmp_path / "rail.duckdb"), []
    stranger = Store(tmp_path / "stranger.duckdb")
    writer = StoreWriter(stranger)
    writer.bind(Source("simulated", Simulated(8 if other == "another source" else 7).id))
    writer.start_load(LoadOrigin("http://127.0.0.1:1", 1, None, "0"))

    def exchange(_: object) -> None:
        if not swapped:
            swapped.append(shutil.move(store.path, tmp_path / "first.duckdb"))
            shutil.copy(stranger.path, store.path)

    with Client(services[0], "demo-pro") as client, pytest.raises(StoreSourceError):
        sync(client, store, STREAMS, MONTH, on_progress=exchange)
    assert swapped
    assert (
        Store(store.path).catalogue().filter(Store(store.path).catalogue()["rows"] > 0).is_empty()
    )
    assert Store(store.path).loads().height == 1


def test_a_load_is_written_to_the_file_it_began_in_alone(tmp_path: Path) -> None:
    store, source = Store(tmp_path / "rail.duckdb"), Source("replay", "example")
    writer = StoreWriter(store)
    writer.bind(source)
    load = writer.start_load(LoadOrigin("http://127.0.0.1:1", 1, None, "0"))
    store.path.unlink()
    StoreWriter(Store(store.path)).bind(source)
    for write in (
        lambda: writer.commit(load, Batch()),
        lambda: writer.finish_load(load, []),
    ):
        with pytest.raises(StoreSourceError, match="is not the file that load 1 began in"):
            write()
