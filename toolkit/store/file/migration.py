"""Bring a store of the format before this one to this one, with a copy as it was beside it.

Format 11 keeps what the service's own source lost, and why. A store of a format before 10 is
refused by `toolkit.store.file.schema.read_format`.
"""

from __future__ import annotations

import errno
import itertools
import logging
import os
import shutil
from pathlib import Path

import duckdb

from toolkit.errors import StoreError
from toolkit.store.file.connection import opened
from toolkit.store.file.engine import DATABASE, copy_draft, quoted, refuse_functions
from toolkit.store.file.refusals import first_line, full_disk
from toolkit.store.file.schema import FORMAT_VERSION, STORAGE_VERSION, draft_of, read_format
from toolkit.store.reading.views import make_views
from toolkit.tables import COVERAGE, COVERAGE_CHANGE

_COPY = "copied"
_log = logging.getLogger(__name__)


def backup_path(path: Path, version: int) -> Path:
    """Return where to keep the copy of a store of an older format: a name that is free.

    >>> backup_path(Path("rail.duckdb"), 10)
    PosixPath('rail.format-10.duckdb')
    """
    numbers = itertools.chain([""], (f"-{n}" for n in itertools.count(2)))
    names = (f"{path.stem}.format-{version}{number}{path.suffix}" for number in numbers)
    return next(p for p in map(path.with_name, names) if not (p.exists() or p.is_symlink()))


def bring_up_to_date(path: Path, wait_s: float) -> None:
    """Migrate the store of an older format at ``path``. ``wait_s`` is that of `opened`."""
    with opened(path, writable=False, wait_s=wait_s) as connection:
        version = read_format(connection, path)
    if version < FORMAT_VERSION:
        with opened(path, writable=True, wait_s=wait_s) as connection:
            migrate(connection, path)


def migrate(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Bring a store of an older format to ours in one transaction, its copy made first.

    The connection must be a writing one without a transaction. A store of our format is left alone.
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
