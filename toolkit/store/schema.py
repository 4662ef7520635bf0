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
from toolkit.tables import TABLES

__all__ = ["FORMAT_VERSION", "create_store", "read_source"]

FORMAT_VERSION = 1
"""Counts up when a table changes; a newer one than ours is refused."""

_STORAGE_VERSION = "v1.5.0"


def create_store(path: Path, source: Source) -> None:
    """Make an empty store for one source; an existing file is left as it is."""
    if not path.parent.is_dir():
        raise StoreError(f"{path.parent} is not a directory; make it first", path=str(path))
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.new")
    try:
        _write_empty(draft, source)
        os.link(draft, path)
    except FileExistsError:
        return
    except (OSError, duckdb.Error) as error:
        raise StoreError(f"{path} cannot be made: {error}", path=str(path)) from None
    finally:
        draft.unlink(missing_ok=True)


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
    try:
        facts = dict(connection.execute("SELECT name, value FROM meta").fetchall())
        version = int(facts["format_version"])
        source = Source(facts["source_kind"], facts["source_id"])
    except (duckdb.CatalogException, duckdb.BinderException, KeyError, ValueError):
        raise NotAStoreError(
            f"{path} is a DuckDB file, but not a store of this toolkit; name another file",
            path=str(path),
        ) from None
    if version > FORMAT_VERSION:
        raise StoreVersionError(
            f"{path} was written by a newer toolkit (store format {version}, this one knows "
            f"{FORMAT_VERSION}); update the toolkit",
            path=str(path),
        )
    return source
