"""Opening the DuckDB file: for as short as possible, with patience, by one owner per process.

A process that keeps the file open locks every other out, and a reader blocks the writer too. So the
file is opened per use and closed when the last user of this process lets go. Inside a process
DuckDB refuses a read-only connection beside a writing one; all uses share one connection, each
on a cursor of its own (a shared connection hands one thread another's rows).

Source: design.md decision 4 and its measurements.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb

from toolkit.errors import NotAStoreError, StoreError, StoreLockedError

__all__ = ["opened"]

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.005, 0.1


class _File:
    """One file in this process: its connection, who uses it, and who may write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = threading.Condition()
        self._writing = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._writable = False
        self._users = 0
        self._writers_waiting = 0

    @contextlib.contextmanager
    def use(self, *, writable: bool, wait_s: float) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor for as long as the block lasts; writers of this process take turns."""
        deadline = time.monotonic() + wait_s
        with self._writing if writable else contextlib.nullcontext():
            cursor = self._enter(writable, deadline)
            try:
                yield cursor
            finally:
                cursor.close()
                self._leave()

    def _enter(self, writable: bool, deadline: float) -> duckdb.DuckDBPyConnection:
        with self._turn:
            self._writers_waiting += writable
            try:
                self._await_turn(writable, deadline)
            finally:
                self._writers_waiting -= writable
            if self._connection is None:
                self._connection = _open(self._path, writable, deadline)
                self._writable = writable
            self._users += 1
            return self._connection.cursor()

    def _await_turn(self, writable: bool, deadline: float) -> None:
        """A writer waits for the readers to leave; new readers wait for a waiting writer."""

        def free() -> bool:
            if self._connection is None or self._writable:
                return True
            return not writable and self._writers_waiting == 0

        if not self._turn.wait_for(free, timeout=max(0.0, deadline - time.monotonic())):
            raise StoreLockedError(
                f"{self._path} is being read by this process and could not be opened for writing",
                path=str(self._path),
            )

    def _leave(self) -> None:
        with self._turn:
            self._users -= 1
            if self._users == 0 and self._connection is not None:
                self._connection.close()
                self._connection = None
            self._turn.notify_all()


_FILES: dict[Path, _File] = {}
_FILES_LOCK = threading.Lock()


@contextlib.contextmanager
def opened(
    path: Path, *, writable: bool, wait_s: float = 10.0
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor on an existing DuckDB file, closed with the block.

    Waits up to ``wait_s`` seconds for another process to let go. Raises `StoreLockedError` with
    that process's number, `NotAStoreError` where the file is something else, and `StoreError`
    where there is none or DuckDB fails.
    """
    resolved = path.resolve()
    with _FILES_LOCK:
        file = _FILES.setdefault(resolved, _File(resolved))
    try:
        with file.use(writable=writable, wait_s=wait_s) as cursor:
            yield cursor
    except duckdb.Error as error:
        raise StoreError(f"{path}: {_first_line(error)}", path=str(path)) from error


def _open(path: Path, writable: bool, deadline: float) -> duckdb.DuckDBPyConnection:
    wait_s = _FIRST_WAIT_S
    while True:
        if not path.is_file():
            raise StoreError(f"there is no store at {path}; `rail sync` makes one", path=str(path))
        try:
            return duckdb.connect(str(path), read_only=not writable)
        except duckdb.IOException as error:
            message = str(error)
            if "not a valid DuckDB database" in message or "version number" in message:
                raise NotAStoreError(
                    f"{path} is not a store of this toolkit ({_first_line(error)}); "
                    "name another file",
                    path=str(path),
                ) from None
            if "lock" not in message:
                raise
            if time.monotonic() + wait_s > deadline:
                raise _locked(path, message) from None
        time.sleep(wait_s)
        wait_s = min(wait_s * 1.6, _LONGEST_WAIT_S)


def _locked(path: Path, message: str) -> StoreLockedError:
    found = re.search(r"PID (\d+)", message)
    pid = int(found[1]) if found else None
    who = f"process {pid}" if pid else "another process"
    return StoreLockedError(
        f"{path} is held open by {who}; close it there, or try again when it is done",
        path=str(path),
        pid=pid,
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
