"""Making a store file, and recognising one.

A file is made whole under another name and then given its own: a killed process leaves either
no store or a complete one. It is written in a storage version that DuckDB 1.5 still reads.
"""

from __future__ import annotations

import contextlib
import glob
import os
import time
import uuid
from pathlib import Path

import duckdb

from toolkit.errors import NotAStoreError, StoreError, StoreVersionError
from toolkit.market import Source
from toolkit.store.connection import OWN_FILES
from toolkit.store.refusals import full_disk
from toolkit.store.views import make_views
from toolkit.tables import TABLES

FORMAT_VERSION = 4
"""Counts up when a table changes. A newer one than ours is refused, an older one is migrated."""

_DRAFT_S = 60
"""How long a creation may take (s). An older draft is of one that was killed."""

STORAGE_VERSION = "v1.5.0"
"""The storage version of DuckDB that files are written in."""


def create_store(path: Path, source: Source) -> None:
    """Make an empty store for one source, for this user alone. A file that is there is left."""
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}.new")
    try:
        if target.exists():
            return
        if not target.parent.is_dir():
            raise StoreError(f"{target.parent} is not a directory; make it first", path=str(path))
        _remove_old_drafts(target)
        try:
            _write_empty(draft, source)
            draft.chmod(0o600)
            os.link(draft, target)
        finally:
            for end in OWN_FILES:
                draft.with_name(f"{draft.name}{end}").unlink(missing_ok=True)
    except FileExistsError:
        return
    except (OSError, duckdb.Error) as error:
        why = error.strerror if isinstance(error, OSError) else "no file can be made there"
        raise full_disk(path, error) or StoreError(
            f"{path} cannot be made ({why}); name a place where this user may write",
            path=str(path),
        ) from None


def _remove_old_drafts(target: Path) -> None:
    """Remove what a creation that was killed left. Another one may be under way: that is young."""
    for draft in target.parent.glob(f".{glob.escape(target.name)}.*.new*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - draft.stat().st_mtime > _DRAFT_S:
                draft.unlink()


def _write_empty(path: Path, source: Source) -> None:
    connection = duckdb.connect()
    try:
        quoted = str(path).replace("'", "''")
        connection.execute(f"ATTACH '{quoted}' AS made (STORAGE_VERSION '{STORAGE_VERSION}')")
        connection.execute("USE made")
        for table in TABLES:
            connection.execute(table.ddl)
        make_views(connection)
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
    """Read the source the store belongs to. Raises where the file is no store, or a newer one."""
    return _facts(connection, path)[1]


def read_format(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Read the format the store is in. Raises as `read_source`."""
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
