"""The command line `rail`: one file for each command, errors as one line, never a traceback."""

from __future__ import annotations

import logging
import os
import signal
import sys

from toolkit.cli.exit_codes import ExitCode
from toolkit.errors import RailError, StoppedError
from toolkit.foreign import plain
from toolkit.interrupts import one_interrupt

__all__ = ["main"]

_LONGEST = 4_000
"""Characters of an error's line at most."""


def main() -> None:
    """Run `rail`, and exit by the table of `ExitCode`.

    ``RAIL_DEBUG=1`` lets a traceback through, for reporting a fault of the toolkit's own.
    """
    try:
        with one_interrupt():
            from toolkit.cli.root import app  # noqa: PLC0415 - Ctrl-C may come while this loads

            app()
    except (StoppedError, KeyboardInterrupt) as stopped:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # one more ends the process without a word
        error = stopped if isinstance(stopped, StoppedError) else StoppedError()
        _leave(str(error), ExitCode.STOPPED)
    except Exception as error:
        if os.environ.get("RAIL_DEBUG"):
            raise
        if isinstance(error, RailError):
            _leave(str(error), ExitCode.REFUSED)
        kind = type(error).__name__
        _leave(
            f"a fault of the toolkit ({kind}: {error}); RAIL_DEBUG=1 shows where",
            ExitCode.FAULT,
        )


def _leave(message: str, code: ExitCode) -> None:
    if code is ExitCode.STOPPED:
        logging.disable()  # threads that still wait have nothing to add to the last line
    sys.stderr.write(f"rail: {plain(message, _LONGEST)}\n")
    sys.exit(code)
