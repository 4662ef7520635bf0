"""Checks that a store's file is still the one that was bound, and the one a load began in.

Between two writes a file can be exchanged for another. So each transaction that writes looks first.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from toolkit.errors import StoreSourceError
from toolkit.market import Source
from toolkit.store.file.schema import read_source


class FileIdentity:
    """What one `Store` knows of its file: the source that it was bound to, and loads it began."""

    def __init__(self, path: Path) -> None:
        self.source: Source | None = None
        self._path = path
        self._loads: dict[int, object] = {}

    def keep(self, connection: duckdb.DuckDBPyConnection, load_id: int) -> None:
        """Remember a load that begins in this transaction."""
        self._loads[load_id] = _facts(connection, load_id)

    def check(self, connection: duckdb.DuckDBPyConnection, load_id: int | None) -> None:
        """Raise `StoreSourceError` where this is another file than the one that is known."""
        held = read_source(connection, self._path)
        if self.source is not None:
            check_source(self._path, held, self.source)
        if load_id in self._loads and self._loads[load_id] != _facts(connection, load_id):
            raise StoreSourceError(
                f"{self._path} is not the file that load {load_id} began in, it is another one of "
                f"{held.label}; nothing was written to it: put the first file back",
                path=str(self._path),
            )


def check_source(path: Path, held: Source, source: Source) -> None:
    """Raise `StoreSourceError` where a file holds another source's data."""
    if held.id != source.id:
        raise StoreSourceError(
            f"{path} holds data of another source ({held.label}), the service is "
            f"{source.label}; name another store, a store never mixes sources",
            path=str(path),
        )


def _facts(connection: duckdb.DuckDBPyConnection, load_id: int) -> object:
    """Return what tells a load from every other one, nothing where it is absent."""
    return connection.execute(
        "SELECT served_at, base_url, schema_hash FROM load WHERE load_id = ?", [load_id]
    ).fetchall()
