"""kill -9 of a service that reads exchanges, under a follow: nothing lost, doubled or too early.

The short form kills it 3 times, with RAIL_KILLS=50 (`make kill-loop`) it is killed 50 times. Slow.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.exchanges import kill_loop
from tests.exchanges.fake import Fake
from tests.exchanges.truth import Truth
from tests.forked import PYTHON
from tests.listening import free_port
from toolkit.client import Client
from toolkit.errors import UnreachableError
from toolkit.intervals import Interval
from toolkit.loader import Pace, follow
from toolkit.loader.follow.sweep import Since
from toolkit.market import EventFamily, EventLog, Trajectory
from toolkit.service.events.archive import EventArchive
from toolkit.service.market.exchanges.archive import Archive, Exchanges
from toolkit.service.market.source import series
from toolkit.store import Store
from toolkit.store.file.maintenance import verify
from toolkit.wire.socket_steps import ReconnectPolicy

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("RAIL_KILLS", "3"))
STREAMS: list[Trajectory | EventLog] = [
    Trajectory.parse("funding/SOL_USDT:BINANCE.futures:OKX.futures"),
    Trajectory.parse("BTC_USDT:BINANCE.spot"),
    Trajectory.parse("SOL_USDT:BINANCE.spot:OKX.futures"),
    EventLog(EventFamily.SPREAD),
]
SINCE = kill_loop.START - 2 * 3600


def has_come_to(store: Store, ts: float) -> bool:
    """Return whether a store has answers of each stream up to a moment, of rates up to the last."""
    ledger = store.ledger() if store.path.exists() else {}
    known = [ledger[stream].answered if stream in ledger else [] for stream in STREAMS]
    ends = [stretches[-1].end if stretches else 0 for stretches in known]
    return min(ends[1:]) > ts and ends[0] > ts - 2 * 3600


def killed_again_and_again(command: list[str], store: Store, over: threading.Event) -> None:
    """Run a service and kill it, and at last not before the follow has come up to it."""
    draw = random.Random(KILLS)
    for number in range(KILLS + 1):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            if number == KILLS or draw.random() < 0.7:  # the others die while they catch up
                process.stdout.readline()
            began = kill_loop.moment(float(command[-1]))
            while number == KILLS and not over.is_set():
                time.sleep(0.5)
                if has_come_to(store, began):
                    over.set()
            time.sleep(draw.uniform(0, 6))
            process.kill()


def followed(base_url: str, store: Store, over: threading.Event) -> None:
    """Follow, from the first moment that the service is there."""
    policy = ReconnectPolicy(first_wait_s=0.05, longest_wait_s=0.2)
    while not over.is_set():
        with suppress(UnreachableError), Client(base_url, "demo-pro") as client:
            follow(
                *(client, store, STREAMS),
                since=Since(SINCE),
                stop=over,
                pace=Pace(sweep_s=0.5),
                policy=policy,
            )


def test_a_service_of_exchanges_that_is_killed_loses_doubles_and_reveals_nothing_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, port, path = time.monotonic(), free_port(), tmp_path / "real.duckdb"
    hourly = {("SOL_USDT", f"{name}.futures"): [(0, 1)] for name in ("BINANCE", "OKX")}
    truth, store = Truth(hours=hourly), Store(tmp_path / "s.duckdb", wait_s=60)
    command = [PYTHON, "-m", kill_loop.__name__, str(path), str(port), str(began)]
    over = threading.Event()
    killing = threading.Thread(target=killed_again_and_again, args=(command, store, over))
    with Fake(truth, lambda: kill_loop.moment(began)) as fake:
        monkeypatch.setenv("RAIL_EXCHANGES_AT", fake.at)
        killing.start()
        try:
            followed(f"http://127.0.0.1:{port}", store, over)
        finally:
            over.set()
            killing.join()
        archive = kill_loop.opened(path, kill_loop.exchanges(began))
    with closing(archive):
        hold_rows(archive, truth)
        hold_store(archive, store)


def hold_rows(archive: Archive, truth: Truth) -> None:
    """Every row of every leg is there once, as it is, and no leg is far behind."""
    for key, leg in archive.legs.items():
        assert leg.lost == {"bars": [], "funding": []}
        bars = archive.bars(key, 0, 1 << 40, heard=True)
        wanted = truth.bars(key.symbol, key.leg, archive.start, leg.until["bars"])
        assert bars.ts.tolist() == [bar.ts for bar in wanted]
        assert bars.price.tolist() == [bar.close for bar in wanted]
        if leg.listed.funding:
            rates = archive.settlements(key, heard=True)
            settled = truth.settlements(key.symbol, key.leg, archive.start, leg.until["funding"])
            assert rates.ts.tolist() == [each.ts for each in settled]
            assert rates.rate.tolist() == [each.rate for each in settled]


def hold_store(archive: Archive, store: Store) -> None:
    """What the follow says is answered is held, as it is now, and nothing came twice."""
    source, ledger = Exchanges(archive), store.ledger()
    log = EventArchive(source)
    for stream in STREAMS:
        (answered,) = ledger[stream].answered
        assert answered.start == SINCE
        if isinstance(stream, Trajectory):
            wanted = series(source, stream).between(*answered).ts.tolist()
            assert store.series(stream, Interval(*answered))["ts"].to_list() == wanted
        else:
            found = log.documents(EventFamily.SPREAD, *answered)
            held = store.events(EventFamily.SPREAD, Interval(*answered))["document"]
            assert sorted(text.encode() for text in held) == sorted(body for _, body in found)
            assert found
    with store.reading() as connection:
        for table in ("price", "spread", "funding", "event"):
            revised = connection.sql(f"SELECT count(*) FROM {table} WHERE revision > 0").fetchall()
            assert revised == [(0,)], table
    assert verify(store) == []
