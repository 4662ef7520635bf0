"""Ctrl-C: one press ends a block with one `KeyboardInterrupt`, after the block has cleaned up.

polars and DuckDB end their queries for the signal too, so one press can arrive twice: as a query's
error, then as Python's own while the block cleans up.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, cast

from toolkit.errors import StoppedError

_OF_DUCKDB = ("Query interrupted", "failed: KeyboardInterrupt: ")
"""The ends of its errors after a Ctrl-C: in a query, or while it takes over a frame."""


def _in_one_line(error: Any) -> KeyboardInterrupt:
    """Return the error, shown in one line by a notebook. A subclass would not end a program."""
    error._render_traceback_ = lambda: ["KeyboardInterrupt: stopped; what was committed is kept"]
    return cast("KeyboardInterrupt", error)


@contextlib.contextmanager
def one_interrupt() -> Iterator[None]:
    """Let a Ctrl-C end the block with `KeyboardInterrupt`, whatever error it led to.

    In the main thread, a press that ended a query is not raised again while the block cleans up. An
    ignored Ctrl-C stays ignored.

    >>> try:
    ...     with one_interrupt():
    ...         raise RuntimeError("Query interrupted")
    ... except KeyboardInterrupt:
    ...     print("as Python does")
    as Python does
    """
    with _noted() as came:
        try:
            yield
        except StoppedError:  # a command's own words for it
            raise
        except Exception as error:
            if came or _is_interrupt(error):
                raise _in_one_line(KeyboardInterrupt()) from None
            raise
        except KeyboardInterrupt as error:
            raise _in_one_line(error) from None  # without the errors that it led to meanwhile


@contextlib.contextmanager
def later_interrupt() -> Iterator[None]:
    """Delay a Ctrl-C of the main thread until the end of a block that must not be left half done.

    >>> with later_interrupt():
    ...     print("whole")
    whole
    """
    usual = signal.getsignal(signal.SIGINT)
    came: list[FrameType | None] = []
    with _handled_by(lambda _number, frame: came.append(frame)):
        yield
    if came and callable(usual):
        usual(signal.SIGINT, came[-1])


@contextlib.contextmanager
def _noted() -> Iterator[list[int]]:
    came: list[int] = []
    usual = signal.getsignal(signal.SIGINT)

    def noted(number: int, frame: FrameType | None) -> None:
        already_raised = not came and _is_interrupt(sys.exception())
        came.append(number)
        if callable(usual) and not already_raised:
            usual(number, frame)

    with _handled_by(noted):
        yield came


@contextlib.contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    usual = signal.getsignal(signal.SIGINT)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not (in_main_thread and callable(usual)):
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is handler:  # else somebody has set it in the meantime
            signal.signal(signal.SIGINT, usual)


def _is_interrupt(error: BaseException | None) -> bool:
    """Return whether an error, or one that it replaced, comes of a Ctrl-C."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or str(error).endswith(_OF_DUCKDB):
            return True
        error = error.__cause__ or error.__context__
    return False
