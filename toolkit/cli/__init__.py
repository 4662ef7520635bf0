"""The command line `rail`: one file for each command, errors as one line, never a traceback."""

from __future__ import annotations

import os
import sys

from toolkit.cli.root import app
from toolkit.errors import RailError, StoppedError
from toolkit.foreign import plain

__all__ = ["main"]

_LONGEST = 4_000
"""Characters of an error's line at most."""


def main() -> None:
    """Run `rail`. Exit 0 when it did what was asked, 1 when it refused or could not.

    `rail sync` exits 3 when it loaded some streams and others were refused.

    ``RAIL_DEBUG=1`` lets a traceback through, for reporting a fault of the toolkit's own.
    """
    try:
        app()
    except (StoppedError, KeyboardInterrupt):
        _leave("stopped; what was committed is kept, the same command goes on from there", 130)
    except RailError as error:
        if os.environ.get("RAIL_DEBUG"):
            raise
        _leave(str(error), 1)
    except Exception as error:
        if os.environ.get("RAIL_DEBUG"):
            raise
        kind = type(error).__name__
        _leave(f"a fault of the toolkit ({kind}: {error}); RAIL_DEBUG=1 shows where", 70)


def _leave(message: str, code: int) -> None:
    sys.stderr.write(f"rail: {plain(message, _LONGEST)}\n")
    sys.exit(code)
