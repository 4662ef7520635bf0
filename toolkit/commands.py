"""Commands of `rail` for a reader to paste, and the exit codes of all of them."""

from __future__ import annotations

import os
import re
from contextvars import ContextVar
from enum import IntEnum
from pathlib import Path
from typing import Self

from toolkit.foreign import Command, command

DEFAULT_BASE_URL = "http://127.0.0.1:8700"
"""The address of `rail serve`, and the service that a command asks by default."""

DEFAULT_STORE = "rail.duckdb"
"""The store that a command uses by default."""

_ADDRESS = re.compile(r"https?://[\w.:/\[\]%~-]{1,200}", re.ASCII)
_TAKES_STORE = frozenset(
    ("app", "follow", "import", "report", "screen", "stats", "status", "store", "sync", "webhook")
)
_TAKES_ADDRESS = {"doctor", "follow", "symbols", "sync", "webhook"}
_PLACE: ContextVar[tuple[Path | str | None, str | None]] = ContextVar("place", default=(None, None))


def shown_for(store: Path | str | None, base_url: str | None = None) -> None:
    """Let the commands that this thread shows from now on name a store and a service."""
    _PLACE.set((store, base_url))


def rail(*words: str, store: Path | str | None = None, base_url: str | None = None) -> Command:
    """Return a command line of `rail` for the reader's own terminal.

    ``store`` and ``base_url`` default to those of `shown_for`. Each is added if the command would
    otherwise use another. A ``base_url`` that is not an address is left out.

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


class ExitCode(IntEnum):
    """The exit codes of `rail`, each with its meaning in one line. The numbers never change.

    >>> ExitCode.PARTLY, ExitCode.PARTLY.words
    (<ExitCode.PARTLY: 3>, 'some streams were loaded, or can be (rail doctor), others were refused')
    """

    words: str

    def __new__(cls, value: int, words: str) -> Self:
        """Give a number its meaning."""
        code = int.__new__(cls, value)
        code._value_ = value
        code.words = words
        return code

    DONE = 0, "did what was asked"
    REFUSED = 1, "refused or could not; one line on stderr says why"
    USAGE = 2, "no such command or option, or one of the wrong form"
    PARTLY = 3, "some streams were loaded, or can be (rail doctor), others were refused"
    FAULT = 70, "a fault of the toolkit; RAIL_DEBUG=1 shows where"
    STOPPED = 130, "stopped by Ctrl-C; what was committed is kept"
    ENDED = 143, "ended by SIGTERM"


def exit_codes() -> str:
    """Return the table of exit codes as text, one line per code.

    >>> print(exit_codes().splitlines()[1])
      0    did what was asked
    """
    return "\n".join(["Exit codes:", *(f"  {code.value:<3}  {code.words}" for code in ExitCode)])
