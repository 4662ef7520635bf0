"""The mark of a follow: a file beside the store that each `rail follow` keeps locked while it runs.

The kernel lets go of the lock when a process ends, however it ends. So a mark that is locked is of
a follow that runs now, and one that a killed process left behind means nothing. The time of the
file is when the rules of alerts were last evaluated.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

from toolkit.files import locked, open_own, read_own, write_own

_MOST = 100
_LOOK_S = 1.0
_TEXT_AT = 1  # Windows locks the first byte, and lets nobody read it meanwhile


class RunningFollow(NamedTuple):
    """A follow that runs now: its process, and when it last evaluated the rules (Unix s, local).

    ``evaluated_at`` is None before the first evaluation.
    """

    pid: int
    evaluated_at: float | None


def follow_mark(path: Path, number: int = 0) -> Path:
    """Return the file that a follow of a store keeps locked. Each of several has its own number.

    >>> follow_mark(Path("data/rail.duckdb"))
    PosixPath('data/.rail.duckdb.follow-0')
    """
    return path.with_name(f".{path.name}.follow-{number}")


def running_follow(path: Path) -> RunningFollow | None:
    """Return the follow that keeps a store current now, None without one.

    Of several it is the one that evaluated rules last. A follow on another machine counts where the
    file system passes locks on.

    >>> running_follow(Path("nowhere.duckdb")) is None
    True
    """
    try:
        names = {each.name for each in path.parent.iterdir()}
    except OSError:
        return None
    marks = (follow_mark(path, number) for number in range(_MOST))
    running = [found for mark in marks if mark.name in names and (found := _running(mark))]
    return max(running, key=lambda found: found.evaluated_at or 0.0, default=None)


def _running(mark: Path) -> RunningFollow | None:
    """Return the follow that keeps a mark locked. A mark that nobody keeps goes, where it can."""
    with contextlib.suppress(OSError):
        file = open_own(mark, make=False)
        try:
            if locked(file):
                mark.unlink()
                return None
            pid, _, evaluated = read_own(file, _TEXT_AT).decode("ascii", "replace").partition(" ")
            at = os.fstat(file).st_mtime if evaluated else None
            return RunningFollow(int(pid), at) if pid.isdecimal() else None
        finally:
            os.close(file)
    return None


def _is_at(mark: Path, file: int) -> bool:
    return os.path.samestat(mark.stat(), os.fstat(file))


@dataclass(slots=True)
class FollowMark:
    """The mark of one follow of a store, locked for as long as the block lasts.

    Where no file can be made, the follow goes on without one, and nobody else knows of it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Path(folder, "rail.duckdb")
    ...     with FollowMark(store):
    ...         running_follow(store).pid == os.getpid()
    ...     running_follow(store) is None
    True
    True
    """

    path: Path
    _file: int | None = field(default=None, init=False)
    _mark: Path | None = field(default=None, init=False)
    _noted: float = field(default=0.0, init=False)

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError):
            files = (self._locked(number) for number in range(_MOST))
            self._file = next((file for file in files if file is not None), None)
            self._write(str(os.getpid()))
        return self

    def _locked(self, number: int) -> int | None:
        mark = follow_mark(self.path, number)
        file = open_own(mark)
        try:  # it is another follow's, or looked at just now, or its follow just removed it
            taken = locked(file) and _is_at(mark, file)
        except FileNotFoundError:
            taken = False
        except OSError:  # there are no locks
            os.close(file)
            mark.unlink()
            raise
        if not taken:
            os.close(file)
            return None
        self._mark = mark
        return file

    def evaluated(self) -> None:
        """Note that the rules of alerts were evaluated now, at most once per second."""
        if time.monotonic() - self._noted >= _LOOK_S:
            self._noted = time.monotonic()
            with contextlib.suppress(OSError):
                self._write(f"{os.getpid()} evaluated")

    def _write(self, text: str) -> None:
        if self._file is not None:
            write_own(self._file, text.encode(), _TEXT_AT)

    def __exit__(self, *_: object) -> None:
        if self._file is not None and self._mark is not None:
            with contextlib.suppress(OSError):
                self._mark.unlink()
            os.close(self._file)
            self._file = None
