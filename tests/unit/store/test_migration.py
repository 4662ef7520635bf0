"""A store of format 1 is read as it is, and brought to this format by the first writing use."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from toolkit.market import Source
from toolkit.store import LoadOrigin, Store
from toolkit.store.schema import FORMAT_VERSION, read_format
from toolkit.tables import LOAD, TABLES
from toolkit.wire.allowance import Allowance

SOURCE = Source("replay", "example")
LOAD_1 = (
    "CREATE TABLE load (load_id BIGINT NOT NULL, started_at BIGINT NOT NULL, finished_at BIGINT, "
    "served_at BIGINT NOT NULL, base_url VARCHAR NOT NULL, schema_hash VARCHAR, "
    "toolkit_version VARCHAR NOT NULL, finding JSON)"
)
TABLES_1 = (
    *("meta", "trajectory", "coverage", "edge", "price", "spread", "funding", "event"),
    *("event_coverage", "event_edge", "snapshot"),
)
TOLD = ("plan", "quota", "quota_window_s", "quota_left")
ORIGIN = LoadOrigin("http://two", 20, None, "0.2.0", Allowance("builder", 600, 60, 599))


@pytest.fixture
def old(tmp_path: Path) -> Store:
    """A file of format 1 with one load and one price."""
    path = tmp_path / "old.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(LOAD_1)
        for table in TABLES:
            if table.name in TABLES_1:
                connection.execute(table.ddl)
        facts = {"format_version": "1", "source_kind": SOURCE.kind, "source_id": SOURCE.id}
        connection.executemany("INSERT INTO meta VALUES (?, ?)", [list(f) for f in facts.items()])
        connection.execute(
            "INSERT INTO load VALUES (1, 10, 11, 9, 'http://one', NULL, '0.1.0', NULL)"
        )
        connection.execute("INSERT INTO trajectory VALUES (1, 'price', 'A_B:X.spot')")
        connection.execute("INSERT INTO price VALUES (1, 60, 2.5, NULL, 1.0, NULL, 0, 1)")
    return Store(path)


def told(store: Store) -> list[tuple[object, ...]]:
    return store.loads().select("load_id", *TOLD).rows()


def store_format(store: Store) -> int:
    with store.reading() as connection:
        return read_format(connection, store.path)


def test_an_old_store_is_read_without_a_change_to_its_file(old: Store) -> None:
    before = old.path.read_bytes()
    assert old.source == SOURCE
    assert old.loads().schema == LOAD.schema
    assert told(old) == [(1, None, None, None, None)]
    assert old.catalogue().select("trajectory", "rows").rows() == [("A_B:X.spot", 1)]
    assert old.event_catalogue().is_empty()
    old.bind(SOURCE)
    assert old.path.read_bytes() == before
    assert store_format(old) == 1


def test_the_first_write_brings_it_to_this_format_and_keeps_every_row(old: Store) -> None:
    assert old.start_load(ORIGIN) == 2
    assert store_format(old) == FORMAT_VERSION
    assert told(old) == [(2, "builder", 600, 60, 599), (1, None, None, None, None)]
    assert old.loads()["base_url"].to_list() == ["http://two", "http://one"]
    assert old.catalogue().select("trajectory", "rows").rows() == [("A_B:X.spot", 1)]
    with old.reading() as connection:
        made = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert {name for (name,) in made} == {table.name for table in TABLES}


def test_a_migrated_store_has_the_tables_of_a_new_one(old: Store, tmp_path: Path) -> None:
    new = Store(tmp_path / "new.duckdb")
    new.bind(SOURCE)
    old.finish_load(1, [])
    columns = []
    for store in (old, new):
        with store.reading() as connection:
            columns.append(
                connection.execute(
                    "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() "
                    "ORDER BY table_name, column_index"
                ).fetchall()
            )
    assert columns[0] == columns[1]


def test_a_write_that_fails_leaves_the_old_format(old: Store) -> None:
    with pytest.raises(ZeroDivisionError), old.writing():
        raise ZeroDivisionError
    assert store_format(old) == 1
    assert told(old) == [(1, None, None, None, None)]


def test_what_was_told_last_replaces_what_was_told_first(old: Store) -> None:
    load = old.start_load(ORIGIN)
    old.keep_allowance(load, Allowance("builder", 600, 60, 7))
    old.keep_allowance(load, None)
    assert told(old)[0] == (2, "builder", 600, 60, 7)
