"""Stores without rows, each a copy of the first that was made."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path

from toolkit.errors import StoreError
from toolkit.market import Source
from toolkit.store import Store
from toolkit.store.file.schema import create_store, new_file
from toolkit.store.writing import writer


@functools.cache
def _content(source: Source) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rail.duckdb"
        create_store(path, source)
        return path.read_bytes()


def _copied(path: Path, source: Source) -> bool:
    """Make a store as `create_store` does, of a copy where this process made one like it before."""
    content = None
    with contextlib.suppress(OSError, StoreError):  # a user who may not, a name that none may have
        content = None if path.exists() else _content(source)
    if content is None:
        return create_store(path, source)
    with contextlib.suppress(FileExistsError):
        with new_file(path) as draft:
            draft.write_bytes(content)
        return True
    return False


@contextlib.contextmanager
def stores_are_copies() -> Iterator[None]:
    """Have `StoreWriter.bind` make stores so: to make one takes DuckDB 0.1 s."""
    writer.create_store = _copied
    yield
    writer.create_store = create_store


def empty_store(path: Path, source: Source, *, wait_s: float = 10.0) -> Store:
    """Return an empty store of a source in a new file, as `StoreWriter.bind` makes it."""
    with path.open("xb") as file:
        file.write(_content(source))
    path.chmod(0o600)
    return Store(path, wait_s=wait_s)
