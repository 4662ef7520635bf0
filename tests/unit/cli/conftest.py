"""A service to ask, a store that was loaded from it, and what a refusal of `rail` is."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.once import store_once
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.market import (
    EventFamily,
    EventLog,
    Family,
    SnapshotKind,
    SnapshotLog,
    Source,
    Trajectory,
)
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Batch, Edge, LoadOrigin, Snapshot, Store, StoreWriter
from toolkit.workspace import Workspace

NOW = 1_793_750_400
"""2026-11-04 00:00 UTC: where the service's clock stands."""
WINDOW = Interval(NOW - 43_200, NOW)
SETTLED = Interval(NOW - 3 * 86_400, NOW)
LOADED = (
    Trajectory.parse("BTC_USDT:AURORA.spot"),
    Trajectory.parse("BTC_USDT:AURORA.spot:CORONA.futures"),
    Trajectory.parse("BTC_USDT:AURORA.futures:CORONA.futures", Family.FUNDING),
)
STEADY, BRIEF = (f"snapshot-spread/BTC_USDT:A.spot:{leg}.spot" for leg in "BC")
RATE = "snapshot-funding/BTC_USDT:A.futures"
POLLED = [WINDOW.start + 60 * minute for minute in (0, 1, 2, 3, 5, 6)]  # one was not answered


Rail = Callable[..., subprocess.CompletedProcess[str]]


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line that a refusal is."""
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert "Traceback" not in done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("rail: ")
    return lines[0]


def printed(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def as_json(done: subprocess.CompletedProcess[str]) -> list[dict]:
    return [json.loads(line) for line in printed(done).splitlines()]


def as_rows(done: subprocess.CompletedProcess[str]) -> list[dict]:
    rows = as_json(done)
    return [{name: value for name, value in row.items() if name != "source"} for row in rows]


@pytest.fixture(scope="session")
def service() -> Iterator[str]:
    """The address of a SIMULATED market whose clock stands at NOW."""
    with running(Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)) as local:
        yield local.base_url


@pytest.fixture(scope="session")
def loaded(service: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a day of a price, a spread and the event logs, and three days of funding."""

    def load(path: Path) -> None:
        with Workspace(Client(service, "demo-pro"), Store(path)) as workspace:
            workspace.sync(LOADED[:2], *WINDOW)
            workspace.sync(LOADED[2:], *SETTLED)
            logs = [EventLog(family) for family in EventFamily]
            workspace.sync([*logs, SnapshotLog(SnapshotKind.SPREAD)], *WINDOW)

    return store_once(tmp_path_factory, "loaded", load)


def to_read(path: Path, folder: Path) -> Iterator[Store]:
    """Show a store of many tests as ``rail.duckdb`` in a folder: one engine serves all of them."""
    (link := folder / "rail.duckdb").symlink_to(path)
    before = path.stat()
    yield Store(link)
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


@pytest.fixture
def held(loaded: Path, workdir: Path) -> Iterator[Store]:
    """The loaded store as ``rail.duckdb`` in the working directory, to read."""
    yield from to_read(loaded, workdir)


@pytest.fixture
def held_copy(loaded: Path, workdir: Path) -> Store:
    """The loaded store as ``rail.duckdb`` in the working directory, to write to."""
    return Store(Path(shutil.copy(loaded, workdir / "rail.duckdb")))


@pytest.fixture
def kept(polled: Path, workdir: Path) -> Iterator[Store]:
    """The store that polled as ``rail.duckdb`` in the working directory, to read."""
    yield from to_read(polled, workdir)


@pytest.fixture(scope="session")
def polled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that polled spreads and rates. One pair is always shown, one in the first half."""
    path, batch, edge = tmp_path_factory.mktemp("polled") / "rail.duckdb", Batch(), Edge(POLLED[-1])
    for at in POLLED:
        pairs = ["B", "C"] if at < POLLED[3] else ["B"]
        named = {"symbol": "BTC_USDT", "buy_exchange": "A", "buy_market": "spot"}
        spreads = [
            named | {"sell_exchange": leg, "sell_market": "spot", "buy_price": 100.0}
            | {"sell_price": 100 + at % 7, "spread_pct": float(at % 7), "opened_at": None}
            for leg in pairs
        ]  # fmt: skip
        rates = [
            {"symbol": "BTC_USDT", "exchange": "A", "market": "futures", "rate": at % 7 / 1e4}
            | {"interval_hours": 8, "next_funding_time": None}
        ]
        for kind, items in (("spread", spreads), ("funding", rates)):
            document = json.dumps({"items": items}).encode()
            batch.add_snapshot(Snapshot(SnapshotLog.named(kind), at, document, 60), edge)
    writer = StoreWriter(Store(path))
    writer.bind(Source("simulated", "seed-7"))
    writer.commit(writer.start_load(LoadOrigin("http://x", POLLED[-1], None, "0")), batch)
    return path
