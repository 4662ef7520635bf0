"""A backup is the store between two commits, with all that is in its file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from toolkit.errors import StoreError
from toolkit.store import Store
from toolkit.store.file.maintenance import back_up_store, verify

from .conftest import FIRST, JANUARY, committing, minutes, same


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
