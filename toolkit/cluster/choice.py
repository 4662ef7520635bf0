"""Where parts are computed, and what is done with their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import polars as pl

from toolkit.cards import counted
from toolkit.cluster.dask import dask
from toolkit.cluster.kept import KeptResults
from toolkit.cluster.pool import pool
from toolkit.cluster.task import Software, Task, packed
from toolkit.errors import ClusterError, InputError
from toolkit.statistics.passes import Analysis
from toolkit.store.publish import PublishedRows

Place = str | int | object
"""``local``, an address of a Dask scheduler, a number of processes, or a Dask client."""

_PLACES = "a number of processes, local, tcp://HOST:PORT, tls://HOST:PORT, or a Dask client"


class Workers(Protocol):
    """What computes tasks: it yields each task's number and result, in the order they end."""

    def __call__(self, tasks: list[Task]) -> Iterator[tuple[int, list[pl.DataFrame]]]:
        """Compute tasks."""


@dataclass(frozen=True, slots=True)
class PartsDone:
    """How far a computation is: parts that are there, of all.

    >>> PartsDone(2, 8, 3.0).eta_s, PartsDone(2, 8, 3.0).facts
    (9.0, ['2 of 8 parts'])
    """

    done: int
    of: int
    elapsed_s: float

    @property
    def fraction(self) -> float:
        """Parts that are there over all, from 0 to 1."""
        return self.done / self.of

    @property
    def eta_s(self) -> float | None:
        """Seconds left at the pace so far; None while nothing is there."""
        return self.elapsed_s * (self.of - self.done) / self.done if self.done else None

    @property
    def facts(self) -> list[str]:
        """The numbers in words."""
        return [f"{self.done:,} of {counted(self.of, 'part')}"]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Processes that compute statistics of published trajectories, and the results kept of them.

    ``where`` is a number of processes of this machine, ``local`` for a Dask cluster on it, the
    address of a Dask scheduler, or a ``distributed.Client``. Workers read the publication's files
    themselves, so it must be where all of them reach it. They need the same Python, polars and
    toolkit. Start them with ``POLARS_MAX_THREADS=1``, one thread each.

    A scheduler runs whatever it is sent, by whoever reaches it. So an address ``tcp://`` beyond
    this machine is refused unless ``plain_text``. ``tls://`` takes its certificates from Dask's own
    settings (``distributed.comm.tls``).

    Each part's result is kept in the folder ``results``, by a hash of data, functions, parameters
    and code. What is there is not computed again. Results that were not asked for in 30 days are
    removed. ``progress`` is called with each `PartsDone`.

    Raises `InputError` for another ``where``.
    """

    where: Place
    results: Path
    plain_text: bool = False
    progress: Callable[[PartsDone], object] | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.where, int) and not isinstance(self.where, bool)
        known = self.where == "local" or _is_address(self.where) or hasattr(self.where, "scheduler")
        if not (known or (whole and self.where > 0)):  # type: ignore[operator]  # it is an int
            raise InputError("cluster", self.where, _PLACES)

    @property
    def name(self) -> str:
        """Where it computes, in words."""
        if isinstance(self.where, int):
            return counted(self.where, "process", "processes")
        return self.where if isinstance(self.where, str) else type(self.where).__name__

    def in_one_pass(self, rows: PublishedRows, *analyses: Analysis) -> list[pl.DataFrame]:
        """Compute statistics of trajectories as `toolkit.statistics.passes.in_one_pass` does.

        The result is the same to the last bit. Raises `ClusterError` where a trajectory fails, with
        its name, and where the workers are gone: what they had done is kept, and the same call does
        the rest. Raises `InputError` for a function that cannot be sent.
        """
        functions, sources = packed(analyses)
        software = Software.here()
        began = time.monotonic()
        tasks = [Task.of(part, functions, sources, software) for part in rows.parts]
        kept = KeptResults(self.results)
        found = {number: kept.get(task.key) for number, task in enumerate(tasks)}
        done = {number: frames for number, frames in found.items() if frames is not None}
        left = [number for number in range(len(tasks)) if number not in done]
        self._show(len(done), len(tasks), began)
        try:
            with self._workers() if left else nullcontext(None) as workers:
                for at, frames in workers([tasks[n] for n in left]) if workers else ():
                    kept.put(tasks[left[at]].key, frames)
                    done[left[at]] = frames
                    self._show(len(done), len(tasks), began)
        except ClusterError as error:
            raise ClusterError(
                f"{error}; {len(done):,} of {len(tasks):,} parts are done and kept, the same call "
                "does the rest",
                streams=error.streams,
            ) from None
        return [pl.concat([done[n][k] for n in range(len(tasks))]) for k in range(len(analyses))]

    def _show(self, done: int, of: int, began: float) -> None:
        if self.progress is not None:
            self.progress(PartsDone(done, of, time.monotonic() - began))

    def _workers(self) -> AbstractContextManager[Workers]:
        if isinstance(self.where, int):
            return pool(self.where)
        return dask(self.where, plain_text=self.plain_text)


def _is_address(where: object) -> bool:
    return isinstance(where, str) and where.startswith(("tcp://", "tls://"))
