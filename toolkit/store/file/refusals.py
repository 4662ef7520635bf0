"""Meanings of DuckDB's errors for a store, in one line that says what to do.

DuckDB has no classes for these errors, so its words distinguish them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import duckdb

from toolkit.errors import NotAStoreError, StoreError, StoreLockedError, StoreVersionError

_SQLITE = b"SQLite format 3\0"
_FULL = re.compile(
    r"No space left on device|Disk quota exceeded|File too large|max_temp_directory_size|"
    r"database or disk is full"
)


def use_failure(path: Path, error: duckdb.Error) -> StoreError:
    """Return what an error in the use of an open store means."""
    if "Permission denied" in str(error):  # the file may be written, and its log not be made
        return StoreError(
            f"{path} cannot be written: this user may make no files in {path.parent}, which each "
            "load does; change the folder's permissions or name another store",
            path=str(path),
        )
    return full_disk(path, error) or StoreError(f"{path}: {first_line(error)}", path=str(path))


def full_disk(path: Path, error: Exception) -> StoreError | None:
    """Return the error of a disk, quota or limit that is full, None where it is something else."""
    found = _FULL.search(str(error))
    if found is None:
        return None
    return StoreError(
        f"{path} cannot be written: the disk is full, or a limit of this user there is reached "
        f"({found[0]}); free space in {path.parent} and try again: what was in the store is whole",
        path=str(path),
    )


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return str(error).strip().splitlines()[0]


def open_failure(path: Path, error: Exception) -> StoreError:
    """Return what an error at opening a store means."""
    message, line = str(error), first_line(error)
    if known := _locked(path, message) or _stray_wal(path, message) or full_disk(path, error):
        return known
    if "newer version of DuckDB" in message:
        return StoreVersionError(
            f"{path} was written by a newer DuckDB than this one ({duckdb.__version__}); update "
            "the toolkit",
            path=str(path),
        )
    sqlite = "xtension" in message and _begins_with(path, _SQLITE)  # it asks for one to read it
    other = "not a valid DuckDB database" in message or "in-memory database in read" in message
    if sqlite or other:
        what = "a SQLite file" if sqlite else "not a store of this toolkit, nor a DuckDB file"
        return NotAStoreError(f"{path} is {what}; name another file", path=str(path))
    if "Permission denied" in message:
        return StoreError(
            f"{path} may not be opened by this user; change its permissions or name another store",
            path=str(path),
        )
    return StoreError(
        f"{path} cannot be opened ({line}); put a sound copy in its place or name another store",
        path=str(path),
    )


def _locked(path: Path, message: str) -> StoreLockedError | None:
    if "Could not set lock" in message:
        found = re.search(r"PID (\d+)", message)
        pid = int(found[1]) if found else None
        who = f"process {pid}" if pid else "another process"
        return StoreLockedError(
            f"{path} is held open by {who}; close it there, or try again when it is done",
            path=str(path),
            pid=pid,
        )
    if "is already attached" in message:
        return StoreLockedError(
            f"{path} is held open by a DuckDB connection of this process that is none of the "
            "store's; close it",
            path=str(path),
            pid=os.getpid(),
        )
    return None


def _stray_wal(path: Path, message: str) -> StoreError | None:
    """Return the error of a file put in the place of one whose last commits are in its log."""
    if not re.search(r"\bWAL\b.*does not match", message):
        return None
    wal = f"{path.name}.wal"
    return StoreError(
        f"{path} does not go with {wal} beside it, which has the last commits of another file or "
        f"of another state of this one (was a copy put in its place?); move {wal} away to use "
        f"{path.name} as it is, or put back the file that {wal} was made for",
        path=str(path),
    )


def _begins_with(path: Path, expected: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(expected)) == expected
