"""The queue of those who wait for a store, in all processes: each is served by its number.

DuckDB's lock has no order: of many that try again and again, one may never get the file. So a use
that finds it locked, or others waiting, puts an empty file into a folder beside the store. Its name
begins with its number. Writers are numbered by the time of coming, and wait for all numbers before
theirs. A reader's number is next to that of the writer that is first in line. So it waits for that
one alone, and readers go together between two writers. Who has opened the store takes its file
away, the last one the folder.

Who waits touches its file at each look. One that was not touched lately is of a process that was
killed or suspended: it counts no more, and is removed. Where no folder can be made or seen there
is no order, and DuckDB's lock alone decides, as it always does who may write.

Source: docs/design.md, "One file, opened per use".
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from pathlib import Path

_LATELY_S = 2.0  # looks are 0.02 s apart, but a machine may be busy
_NAME = re.compile(r"\d{20}-\d+-\d+-(read|write)")
_READ, _WRITE = "read", "write"


def queue_folder(path: Path) -> Path:
    """Return the folder in which those who wait for a store have their files.

    Examples
    --------
    >>> queue_folder(Path("data/rail.duckdb"))
    PosixPath('data/.rail.duckdb.queue')
    """
    return path.with_name(f".{path.name}.queue")


def waiting_for(path: Path) -> list[tuple[int, str]]:
    """Return who waits for a store now, in order: the process, and whether to read or to write it.

    >>> waiting_for(Path("nowhere.duckdb"))
    []
    """
    places = (name.split("-") for name in Place(path, writable=False).waiting())
    return [(int(process), use) for _, process, _, use in places]


class Place:
    """One use's place in the queue. Other threads of this process have places of their own."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self._folder = queue_folder(path)
        self._writable = writable
        self._file: Path | None = None

    def may_go(self) -> bool:
        """Return whether nobody waits whom this use lets go first."""
        return not any(
            (self._file is None or name < self._file.name)
            and (self._writable or name.endswith(_WRITE))
            for name in self.waiting()
        )

    def keep(self) -> None:
        """Take a place, or keep the one that was taken."""
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
        """Return the names of those who wait, in order. Remove what who is gone has left."""
        try:
            found = sorted(file.name for file in self._folder.iterdir())
        except OSError:
            return []
        places = filter(_NAME.fullmatch, found)
        return [name for name in places if _is_kept(self._folder / name)]


def _is_kept(file: Path) -> bool:
    """Return whether somebody keeps this place. One that nobody keeps is removed."""
    try:
        kept = abs(time.time() - file.stat().st_mtime) <= _LATELY_S
    except OSError:
        return False
    if not kept:
        _remove(file)
    return kept


def _remove(file: Path) -> None:
    """Remove a place, and the folder where it was the last one."""
    with contextlib.suppress(OSError):
        file.unlink()
        file.parent.rmdir()
