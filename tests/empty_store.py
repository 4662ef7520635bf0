"""Stores without rows, each a copy of the first that was made: to make one takes DuckDB 0.1 s."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from toolkit.market import Source
from toolkit.store import Store, StoreWriter


@functools.cache
def _content(source: Source) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rail.duckdb"
        StoreWriter(Store(path)).bind(source)
        return path.read_bytes()


def empty_store(path: Path, source: Source, *, wait_s: float = 10.0) -> Store:
    """Return an empty store of a source in a new file, as `StoreWriter.bind` makes it."""
    with path.open("xb") as file:
        file.write(_content(source))
    path.chmod(0o600)
    return Store(path, wait_s=wait_s)
