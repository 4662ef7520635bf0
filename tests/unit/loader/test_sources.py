"""Rows of two sources never meet, whatever is exchanged while a load is under way."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.listening import Handler, listening
from toolkit.client import Client
from toolkit.errors import StoreSourceError
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.market import Source, Stream
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Batch, LoadOrigin, Store, StoreWriter

NOW = 1_795_046_400
MONTH = Interval(NOW - 12 * 86_400, NOW)
DAY = Interval(NOW - 86_400, NOW)
STREAMS = [Stream.parse(f"{symbol}_USDT:AURORA.spot") for symbol in ("BTC", "ETH", "SOL")]


def exchanging(first: str, second: str, after: int) -> type[Handler]:
    """What is one service, and another after so many questions for rows."""
    asked: list[str] = []

    class Forwarding(Handler):
        def do_GET(self) -> None:
            asked.extend([self.path] if "/history/" in self.path else [])
            now = second if len(asked) > after else first
            answer = httpx.get(now + self.path, headers=dict(self.headers), timeout=60)
            kept = ("content-type", "date", "x-plan", "retry-after")
            headers = {name: answer.headers[name] for name in kept if name in answer.headers}
            self.reply(answer.status_code, answer.content, headers)

    return Forwarding


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
    store = Store(tmp_path / "rail.duckdb")
    with (
        listening(exchanging(*services, exchange_after)) as url,
        Client(url, "demo-pro") as client,
        pytest.raises(StoreSourceError) as refused,
    ):
        sync(client, store, STREAMS, MONTH)
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
    services: tuple[str, str], store: Store, tmp_path: Path, other: str
) -> None:
    swapped = []
    stranger = Store(tmp_path / "stranger.duckdb")
    writer = StoreWriter(stranger)
    writer.bind(Source("simulated", Simulated(8 if other == "another source" else 7).id))
    writer.start_load(LoadOrigin("http://127.0.0.1:1", 1, None, "0"))

    def exchange(_: object) -> None:
        if not swapped:
            swapped.append(shutil.move(store.path, tmp_path / "first.duckdb"))
            shutil.copy(stranger.path, store.path)

    with Client(services[0], "demo-pro") as client, pytest.raises(StoreSourceError):
        sync(client, store, STREAMS, DAY, on_progress=exchange)
    assert swapped
    assert not Store(store.path).catalogue()["rows"].sum()
    assert Store(store.path).loads().height == 1


def test_a_load_is_written_to_the_file_it_began_in_alone(store: Store) -> None:
    source = Source("replay", "example")
    writer = StoreWriter(store)
    writer.bind(source)
    load = writer.start_load(LoadOrigin("http://127.0.0.1:1", 1, None, "0"))
    store.path.unlink()
    StoreWriter(Store(store.path)).bind(source)
    for write in (lambda: writer.commit(load, Batch()), lambda: writer.finish_load(load, [])):
        with pytest.raises(StoreSourceError, match="is not the file that load 1 began in"):
            write()
