"""The command line `rail`: errors are one line, never a traceback."""

from __future__ import annotations

import atexit
import io
import logging
import os
import signal
import sys

from toolkit.commands import ExitCode
from toolkit.errors import RailError, StoppedError
from toolkit.foreign import plain
from toolkit.interrupts import one_interrupt

__all__ = ["main", "program"]

_LONGEST = 4_000  # characters of an error's line


def program() -> None:
    """Run `main` as a process, which ends after its threads and exit hooks.

    Python would take long to tear modules down. A traced or profiled process keeps Python's own
    end.
    """
    code: object = ExitCode.REFUSED  # as Python has it after a traceback
    if sys.gettrace() is None and sys.getprofile() is None:
        atexit.register(lambda: _end(code))  # the first: it is called last
    try:
        main()
        code = ExitCode.DONE
    except SystemExit as ended:
        code = ended.code or ExitCode.DONE


def _end(code: object) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):  # nobody reads it any more
            continue
        except OSError as error:
            code = code or ExitCode.REFUSED
            if stream is sys.stdout:
                sys.stderr.write(f"rail: the output could not be written whole: {error}\n")
    os._exit(code if isinstance(code, int) else ExitCode.FAULT)


def main() -> None:
    """Run `rail`, and exit with an `ExitCode`. ``RAIL_DEBUG=1`` lets tracebacks through."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a locale has no character for is escaped
            stream.reconfigure(errors="backslashreplace")
    _log_in_lines()
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
            f"a fault of the toolkit ({kind}: {error}); RAIL_DEBUG=1 shows where", ExitCode.FAULT
        )


def _log_in_lines() -> None:
    """Log the toolkit's warnings and others' errors on stderr, one line per record.

    With ``RAIL_DEBUG=1`` logs stay as Python has them, with tracebacks and others' warnings.
    """
    if logging.lastResort is not None and not os.environ.get("RAIL_DEBUG"):
        logging.lastResort.setFormatter(_Line())
        logging.lastResort.addFilter(_is_shown)


def _is_shown(record: logging.LogRecord) -> bool:
    ours = record.name.partition(".")[0] == __name__.partition(".")[0]
    return ours or record.levelno >= logging.ERROR


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fault = record.exc_info[1] if record.exc_info else None
        why = f" ({type(fault).__name__}: {fault})" if fault else ""
        return plain(record.getMessage() + why, _LONGEST)


def _leave(message: str, code: ExitCode) -> None:
    handler = logging.lastResort or logging.NullHandler()
    handler.acquire()  # threads that still wait have nothing to add to the last line
    if code is ExitCode.STOPPED:
        logging.disable()
        handler.emit = lambda _record: None  # type: ignore[assignment]  # one may wait for its turn
    sys.stderr.write(f"rail: {plain(message, _LONGEST)}\n")
    handler.release()
    sys.exit(code)
