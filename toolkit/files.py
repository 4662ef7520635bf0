"""Small files of our own: links, locks and names, on any system."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def open_own(path: Path, *, make: bool = True) -> int:
    """Open a file that is not a link, to read, or also to write (``make``). Raises `OSError`."""
    return os.open(path, (os.O_RDWR | os.O_CREAT if make else os.O_RDONLY) | _PLAIN, 0o600)


def read_own(file: int, at: int = 0) -> bytes:
    """Return the content of a small file from an offset on."""
    os.lseek(file, at, os.SEEK_SET)
    return os.read(file, 4_096)


def write_own(file: int, content: bytes, at: int = 0) -> None:
    """Replace the content of a small file from an offset on."""
    os.lseek(file, at, os.SEEK_SET)
    os.write(file, content)
    os.ftruncate(file, at + len(content))


def locked(file: int, *, waits: bool = False) -> bool:
    """Lock an open file until it is closed; return whether that was possible, or wait for it.

    Raises `OSError` if there are no locks.
    """
    from filelock import lock_descriptor  # noqa: PLC0415 - 50 ms, and few commands lock

    return lock_descriptor(file, blocking=waits)


def replace_file(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Write a file of which others see the old content or all of the new, with its ``mode``.

    Raises `OSError`, and then leaves nothing behind.
    """
    draft = path.with_name(f".{uuid.uuid4().hex}.new")
    try:
        access = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN
        with os.fdopen(os.open(draft, access, 0o666 if mode is None else 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            draft.chmod(mode)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def keep_names(folder: Path) -> None:
    """Wait until the names in a folder are on disk. Windows has no call for it."""
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
