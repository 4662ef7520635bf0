"""Opening the DuckDB file: for as short as possible, with patience, by one owner per process.

A process that keeps the file open locks every other out, and a reader blocks the writer too. So the
file is opened per use and closed when the last user of this process lets go. Inside a process
DuckDB refuses a read-only connection beside a writing one. All uses share one connection, each
on a cursor of its own (a shared connection hands one thread another's rows).

Uses that overlap one another without a break would keep the file open for good, and every other
process out. So nobody joins an opening that has lasted, unless a use that began early still goes
on. And the file then rests for longer than another process waits between two attempts. Among
processes, `toolkit.store.waiting` keeps the order in which they came.

To start DuckDB costs 30 ms, to attach a file to it 2. So the engine of a file outlives its uses,
for the few files used last, and a use attaches the file and detaches it.

A file may come from a stranger. So an engine reaches no file but its own and no address, loads no
extension, and cannot be set to. A view in place of a table of ours is refused.

Source: docs/design.md, "One file, opened per use".
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb

from toolkit import commands
from toolkit.errors import InputError, NotAStoreError, StoreError, StoreLockedError
from toolkit.store.refusals import open_failure, use_failure
from toolkit.store.waiting import Place
from toolkit.tables import TABLES

_NO_EXTENSIONS: dict[str, str | bool | int | float | list[str]] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
OWN_FILES = ("", ".wal", ".wal.checkpoint")
"""The ends of the names of DuckDB's own files: the database, and what lies beside it at times."""

DATABASE = "store"
"""The name under which an engine has its file."""

_IDLE_ENGINES = 4
_LEAN_FILES = dict[Path, int]()

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.005, 0.02
_EARLY_S, _REST_S = 0.5, 0.15


class _File:
    """One file in this process: its connection, which threads use it, and which one writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = threading.Condition()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._writable = False
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
            with contextlib.closing(cursor):
                yield cursor
        except (duckdb.Error, StoreError):  # a copy may still be attached, or nothing work any more
            self._sound = False
            raise
        finally:
            with self._turn:
                self._early_uses -= early
                self._uses[thread] -= 1
                self._writer = None if writable else self._writer
                self._turn.notify_all()
                self._close_if_unused()

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
            cursor.execute(f"USE {DATABASE}")
            return cursor
        finally:
            self._writers_waiting -= writable

    def _await_connection(
        self, thread: int, writable: bool, deadline: float
    ) -> duckdb.DuckDBPyConnection:
        """Wait for this thread's turn, and return the open connection. Other threads go on.

        The last attempt before the deadline is made out of turn: it finds who holds the file. So
        is that of a thread that uses another file: somebody may wait for that one.
        """
        wait_s = _FIRST_WAIT_S
        uses_another = any(file.is_used_by(thread) for file in list(_FILES.values()))
        with contextlib.closing(Place(self._path, writable=writable)) as place:
            while True:
                last = time.monotonic() + wait_s > deadline
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
        """Return whether it is this thread's turn.

        A writer waits for readers to leave. New readers let a waiting writer go first.
        """
        if self._connection is None:
            return time.monotonic() >= self._rests_until
        if self._uses[thread]:
            return True
        if not self._is_young() and not self._early_uses:
            self._turned_away = True
            return False
        if writable:
            return self._writable and self._writer is None
        return self._writable or not self._writers_waiting

    def _is_young(self) -> bool:
        return time.monotonic() - self._opened_at <= _EARLY_S

    def _open(self, writable: bool) -> duckdb.DuckDBPyConnection:
        self._connection = _attached(self._path, writable)
        self._writable, self._sound = writable, True
        self._opened_at = time.monotonic()
        return self._connection

    def _close_if_unused(self) -> None:
        if self._connection is not None and not self._uses.total():
            self._uses.clear()
            connection, self._connection = self._connection, None
            if self._turned_away:
                self._turned_away = False
                self._rests_until = time.monotonic() + _REST_S
            try:
                if self._sound:
                    connection.execute(f"DETACH {DATABASE}")
            except duckdb.Error:
                self._sound = False
                raise
            finally:
                _put_away(self._path, connection, sound=self._sound)

    def _locked(self, by: str) -> StoreLockedError:
        return StoreLockedError(
            f"{self._path} is in use by {by}", path=str(self._path), pid=os.getpid()
        )


_FILES: dict[Path, _File] = {}
_ENGINES: dict[Path, duckdb.DuckDBPyConnection] = {}
"""Engines that have no file attached, the one used last at the end."""
_FILES_LOCK = threading.Lock()


@atexit.register
def _close_engines() -> None:
    """Close them while Python still can: DuckDB's binding complains of what is left later."""
    while _ENGINES:
        _ENGINES.popitem()[1].close()


@contextlib.contextmanager
def opened(
    path: Path, *, writable: bool, wait_s: float = 10.0
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a cursor on an existing DuckDB file, closed with the block.

    Waits up to ``wait_s`` seconds for another process or thread to let go. Uses may be nested in a
    thread, except that writing inside another use is refused at once: it would wait for itself.

    Raises `StoreLockedError` with the number of the process that holds the file, `NotAStoreError`
    where the file is something else, `StoreVersionError` where a newer DuckDB wrote it, and
    `StoreError` where there is none or DuckDB fails. Other errors of the block pass as they are.
    """
    resolved = path.resolve()
    with _FILES_LOCK:
        file = _FILES.setdefault(resolved, _File(resolved))
    try:
        with file.use(writable=writable, wait_s=wait_s) as cursor:
            yield cursor
    except duckdb.Error as error:
        raise use_failure(path, error) from error


def check_use(path: object, wait_s: object) -> None:
    """Raise `InputError` for what is no path of a file, or no time to wait for it."""
    if not isinstance(wait_s, int | float) or wait_s < 0:
        raise InputError("wait_s", wait_s, "seconds, 0 or more")
    usable = isinstance(path, str | os.PathLike) and "\0" not in str(path)
    if not usable:
        raise InputError("store", path, "a path, e.g. 'rail.duckdb'")


def keep_lean(path: Path, buffer_bytes: int) -> None:
    """Let the engines of a file that this process starts from now on take little memory.

    DuckDB gets so many bytes of buffers and one thread. Otherwise its buffers grow with the file's
    last 122,880 rows, which each commit writes anew.
    """
    resolved = path.resolve()
    with _FILES_LOCK:
        _LEAN_FILES[resolved] = buffer_bytes
        idle = _ENGINES.pop(resolved, None)
    if idle:
        idle.close()


def copy_draft(path: Path) -> Path:
    """Return the only other file that a writing connection may write: the draft of a copy.

    Examples
    --------
    >>> copy_draft(Path("data/rail.duckdb"))
    PosixPath('data/.rail.duckdb.copy')
    """
    return path.with_name(f".{path.name}.copy")


def _attached(path: Path, writable: bool) -> duckdb.DuckDBPyConnection:
    """Return an engine with the file attached."""
    quoted = str(path).replace("'", "''")
    try:
        if path.is_dir():
            raise NotAStoreError(f"{path} is a directory; name a file", path=str(path))
        if not path.exists():
            load = commands.rail("sync", "--watchlist", store=path)
            raise StoreError(
                f"there is no store at {path}; `{load}` makes one, `rail demo` one to look at",
                path=str(path),
            )
        if not path.is_file():
            raise NotAStoreError(f"{path} is a pipe or a device; name a file", path=str(path))
        with _FILES_LOCK:
            engine = _ENGINES.pop(path, None)
        engine = engine or _confined(path)
    except (duckdb.Error, OSError) as error:
        raise open_failure(path, error) from None
    try:
        access = "READ_WRITE" if writable else "READ_ONLY"
        engine.execute(f"ATTACH '{quoted}' AS {DATABASE} ({access})")
        _refuse_views(engine, path)
    except duckdb.Error as error:
        refusal = open_failure(path, error)
        _put_away(path, engine, sound=isinstance(refusal, StoreLockedError))
        raise refusal from None
    except BaseException:
        engine.close()
        raise
    return engine


def _put_away(path: Path, engine: duckdb.DuckDBPyConnection, *, sound: bool) -> None:
    """Keep an engine that has let go of its file, and close the one that was idle for longest.

    One that failed is closed: after some errors DuckDB answers nothing any more.
    """
    if not sound:
        engine.close()
        return
    with _FILES_LOCK:
        _ENGINES[path] = engine
        oldest = next(iter(_ENGINES)) if len(_ENGINES) > _IDLE_ENGINES else None
        if oldest:
            _ENGINES.pop(oldest).close()


def _confined(path: Path) -> duckdb.DuckDBPyConnection:
    """Start an engine that reaches one file, and is kept to it for good."""
    most = _LEAN_FILES.get(path)
    lean = {"memory_limit": f"{most}B", "threads": "1"} if most else {}
    engine = duckdb.connect(config={**_NO_EXTENSIONS, "temp_directory": f"{path}.tmp", **lean})
    allowed = [f"{file}{end}" for file in (path, copy_draft(path)) for end in OWN_FILES]
    engine.execute("SET allowed_paths = ?", [allowed])
    engine.execute("SET enable_external_access = false")
    engine.execute("SET lock_configuration = true")
    return engine


def _refuse_views(engine: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Refuse views in place of our tables."""
    views = engine.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    ours = {table.name for table in TABLES}
    if found := sorted(name for (name,) in views if name.lower() in ours):
        raise NotAStoreError(
            f"{path} has views in place of tables ({', '.join(found)}), which run somebody's "
            "queries; it is no store of this toolkit: name another file",
            path=str(path),
        )
