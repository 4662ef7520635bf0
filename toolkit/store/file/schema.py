"""Making a store file, and recognising one.

A file is made whole under another name and then given its own: a killed process leaves either
no store or a complete one. It is written in a storage version that DuckDB 1.5 still reads.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb

from toolkit.errors import NotAStoreError, StoreError, StoreVersionError
from toolkit.interrupts import one_interrupt
from toolkit.market import Source
from toolkit.store.file.engine import DATABASE, DRAFT, check_place, draft_folder, quoted, real_path
from toolkit.store.file.refusals import full_disk
from toolkit.store.ledger.streams import append
from toolkit.store.reading.views import make_views
from toolkit.tables import META, TABLES

FORMAT_VERSION = 11
"""Counts up when a table changes. A newer one than ours is refused, the one before is migrated."""

OLDEST_VERSION = 10
"""The oldest format that is migrated. An older one, which no release wrote, is refused."""

_DRAFT_S = 600
"""How long a draft may lie unchanged (s). An older one is of a process that was killed."""

STORAGE_VERSION = "v1.5.0"
"""The storage version of DuckDB that files are written in."""


def create_store(path: Path, source: Source) -> None:
    """Make an empty store for one source, for this user alone. A file that is there is left."""
    facts = {
        "format_version": str(FORMAT_VERSION),
        "source_kind": source.kind,
        "source_id": source.id,
    }
    with _failures(path):
        _remove_old_drafts(real_path(path))
        if not path.exists():
            with contextlib.suppress(FileExistsError), new_file(path) as draft, made(draft, facts):
                pass


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield the path of a draft, which gets its name when the block ends well, for this user alone.

    Raises `FileExistsError` where there is a file of that name by then, which is left, and
    `StoreError` where nothing can be made there.
    """
    target = real_path(path)
    with _failures(path):
        if not target.parent.is_dir():
            raise StoreError(f"{target.parent} is not a directory; make it first", path=str(path))
        check_place(path)
        with draft_of(target) as draft:
            yield draft
            draft.chmod(0o600)
            os.link(draft, target)


@contextlib.contextmanager
def _failures(path: Path) -> Iterator[None]:
    """Raise `StoreError` for what keeps a file from being made, but `FileExistsError` as it is."""
    try:
        yield
    except FileExistsError:
        raise
    except (OSError, duckdb.Error) as error:
        why = error.strerror if isinstance(error, OSError) else "no file can be made there"
        raise full_disk(path, error) or StoreError(
            f"{path} cannot be made ({why}); name a place where this user may write", path=str(path)
        ) from None


@contextlib.contextmanager
def draft_of(target: Path) -> Iterator[Path]:
    """Yield a free path near a file, and remove what is there when the block ends.

    It lies in a folder for this user alone, since DuckDB makes files that all may read. What a
    killed process leaves there is removed when somebody next writes to the store.
    """
    _remove_old_drafts(target)
    folder = draft_folder(target, f"{uuid.uuid4().hex}.new")
    folder.mkdir(mode=0o700)
    try:
        yield folder / DRAFT
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_old_drafts(target: Path) -> None:
    """Remove the drafts of killed processes. One that is being written is young."""
    name = draft_folder(target, "").name
    for folder in target.parent.glob(f"{glob.escape(name)}*.new"):
        with contextlib.suppress(FileNotFoundError):
            written_at = max(file.stat().st_mtime for file in (folder, *folder.iterdir()))
            if time.time() - written_at > _DRAFT_S:
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def made(path: Path, facts: Mapping[str, str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Make an empty store at a path, and yield a connection that fills it.

    The file is whole and closed when the block ends.
    """
    with one_interrupt(), contextlib.closing(duckdb.connect()) as connection:
        version = f"STORAGE_VERSION '{STORAGE_VERSION}'"
        connection.execute(f"ATTACH {quoted(path)} AS {DATABASE} ({version})")
        connection.execute(f"USE {DATABASE}")
        for table in TABLES:
            connection.execute(table.ddl)
        make_views(connection)
        append(connection, META, list(facts.items()))
        yield connection
        connection.execute("USE memory")
        connection.execute(f"DETACH {DATABASE}")


def read_source(connection: duckdb.DuckDBPyConnection, path: Path) -> Source:
    """Read the source the store belongs to. Raises if it is not a store, or of another format."""
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
        if version < OLDEST_VERSION:
            raise StoreVersionError(
                f"{path} has store format {version}, which no release wrote (this toolkit opens "
                f"{OLDEST_VERSION} to {FORMAT_VERSION}); load its data anew into another file, or "
                f"open it first with a toolkit of format {OLDEST_VERSION}, which migrates it",
                path=str(path),
            )
        return version, Source(facts["source_kind"], facts["source_id"])
    except (duckdb.CatalogException, duckdb.BinderException, KeyError, ValueError):
        raise NotAStoreError(
            f"{path} is a DuckDB file, but not a store of this toolkit; name another file",
            path=str(path),
        ) from None
