"""Threads of one process over one file: nobody's rows mixed, nobody starved, nothing left open."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from toolkit.errors import NotAStoreError, StoreError, StoreLockedError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, Trajectory
from toolkit.store import Batch, Edge, Store, StoreWriter
from toolkit.store.file.connection import _FILES, opened

from ...hostile import END, START, name_functions_as_duckdbs, store_of, streams
from .conftest import ORIGIN, USES, writer_of

PRICE, SPREAD = Trajectory.parse("A_B:X.spot"), Trajectory.parse("A_B:X.spot:Y.spot")

INSERT_A_LOAD = (
    "INSERT INTO load (load_id, started_at, served_at, base_url, toolkit_version) "
    "SELECT 7, 0, 0, '', ''"
)

WRITES_A_LOAD = """
import sys
from toolkit.store import LoadOrigin, Store, StoreWriter
writer = StoreWriter(Store(sys.argv[1], wait_s=60))
print(writer.start_load(LoadOrigin("http://other", 0, None, "0")))
"""


@contextmanager
def held(store: Store, use: str, statement: str = "SELECT 1") -> Iterator[None]:
    """Another thread inside ``reading()`` or ``writing()`` for the block's length."""
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with USES[use](store) as connection:
            connection.execute(statement).fetchall()
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(60)
    try:
        yield
    finally:
        leave.set()
        thread.join()


def await_waiting_writer(store: Store) -> None:
    """Return once a thread of this process waits to write."""
    while not _FILES[store.path.resolve()]._writers_waiting:
        time.sleep(0.001)


def load_count(store: Store) -> int:
    return store.loads().height


def all_of(store: Store) -> list[pl.DataFrame]:
    """Ask a store everything."""
    key, window = str(streams()[0]), Interval(START, END)
    ledger = store.ledger([streams()[0]])[streams()[0]]
    return [
        store.catalogue(),
        store.continuity(),
        store.series(key, window),
        store.scan(Family.SPREAD, window).collect()[1],
        store.events(EventFamily.SPLASH, window),
        store.coverage(key, window),
        store.snapshots("symbols"),
        store.loads(),
        store.gaps(),
        store.rows_by_load(),
        pl.DataFrame(
            {
                "answered": [str(ledger.answered)],
                "counts": [str(sorted(store.counts(window).items(), key=str))],
            }
        ),
    ]


def test_functions_of_a_file_take_no_part_in_what_is_asked(tmp_path: Path) -> None:
    store = store_of(tmp_path / "rail.duckdb", "http://127.0.0.1:9")
    StoreWriter(store).end_gaps(0)
    before = all_of(store)
    name_functions_as_duckdbs(store.path)
    again = Store(store.path)
    with again.reading():  # once for all questions
        for frame, asked in zip(before, all_of(again), strict=True):
            assert_frame_equal(frame, asked)


@pytest.mark.parametrize("function", ["MAX(x) AS 7", "make_timestamp(x) AS TABLE SELECT 1"])
def test_a_file_with_a_function_in_place_of_duckdbs_is_not_written_to(
    store: Store, function: str
) -> None:
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("CREATE MACRO mine(x) AS 8")
    assert StoreWriter(store).start_load(ORIGIN) == 1, "a function of another name is the user's"
    with duckdb.connect(str(store.path)) as connection:
        connection.execute(f"CREATE MACRO {function}")
    refused = r"has functions in place of DuckDB's \((max|make_timestamp)\)"
    with pytest.raises(NotAStoreError, match=refused):
        StoreWriter(store).start_load(ORIGIN)
    assert store.loads().height == 1


@pytest.mark.slow
def test_threads_read_their_own_rows_and_whole_commits_while_another_writes(
    store: Store, page: Callable
) -> None:
    writer_of(store).commit(1, Batch())
    writing_ended = threading.Event()

    def write() -> int:
        try:
            for number in range(5):
                batch = Batch()
                edge, answered = Edge(10_000, step_s=60), Interval(0, 60 * number + 60)
                batch.add(PRICE, page([(60 * number, 1.0)]), answered, edge)
                batch.add(SPREAD, page([(60 * number, 1.0)], Family.SPREAD), answered, edge)
                writer_of(store).commit(1, batch)
        finally:
            writing_ended.set()
        return 5

    def read(reader: int) -> list[int]:
        seen = []
        while len(seen) < 5 or not writing_ended.is_set():
            mark = reader * 1_000_000 + len(seen)
            with store.reading() as connection:
                prices = connection.execute("SELECT count(*) FROM price").fetchall()
                own = connection.execute(f"SELECT {mark} FROM range(3)").fetchall()
                spreads = connection.execute("SELECT count(*) FROM spread").fetchall()
            assert own == [(mark,)] * 3
            assert prices == spreads
            seen.append(prices[0][0])
        return seen

    with ThreadPoolExecutor(4) as pool:
        reads = [pool.submit(read, reader) for reader in range(3)]
        assert pool.submit(write).result() == 5
        for seen in (future.result() for future in reads):
            assert seen == sorted(seen)
    assert store.counts(Interval(0, 600)) == {PRICE: 5, SPREAD: 5}


def test_a_block_reads_one_snapshot_whatever_is_committed_meanwhile(store: Store) -> None:
    with ExitStack() as other:
        other.enter_context(held(store, "writing", INSERT_A_LOAD))
        with store.reading() as connection:
            assert connection.execute("SELECT count(*) FROM load").fetchall() == [(0,)]
            other.close()
            assert connection.execute("SELECT count(*) FROM load").fetchall() == [(0,)]
        assert load_count(store) == 1


def test_reading_nests_also_while_a_writer_waits(store: Store) -> None:
    with ThreadPoolExecutor(1) as pool:
        with store.reading():
            started = pool.submit(writer_of(store).start_load, ORIGIN)
            await_waiting_writer(store)
            assert load_count(Store(store.path, wait_s=0)) == 0
            with store.reading():
                assert load_count(Store(store.path, wait_s=0)) == 0
        assert started.result() == 1


def test_reading_inside_writing_sees_the_last_commit(store: Store) -> None:
    with writer_of(store).writing() as connection:
        connection.execute(INSERT_A_LOAD)
        assert load_count(store) == 0
        assert connection.execute("SELECT load_id FROM load").fetchall() == [(7,)]
    assert load_count(store) == 1


@pytest.mark.parametrize("use", ["reading", "writing"])
def test_writing_inside_a_use_of_the_same_thread_is_refused_at_once(store: Store, use: str) -> None:
    endless = Store(store.path, wait_s=10**9)
    writer = StoreWriter(endless)
    with USES[use](endless) as connection:
        with pytest.raises(StoreLockedError, match="this very thread") as refused:
            writer.start_load(ORIGIN)
        assert refused.value.pid == os.getpid()
        assert connection.execute("SELECT count(*) FROM load").fetchall() == [(0,)]
    assert writer.start_load(ORIGIN) == 1


def test_a_link_to_the_file_is_the_same_file(store: Store, tmp_path: Path) -> None:
    link = tmp_path / "link.duckdb"
    link.symlink_to(store.path)
    with store.reading(), pytest.raises(StoreLockedError, match="this very thread"):
        StoreWriter(Store(link)).start_load(ORIGIN)


@pytest.mark.parametrize("use", ["reading", "writing"])
def test_a_writer_gives_up_on_a_thread_that_does_not_leave(store: Store, use: str) -> None:
    with held(store, use), pytest.raises(StoreLockedError, match="another thread") as refused:
        StoreWriter(Store(store.path, wait_s=0.05)).start_load(ORIGIN)
    assert refused.value.pid == os.getpid()
    assert writer_of(store).start_load(ORIGIN) == 1


def test_new_readers_let_a_waiting_writer_go_first_and_go_on_once_it_has_given_up(
    store: Store,
) -> None:
    with held(store, "reading"), ThreadPoolExecutor(1) as pool:
        hasty = pool.submit(StoreWriter(Store(store.path, wait_s=0.5)).start_load, ORIGIN)
        await_waiting_writer(store)
        with pytest.raises(StoreLockedError, match="another thread"):
            load_count(Store(store.path, wait_s=0))
        assert load_count(store) == 0
        with pytest.raises(StoreLockedError):
            hasty.result()


@pytest.mark.slow
def test_readers_that_never_pause_let_another_process_write(store: Store, child: Callable) -> None:
    written = threading.Event()

    def read_without_a_break() -> None:
        """Two threads take turns, each entering before the other leaves, as far as it is let."""
        with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other, ExitStack() as opened:
            opened.enter_context(held(store, "reading"))
            for thread in itertools.cycle((one, other)):
                following = ExitStack()
                entering = thread.submit(following.enter_context, store.reading())
                wait([entering], timeout=1)
                opened.close()
                entering.result()
                opened.callback(lambda t=thread, f=following: t.submit(f.close).result())
                if written.is_set():
                    return

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read_without_a_break)
        try:
            assert child(WRITES_A_LOAD, store.path).hear() == "1"
        finally:
            written.set()
        reading.result()


@pytest.mark.parametrize("use", ["reading", "writing"])
@pytest.mark.parametrize("kind", [KeyError, KeyboardInterrupt, GeneratorExit])
def test_an_error_of_the_caller_passes_as_it_is(
    store: Store, use: str, kind: type[BaseException]
) -> None:
    error = kind("mine")

    def fail() -> None:
        with USES[use](store) as connection:
            connection.execute("FROM range(100000)").fetchone()
            raise error

    with pytest.raises(kind) as passed:
        fail()
    assert passed.value is error
    assert writer_of(store).start_load(ORIGIN) == 1


def test_an_error_rolls_everything_back_even_where_the_caller_ended_the_transaction(
    store: Store,
) -> None:
    def fail_after(statement: str) -> None:
        with writer_of(store).writing() as connection:
            connection.execute(INSERT_A_LOAD)
            connection.execute(statement).fetchall()
            raise ZeroDivisionError

    for statement in ("SELECT 1", "ROLLBACK"):
        with pytest.raises(ZeroDivisionError):
            fail_after(statement)
        assert load_count(store) == 0


@pytest.mark.parametrize("use", ["reading", "writing"])
def test_an_error_of_duckdb_is_a_store_error_of_one_line(store: Store, use: str) -> None:
    with pytest.raises(StoreError, match="no_such_table") as raised, USES[use](store) as con:
        con.execute("SELECT *\nFROM no_such_table")
    assert "\n" not in str(raised.value)
    assert raised.value.path == str(store.path)
    assert isinstance(raised.value.__cause__, duckdb.Error)


@pytest.mark.parametrize("beside", ["reading", "writing"])
def test_a_reader_cannot_write_not_even_beside_a_writer(store: Store, beside: str) -> None:
    with (
        held(store, beside),
        pytest.raises(StoreError, match="read-only"),
        store.reading() as connection,
    ):
        connection.execute("DELETE FROM meta")
    assert store.source.id == "example"


@pytest.mark.slow
def test_no_use_error_or_relation_kept_beyond_its_block_keeps_another_process_from_writing(
    store: Store, child: Callable
) -> None:
    kept: list[object] = []
    with store.reading() as connection:
        kept += [connection.sql("FROM meta"), connection.execute("FROM range(100000)")]
    assert child(WRITES_A_LOAD, store.path).hear() == "1"
    for loads, use in enumerate(USES.values(), 1):
        assert load_count(store) == loads
        with pytest.raises(StoreError, match="no_such") as raised, use(store) as connection:
            connection.execute("SELECT no_such_column FROM meta")
        kept.append(raised.value.__traceback__)
        assert child(WRITES_A_LOAD, store.path).hear() == str(loads + 1)
    assert len(kept) == 4


def test_a_query_reads_no_place_of_the_user_in_the_settings(store: Store) -> None:
    with opened(store.path, writable=False) as connection:
        settings = connection.execute("SELECT name, value FROM duckdb_settings()").fetchall()
    beside = f"{store.path.parent}/"
    places = [name for name, value in settings if "/" in str(value).replace(beside, "").strip("/]")]
    assert set(places) <= {"TimeZone", "allowed_paths", "duckdb_api"}  # of the store alone


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT content FROM read_text('/etc/hosts')",
        "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "ATTACH '{folder}/other.duckdb' AS other",
        "INSTALL httpfs",
        "LOAD sqlite",
        "SET enable_external_access = true",
    ],
)
@pytest.mark.parametrize("writable", [False, True])
def test_a_store_reaches_no_file_address_or_extension_and_cannot_be_set_to(
    store: Store, tmp_path: Path, statement: str, writable: bool
) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StoreError), opened(store.path, writable=writable) as connection:
        connection.execute(statement.format(folder=tmp_path))
    assert sorted(tmp_path.iterdir()) == before
