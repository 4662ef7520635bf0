"""kill -9 at random moments of `rail store compact|remap|publish|backup`, import and a migration.

Nothing is lost, nothing is half there.

RAIL_KILLS sets how often each is killed; `make kill-loop` does it 50 times.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import polars as pl
import pytest

from tests.dated import make_older
from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter
from toolkit.store.file.maintenance import verify
from toolkit.store.publish import import_store, publish
from toolkit.store.writing.pages import KeptPage, packed_page
from toolkit.tables import TABLES
from toolkit.wire.exchange import Response

from .conftest import RAIL
from .kill_loop import KILLS

STREAMS, ROWS, DAYS_BEFORE = (12, 60_000, 31) if KILLS >= 25 else (3, 20_000, 12)
FEBRUARY = 1_769_904_000
START = FEBRUARY - DAYS_BEFORE * 86_400


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of so many rows per stream, loaded stream after stream, so in no order of time."""
    held = Store(tmp_path_factory.mktemp("loaded") / "rail.duckdb")
    writer = StoreWriter(held)
    writer.bind(Source("replay", "kills"))
    load_id = writer.start_load(LoadOrigin("http://h", START, None, "0"))
    for piece in range(2):
        for number in range(STREAMS):
            grow(writer, load_id, number, START + piece * 30 * ROWS, ROWS // 2)
    return held.path


@pytest.fixture
def store(loaded: Path, tmp_path: Path) -> Store:
    """A copy of the loaded store."""
    return Store(Path(shutil.copy(loaded, tmp_path)), wait_s=120)


def grow(writer: StoreWriter, load_id: int, number: int, start: int, rows: int) -> None:
    """Commit minutes of a price."""
    page = pl.DataFrame({"ts": range(start, start + 60 * rows, 60)}).with_columns(
        price=(pl.col("ts") % (997 + number)).cast(pl.Float64),
        mark_price=pl.lit(None, pl.Float64),
        volume=pl.lit(None, pl.Float64),
        extra=pl.lit(None, pl.String),
    )
    batch, window = Batch(), Interval(start, start + 60 * rows)
    edge = Edge(window.end + 10**6, step_s=60, tail_ts=window.end)
    batch.add(Trajectory.parse(f"A{number}_B:X.spot"), page, window, edge)
    writer.commit(load_id, batch)


def digests(store: Store) -> list[tuple[object, ...]]:
    """What each table holds, whatever the order of its rows."""
    with store.reading() as connection:
        return [
            connection.execute(
                f"SELECT count(*), bit_xor(hash({', '.join(table.names)})) FROM {table.name}"
            ).fetchall()[0]
            for table in TABLES
        ]


def killed_at_random(
    arguments: list[object], usual_s: float, check: Callable[[], None], seed: int
) -> None:
    """Kill a command again and again, at any moment of its usual time, and check each time."""
    moments, kills = random.Random(seed), 0
    while kills < KILLS:
        process = subprocess.Popen(
            list(map(str, arguments)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(moments.uniform(0.2, 1.05) * usual_s)
        process.kill()
        kills += process.wait() != 0
        check()


def usual_time(arguments: list[object]) -> float:
    began = time.monotonic()
    subprocess.run(list(map(str, arguments)), check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def test_a_compaction_killed_again_and_again_loses_nothing(store: Store) -> None:
    command = [RAIL, "store", "compact", "--store", store.path]
    wanted = digests(store)
    usual_s = usual_time(command)

    def check() -> None:
        assert digests(store) == wanted

    killed_at_random(command, usual_s, check, 20_261_122)
    assert verify(store) == []
    writer = StoreWriter(store)
    writer.bind(Source("replay", "kills"))
    grow(writer, 1, 0, START + 60 * ROWS, 10)
    assert store.series("A0_B:X.spot").height == ROWS + 10


def test_a_remap_killed_again_and_again_is_none_or_a_whole_one(store: Store) -> None:
    writer, streams = StoreWriter(store), range(STREAMS)
    load_id = writer.start_load(LoadOrigin("http://h", START, None, "0"))
    for number, start in product(streams, range(START, START + 60 * ROWS, 600_000)):
        key, window = Trajectory.parse(f"A{number}_B:X.spot"), Interval(start, start + 600_000)
        items = [
            {"ts": ts, "price": ts % (997 + number) + 0.0, "mark_price": None, "volume": None}
            for ts in range(*window, 60)
        ]
        answer = Response(200, {}, json.dumps({"items": items, "next_end_time": None}).encode())
        writer.commit(load_id, Batch(pages=[packed_page(KeptPage(key, window, answer))]))
    command = [RAIL, "store", "remap", "--store", store.path]
    usual_s, rows = usual_time(command), [store.series(f"A{n}_B:X.spot") for n in streams]
    wanted = digests(store)

    def check() -> None:
        assert digests(store) == wanted
        assert all(store.series(f"A{n}_B:X.spot").equals(rows[n]) for n in streams)

    killed_at_random(command, usual_s, check, 20_261_124)
    assert verify(store) == []


def test_a_publication_killed_again_and_again_is_the_last_one_or_the_next(
    store: Store, tmp_path: Path
) -> None:
    """Whenever it is killed, what can be read is one whole publication."""
    where = tmp_path / "archive"
    publish(store, where)
    writer = StoreWriter(store)
    writer.bind(Source("replay", "kills"))
    command = [RAIL, "store", "publish", where, "--keep", "1s", "--store", store.path]
    usual_s = usual_time(command)
    states = [digests(store)]
    day = iter(range(1_000_000))

    def check() -> None:
        path = tmp_path / f"read-{next(day)}.duckdb"
        assert digests(import_store(where, path)) in states
        path.unlink()
        number = next(day)
        grow(writer, 1, number % STREAMS, START + 60 * (ROWS + 2_000 * number), 1_440)
        states.append(digests(store))

    killed_at_random(command, usual_s, check, 20_261_123)
    done = publish(store, where, keep="1s")
    assert digests(import_store(where, tmp_path / "last.duckdb")) == digests(store)
    left = {path.relative_to(where).as_posix() for path in where.glob("*/*.parquet")}
    assert len(left) == done.files
    assert publish(store, where).uploaded_bytes == 0


def test_an_import_killed_again_and_again_is_whole_or_not_there(
    store: Store, tmp_path: Path
) -> None:
    where, wanted = tmp_path / "archive", digests(store)
    publish(store, where)
    folder = tmp_path / "imported"
    folder.mkdir()
    made = Store(folder / "rail.duckdb")
    command = [RAIL, "import", where, "--store", made.path]
    usual_s = usual_time(command)

    def check() -> None:
        if made.path.exists():
            assert digests(made) == wanted
            made.path.unlink()

    check()
    killed_at_random(command, usual_s, check, 20_261_124)
    for left in folder.rglob("*"):  # drafts of killed imports, as they are ten minutes later
        os.utime(left, (0, 0))
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    assert list(folder.iterdir()) == [made.path]
    check()


def test_a_backup_killed_again_and_again_is_whole_or_not_there(
    store: Store, tmp_path: Path
) -> None:
    wanted, copy = digests(store), Store(tmp_path / "copy.duckdb")
    command = [RAIL, "store", "backup", copy.path, "--store", store.path]
    usual_s = usual_time(command)

    def check() -> None:
        assert digests(store) == wanted
        if copy.path.exists():
            assert digests(copy) == wanted
            copy.path.unlink()

    check()
    killed_at_random(command, usual_s, check, 20_261_125)
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    assert {path.name for path in tmp_path.iterdir()} == {store.path.name, copy.path.name}
    check()


def test_a_migration_killed_again_and_again_begins_anew_beside_a_copy(
    store: Store, tmp_path: Path
) -> None:
    make_older(store)
    older = tmp_path / "older.duckdb"
    shutil.copyfile(store.path, older)
    command = [RAIL, "status", "--store", store.path]
    usual_s = usual_time(command)
    wanted = digests(Store(store.path))

    def begin() -> None:
        for file in tmp_path.iterdir():
            if file != older and file.is_file():
                file.unlink()
        shutil.copyfile(older, store.path)

    def check() -> None:
        assert digests(Store(store.path)) == wanted
        copies = list(tmp_path.glob("rail.format-10*.duckdb"))
        assert copies
        for copy in copies:  # each is whole: it is migrated to the same
            assert digests(Store(copy)) == wanted
        begin()

    begin()
    killed_at_random(command, usual_s, check, 20_261_126)
