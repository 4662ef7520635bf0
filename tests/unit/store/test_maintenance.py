"""A store rewritten in the order of its keys is the same store, whoever uses it meanwhile."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from toolkit.errors import StoreError
from toolkit.market import Family
from toolkit.store import Store, StoreWriter
from toolkit.store.file.connection import opened
from toolkit.store.file.maintenance import back_up_store, check_free, compact, scattered, verify
from toolkit.store.reading.moment import GROWING, row_order
from toolkit.tables import CHANGES, SERIES

from .conftest import FIRST, JANUARY, committing, everything, faults_of, minutes, same, writer_of

COMMITS = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.unit.store.conftest import committing
from toolkit.store import Store, StoreWriter
store = Store(sys.argv[1], wait_s=60)
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    committing(store)("A_B:X.spot", [(3_000_000_000 + 60 * number, float(number))])
    print(number + 1, flush=True)
"""


def test_it_holds_the_same_in_the_order_of_its_keys(full: Store) -> None:
    before = Store(shutil.copy(full.path, full.path.with_name("before.duckdb")))
    full.path.chmod(0o640)
    done = compact(full)
    assert same(full, before)
    assert verify(full) == []
    assert done.after_bytes == full.path.stat().st_size
    held = everything(full)
    assert done.rows == sum(held[table.name].height for table in GROWING if table not in CHANGES)
    assert full.path.stat().st_mode & 0o777 == 0o640
    with full.reading() as connection:
        for table in GROWING:
            rows = connection.sql(f"FROM {table.name}").pl()
            assert rows.equals(rows.sort(row_order(table)))
    assert {path.name for path in full.path.parent.iterdir()} == {"rail.duckdb", "before.duckdb"}


def test_rows_that_came_minute_by_minute_are_scattered_until_it_is_compacted(full: Store) -> None:
    assert scattered(full) is None
    with writer_of(full).writing() as connection:
        connection.execute(
            "INSERT INTO price SELECT 1 + i % 40, i, 1, 1, 1, NULL, 0, 1, NULL "
            "FROM range(130_000) r(i)"
        )
    parts, least = scattered(full, few_parts=1, times=2) or (0, 0)
    assert (round(parts), round(least)) == (2, 1)
    assert scattered(full, times=2) is None  # a store of some parts is read fast as it is
    compact(full)
    assert scattered(full, few_parts=1, times=2) is None


def test_space_that_was_freed_goes_back(full: Store) -> None:
    with duckdb.connect(str(full.path)) as connection:
        connection.execute("CREATE TABLE waste AS SELECT random() FROM range(800000)")
        connection.execute("CHECKPOINT")
        connection.execute(
            "INSERT INTO delivery SELECT 'x' || i, i, NULL, NULL, 1 FROM range(40000) r(i)"
        )
        connection.execute("CHECKPOINT")
        connection.execute("DROP TABLE waste")
    done = compact(full)
    assert done.after_bytes < done.before_bytes / 2


@pytest.mark.slow
def test_nothing_that_is_committed_meanwhile_is_lost(full: Store) -> None:
    """Threads of this process commit and read while the file is rewritten again and again."""
    rows = full.series(FIRST).height
    with ThreadPoolExecutor(3) as pool:
        patient = Store(full.path, wait_s=60)
        commits = pool.submit(
            lambda: [
                committing(patient)(FIRST, minutes(JANUARY + 10**6 + 60 * i, 1)) for i in range(5)
            ]
        )
        reads = pool.submit(
            lambda: [patient.series(FIRST).height for _ in iter(commits.done, True)]
        )
        rewritten = 0
        while not commits.done() or not rewritten:
            compact(patient)
            rewritten += 1
        heights = reads.result()
    assert commits.result()
    assert heights == sorted(heights)
    assert full.series(FIRST).height == rows + 5
    assert verify(full) == []


@pytest.mark.slow
def test_nothing_that_another_process_commits_meanwhile_is_lost(
    full: Store, child: Callable
) -> None:
    other = child(COMMITS, full.path, Path(__file__).parents[3], 10)
    assert other.hear() == "ready"
    rows = full.series(FIRST).height
    other.tell()
    rewritten = 0
    patient = Store(full.path, wait_s=60)
    while rewritten < 2:
        compact(patient)
        rewritten += 1
    while other.hear():
        pass
    assert other.end() == 0
    assert full.series(FIRST).height == rows + 10
    assert verify(full) == []


def test_the_commits_of_a_killed_process_are_kept(full: Store) -> None:
    wal = full.path.with_name("rail.duckdb.wal")
    with duckdb.connect(str(full.path)) as connection:
        connection.execute("UPDATE meta SET value = 'x' WHERE name = 'toolkit'")
        connection.execute("INSERT INTO meta VALUES ('last', 'commit')")
        left = {path: path.read_bytes() for path in (full.path, wal)}
    for path, content in left.items():
        path.write_bytes(content)
    compact(full)
    assert not wal.exists()
    assert ("last", "commit") in everything(full)["meta"].rows()


def test_a_file_with_tables_of_a_users_own_is_left(full: Store) -> None:
    with duckdb.connect(str(full.path)) as connection:
        connection.execute("CREATE TABLE notes (text VARCHAR)")
    number = full.path.stat().st_ino
    with pytest.raises(StoreError, match=r"tables of your own \(notes\)"):
        compact(full)
    assert full.path.stat().st_ino == number


def test_a_disk_without_room_is_told_before_anything_is_written(full: Store) -> None:
    with pytest.raises(StoreError, match="MB are free"):
        check_free(full, 2**62)


def test_what_could_not_be_copied_leaves_the_file_as_it_was(full: Store) -> None:
    with duckdb.connect(str(full.path)) as connection:  # a time that no calendar has
        connection.execute(
            f"INSERT INTO {SERIES[Family.PRICE].name} SELECT * REPLACE (9e15::BIGINT AS ts) "
            "FROM price LIMIT 1"
        )
    number = full.path.stat().st_ino
    with pytest.raises(StoreError):
        compact(full)
    assert full.path.stat().st_ino == number
    assert [path.name for path in full.path.parent.iterdir()] == ["rail.duckdb"]


def test_old_drafts_go_when_somebody_next_writes(full: Store) -> None:
    folder = full.path.parent
    old, young = folder / ".rail.duckdb.0.new", folder / ".rail.duckdb.1.new"
    for draft in (old, young):
        draft.mkdir()
        (draft / "rail.duckdb").write_bytes(b"half")
    for left in (old / "rail.duckdb", old):
        os.utime(left, (0, 0))
    StoreWriter(full).bind(full.source)
    assert not old.exists()
    assert young.exists()


def test_a_file_replaced_between_opening_and_locking_is_opened_again(full: Store) -> None:
    """Another thread replaces the file all the time: who opens it has the one that is there."""
    ends = []

    def replace() -> None:
        for number in range(20):
            draft = full.path.with_name(f"draft-{number}")
            shutil.copyfile(full.path, draft)
            draft.replace(full.path)
        ends.append(True)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(replace)
        while not done.done():
            with opened(full.path, writable=False, wait_s=60) as connection:
                assert connection.execute("SELECT count(*) FROM price").fetchall()
        done.result()
    assert ends


def test_a_backup_is_an_equal_store_with_a_users_own_tables(full: Store, tmp_path: Path) -> None:
    with duckdb.connect(str(full.path)) as connection:
        connection.execute("CREATE TABLE notes AS SELECT 7 AS n")
    size = back_up_store(full, tmp_path / "copy.duckdb")
    copy = Store(tmp_path / "copy.duckdb")
    assert same(copy, full)
    assert size == copy.path.stat().st_size
    with duckdb.connect(str(copy.path), read_only=True) as connection:
        assert connection.execute("FROM notes").fetchall() == [(7,)]
    assert {path.name for path in tmp_path.iterdir()} == {"rail.duckdb", "copy.duckdb"}


@pytest.mark.slow
def test_a_backup_while_others_write_is_whole(full: Store, tmp_path: Path) -> None:
    patient = Store(full.path, wait_s=60)

    def commit(number: int) -> object:
        return committing(patient)(FIRST, minutes(JANUARY + 10**6 + 600 * number, 2))

    with ThreadPoolExecutor(2) as pool:
        commits = [pool.submit(commit, number) for number in range(6)]
        for number in range(2):
            back_up_store(patient, tmp_path / f"{number}.duckdb")
        for each in commits:
            each.result()
    for number in range(2):
        copy = Store(tmp_path / f"{number}.duckdb")
        assert verify(copy) == []
        assert copy.series(FIRST).height % 2 == 0


def test_a_file_that_is_there_or_cannot_be_made_is_one_line(full: Store, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(StoreError, match="is there already"):
        back_up_store(full, tmp_path / "there")
    with pytest.raises(StoreError, match="is not a directory"):
        back_up_store(full, tmp_path / "no" / "where")
    assert (tmp_path / "there").read_text() == "mine"


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no second disk to copy to")
def test_a_backup_on_another_disk_is_whole_as_well(full: Store, tmp_path: Path) -> None:
    target = Path("/dev/shm") / f"{tmp_path.name}-{tmp_path.parent.name}.duckdb"
    try:
        back_up_store(full, target)
        assert same(Store(target), full)
        assert not list(target.parent.glob(f".{target.name}*"))
    finally:
        target.unlink(missing_ok=True)


BREACHES = {
    "rows": {
        "INSERT INTO price FROM price LIMIT 1": "price: several rows share a key: 1 (",
        "UPDATE spread SET load_id = 99": "spread: rows of no load that is known: 1 (99)",
        "UPDATE gap SET repaired_load_id = 99": "gap: rows of no load that is known: 1 (99)",
        "UPDATE funding SET stream_id = 99": "funding: rows of no stream that is known: 1 (99)",
        "UPDATE event SET ts = ts + 1": "event: ts and ts_ms differ: 2 (",
        "UPDATE coverage SET end_ts = start_ts": "coverage: stretches of no length",
        "UPDATE stream SET key = 'no key' WHERE key = 'A_B:Y.spot'": (
            "stream: 'no key' is not a key of"
        ),
        "UPDATE stream SET kind = 'spread' WHERE key = 'A_B:X.spot'": (
            "is not a key of the kind 'spread'"
        ),
    },
    "counters": {
        "DELETE FROM price WHERE revision = 0 AND ts = 1767225600 AND stream_id = 2": (
            "price: revisions are missing: 1 (2, 1767225600"
        ),
        "UPDATE stream SET last_ts = NULL WHERE key = 'A_B:Y.spot'": (
            "stream: counters differ from what is held (key, counted, then held): 3 "
            "(A_B:X.spot, 60, 2, 59, 2; A_B:Y.spot, 20, 0, 20, 0; "
        ),
        "DELETE FROM snapshot": "; snapshot/symbols, 2, 0, 0, 0)",
        "INSERT INTO coverage SELECT * REPLACE (start_ts + 1 AS start_ts) FROM coverage "
        "WHERE end_ts - start_ts > 10": "coverage: stretches that overlap",
    },
    "a counter of events": {
        "UPDATE stream SET rows = rows + 1 WHERE kind = 'events'": (
            "stream: counters differ from what is held (key, counted, then held): 1 "
            "(events/spread, 2, 1, 1, 1)"
        ),
        "UPDATE coverage SET state = 'known'": "coverage: stretches of no length or of an unknown",
    },
    "tables": {
        "DROP TABLE gap": "gap: the table is missing or has other columns",
        "ALTER TABLE price DROP volume": "price: the table is missing or has other columns",
    },
}


@pytest.mark.parametrize("of", BREACHES)
def test_each_breach_is_named(full: Store, of: str) -> None:
    with duckdb.connect(str(full.path)) as connection:
        for breach in BREACHES[of]:
            connection.execute(breach)
    found = faults_of(full)
    for breach, fault in BREACHES[of].items():
        assert any(fault in each for each in found), (breach, found)
    assert all("\n" not in each for each in found)


@pytest.mark.slow
def test_a_block_that_was_changed_is_found(full: Store) -> None:
    with duckdb.connect(str(full.path)) as connection:
        connection.execute(
            "INSERT INTO delivery SELECT 'x' || i, i, NULL, md5(i::VARCHAR), 1 "
            "FROM range(200000) r(i)"
        )
    content = bytearray(full.path.read_bytes())
    for start in range(len(content) // 4, len(content), 2**17):
        content[start : start + 64] = bytes(each ^ 255 for each in content[start : start + 64])
    full.path.write_bytes(content)
    found = verify(full)
    assert found
    assert "cannot be read to its end" in found[-1]


def test_a_file_that_is_no_store_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        verify(Store(tmp_path / "none.duckdb"))
