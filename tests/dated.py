"""Loads of another time: a test cannot wait for seconds to pass."""

from __future__ import annotations

import time

from toolkit.store import Store, StoreWriter
from toolkit.tables import CHANGES, DATED

_LATELY_S = 3_600  # what a test has just committed is no older


def date_load(store: Store, load_id: int, at: int) -> None:
    """Make a load begin, and all that it brought be committed, at a second of the local clock."""
    with StoreWriter(store).writing() as connection:
        connection.execute("UPDATE load SET started_at = ? WHERE load_id = ?", [at, load_id])
        for table in DATED:
            connection.execute(
                f"UPDATE {table.name} SET committed_at = ? WHERE load_id = ?", [at, load_id]
            )
    date_commit(store, at)


def date_commit(store: Store, at: int) -> None:
    """Make what was committed and begun last be of a second of the local clock, an early one."""
    lately = int(time.time()) - _LATELY_S
    with StoreWriter(store).writing() as connection:
        for table in (*DATED, *CHANGES):
            connection.execute(
                f"UPDATE {table.name} SET committed_at = ? WHERE committed_at > ?", [at, lately]
            )
        for column in ("started_at", "finished_at"):
            connection.execute(f"UPDATE load SET {column} = ? WHERE {column} > ?", [at, lately])
