"""Where the dashboard over a store runs: a note beside the store, for as long as it does."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path

_NOTE = re.compile(r"(?P<pid>\d+) (?P<address>http://[^\s/]+:\d{1,5})\n")
_HEALTH_S = 2.0


def note_path(store: Path) -> Path:
    """Return the file that names the dashboard over a store.

    >>> note_path(Path("data/rail.duckdb"))
    PosixPath('data/.rail.duckdb.app')
    """
    return store.with_name(f".{store.name}.app")


@contextlib.contextmanager
def noted(store: Path, address: str) -> Iterator[None]:
    """Keep the note while the block lasts. Where none can be written, the dashboard runs without.

    Of two dashboards over one store the note names the one that began last.
    """
    path, text = note_path(store), f"{os.getpid()} {address}\n"
    with contextlib.suppress(OSError):
        path.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if path.read_text(encoding="utf-8") == text:
                path.unlink()


def running_address(store: Path) -> str | None:
    """Return the address of the dashboard over a store, None where none runs.

    A note counts while its process lives and its address answers as a dashboard does.
    """
    try:
        note = _NOTE.fullmatch(note_path(store).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    if note is None or not _lives(int(note["pid"])) or not answers(note["address"]):
        return None
    return note["address"]


def answers(address: str) -> bool:
    """Return whether a dashboard answers at an address. No proxy is asked on the way."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    connection = HTTPConnection(host.strip("[]"), int(port), timeout=_HEALTH_S)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().read(2) == b"ok"
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _lives(pid: int) -> bool:
    if os.name != "posix":
        return True  # there a signal that only looks would end the process
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
