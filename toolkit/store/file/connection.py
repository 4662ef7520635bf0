"""Opening the DuckDB file: for as short as possible, with patience, by one owner per process.

An open file locks every other process out, so it is opened per use. The uses of a process share one
connection, each with a cursor of its own. Nobody joins an opening that has lasted, and the file
then rests, so that other processes get their turn.

DuckDB's lock has no order. So whoever waits puts an empty file, named by a number, into a folder
beside the store. Writers wait for all smaller numbers. A reader's number is next to that of the
first writer, so readers go together between two writers. A file not touched lately is of a killed
or suspended process, and is removed. Without a folder DuckDB's lock alone decides.

Source: docs/design.md, "One file, opened per use".
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb

from toolkit.ending import nobody_waits, under_way
from toolkit.errors import InputError, StoreError, StoreLockedError
from toolkit.files import keep_names
from toolkit.interrupts import one_interrupt
from toolkit.store.file.engine import (
    DATABASE,
    attached,
    own_files,
    put_away,
    real_path,
    remove_empty_log,
    use_failure,
)

_LATELY_S = 2.0  # looks are 0.02 s apart, but a machine may be busy
_NAME = re.compile(r"\d{20}-\d+-\d+-(read|write)")
_READ, _WRITE = "read", "write"


def queue_folder(path: Path) -> Path:
    """Return the folder with the files of those who wait for a store."""
    return path.with_name(f".{path.name}.queue")


def waiting_for(path: Path) -> list[tuple[int, str]]:
    """Return who waits for a store now, in order: the process, and whether to read or to write.

    >>> waiting_for(Path("nowhere.duckdb"))
    []
    """
    places = (name.split("-") for name in Place(path, writable=False).waiting())
    return [(int(process), use) for _, process, _, use in places]


class Place:
    """One use's place in the queue. Other threads of this process have their own."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self._folder = queue_folder(path)
        self._writable = writable
        self._file: Path | None = None

    def may_go(self) -> bool:
        """Return whether nobody waits who goes before this use."""
        return not any(
            (self._file is None or name < self._file.name)
            and (self._writable or name.endswith(_WRITE))
            for name in self.waiting()
        )

    def keep(self) -> None:
        """Take a place, or keep the one taken."""
        if self._file is None:
            kind = _WRITE if self._writable else _READ
            who = f"{os.getpid()}-{threading.get_ident()}"
            self._file = self._folder / f"{self._number():020d}-{who}-{kind}"
        with contextlib.suppress(OSError):
            try:
                os.utime(self._file)
            except FileNotFoundError:
                self._folder.mkdir(mode=0o700, exist_ok=True)
                self._file.touch(mode=0o600)

    def close(self) -> None:
        """Leave the place, if one was taken."""
        if self._file is not None:
            _remove(self._file)

    def _number(self) -> int:
        writers = [name for name in self.waiting() if name.endswith(_WRITE)]
        if writers and not self._writable:
            return int(writers[0].partition("-")[0]) + 1
        return time.monotonic_ns()

    def waiting(self) -> list[str]:
        """Return the names of those who wait, in order. Remove those of processes that are gone."""
        try:
            found = sorted(file.name for file in self._folder.iterdir())
        except OSError:
            return []
        places = filter(_NAME.fullmatch, found)
        return [name for name in places if _is_kept(self._folder / name)]


def _is_kept(file: Path) -> bool:
    """Return whether somebody keeps this place. Remove one that nobody keeps."""
    try:
        kept = abs(time.time() - file.stat().st_mtime) <= _LATELY_S
    except OSError:
        return False
    if not kept:
        _remove(file)
    return kept


def _remove(file: Path) -> None:
    """Remove a place, and the folder if it was the last one."""
    with contextlib.suppress(OSError):
        file.unlink()
        file.parent.rmdir()


_DUCKDB_FIRST = f"SET search_path = 'system.main,{DATABASE}.main'"

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.005, 0.02
_EARLY_S, _REST_S = 0.5, 0.15


class _File:
    """One file in this process: its connection, the threads that use it, the one that writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = threading.Condition()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._writable = False
        self._replaced = False
        self._sound = True
        self._opened_at = self._rests_until = 0.0
        self._turned_away = False
        self._uses = Counter[int]()
        self._early_uses = 0
        self._writer: int | None = None
        self._writers_waiting = 0

    @contextlib.contextmanager
    def use(self, *, writable: bool, wait_s: float) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a cursor for as long as the block lasts. Writers of this process take turns."""
        thread = threading.get_ident()
        with self._turn:
            cursor = self._cursor(thread, writable, time.monotonic() + wait_s)
            early = self._is_young()
            self._early_uses += early
            self._uses[thread] += 1
            self._writer = thread if writable else self._writer
        try:
            interrupt = None if writable else cursor.interrupt
            ending = under_way(interrupt, finishes=writable)
            with contextlib.closing(cursor), ending:
                yield cursor
        # a copy may still be attached, or nothing work any more; an interrupt is a RuntimeError
        except (duckdb.Error, StoreError, RuntimeError):
            self._sound = False
            raise
        finally:
            with self._turn:
                self._early_uses -= early
                self._uses[thread] -= 1
                self._writer = None if writable else self._writer
                self._turn.notify_all()
                self._close_if_unused()

    def leave(self) -> None:
        """Let nobody join this opening any more: another file is about to take its place."""
        with self._turn:
            self._replaced = True

    def is_used_by(self, thread: int) -> bool:
        return self._uses[thread] > 0

    def _cursor(self, thread: int, writable: bool, deadline: float) -> duckdb.DuckDBPyConnection:
        if writable and self._uses[thread]:
            raise self._locked(
                "this very thread, which would wait for itself; leave the block that reads or "
                "writes it before writing"
            )
        self._writers_waiting += writable
        try:
            cursor = self._await_connection(thread, writable, deadline).cursor()
            cursor.execute(_DUCKDB_FIRST)
            return cursor
        finally:
            self._writers_waiting -= writable

    def _await_connection(
        self, thread: int, writable: bool, deadline: float
    ) -> duckdb.DuckDBPyConnection:
        """Wait for this thread's turn, and return the open connection.

        The last attempt is out of turn, to find who holds the file. So are all attempts of a thread
        that uses another file.
        """
        wait_s = _FIRST_WAIT_S
        uses_another = any(file.is_used_by(thread) for file in list(_FILES.values()))
        with contextlib.closing(Place(self._path, writable=writable)) as place:
            while True:
                last = time.monotonic() + wait_s > deadline or nobody_waits()
                locked = self._locked("another thread of this process; try again when it is done")
                if self._is_free(thread, writable):
                    if self._connection:
                        return self._connection
                    try:
                        if last or uses_another or place.may_go():
                            return self._open(writable)
                    except StoreLockedError as error:
                        locked = error
                    place.keep()
                if last:
                    raise locked
                self._turn.wait(wait_s)
                wait_s = min(wait_s * 1.6, _LONGEST_WAIT_S)

    def _is_free(self, thread: int, writable: bool) -> bool:
        """Return whether it is this thread's turn. New readers let a waiting writer go first."""
        if self._connection is None:
            return time.monotonic() >= self._rests_until
        if self._uses[thread]:
            return True
        if self._replaced:
            return False
        if not self._is_young() and not self._early_uses:
            self._turned_away = True
            return False
        if writable:
            return self._writable and self._writer is None
        return self._writable or not self._writers_waiting

    def _is_young(self) -> bool:
        return time.monotonic() - self._opened_at <= _EARLY_S

    def _open(self, writable: bool) -> duckdb.DuckDBPyConnection:
        self._connection = attached(self._path, writable)
        self._writable, self._sound, self._replaced = writable, True, False
        self._opened_at = time.monotonic()
        return self._connection

    def _close_if_unused(self) -> None:
        if self._connection is not None and not self._uses.total():
            self._uses.clear()
            connection, self._connection = self._connection, None
            if self._turned_away:
                self._turned_away = False
                self._rests_until = time.monotonic() + _REST_S
            if self._writable and not self._replaced:
                remove_empty_log(self._path)
            try:
                if self._sound:
                    connection.execute(f"DETACH {DATABASE}")
            except duckdb.Error:
                self._sound = False
                raise
            finally:
                put_away(self._path, connection, sound=self._sound)

    def _locked(self, by: str) -> StoreLockedError:
        return StoreLockedError(
            f"{self._path} is in use by {by}", path=str(self._path), pid=os.getpid()
        )


_FILES: dict[Path, _File] = {}
_FILES_LOCK = threading.Lock()


@contextlib.contextmanager
def opened(
    path: Path, *, writable: bool, wait_s: float = 10.0
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a cursor on an existing DuckDB file, closed with the block.

    Waits up to ``wait_s`` (s) for another process or thread. Uses of one thread may be nested, but
    writing inside another use is refused at once.

    Raises `StoreLockedError` with the process that holds the file, `NotAStoreError` for another
    file, `StoreVersionError` if a newer DuckDB wrote it, `StoreError` for none or where DuckDB
    fails, and `KeyboardInterrupt` where a signal ends a query.
    """
    resolved = real_path(path)
    with _FILES_LOCK:
        file = _FILES.setdefault(resolved, _File(resolved))
    try:
        with (
            one_interrupt(),
            under_way(finishes=writable),
            file.use(writable=writable, wait_s=wait_s) as cursor,
        ):
            yield cursor
    except duckdb.Error as error:
        raise use_failure(path, error) from error


def check_use(path: object, wait_s: object) -> None:
    """Raise `InputError` for a wrong path or a wrong time to wait for it."""
    if not isinstance(wait_s, int | float) or wait_s < 0:
        raise InputError("wait_s", wait_s, "seconds, 0 or more")
    usable = isinstance(path, str | os.PathLike) and "\0" not in str(path)
    if not usable:
        raise InputError("store", path, "a path, e.g. 'rail.duckdb'")


def put_in_place(connection: duckdb.DuckDBPyConnection, path: Path, draft: Path) -> None:
    """Put a whole, closed file in the place of a store's, inside a use that wrote nothing.

    Raises `StoreError` if the old one has commits in its log.
    """
    resolved = path.resolve()
    logs = own_files(resolved)[1:]
    remove_empty_log(resolved)
    if any(log.exists() for log in logs):  # of a process that was killed
        connection.execute(f"CHECKPOINT {DATABASE}")
        remove_empty_log(resolved)
    if any(log.exists() for log in logs):
        raise StoreError(
            f"{path} has its last commits in a log beside it, so it was left as it is; try again",
            path=str(path),
        )
    with _FILES_LOCK:
        file = _FILES[resolved]
    file.leave()
    draft.replace(resolved)
    keep_names(resolved.parent)
