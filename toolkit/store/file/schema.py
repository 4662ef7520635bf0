"""Making a store file, recognising one, and migrating one of the previous format.

A file is made under another name and then given its own, so a killed process leaves no store or a
complete one. Format 11 added what the service's own source lost.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import itertools
import logging
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
from toolkit.store.file.connection import opened
from toolkit.store.file.engine import (
    DATABASE,
    DRAFT,
    check_place,
    copy_draft,
    draft_folder,
    first_line,
    full_disk,
    quoted,
    real_path,
    refuse_functions,
)
from toolkit.store.ledger.streams import append
from toolkit.store.reading.views import make_views
from toolkit.tables import COVERAGE, COVERAGE_CHANGE, META, TABLES

FORMAT_VERSION = 11
"""Counts up when a table changes. A newer one than ours is refused, the one before is migrated."""

OLDEST_VERSION = 10
"""The oldest format that is migrated. An older one, which no release wrote, is refused."""

_DRAFT_S = 600
"""How long a draft may lie unchanged (s). An older one is of a process that was killed."""

STORAGE_VERSION = "v1.5.0"
"""The storage version of DuckDB that files are written in."""


def create_store(path: Path, source: Source) -> bool:
    """Make an empty store for one source, for this user alone. Leave a file that exists.

    Returns whether it was made.
    """
    facts = {
        "format_version": str(FORMAT_VERSION),
        "source_kind": source.kind,
        "source_id": source.id,
    }
    with _failures(path):
        _remove_old_drafts(real_path(path))
        if not path.exists():
            with contextlib.suppress(FileExistsError):
                with new_file(path) as draft, made(draft, facts):
                    pass
                return True
    return False


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield the path of a draft, which gets its name when the block ends well, for this user alone.

    Raises `FileExistsError` where a file of that name exists by then, which is left, and
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
    """Raise `StoreError` for what keeps a file from being made, but `FileExistsError` unchanged."""
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

    Its folder is for this user alone, since DuckDB makes files that all may read.
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
    """Read the source the store belongs to. Raises for another file, or another format."""
    return _facts(connection, path)[1]


def read_format(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Read the format of the store. Raises as `read_source`."""
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


_COPY = "copied"
_log = logging.getLogger(__name__)


def backup_path(path: Path, version: int) -> Path:
    """Return a free name for the copy of a store of an older format."""
    numbers = itertools.chain([""], (f"-{n}" for n in itertools.count(2)))
    names = (f"{path.stem}.format-{version}{number}{path.suffix}" for number in numbers)
    return next(p for p in map(path.with_name, names) if not (p.exists() or p.is_symlink()))


@contextlib.contextmanager
def opened_for_reading(path: Path, wait_s: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a cursor on one snapshot of a store. One of an older format is migrated first.

    ``wait_s`` is that of `opened`.
    """
    while True:
        with opened(path, writable=False, wait_s=wait_s) as connection:
            connection.execute("BEGIN READ ONLY")
            if read_format(connection, path) == FORMAT_VERSION:
                yield connection
                return
        with opened(path, writable=True, wait_s=wait_s) as connection:
            migrate(connection, path)


def migrate(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Migrate a store of an older format in one transaction, after copying it.

    The connection must be a writing one without a transaction. A store of this format is left
    alone.
    """
    version = read_format(connection, path)
    if version == FORMAT_VERSION:
        return
    refuse_functions(connection, path)
    connection.execute(f"USE {DATABASE}")  # a new table goes there
    copy = backup_path(path, version)
    back_up(
        connection,
        path,
        copy,
        "a store of an older format is only changed beside a copy of it; make a place for it "
        "there, or move the store",
    )
    try:
        _change(connection)
    except duckdb.Error as error:
        if full_disk(path, error):  # each further try would leave one more copy
            copy.unlink(missing_ok=True)
        raise
    _log.warning(
        "%s was brought from store format %s to %s; as it was, it is kept in %s",
        path,
        version,
        FORMAT_VERSION,
        copy,
    )


def _change(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("BEGIN")
    for table in (COVERAGE, COVERAGE_CHANGE):
        connection.execute(f"ALTER TABLE {table.name} RENAME TO before")
        connection.execute(table.ddl)
        connection.execute(f"INSERT INTO {table.name} BY NAME SELECT * FROM before")  # noqa: S608 - ours
        connection.execute("DROP TABLE before")
    make_views(connection)
    connection.execute(
        "UPDATE meta SET value = ? WHERE name = 'format_version'", [str(FORMAT_VERSION)]
    )
    connection.execute("COMMIT")


def back_up(connection: duckdb.DuckDBPyConnection, path: Path, copy: Path, advice: str) -> None:
    """Copy the whole database of a writing connection, which has no transaction, to a new file.

    ``advice`` is what to do where the copy cannot be written.
    """
    draft = copy_draft(path.resolve())
    try:
        shutil.rmtree(draft.parent, ignore_errors=True)  # of a copy that was killed
        draft.parent.mkdir(mode=0o700)
        version = f"STORAGE_VERSION '{STORAGE_VERSION}'"
        connection.execute(f"ATTACH {quoted(draft)} AS {_COPY} ({version})")
        connection.execute(f"COPY FROM DATABASE {DATABASE} TO {_COPY}")
        connection.execute(f"DETACH {_COPY}")
        draft.chmod(0o600)
        _give_name(draft, copy)
    except (OSError, duckdb.Error) as error:
        raise full_disk(copy, error) or StoreError(
            f"{copy} cannot be written ({first_line(error)}): {advice}", path=str(copy)
        ) from None
    finally:
        shutil.rmtree(draft.parent, ignore_errors=True)


def _give_name(draft: Path, copy: Path) -> None:
    """Give a draft its name, also on another disk."""
    try:
        os.link(draft, copy)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with draft_of(copy) as there:
            shutil.copyfile(draft, there)
            there.chmod(0o600)
            os.link(there, copy)
