"""Making a store file, and telling one from any other file.

A file is made whole under another name and then given its own: a killed process leaves either
no store or a complete one. It is written in a storage version that DuckDB 1.5 still reads.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import duckdb

from toolkit.errors import NotAStoreError, StoreError, StoreVersionError
from toolkit.market import Source
from toolkit.tables import DELIVERY, GAP, LOAD, TABLES

__all__ = [
    "FORMAT_VERSION",
    "create_store",
    "load_columns",
    "migrate",
    "read_format",
    "read_source",
]

FORMAT_VERSION = 2
"""Counts up when a table changes; a newer one than ours is refused, an older one is read as it is
and changed by the first writing use."""

_ADDED = {2: {LOAD: ("plan", "quota", "quota_window_s", "quota_left")}}
"""The columns that each format added; all of them nullable, so that older rows stay true."""

_ADDED_TABLES = {2: (GAP, DELIVERY)}

_STORAGE_VERSION = "v1.5.0"


def create_store(path: Path, source: Source) -> None:
    """Make an empty store for one source; a file that is there is left as it is."""
    target = path.resolve()
    draft = target.with_name(f".{uuid.uuid4().hex}.new")
    try:
        if target.exists():
            return
        if not target.parent.is_dir():
            raise StoreError(f"{target.parent} is not a directory; make it first", path=str(path))
        try:
            _write_empty(draft, source)
            os.link(draft, target)
        finally:
            draft.unlink(missing_ok=True)
    except FileExistsError:
        return
    except (OSError, duckdb.Error) as error:
        why = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise StoreError(
            f"{path} cannot be made ({why}); name a place where this user may write",
            path=str(path),
        ) from None


def _write_empty(path: Path, source: Source) -> None:
    connection = duckdb.connect()
    try:
        quoted = str(path).replace("'", "''")
        connection.execute(f"ATTACH '{quoted}' AS made (STORAGE_VERSION '{_STORAGE_VERSION}')")
        connection.execute("USE made")
        for table in TABLES:
            connection.execute(table.ddl)
        facts = {
            "format_version": str(FORMAT_VERSION),
            "source_kind": source.kind,
            "source_id": source.id,
        }
        connection.executemany("INSERT INTO meta VALUES (?, ?)", [list(f) for f in facts.items()])
        connection.execute("USE memory")
        connection.execute("DETACH made")
    finally:
        connection.close()


def read_source(connection: duckdb.DuckDBPyConnection, path: Path) -> Source:
    """The source the store belongs to; raises where the file is no store, or a newer one."""
    return _facts(connection, path)[1]


def read_format(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """The format the store is in; raises as `read_source`."""
    return _facts(connection, path)[0]


def _facts(connection: duckdb.DuckDBPyConnection, path: Path) -> tuple[int, Source]:
    try:
        facts = dict(connection.execute("SELECT name, value FROM meta").fetchall())
        version = int(facts["format_version"])
        if version > FORMAT_VERSION:
            raise StoreVersionError(
                f"{path} was written by a newer toolkit (store format {version}, this one knows "
                f"{FORMAT_VERSION}); update the toolkit",
                path=str(path),
            )
        return version, Source(facts["source_kind"], facts["source_id"])
    except (duckdb.CatalogException, duckdb.BinderException, KeyError, ValueError):
        raise NotAStoreError(
            f"{path} is a DuckDB file, but not a store of this toolkit; name another file",
            path=str(path),
        ) from None


def migrate(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Bring a store of an older format to ours, inside the transaction of the connection."""
    version = read_format(connection, path)
    if version == FORMAT_VERSION:
        return
    for later in range(version + 1, FORMAT_VERSION + 1):
        for table in _ADDED_TABLES.get(later, ()):
            connection.execute(table.ddl)
        for table, names in _ADDED[later].items():
            for column in table.columns:
                if column.name in names:
                    connection.execute(
                        f"ALTER TABLE {table.name} ADD COLUMN {column.name} {column.type}"
                    )
    connection.execute(
        "UPDATE meta SET value = ? WHERE name = 'format_version'", [str(FORMAT_VERSION)]
    )


def load_columns(connection: duckdb.DuckDBPyConnection, path: Path) -> str:
    """The columns of the load table for a SELECT, null where the store's format lacks them."""
    version = read_format(connection, path)
    absent = {
        name
        for later in range(version + 1, FORMAT_VERSION + 1)
        for name in _ADDED[later].get(LOAD, ())
    }
    return ", ".join(
        f"CAST(NULL AS {c.type}) AS {c.name}" if c.name in absent else c.name for c in LOAD.columns
    )
