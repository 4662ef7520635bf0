"""The end of the process: it interrupts the work of daemon threads, and waits for it.

Python ends daemon threads wherever they are. In DuckDB or polars that aborts the process with
status 134.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_PATIENCE_S = 30.0  # a page decoded or a batch written, however busy the machine is


@dataclass(eq=False, slots=True)
class _UnderWay:
    interrupt: Callable[[], object] | None
    thread: threading.Thread = field(default_factory=threading.current_thread)


_calls = list[_UnderWay]()
_outside = Counter[threading.Thread]()
_changing = threading.Condition()
_ends = threading.Event()


@contextlib.contextmanager
def under_way(
    interrupt: Callable[[], object] | None = None, *, finishes: bool = False
) -> Iterator[None]:
    """Have the end of the process interrupt a block, and wait for it for half a minute at most.

    ``interrupt`` is called by another thread. A daemon thread then ends quietly at an error, or
    when it begins a block, unless the block ``finishes`` work under way.

    >>> with under_way():
    ...     print("the process does not end here")
    the process does not end here
    """
    call = _UnderWay(interrupt)
    with _changing:
        inside = finishes and any(each.thread is call.thread for each in _calls)
        if nobody_waits() and not inside:
            raise SystemExit
        _calls.append(call)
        atexit.unregister(_end_calls)  # what is registered last is called first, so before the end
        atexit.register(_end_calls)  # of a local service, whose absence a worker would wait out
    try:
        yield
    except BaseException as error:
        if not nobody_waits():
            raise
        _let_go(error)
        if isinstance(error, Exception):
            raise SystemExit from None
        raise
    finally:
        with _changing:
            _calls.remove(call)
            _changing.notify_all()


def _let_go(error: BaseException | None) -> None:
    """Drop what the frames of an error hold: a cursor's end would take Python's lock once more."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """Mark a block that only waits for an answer: the end of the process does not wait for it.

    A daemon thread then ends quietly after it. The block must not call DuckDB or polars.

    >>> with under_way(), outside():
    ...     print("the process may end here")
    the process may end here
    """
    thread = threading.current_thread()
    with _changing:
        _outside[thread] += 1
        _changing.notify_all()
    try:
        yield
    finally:
        with _changing:
            _outside[thread] -= 1
            if not _outside[thread]:
                del _outside[thread]
            if nobody_waits():
                raise SystemExit


def is_outside(thread: threading.Thread) -> bool:
    """Return whether a thread only waits, see `outside`."""
    return thread in _outside


def nobody_waits() -> bool:
    """Return whether this is a daemon thread of a process that ends."""
    return _ends.is_set() and threading.current_thread().daemon


def _end_calls() -> None:
    this = threading.current_thread()
    with _changing:
        _ends.set()
        interrupts = [each.interrupt for each in _calls if each.thread is not this]
    for interrupt in interrupts:
        if interrupt is not None:
            interrupt()
    with _changing:
        _changing.wait_for(
            lambda: all(each.thread is this or each.thread in _outside for each in _calls),
            _PATIENCE_S,
        )
