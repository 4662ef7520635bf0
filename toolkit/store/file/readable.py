"""Streams of a store that cannot be read: by the row that names them, or by rows that are doubled.

A key may be none, of another kind than its row says, or there twice, in a file that something else
than this toolkit wrote. Such a stream is hidden from whoever reads, and named once, so that all
others are read as ever. Doubled rows of a series are noticed when they are read, since to look for
them takes as long. From then on their stream is hidden too, in this process, until the file
changes.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

import duckdb

from toolkit.errors import InputError, StoreError
from toolkit.foreign import plain
from toolkit.market import Stream
from toolkit.store.file.engine import DATABASE, own_files

_log = logging.getLogger(__name__)

NOT_READABLE = "not readable"
"""What stands in the place of such a stream."""

_Version = tuple[tuple[int, int, int], ...]
_KEPT = 8


class Unreadable(NamedTuple):
    """A stream that cannot be read: its key, its kind as its row says, and why."""

    stream: str
    kind: str
    why: str


_FOUND: dict[Path, tuple[_Version, dict[int, Unreadable]]] = {}
"""By file, as of one version of it: the streams by number. The file read last is at the end."""


def fault_of_key(key: str, kind: str) -> str:
    """Return what is wrong with a stream's key, "" where nothing is.

    >>> fault_of_key("A_B:X.spot", "price"), fault_of_key("A_B", "price")
    ('', "'A_B' is not a key of the kind 'price'")
    """
    try:
        sound = Stream.parse(key).kind == kind
    except InputError:
        sound = False
    return "" if sound else f"{plain(key, 80)!r} is not a key of the kind {plain(kind, 40)!r}"


def unreadable(connection: duckdb.DuckDBPyConnection, path: Path) -> dict[int, Unreadable]:
    """Return the streams of a store that cannot be read, by number. The file must be open."""
    version = _version(path)
    known = _FOUND.pop(path, None)
    if known is None or known[0] != version:
        known = version, dict(_named(connection))
    _FOUND[path] = known
    while len(_FOUND) > _KEPT:
        del _FOUND[next(iter(_FOUND))]
    return known[1]


def hide_unreadable(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Put a view of the streams that can be read in the place of the table, where some cannot."""
    if found := unreadable(connection, path):
        connection.execute(
            "CREATE OR REPLACE TEMP VIEW stream AS "
            f"FROM {DATABASE}.main.stream WHERE stream_id NOT IN ({', '.join(map(str, found))})"
        )


def mark_doubled(
    connection: duckdb.DuckDBPyConnection, path: Path, key: str, count: int
) -> StoreError:
    """Note that rows of a stream are doubled, and return the error of reading it."""
    found = unreadable(connection, path)
    why = f"{count:,} of its rows are there twice"
    for number, kind in connection.execute(
        f"SELECT stream_id, kind FROM {DATABASE}.main.stream WHERE key = ?",  # noqa: S608 - ours
        [key],
    ).fetchall():
        found[number] = Unreadable(key, kind, why)
        _log.warning("%s: %s is %s and left out: %s", path, key, NOT_READABLE, why)
    return not_readable(path, found[number])


def not_readable(path: Path, stream: Unreadable) -> StoreError:
    """Return the error of reading a stream that cannot be read."""
    return StoreError(
        f"{path}: {plain(stream.stream, 80)} is {NOT_READABLE}: {stream.why}; the other streams "
        "are: `rail store verify` shows what is wrong",
        path=str(path),
    )


def _named(connection: duckdb.DuckDBPyConnection) -> list[tuple[int, Unreadable]]:
    rows = connection.execute(
        "SELECT stream_id, key, kind, count(*) OVER (PARTITION BY key) > 1, "  # noqa: S608 - ours
        f"count(*) OVER (PARTITION BY stream_id) > 1 FROM {DATABASE}.main.stream"
    ).fetchall()
    found = []
    for number, key, kind, same_key, same_number in rows:
        why = "its key is there twice" if same_key else ""
        why = why or ("its number is there twice" if same_number else fault_of_key(key, kind))
        if why:
            found.append((number, Unreadable(key, kind, why)))
    return found


def _version(path: Path) -> _Version:
    """Return what differs between two states of a file."""
    stats = []
    for file in own_files(path)[:2]:
        try:
            stat = file.stat()
        except FileNotFoundError:  # the log is there at times
            continue
        stats.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
    return tuple(stats)
