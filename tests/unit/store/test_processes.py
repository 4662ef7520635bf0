"""Other processes over the same file: waited for, named where they do not let go, survived."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from toolkit.errors import StoreError, StoreLockedError
from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory
from toolkit.store import Store, StoreWriter
from toolkit.store.file.schema import create_store

from .conftest import HOLDS_THE_FILE, ORIGIN, USES, writer_of

PRICE, SPREAD = Trajectory.parse("A_B:X.spot"), Trajectory.parse("A_B:X.spot:Y.spot")


# Interrupts a query of the main thread that runs for minutes, then uses the store again. DuckDB has
# one thread: it looks for signals between the tasks that the main thread itself works on.
INTERRUPTS_A_QUERY = """
import os, signal, sys, threading
from pathlib import Path
from toolkit.store import LoadOrigin, Store, StoreWriter
from toolkit.store.file.schema import made
store = Store(sys.argv[1], wait_s=60)
store.keep_lean()
uses = {
    "reading": store.reading,
    "writing": StoreWriter(store).writing,
    "making": lambda: made(Path(sys.argv[1] + ".new"), {}),
}
try:
    with uses[sys.argv[2]]() as connection:
        if sys.argv[2] == "making":
            connection.execute("SET threads = 1")
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        connection.execute("SELECT count(*) FROM range(100000000000) t(a) WHERE a % 7 = 3")
except KeyboardInterrupt:
    print(StoreWriter(store).start_load(LoadOrigin("http://other", 0, None, "0")), flush=True)
"""


# Commits a price and a spread with each batch and says so; then dies inside a transaction.
COMMITS_UNTIL_KILLED = """
import sys
import polars as pl
from toolkit.intervals import Interval
from toolkit.market import Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter
store, ending = Store(sys.argv[1], wait_s=60), int(sys.argv[2])
writer = StoreWriter(store)
edge = Edge(10_000_000, step_s=60)
null = pl.lit(None)
load_id = writer.start_load(LoadOrigin("http://other", 0, None, "0"))
held = store.counts(Interval(0, 10_000_000))
for number in range(max(held.values(), default=0), 100_000):
    batch = Batch()
    for key, names in (
        ("A_B:X.spot", ["price", "mark_price", "volume"]),
        ("A_B:X.spot:Y.spot", ["buy_price", "sell_price", "spread_pct"]),
    ):
        frame = pl.DataFrame({"ts": [60 * number]}).with_columns(
            *(null.cast(pl.Float64).alias(name) for name in names),
            extra=null.cast(pl.String),
        )
        stretch = Interval(60 * number, 60 * number + 60)
        batch.add(Trajectory.parse(key), frame, stretch, edge)
    if number == ending:
        with writer.writing() as connection:
            connection.execute("INSERT INTO price SELECT 1, 60 * i, 1, 1, 1, NULL, 0, 1, NULL "
                               "FROM range(1000000, 2000000) r(i)")
            connection.execute("DELETE FROM coverage")
            print("inside", flush=True)
            sys.stdin.readline()
    writer.commit(load_id, batch)
    print(number + 1, flush=True)
"""


@pytest.mark.parametrize(("theirs", "ours"), [("reading", "writing"), ("writing", "reading")])
def test_a_process_that_does_not_let_go_is_named(
    store: Store, child: Callable, theirs: str, ours: str
) -> None:
    other = child(HOLDS_THE_FILE, store.path, theirs)
    assert other.hear() == "holding"
    hasty = Store(store.path, wait_s=0.2)
    with pytest.raises(StoreLockedError) as refused, USES[ours](hasty):
        pass
    assert refused.value.pid == other.pid
    assert str(refused.value) == (
        f"{store.path.resolve()} is held open by process {other.pid}; "
        "close it there, or try again when it is done"
    )
    assert refused.value.path == str(store.path.resolve())
    assert list(store.path.parent.iterdir()) == [store.path]
    if theirs == "reading":
        assert hasty.source.id == "example"


@pytest.mark.parametrize("theirs", ["reading", "writing"])
def test_a_process_that_lets_go_is_waited_for(store: Store, child: Callable, theirs: str) -> None:
    other = child(HOLDS_THE_FILE, store.path, theirs)
    assert other.hear() == "holding"
    with ThreadPoolExecutor(2) as pool:
        written = pool.submit(writer_of(store).start_load, ORIGIN)
        read = pool.submit(store.loads)
        assert not written.done()
        other.tell()
        assert other.hear() == "let go"
        assert written.result() == 1
        assert read.result().height in {0, 1}


def test_a_duckdb_connection_of_this_process_is_told_from_another_process(store: Store) -> None:
    hasty = Store(store.path, wait_s=0)
    with duckdb.connect(str(store.path)), pytest.raises(StoreLockedError) as refused:
        _ = hasty.source
    assert refused.value.pid == os.getpid()
    assert "of this process" in str(refused.value)
    assert hasty.source.id == "example"


@pytest.mark.parametrize(
    "use",
    ["reading", *(pytest.param(use, marks=pytest.mark.slow) for use in ("writing", "making"))],
)
def test_a_ctrl_c_during_a_query_is_a_keyboard_interrupt_and_the_store_goes_on(
    store: Store, child: Callable, use: str
) -> None:
    assert child(INTERRUPTS_A_QUERY, store.path, use).hear() == "1"
    assert writer_of(store).start_load(ORIGIN) == 2


@pytest.mark.slow
def test_a_writer_killed_inside_its_transaction_leaves_the_last_commit(
    store: Store, child: Callable
) -> None:
    other = child(COMMITS_UNTIL_KILLED, store.path, 2)
    assert [other.hear() for _ in range(3)] == ["1", "2", "inside"]
    other.kill()
    assert store.counts(Interval(0, 10**9)) == {PRICE: 2, SPREAD: 2}
    for known in store.ledger().values():
        assert known.answered == [(0, 120)]
    assert writer_of(store).start_load(ORIGIN) == 2


@pytest.mark.slow
def test_a_writer_killed_at_any_moment_leaves_whole_batches_and_all_it_announced(
    store: Store, child: Callable
) -> None:
    announced = 0
    for more in (1, 4, 7):
        other = child(COMMITS_UNTIL_KILLED, store.path, -1)
        while announced + more > (number := int(other.hear())):
            pass
        other.kill()
        held = store.counts(Interval(0, 10**9))
        announced = held[PRICE]
        assert announced >= number
        assert held[SPREAD] == announced
        for trajectory, known in store.ledger().items():
            assert known.answered == [(0, 60 * announced)]
            times = store.series(trajectory)["ts"].to_list()
            assert times == list(range(0, 60 * announced, 60))
    assert store.catalogue()["revisions"].to_list() == [0, 0]


LAST_COMMIT = (
    "INSERT INTO load (load_id, started_at, served_at, base_url, toolkit_version) "
    "SELECT 7, 0, 0, 'http://last', ''"
)

WORKS: dict[str, Callable[[Store], object]] = {
    "reading": Store.loads,
    "writing": lambda store: writer_of(store).start_load(ORIGIN),
}


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")


def kill_after_a_commit(path: Path) -> None:
    """Leave the files as they are when a process is killed right after its commit."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(LAST_COMMIT)
        left = {file: file.read_bytes() for file in (path, log_of(path))}
    for file, content in left.items():
        file.write_bytes(content)


def older_state(store: Store) -> bytes:
    content = store.path.read_bytes()
    writer_of(store).start_load(ORIGIN)
    return content


def newer_state(store: Store) -> bytes:
    copy = Store(store.path.with_name("copy"))
    copy.path.write_bytes(store.path.read_bytes())
    writer_of(copy).start_load(ORIGIN)
    content = copy.path.read_bytes()
    copy.path.unlink()
    return content


def another_store(store: Store) -> bytes:
    other = Store(store.path.with_name("other"))
    StoreWriter(other).bind(Source("replay", "example"))
    content = other.path.read_bytes()
    other.path.unlink()
    return content


@pytest.mark.parametrize("use", WORKS)
@pytest.mark.parametrize("made", [older_state, newer_state, another_store])
def test_a_copy_beside_the_log_of_another_is_refused_with_what_to_do(
    store: Store, made: Callable[[Store], bytes], use: str
) -> None:
    writer = writer_of(store)
    writer.start_load(ORIGIN)
    copy = made(store)
    kill_after_a_commit(store.path)
    store.path.write_bytes(copy)
    log = log_of(store.path).read_bytes()
    with pytest.raises(StoreError, match=r"move rail\.duckdb\.wal away") as refused:
        WORKS[use](store)
    assert type(refused.value) is StoreError
    assert "\n" not in str(refused.value)
    assert refused.value.path == str(store.path)
    assert store.path.read_bytes() == copy
    assert log_of(store.path).read_bytes() == log

    log_of(store.path).rename(store.path.with_name("away"))
    assert "http://last" not in store.loads()["base_url"].to_list()
    assert writer.start_load(ORIGIN) < 7


@pytest.mark.parametrize("use", WORKS)
def test_a_log_that_belongs_to_the_file_is_still_read(store: Store, use: str) -> None:
    writer_of(store).start_load(ORIGIN)
    kill_after_a_commit(store.path)
    WORKS[use](store)
    assert store.loads()["base_url"].to_list()[-2:] == ["http://last", ORIGIN.base_url]


def test_a_store_made_anew_beside_an_old_log_is_refused_with_what_to_do(store: Store) -> None:
    kill_after_a_commit(store.path)
    store.path.unlink()
    create_store(store.path, Source("replay", "example"))  # no copy: DuckDB knows each by a number
    with pytest.raises(StoreError, match=r"move rail\.duckdb\.wal away"):
        StoreWriter(store).bind(Source("replay", "example"))
