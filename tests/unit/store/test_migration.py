"""A store of the format before this one is brought to it at its first use, beside a copy of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.older_store import make_older
from toolkit.errors import NotAStoreError, StoreVersionError
from toolkit.intervals import Interval
from toolkit.market import Trajectory
from toolkit.store import Inserted, LoadOrigin, Store, StoreWriter
from toolkit.store.file.maintenance import verify
from toolkit.store.file.schema import FORMAT_VERSION, OLDEST_VERSION, backup_path, read_format
from toolkit.wire.allowance import Allowance

ORIGIN = LoadOrigin("http://two", 20, None, "0.2.0", Allowance("builder", 600, 60, 599))
PRICE = Trajectory.parse("A_B:X.spot")


@pytest.fixture
def new(store: Store, commit: Callable[..., Inserted]) -> dict[str, list[tuple[object, ...]]]:
    """All of a store of this format, which the fixture `old` is made of."""
    commit(PRICE, [(60, 1.0), (120, 2.0)])
    return whole(store.path)


@pytest.fixture
def old(store: Store, new: object) -> Store:  # noqa: ARG001 - it is made first
    """The same store as the format before had it."""
    make_older(store)
    return Store(store.path)


def whole(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every column and row of every table of a file."""
    with duckdb.connect(str(path), read_only=True) as connection:
        names = [
            n for (n,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        ]
        return {
            n: [*found.description, *sorted(found.fetchall(), key=str)]
            for n in names
            for found in [connection.execute(f"FROM {n}")]
        } | {"views": connection.execute("SELECT view_name, sql FROM duckdb_views()").fetchall()}


def held_format(path: Path) -> int:
    with duckdb.connect(str(path), read_only=True) as connection:
        return read_format(connection, path)


def test_the_first_look_brings_it_to_this_format_and_nothing_it_held_is_lost(
    old: Store, new: dict[str, object]
) -> None:
    assert held_format(old.path) == OLDEST_VERSION
    assert old.gaps().is_empty()
    assert held_format(old.path) == FORMAT_VERSION
    assert whole(old.path) == new
    assert verify(old) == []
    Store(old.path).catalogue()
    assert whole(old.path) == new


def test_the_store_as_it_was_is_kept_beside_it_and_the_user_reads_where(
    old: Store, caplog: pytest.LogCaptureFixture
) -> None:
    before = whole(old.path)
    taken = backup_path(old.path, OLDEST_VERSION)
    taken.write_bytes(b"of another store")
    copy = backup_path(old.path, OLDEST_VERSION)
    with caplog.at_level(logging.WARNING):
        old.loads()
    assert whole(copy) == before
    assert taken.read_bytes() == b"of another store"
    (line,) = (record.getMessage() for record in caplog.records)
    assert f"from store format {OLDEST_VERSION} to {FORMAT_VERSION}" in line
    assert str(copy) in line
    assert {path.name for path in old.path.parent.iterdir()} >= {old.path.name, copy.name}


def test_a_file_with_functions_in_place_of_duckdbs_is_left_as_it_is(old: Store) -> None:
    with duckdb.connect(str(old.path)) as connection:
        connection.execute("CREATE MACRO coalesce(x) AS 7; CREATE MACRO lower(x) AS 7")
    with pytest.raises(NotAStoreError, match="functions in place of DuckDB's"):
        old.series(PRICE)
    assert held_format(old.path) == OLDEST_VERSION
    assert not backup_path(old.path, OLDEST_VERSION).with_name("rail.format-10-2.duckdb").exists()


def test_loads_go_on_after_the_migration(old: Store) -> None:
    writer = StoreWriter(old)
    load = writer.start_load(ORIGIN, [PRICE], Interval(0, 600))
    assert old.ledger([PRICE])[PRICE].asked[-1][1] >= 600
    writer.keep_allowance(load, Allowance("builder", 600, 60, 7))
    writer.keep_allowance(load, None)
    assert old.loads().row(0, named=True)["quota_left"] == 7


@pytest.mark.parametrize("version", [1, OLDEST_VERSION - 1])
def test_a_store_of_a_format_that_no_release_wrote_is_refused_and_left_as_it_is(
    old: Store, version: int
) -> None:
    with duckdb.connect(str(old.path)) as connection:
        connection.execute(
            "UPDATE meta SET value = ? WHERE name = 'format_version'", [str(version)]
        )
    before = whole(old.path)
    for use in (old.loads, lambda: StoreWriter(old).start_load(ORIGIN)):
        with pytest.raises(StoreVersionError, match=rf"store format {version}, .* 10 to 11\)"):
            use()
    assert whole(old.path) == before
    assert not list(old.path.parent.glob("*.format-*"))
