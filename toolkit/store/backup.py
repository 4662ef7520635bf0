"""Copying a store's file as it is, whole, with whatever else somebody keeps in it."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from toolkit.errors import StoreError
from toolkit.store.connection import opened
from toolkit.store.engine import DATABASE, copy_draft, quoted
from toolkit.store.pages import back_up_pages
from toolkit.store.refusals import first_line, full_disk
from toolkit.store.schema import STORAGE_VERSION, draft_of

if TYPE_CHECKING:
    from toolkit.store.store import Store

_COPY = "copied"


def back_up_store(store: Store, target: str | Path) -> int:
    """Copy a store to a new file, as it was between two commits, and return the copy's bytes.

    Who writes meanwhile waits until it is copied. Raises `StoreError` where there is a file of that
    name or none can be made, and what `Store.reading` raises.
    """
    copy = Path(target)
    if copy.exists() or copy.is_symlink():
        raise StoreError(f"{copy} is there already; name a new file", path=str(copy))
    if not copy.resolve().parent.is_dir():
        raise StoreError(
            f"{copy.resolve().parent} is not a directory; make it first", path=str(copy)
        )
    with store.reading():
        pass  # it is there, and of this format
    with opened(store.path, writable=True, wait_s=store.wait_s) as connection:
        back_up(connection, store.path, copy, "name a place where this user may write")
        back_up_pages(store.path, copy)
    return copy.stat().st_size


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
