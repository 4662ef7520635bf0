"""Loads of another time, and a store of an earlier format: a test cannot wait for either."""

from __future__ import annotations

import time

import duckdb

from toolkit.store import Store, StoreWriter
from toolkit.store.file.schema import OLDEST_VERSION
from toolkit.tables import CHANGES, DATED

_LATELY_S = 3_600  # what a test has just committed is no older


def date_load(store: Store, load_id: int, at: int) -> None:
    """Make a load begin, and all that it brought be committed, at a second of the local clock."""
    with StoreWriter(store).writing() as connection:
        connection.execute("UPDATE load SET started_at = ? WHERE load_id = ?", [at, load_id])
        for table in DATED:
            connection.execute(
                f"UPDATE {table.name} SET committed_at = ? WHERE load_id = ?", [at, load_id]
            )
        _date_lately(connection, at)


def date_commit(store: Store, at: int) -> None:
    """Make what was committed and begun last be of a second of the local clock, an early one."""
    with StoreWriter(store).writing() as connection:
        _date_lately(connection, at)


def _date_lately(connection: duckdb.DuckDBPyConnection, at: int) -> None:
    lately = int(time.time()) - _LATELY_S
    for table in (*DATED, *CHANGES):
        connection.execute(
            f"UPDATE {table.name} SET committed_at = ? WHERE committed_at > ?", [at, lately]
        )
    for column in ("started_at", "finished_at"):
        connection.execute(f"UPDATE load SET {column} = ? WHERE {column} > ?", [at, lately])


def make_older(store: Store) -> None:
    """Bring a store back to the format that is migrated: without what a source says it lost."""
    with duckdb.connect(str(store.path)) as connection:
        for table in ("coverage", "coverage_change"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN why")
        connection.execute(
            "UPDATE meta SET value = ? WHERE name = 'format_version'", [str(OLDEST_VERSION)]
        )
