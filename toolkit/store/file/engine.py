"""DuckDB's engines, each with one file attached while it is used, and the meaning of its errors.

Starting DuckDB takes 30 ms, attaching a file 2 ms, so engines outlive their uses. A file may come
from a stranger, so an engine reaches nothing else, loads no extension, and has locked settings.
Views in place of our tables are refused. A file with a function in place of DuckDB's is read, since
a query finds DuckDB's own first, but not written: inside a view the file's come first.

Source: docs/design.md, "One file, opened per use".
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import re
import threading
from pathlib import Path

import duckdb

from toolkit import commands
from toolkit.errors import NotAStoreError, StoreError, StoreLockedError, StoreVersionError
from toolkit.foreign import plain
from toolkit.tables import TABLES

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
    """Return the error of a disk, quota or limit that is full, None for any other error."""
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
    kind: type[StoreError] = StoreError
    why = f"cannot be opened ({line}); put a sound copy in its place or name another store"
    if "newer version of DuckDB" in message:
        kind, by = StoreVersionError, f"a newer DuckDB than this one ({duckdb.__version__})"
        why = f"was written by {by}; update the toolkit"
    elif "xtension" in message and _begins_with(path, _SQLITE):  # it asks for one to read it
        kind, why = NotAStoreError, "is a SQLite file; name another file"
    elif "not a valid DuckDB database" in message or "in-memory database in read" in message:
        kind = NotAStoreError
        why = "is not a store of this toolkit, nor a DuckDB file; name another file"
    elif "Permission denied" in message:
        why = "may not be opened by this user; change its permissions or name another store"
    return kind(f"{path} {why}", path=str(path))


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


_CONFINED: dict[str, str | bool | int | float | list[str]] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_persistent_secrets": "false",
}
DRAFT = "draft"
"""The name of a file that is not whole yet, in a folder of its own."""

DATABASE = "store"
"""The name under which an engine has its file."""

FileVersion = tuple[tuple[int, int, int], ...]
"""Number, time and size of a file and of its log, which change with every commit."""

_IDLE_ENGINES = 4
_LEAN_FILES = dict[Path, int]()
_BOUNDS = dict[str, str]()
"""Settings of all engines; ``{path}`` in one is that of the engine's file."""
_ENGINES: dict[Path, duckdb.DuckDBPyConnection] = {}
"""Engines that have no file attached, the one used last at the end."""
_ENGINES_LOCK = threading.Lock()
_SOUND = dict[Path, FileVersion]()
"""By the file of an engine: its version when its views were last checked."""
_OPENED = Path("/proc/self/fd")
"""Where Linux has a link to each folder that a process holds open."""
_FOLDERS = dict[Path, int]()
"""Those whose names DuckDB cannot read, held open."""


@atexit.register
def _close_engines() -> None:
    """Close them while Python still can: DuckDB's binding complains of what is left later."""
    while _ENGINES:
        _ENGINES.popitem()[1].close()


def keep_lean(path: Path, buffer_bytes: int) -> None:
    """Let further engines of a file use one thread and so many bytes of buffers."""
    resolved = real_path(path)
    with _ENGINES_LOCK:
        _LEAN_FILES[resolved] = buffer_bytes
        idle = _ENGINES.pop(resolved, None)
    if idle:
        idle.close()


def keep_bounded(memory: str, drafts_end: str) -> None:
    """Bound the memory of this process's further engines, in DuckDB's words.

    What does not fit is written to a folder beside the file, whose name has this end.
    """
    _BOUNDS.update(memory_limit=memory, temp_directory=f"{{path}}{drafts_end}")


def real_path(path: Path) -> Path:
    """Return the path of a file without links. Raises `NotAStoreError` for a loop of links."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            why = "is a loop of symbolic links"
            raise NotAStoreError(f"{path} {why}; name a file", path=str(path)) from None
    return path.resolve()


def copy_draft(path: Path) -> Path:
    """Return the only other file that a writing connection may write: the draft of a copy."""
    return draft_folder(path, "copy") / DRAFT


def draft_folder(path: Path, end: str) -> Path:
    """Return a folder beside a file. DuckDB keeps nothing in a folder with a ``?``."""
    return path.with_name(f".{path.name.replace('?', '_')}.{end}")


def own_files(path: Path) -> list[Path]:
    """Return DuckDB's files of a database: itself, and what lies beside it at times.

    DuckDB does not count what follows a question mark as the name.
    """
    name, mark, rest = path.name.partition("?")
    return [path.with_name(f"{name}{end}{mark}{rest}") for end in ("", ".wal", ".wal.checkpoint")]


def version_of(path: Path) -> FileVersion:
    """Return what differs between two states of a file, () without one."""
    stats = []
    for file in own_files(path)[:2]:
        with contextlib.suppress(FileNotFoundError):  # a writer removes the log at any moment
            stat = file.stat()
            stats.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
    return tuple(stats)


def readable(path: Path) -> Path:
    """Return a path of a file that DuckDB reads as it is: it takes a backslash for a slash.

    On Linux a folder with a backslash is reached by the link to it as an open file.
    """
    if "\\" not in str(path.parent) or not _OPENED.is_dir():
        return path
    folder = next(each for each in path.parents if "\\" in each.name)
    with _ENGINES_LOCK:
        number = _FOLDERS.get(folder)
        if number is None or not os.path.samestat(os.fstat(number), folder.stat()):
            number = _FOLDERS[folder] = os.open(folder, os.O_RDONLY)
    return _OPENED / str(number) / path.relative_to(folder)


def quoted(path: Path) -> str:
    """Return the path of a file as a literal of DuckDB's SQL."""
    text = str(readable(path)).replace("'", "''")
    return f"'{text}'"


def check_place(path: Path) -> None:
    """Raise `StoreError` where DuckDB would look for the log of a file elsewhere."""
    resolved = path.resolve()
    unread = resolved.name if _OPENED.is_dir() else str(resolved)
    if os.name == "posix" and ("?" in str(resolved.parent) or "\\" in unread):
        raise StoreError(
            f"{path} cannot be used: DuckDB finds no log in a folder with a question mark in its "
            "name, nor where a name has a backslash; rename it, or name another store",
            path=str(path),
        )


def attached(path: Path, writable: bool) -> duckdb.DuckDBPyConnection:
    """Return an engine with the file attached."""
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
        if writable or any(log.exists() for log in own_files(path)[1:]):
            check_place(path)
        number = _number(path)
        with _ENGINES_LOCK:
            engine = _ENGINES.pop(path, None)
        engine = engine or _confined(path)
    except (duckdb.Error, OSError) as error:
        raise open_failure(path, error) from None
    try:
        access = "READ_WRITE" if writable else "READ_ONLY"
        engine.execute(f"ATTACH {quoted(path)} AS {DATABASE} ({access})")
        if _SOUND.get(path) != (version := version_of(path)):
            _refuse_views(engine, path)
            _SOUND[path] = version
    except duckdb.Error as error:
        refusal = open_failure(path, error)
        put_away(path, engine, sound=isinstance(refusal, StoreLockedError))
        raise refusal from None
    except BaseException:
        engine.close()
        raise
    if _number(path) != number:  # it was opened, and before it was locked another took its place
        engine.execute(f"DETACH {DATABASE}")
        put_away(path, engine, sound=True)
        raise StoreLockedError(
            f"{path} was just replaced by another file; try again", path=str(path), pid=os.getpid()
        )
    if writable:
        _make_log(path)
    return engine


def _make_log(path: Path) -> None:
    """Make a file's log with the permissions of the file. DuckDB opens it to all."""
    mode = path.stat().st_mode & 0o666
    log = own_files(path)[1]
    with contextlib.suppress(OSError):
        os.close(os.open(log, os.O_WRONLY | os.O_CREAT, mode))
        log.chmod(mode)


def remove_empty_log(path: Path) -> None:
    """Remove a file's log if nothing was written, while the file is still locked."""
    log = own_files(path)[1]
    with contextlib.suppress(OSError):
        if log.stat().st_size == 0:
            log.unlink()


def _number(path: Path) -> int | None:
    """Return the number of the file at a path, None without one."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def put_away(path: Path, engine: duckdb.DuckDBPyConnection, *, sound: bool) -> None:
    """Keep a sound engine that has let go of its file, and close the one idle for longest."""
    if not sound:
        engine.close()
        return
    with _ENGINES_LOCK:
        _ENGINES[path] = engine
        oldest = next(iter(_ENGINES)) if len(_ENGINES) > _IDLE_ENGINES else None
        if oldest:
            _ENGINES.pop(oldest).close()
            _SOUND.pop(oldest, None)


def _confined(path: Path) -> duckdb.DuckDBPyConnection:
    """Start an engine that reaches one file, and lock its settings."""
    most = _LEAN_FILES.get(path)
    lean = {"memory_limit": f"{most}B", "threads": "1"} if most else {}
    known = readable(path)
    own = f"{known}.tmp"  # by itself the directory of secrets would tell a query the user's name
    places = {"temp_directory": own, "secret_directory": own}
    lean |= {name: value.format(path=known) for name, value in _BOUNDS.items()}
    engine = duckdb.connect(config={**_CONFINED, **places, **lean})
    allowed = [str(each) for file in (path, copy_draft(path)) for each in own_files(file)]
    engine.execute("SET allowed_paths = ?", [allowed])
    engine.execute("SET enable_external_access = false")
    engine.execute("SET lock_configuration = true")
    return engine


def refuse_functions(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Refuse to write where functions in place of DuckDB's would run in the file's views."""
    found = connection.execute(
        "SELECT lower(function_name) AS name FROM duckdb_functions() GROUP BY name "
        "HAVING bool_or(database_name = ?) AND bool_or(internal) ORDER BY name",
        [DATABASE],
    ).fetchall()
    if found:
        names = plain(", ".join(name for (name,) in found), 80)
        raise NotAStoreError(
            f"{path} has functions in place of DuckDB's ({names}), which its views would run; it "
            "can be read and is not written to: drop them, or load into another file",
            path=str(path),
        )


def _refuse_views(engine: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Refuse views in place of our tables."""
    views = engine.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    ours = {table.name for table in TABLES}
    if found := sorted(name for (name,) in views if name.lower() in ours):
        raise NotAStoreError(
            f"{path} has views in place of tables ({', '.join(found)}), which run somebody's "
            "queries; it is not a store of this toolkit: name another file",
            path=str(path),
        )
