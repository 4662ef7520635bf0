"""The command line `rail`: one file for each command, errors as one line, never a traceback."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType

from toolkit.cli.exit_codes import ExitCode
from toolkit.errors import RailError, StoppedError
from toolkit.foreign import plain

__all__ = ["main"]

_LONGEST = 4_000
"""Characters of an error's line at most."""


def main() -> None:
    """Run `rail`, and exit by the table of `ExitCode`.

    ``RAIL_DEBUG=1`` lets a traceback through, for reporting a fault of the toolkit's own.
    """
    with _interrupts() as interrupted:
        try:
            from toolkit.cli.root import app  # noqa: PLC0415 - Ctrl-C may come while this loads

            app()
        except (StoppedError, KeyboardInterrupt) as stopped:
            error = stopped if isinstance(stopped, StoppedError) else StoppedError()
            _leave(str(error), ExitCode.STOPPED)
        except Exception as error:
            # An interrupted library may end with an error of its own, DuckDB with a RuntimeError.
            if interrupted:
                _leave(str(StoppedError()), ExitCode.STOPPED)
            if os.environ.get("RAIL_DEBUG"):
                raise
            if isinstance(error, RailError):
                _leave(str(error), ExitCode.REFUSED)
            kind = type(error).__name__
            _leave(
                f"a fault of the toolkit ({kind}: {error}); RAIL_DEBUG=1 shows where",
                ExitCode.FAULT,
            )


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Note each Ctrl-C, besides its usual effect. Where it is ignored, it stays so."""
    seen: list[int] = []

    def noted(number: int, _frame: FrameType | None) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, noted)
    try:
        yield seen
    finally:
        if usual:  # one more Ctrl-C, while the process ends, ends it at once and without a word
            signal.signal(signal.SIGINT, signal.SIG_DFL if seen else signal.default_int_handler)


def _leave(message: str, code: ExitCode) -> None:
    sys.stderr.write(f"rail: {plain(message, _LONGEST)}\n")
    sys.exit(code)
