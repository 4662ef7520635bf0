"""Commands of `rail` for a reader to paste, with the store and the service that they act on."""

from __future__ import annotations

import os
import re
from contextvars import ContextVar
from pathlib import Path

from toolkit.foreign import Command, command

DEFAULT_BASE_URL = "http://127.0.0.1:8700"
"""Where `rail serve` listens, and where a command asks that names no service."""

DEFAULT_STORE = "rail.duckdb"
"""The store of a command that names none."""

_ADDRESS = re.compile(r"https?://[\w.:/\[\]%~-]{1,200}", re.ASCII)
_TAKES_STORE = frozenset(
    ("app", "follow", "import", "report", "screen", "stats", "status", "store", "sync", "webhook")
)
_TAKES_ADDRESS = {"doctor", "follow", "symbols", "sync", "webhook"}
_PLACE: ContextVar[tuple[Path | str | None, str | None]] = ContextVar("place", default=(None, None))


def shown_for(store: Path | str | None, base_url: str | None = None) -> None:
    """Let the commands that this thread shows from now on act on a store and a service."""
    _PLACE.set((store, base_url))


def rail(*words: str, store: Path | str | None = None, base_url: str | None = None) -> Command:
    """Return a command line of `rail` for the reader's own terminal.

    ``store`` and ``base_url`` default to those of `shown_for`. They are added where the command
    takes them and would use others. A ``base_url`` that is not an address is left out.

    >>> rail("sync", "A_B:X.spot"), rail("sync", "A_B:X.spot", store=Path("rail.duckdb"))
    ('rail sync A_B:X.spot', 'rail sync A_B:X.spot')
    >>> rail("sync", "A_B:X.spot", store=Path("b.duckdb"), base_url="https://rail.example")
    'rail sync A_B:X.spot --store b.duckdb --base-url https://rail.example'
    >>> rail("status", store=Path("b.duckdb"), base_url="https://rail.example")
    'rail status --store b.duckdb'
    """
    if store is None and base_url is None:
        store, base_url = _PLACE.get()
    options: list[str] = []
    if store and words[0] in _TAKES_STORE and not _is_usual(str(store), DEFAULT_STORE, "STORE"):
        options += ["--store", str(store)]
    if base_url and words[0] in _TAKES_ADDRESS and _ADDRESS.fullmatch(base_url):
        usual = _is_usual(base_url.rstrip("/"), DEFAULT_BASE_URL, "BASE_URL")
        options += [] if usual else ["--base-url", base_url]
    return command("rail", *words, *options)


def _is_usual(value: str, usual: str, variable: str) -> bool:
    return value == usual and not os.environ.get(f"RAIL_{variable}")
