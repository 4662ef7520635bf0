"""Threads that carry out the tasks of a load or a sweep, one after another until all are done."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from toolkit.ending import under_way
from toolkit.loader.sync.tasks import Piece, Task

_LOOK_S = 0.5  # a wait without an end would not notice that the load was stopped


class _TaskQueue:
    """The tasks that no worker has taken yet. One that is under way may add others."""

    def __init__(self, tasks: Sequence[Task], stop: threading.Event) -> None:
        self._tasks = deque(tasks)
        self._unfinished = len(tasks)
        self._stop = stop
        self._turn = threading.Condition()

    def __iter__(self) -> Iterator[Task]:
        """Yield one task after another, until all are done."""
        while task := self._next():
            yield task
            self.add(-1)

    def _next(self) -> Task | None:
        with self._turn:
            while self._unfinished and not self._stop.is_set():
                if self._tasks:
                    return self._tasks.popleft()
                self._turn.wait(_LOOK_S)
        return None

    def add(self, number: int, tasks: Sequence[Task] = ()) -> None:
        """Count so many more unfinished tasks, and put those in that wait."""
        with self._turn:
            self._unfinished += number
            self._tasks.extendleft(reversed(tasks))
            self._turn.notify_all()


def workers_on(
    tasks: Sequence[Task],
    fetch: Callable[[Task], Iterable[Piece]],
    done: Callable[[BaseException | None], object],
    *,
    workers: int,
    stop: threading.Event,
) -> list[threading.Thread]:
    """Return threads, not started, that take all pieces of each task until ``stop`` is set.

    The tasks that a piece leaves to others come next. Each thread calls ``done`` at its end: with
    the error that ended it, or None where no task was left. They are daemons, so that a task keeps
    no process alive. The end of the process sets ``stop``.

    >>> ended = []
    >>> stop = threading.Event()
    >>> for thread in workers_on([], iter, ended.append, workers=4, stop=stop):
    ...     thread.start()
    >>> ended
    []
    """
    waiting = _TaskQueue(tasks, stop)

    def work() -> None:
        try:
            with under_way(stop.set):
                for task in waiting:
                    for piece in fetch(task):
                        waiting.add(len(piece.others), piece.others)
            done(None)
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            done(error)

    return [
        threading.Thread(target=work, daemon=True, name=f"rail-{i}")
        for i in range(workers if tasks else 0)
    ]
