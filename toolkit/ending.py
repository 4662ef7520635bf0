"""The end of the process, and what its daemon threads have under way then.

Python ends a daemon thread wherever it is. In the middle of DuckDB's or polars' own code that
aborts the whole process, with status 134 in place of the script's own. So whatever may run in such
a thread is marked as under way. The end of the process interrupts it and waits until it has let go.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_PATIENCE_S = 3.0  # a page decoded, a batch written; who waits for the network may be left there


@dataclass(eq=False, slots=True)
class _UnderWay:
    """Work of one thread: how it is interrupted, how long it is waited for, whether it is over."""

    interrupt: Callable[[], object] | None
    patience_s: float
    thread: threading.Thread = field(default_factory=threading.current_thread)
    over: threading.Event = field(default_factory=threading.Event)


_calls = list[_UnderWay]()
_changing = threading.Lock()
_ends = threading.Event()


@contextlib.contextmanager
def under_way(
    interrupt: Callable[[], object] | None = None,
    *,
    patience_s: float = _PATIENCE_S,
    finishes: bool = False,
) -> Iterator[None]:
    """Have the end of the process interrupt a block and wait for it.

    ``interrupt`` is called by another thread. The wait lasts ``patience_s`` at most. In a daemon
    thread an error is no error any more then, since nobody is left to hear of it: the thread ends,
    quietly. So does one that begins a block then, unless the block ``finishes`` what this thread
    has under way.

    >>> with under_way():
    ...     print("the process does not end here")
    the process does not end here
    """
    call = _UnderWay(interrupt, patience_s)
    with _changing:
        inside = finishes and any(each.thread is call.thread for each in _calls)
        if nobody_waits() and not inside:
            raise SystemExit
        _calls.append(call)
        atexit.unregister(_end_calls)  # what is registered last is called first, so before the end
        atexit.register(_end_calls)  # of a local service, whose absence a worker would wait out
    try:
        yield
    except Exception:
        if nobody_waits():
            raise SystemExit from None
        raise
    finally:
        with _changing:
            _calls.remove(call)
        call.over.set()


def nobody_waits() -> bool:
    """Return whether the process ends and this is a daemon thread, which nobody waits for."""
    return _ends.is_set() and threading.current_thread().daemon


def _end_calls() -> None:
    """Interrupt what other threads have under way, and wait for it."""
    with _changing:
        _ends.set()
        calls = [each for each in _calls if each.thread is not threading.current_thread()]
    for call in calls:
        if call.interrupt is not None:
            call.interrupt()
    began = time.monotonic()
    for call in calls:
        call.over.wait(max(0.0, began + call.patience_s - time.monotonic()))
