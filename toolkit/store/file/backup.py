"""Copying a store's file as it is, whole, with whatever else somebody keeps in it."""

from __future__ import annotations

from pathlib import Path

from toolkit.errors import StoreError
from toolkit.store.file.connection import opened
from toolkit.store.file.file import StoreFile
from toolkit.store.file.migration import back_up
from toolkit.store.writing.pages import back_up_pages


def back_up_store(store: StoreFile, target: str | Path) -> int:
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
