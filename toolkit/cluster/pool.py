"""Parts computed by processes of this machine, by the standard library."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import polars as pl

from toolkit.cluster.task import Task
from toolkit.errors import ClusterError

Ended = Iterator[tuple[int, list[pl.DataFrame]]]

_THREADS = "POLARS_MAX_THREADS"


@contextlib.contextmanager
def pool(processes: int) -> Iterator[_Pool]:
    """Yield what computes tasks in so many processes, each with one thread of polars."""
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"  # a process reads it at its start; polars of this one is up already
    executor = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    try:
        yield _Pool(executor)
    finally:
        executor.shutdown(cancel_futures=True)
        if before is None:
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = before


class _Pool:
    def __init__(self, executor: ProcessPoolExecutor) -> None:
        self._executor = executor

    def __call__(self, tasks: list[Task]) -> Ended:
        futures = {self._executor.submit(task.run): number for number, task in enumerate(tasks)}
        for future in as_completed(futures):
            try:
                yield futures[future], future.result()
            except BrokenProcessPool:
                raise ClusterError(
                    "a process of the pool was killed, perhaps for want of memory"
                ) from None
