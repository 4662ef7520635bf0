"""The follows of a store: the mark of each that runs, and the lease of the one that may.

Each `rail follow` keeps a file beside the store locked until its process ends. The time of the file
is when the rules of alerts were last evaluated.

A lease is a small file in a folder or an object store that several processes reach.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from toolkit.errors import InputError, StoreError
from toolkit.files import locked, open_own, read_own, write_own
from toolkit.market import format_ts
from toolkit.store.publish.destinations import Bucket, Destination, Folder

_MOST = 100
_LOOK_S = 1.0
_TEXT_AT = 1  # Windows locks the first byte, and lets nobody read it meanwhile


class RunningFollow(NamedTuple):
    """A running follow: its process, and when it last evaluated the rules (Unix s), if ever."""

    pid: int
    evaluated_at: float | None


def follow_mark(path: Path, number: int = 0) -> Path:
    """Return the file that a follow of a store keeps locked. Each of several has its own number."""
    return path.with_name(f".{path.name}.follow-{number}")


def running_follow(path: Path) -> RunningFollow | None:
    """Return the follow that keeps a store current now, None without one.

    Of several it is the one that evaluated rules last. A follow on another machine counts if the
    file system passes locks on.
    """
    try:
        names = {each.name for each in path.parent.iterdir()}
    except OSError:
        return None
    marks = (follow_mark(path, number) for number in range(_MOST))
    running = [found for mark in marks if mark.name in names and (found := _running(mark))]
    return max(running, key=lambda found: found.evaluated_at or 0.0, default=None)


def _running(mark: Path) -> RunningFollow | None:
    """Return the follow that keeps a mark locked. Remove a mark that nobody keeps, if possible."""
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


@dataclass(slots=True)
class FollowMark:
    """The mark of one follow of a store, locked for as long as the block lasts.

    If no file can be made, the follow goes on without one, unknown to others.
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
            taken = locked(file) and os.path.samestat(mark.stat(), os.fstat(file))
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


LENGTH_S = 60.0
"""How long a lease is held without being renewed (s)."""


class LeaseFile(msgspec.Struct, frozen=True):
    """The content of the file: the holder in words and by its own number, and until when."""

    holder: str
    number: str
    until: float


@dataclass(slots=True)
class Lease:
    """The lease that a file is. ``where`` is its path, or its address in an object store.

    A holder renews it three times in ``length_s`` (s). Another takes it when it was not renewed for
    a tenth more than that, since clocks may differ. Raises `InputError` for a ``where`` without a
    name, and `StoreError` where it cannot be reached.
    """

    where: str
    length_s: float = LENGTH_S
    holder: str = field(default_factory=lambda: f"{platform.node()}, process {os.getpid()}")
    number: str = field(default_factory=lambda: uuid.uuid4().hex)
    _place: Destination = field(init=False, repr=False)
    _name: str = field(init=False)
    _until: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        folder, _, self._name = self.where.rpartition("/")
        if not self._name or ("://" in self.where and folder.endswith("/")):
            raise InputError("lease", self.where, "a file, or the address of one in a bucket")
        self._place = Bucket(folder) if "://" in self.where else Folder(Path(folder or "."))

    def take(self) -> str | None:
        """Take or renew it. Return None, or who else holds it."""
        content, held = self._read()
        free = held is None or held.number == self.number
        now = time.time()
        if held is not None and not free and now < held.until + self.length_s / 10:
            return held.holder
        mine = LeaseFile(self.holder, self.number, now + self.length_s)
        if not self._place.exchange(self._name, content, msgspec.json.encode(mine)):
            return "another process, just now"
        self._until = mine.until
        return None

    @property
    def lasts(self) -> bool:
        """Whether it is still held, by the last time that it was taken."""
        return time.time() < self._until

    def release(self) -> None:
        """Give it back, if it is still held."""
        content, held = self._read()
        if held is not None and held.number == self.number:
            gone = LeaseFile(self.holder, "", 0.0)
            self._place.exchange(self._name, content, msgspec.json.encode(gone))
        self._until = 0.0

    def _read(self) -> tuple[bytes | None, LeaseFile | None]:
        """Return the file's bytes and what they say, None without a file."""
        if self._name not in self._place.files():
            return None, None
        content = self._place.read(self._name)
        try:
            return content, msgspec.json.decode(content, type=LeaseFile)
        except msgspec.MsgspecError:
            raise StoreError(
                f"{self.where} is not a lease; name another file", path=self.where
            ) from None


@contextlib.contextmanager
def holding(
    lease: Lease | None, stop: threading.Event, on_note: Callable[[str], object]
) -> Iterator[bool]:
    """Wait for a lease, hold it for the length of the block, and give it back.

    Yields whether it is held, True for no lease. ``stop`` ends the waiting, and is set if the lease
    was not renewed in time. ``on_note`` gets a sentence on either.
    """
    if lease is None:
        yield True
        return
    if not _waited(lease, stop, on_note):
        yield False
        return
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(lease, ended, stop, on_note), daemon=True)
    renewing.start()
    try:
        yield True
    finally:
        ended.set()
        renewing.join()
        with contextlib.suppress(StoreError):  # it ends by itself
            lease.release()


def _waited(lease: Lease, stop: threading.Event, on_note: Callable[[str], object]) -> bool:
    """Take the lease as soon as it is free. Return whether that was before ``stop``."""
    waits_for = ""
    while not stop.is_set():
        holder = lease.take()
        if holder is None:
            return True
        if holder != waits_for:
            waits_for = holder
            on_note(f"{lease.where} is held by {holder}: waiting")
        stop.wait(lease.length_s / 6)
    return False


def _renew(
    lease: Lease, ended: threading.Event, stop: threading.Event, on_note: Callable[[str], object]
) -> None:
    while not ended.wait(lease.length_s / 3):
        try:
            holder = lease.take()
        except StoreError as error:
            holder, why = None, str(error)
        else:
            why = f"it is held by {holder}"
        if holder is not None or not lease.lasts:
            at = format_ts(int(time.time()))
            on_note(f"{lease.where} was lost at {at}, {why}: this one stops")
            stop.set()
            return
