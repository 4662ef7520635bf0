"""The command line `rail`: one file for each command, errors as one line, never a traceback."""

from __future__ import annotations

import os
import sys

from toolkit.cli.exit_codes import ExitCode
from toolkit.cli.root import app
from toolkit.errors import RailError, StoppedError
from toolkit.foreign import plain

__all__ = ["main"]

_LONGEST = 4_000
"""Characters of an error's line at most."""


def main() -> None:
    """Run `rail`, and exit by the table of `ExitCode`.

    ``RAIL_DEBUG=1`` lets a traceback through, for reporting a fault of the toolkit's own.
    """
    try:
        app()
    except (StoppedError, KeyboardInterrupt):
        _leave(
            "stopped; what was committed is kept, the same command goes on from there",
            ExitCode.STOPPED,
        )
    except RailError as error:
        if os.environ.get("RAIL_DEBUG"):
            raise
        _leave(str(error), ExitCode.REFUSED)
    except Exception as error:
        if os.environ.get("RAIL_DEBUG"):
            raise
        kind = type(error).__name__
        said = f"a fault of the toolkit ({kind}: {error}); RAIL_DEBUG=1 shows where"
        _leave(said, ExitCode.FAULT)


def _leave(message: str, code: ExitCode) -> None:
    sys.stderr.write(f"rail: {plain(message, _LONGEST)}\n")
    sys.exit(code)
