"""The place where parts are computed, and the use of their results."""

from __future__ import annotations

import contextlib
import importlib
import ipaddress
import operator
import os
import pickle
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl

from toolkit.cards import counted
from toolkit.cluster.task import Software, Task, line_of, packed, shown
from toolkit.errors import ClusterError, InputError, RailError, StoreError, needs_extra
from toolkit.statistics.passes import Analysis
from toolkit.store.publish import PublishedRows

_PATIENCE_S = 20
"""How long a scheduler may take to answer (s)."""

_NO_WORKER_S = 60
"""How long a scheduler may be without a worker: some clusters start them when there is work (s)."""

_LOOK_S = 0.05
"""How often to look for parts that have ended (s)."""

Ended = Iterator[tuple[int, list[pl.DataFrame]]]
Workers = Callable[[list[Task]], Ended]
"""Computes tasks, and yields each task's number and result as it ends."""


@contextlib.contextmanager
def dask(where: Any, *, plain_text: bool) -> Iterator[Workers]:
    """Yield the `Workers` of a Dask cluster: a client's, an address's, or a local one."""
    with needs_extra("cluster"):
        distributed: Any = importlib.import_module("distributed")
    with contextlib.ExitStack() as stack:
        client = where
        if not isinstance(where, str):
            _check_private(where.scheduler.address, plain_text=plain_text)
        else:
            scheduler = where
            if where == "local":
                local = distributed.LocalCluster(
                    n_workers=os.cpu_count(),
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",  # a free port: its own may be another's
                    scheduler_kwargs={"dashboard": False},
                    env={"POLARS_MAX_THREADS": "1"},
                )
                scheduler = stack.enter_context(local)
            else:
                _check_private(where, plain_text=plain_text)
            try:
                client = stack.enter_context(
                    distributed.Client(scheduler, timeout=_PATIENCE_S, set_as_default=False)
                )
            except (OSError, ValueError, TypeError) as error:
                why = " ".join(str(error).split())
                raise ClusterError(f"no scheduler answers at {where}: {why}") from None
        yield _Dask(distributed, client)


def _check_private(address: str, *, plain_text: bool) -> None:
    """Raise for an address that sends data and code unencrypted to another machine."""
    host = urlsplit(address).hostname or ""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return
    within = address.startswith("inproc://") or host == "localhost"
    if address.startswith("tls://") or within or plain_text:
        return
    raise InputError(
        "cluster",
        address,
        "tls:// to another machine",
        advice="a scheduler runs whatever it is sent: --plain-text (plain_text=True) takes a "
        "network that you trust",
    )


class _Dask:
    def __init__(self, distributed: Any, client: Any) -> None:
        self._distributed = distributed
        self._client = client

    def __call__(self, tasks: list[Task]) -> Ended:
        # A task is read where it is computed. The scheduler passes bytes on and needs no toolkit.
        run = importlib.import_module("toolz").compose(operator.methodcaller("run"), pickle.loads)
        keys = [f"rail-{task.key}" for task in tasks]
        futures = self._client.map(run, [pickle.dumps(task) for task in tasks], key=keys)
        numbers = {key: number for number, key in enumerate(keys)}
        try:
            for future, result in self._ended(futures):
                number = numbers[future.key]
                if future.status != "finished":
                    raise self._failure(result, tasks[number])
                yield number, result
                future.release()
        except (CancelledError, OSError, TimeoutError):
            raise _GONE from None
        finally:
            with contextlib.suppress(CancelledError, OSError, TimeoutError):
                self._client.cancel(futures)

    def _ended(self, futures: list[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield what ended, as it does. Raises `ClusterError` where there is no worker for long."""
        with self._client.as_current():
            ended = self._distributed.as_completed(futures, with_results=True, raise_errors=False)
        seen = asked = time.monotonic()
        while not ended.is_empty():
            if ended.has_ready():
                yield next(ended)
                continue
            time.sleep(_LOOK_S)
            now = time.monotonic()
            if now - asked > _NO_WORKER_S / 20:
                asked = now
                seen = now if self._client.nthreads() else seen
                if now - seen > _NO_WORKER_S:
                    raise ClusterError(
                        f"the scheduler has had no worker for {_NO_WORKER_S} s: start some; where "
                        "they end by themselves, their output says why"
                    )

    def _failure(self, result: Any, task: Task) -> Exception:
        error = result[1] if isinstance(result, tuple) else result
        if isinstance(error, RailError):
            return error
        if isinstance(error, CancelledError) or not isinstance(error, Exception):
            return _GONE
        why = line_of(error)
        if isinstance(error, self._distributed.KilledWorker):
            why = "each worker that took it was killed, perhaps for want of memory"
        elif isinstance(error, ModuleNotFoundError):
            why = f"a worker has no module {error.name}; install the same on all machines"
        return ClusterError(f"{shown(task.part.keys)} failed: {why}", streams=task.part.keys)


_GONE = ClusterError("the scheduler is gone")


_UNUSED_S = 30 * 86_400
"""After how long results that nobody asked for again are removed (s)."""


class KeptResults:
    """Results in a folder, each in a folder named by its key, whole or absent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"the folder {folder} for results cannot be made: {error.strerror}",
                path=str(folder),
            ) from None
        for held in folder.iterdir():  # unused for a month, and what killed processes left
            if time.time() - held.stat().st_mtime > _UNUSED_S:
                shutil.rmtree(held, ignore_errors=True)

    def get(self, key: str) -> list[pl.DataFrame] | None:
        """Return a result, None where it is not kept."""
        held = self._folder / key
        if not held.is_dir():
            return None
        os.utime(held)
        files = sorted(held.glob("*.arrow"), key=lambda path: int(path.stem))
        return [pl.read_ipc(path) for path in files]

    def put(self, key: str, frames: list[pl.DataFrame]) -> None:
        """Keep a result. One that is there already stays."""
        draft = self._folder / f".{uuid.uuid4().hex}"
        draft.mkdir()
        try:
            for number, frame in enumerate(frames):
                frame.write_ipc(draft / f"{number}.arrow", compression="zstd")
            draft.rename(self._folder / key)
        except OSError as error:
            if not (self._folder / key).is_dir():
                raise StoreError(
                    f"a result cannot be kept in {self._folder}: {error.strerror}",
                    path=str(self._folder),
                ) from None
        finally:
            shutil.rmtree(draft, ignore_errors=True)


_THREADS = "POLARS_MAX_THREADS"


@contextlib.contextmanager
def pool(processes: int) -> Iterator[Workers]:
    """Yield the `Workers` of so many processes, each with one thread of polars."""
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"  # a process reads it at its start; polars of this one is up already
    executor = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    try:
        yield partial(_computed, executor)
    finally:
        executor.shutdown(cancel_futures=True)
        if before is None:
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = before


def _computed(executor: ProcessPoolExecutor, tasks: list[Task]) -> Ended:
    futures = {executor.submit(task.run): number for number, task in enumerate(tasks)}
    for future in as_completed(futures):
        try:
            yield futures[future], future.result()
        except BrokenProcessPool:
            raise ClusterError(
                "a process of the pool was killed, perhaps for want of memory"
            ) from None


Place = str | int | object
"""``local``, an address of a Dask scheduler, a number of processes, or a Dask client."""

_PLACES = "a number of processes, local, tcp://HOST:PORT, tls://HOST:PORT, or a Dask client"


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
    """Processes that compute statistics of published trajectories, and their kept results.

    ``where`` is a number of processes on this machine, ``local`` for a Dask cluster on it, the
    address of a Dask scheduler, or a ``distributed.Client``. Workers read the publication's files
    and need the same Python, polars and toolkit. Start them with ``POLARS_MAX_THREADS=1``, one
    thread each.

    A scheduler runs whatever anybody sends it. So ``tcp://`` beyond this machine is refused unless
    ``plain_text``. ``tls://`` takes its certificates from Dask's settings
    (``distributed.comm.tls``).

    Results are kept in the folder ``results`` by a hash of data, functions, parameters and code,
    and removed after 30 days without use. ``progress`` is called with each `PartsDone`.

    Raises `InputError` for another ``where``.
    """

    where: Place
    results: Path
    plain_text: bool = False
    progress: Callable[[PartsDone], object] | None = None

    def __post_init__(self) -> None:
        whole = isinstance(self.where, int) and not isinstance(self.where, bool)
        known = hasattr(self.where, "scheduler")
        if isinstance(self.where, str):
            known = self.where == "local" or self.where.startswith(("tcp://", "tls://"))
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

        The result is the same to the last bit. Raises `ClusterError` with the trajectory that
        fails, or where the workers are gone: their results are kept, and the same call does the
        rest. Raises `InputError` for a function that cannot be sent.
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
