"""Parts computed by Dask: a scheduler and its workers, on this machine or on many."""

from __future__ import annotations

import contextlib
import importlib
import ipaddress
import operator
import os
import pickle
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any
from urllib.parse import urlsplit

import polars as pl

from toolkit.cluster.task import Task, line_of, shown
from toolkit.errors import ClusterError, InputError, RailError, needs_extra

Ended = Iterator[tuple[int, list[pl.DataFrame]]]

_PATIENCE_S = 20
"""How long a scheduler may take to answer (s)."""

_NO_WORKER_S = 60
"""How long a scheduler may be without a worker: some clusters start them when there is work (s)."""

_LOOK_S = 0.05
"""How often to look for parts that have ended (s)."""


@contextlib.contextmanager
def dask(where: Any, *, plain_text: bool) -> Iterator[_Dask]:
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
                scheduler = stack.enter_context(_local_cluster(distributed))
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


def _local_cluster(distributed: Any) -> Any:
    return distributed.LocalCluster(
        n_workers=os.cpu_count(),
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",  # a free port: its default may be another cluster's
        scheduler_kwargs={"dashboard": False},
        env={"POLARS_MAX_THREADS": "1"},
    )


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
