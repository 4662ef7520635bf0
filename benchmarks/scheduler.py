"""What a Dask scheduler takes for a part of the work, at 10,000 workers.

``python -m benchmarks.scheduler [--quick]``: a real scheduler in a process of its own, and workers
that are connections alone: each takes what it is sent, waits, and says that it is done. What is
counted is the scheduler's CPU time, so that a busy machine changes little. Each part carries about
as many bytes as one of `toolkit.cluster`. Both processes have a file open for each worker: they are
fewer where the limit of open files (`ulimit -Hn`) is lower.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import operator
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import toolz
from distributed import Client
from distributed.comm import Comm, connect
from distributed.metrics import time as now
from distributed.versions import get_versions

WORKERS, PARTS, PART_BYTES = 10_000, 20_000, 2_000
PART_S = 2.0
HEARTBEATS, HEARTBEATS_PER_S = 2_000, 200
"""Of a large cluster each worker sends one in n / 200 + 1 s: 200 per second of all together."""

_SCHEDULER = """
from distributed import versions
from distributed.cli.dask_scheduler import main
{checks} or setattr(versions, "error_message", lambda *_, **__: {{"warning": ""}})
main()
"""
"""A scheduler. It compares the software of each worker that joins with that of all others, which
takes minutes for 10,000. Where joining is not what is measured it does not."""

_METRICS: dict[str, Any] = {
    "task_counts": {},
    "bandwidth": {"total": 1e8, "workers": {}, "types": {}},
    "digests_total_since_heartbeat": {},
    "managed_bytes": 0,
    "spilled_bytes": {"memory": 0, "disk": 0},
    "transfer": {"incoming_bytes": 0, "incoming_count": 0, "incoming_count_total": 0}
    | {"outgoing_bytes": 0, "outgoing_count": 0, "outgoing_count_total": 0},
    "event_loop_interval": 0.02,
    "cpu": 0.0,
    "memory": 200_000_000,
    "time": 0.0,
    "host_net_io": {"read_bps": 0.0, "write_bps": 0.0},
    "host_disk_io": {"read_bps": 0.0, "write_bps": 0.0},
    "num_fds": 30,
}


def _address(number: int) -> str:
    return f"tcp://10.0.{number // 250}.{number % 250 + 1}:40000"


async def _joined(scheduler: str, number: int, versions: dict[str, Any]) -> Comm:
    """Register a worker, and return its connection."""
    comm = await connect(scheduler, timeout=300)
    joins = {"op": "register-worker", "reply": False, "address": _address(number)}
    joins |= {"status": "running", "nthreads": 1, "name": f"worker-{number}", "now": now()}
    joins |= {"resources": {}, "memory_limit": 2**31, "local_directory": "/", "services": {}}
    joins |= {"nanny": None, "pid": number, "versions": versions, "metrics": _METRICS}
    joins |= {"extra": {}, "stimulus_id": f"joins-{number}", "server_id": f"Worker-{number}"}
    await comm.write(joins, serializers=["msgpack"])
    answer = await comm.read(deserializers=["msgpack"])
    assert answer["status"] == "OK", answer
    return comm


async def _work(comm: Comm, part_s: float) -> None:
    """Answer what comes, each part after its time, one after another."""
    comm.allow_offload = False
    done = {"op": "task-finished", "status": "OK", "nbytes": 1_000, "typename": "list"}
    done |= {"type": pickle.dumps(list), "metadata": {}, "thread": 1}
    while True:
        for message in await comm.read(deserializers=["msgpack"]):
            if message["op"] != "compute-task":
                continue
            began = now()
            await asyncio.sleep(part_s)
            startstops = [{"action": "compute", "start": began, "stop": now()}]
            told = {"key": message["key"], "run_id": message["run_id"], "startstops": startstops}
            await comm.write([done | told | {"stimulus_id": f"done-{began}"}])


async def _be_workers(scheduler: str, workers: int, part_s: float) -> None:
    versions = get_versions()
    working = []
    for number in range(workers):
        comm = await _joined(scheduler, number, versions)
        working.append(asyncio.create_task(_work(comm, part_s)))
    print("joined", flush=True)
    await asyncio.gather(*working)


async def _beat(scheduler: str, workers: int, heartbeats: int) -> None:
    """Send heartbeats of workers, one after another."""
    comm = await connect(scheduler)
    for number in range(heartbeats):
        beat = {"op": "heartbeat_worker", "reply": True, "address": _address(number % workers)}
        beat |= {"now": now(), "metrics": _METRICS, "host_info": {}, "executing": {}}
        await comm.write(beat | {"extensions": {}})
        await comm.read()
    await comm.close()


def _cpu_s(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return float(spent.user + spent.system)


def measured(workers: int, parts: int, *, checks: bool) -> dict[str, float]:
    """Return the scheduler's CPU time for a worker that joins, a part and a heartbeat (ms).

    ``checks``: whether it compares the software of workers, as it does by default.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-jupyter"]
        quiet = {"stderr": subprocess.DEVNULL}
        started = [sys.executable, "-c", _SCHEDULER.format(checks=checks), *options]
        environment = os.environ | {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "null"}
        started += ["--scheduler-file", str(file)]
        scheduler = subprocess.Popen(started, env=environment, **quiet)
        others: list[subprocess.Popen[bytes]] = []
        try:
            while not file.exists() or not file.read_text().endswith("}"):
                time.sleep(0.1)
            address = json.loads(file.read_text())["address"]
            process = psutil.Process(scheduler.pid)
            at_start = _cpu_s(process)
            asked = ["--be-workers", address, str(workers), str(PART_S)]
            started = [sys.executable, "-m", "benchmarks.scheduler", *asked]
            others.append(subprocess.Popen(started, stdout=subprocess.PIPE, **quiet))
            assert others[0].stdout is not None
            assert others[0].stdout.readline() == b"joined\n"
            joined = _cpu_s(process)
            asyncio.run(_beat(address, workers, HEARTBEATS))
            beaten = _cpu_s(process)
            with Client(address, set_as_default=False) as client:
                began, before = time.monotonic(), process.memory_info().rss
                run = toolz.compose(operator.methodcaller("run"), pickle.loads)
                keys = [f"rail-{number:032}" for number in range(parts)]
                futures = client.map(run, [bytes(PART_BYTES)] * parts, key=keys)
                grown = before
                while any(not future.done() for future in futures):
                    time.sleep(0.2)
                    grown = max(grown, process.memory_info().rss)
                took = time.monotonic() - began
            done = _cpu_s(process)
        finally:
            for each in [*others, scheduler]:
                each.kill()
                each.wait()
    return {
        "join_ms": 1_000 * (joined - at_start) / workers,
        "part_ms": 1_000 * (done - beaten) / parts,
        "heartbeat_ms": 1_000 * (beaten - joined) / HEARTBEATS,
        "parts_per_s": parts / took,
        "part_kb": (grown - before) / 1_000 / parts,
    }


def busy_share(task_ms: float, part_s: float, workers: int, tasks: int) -> float:
    """Simulate a scheduler that takes ``task_ms`` a task, and workers that take ``part_s`` each.

    Returns how much of the workers' time goes to parts, once all have begun.

    >>> busy_share(0.0, 10.0, 100, 1_000), round(busy_share(1.0, 1.0, 10_000, 100_000), 1)
    (1.0, 0.1)
    """
    free_at, ready = 0.0, [0.0] * workers
    first = last = 0.0
    for number in range(tasks):
        asked = heapq.heappop(ready)
        free_at = max(free_at, asked) + task_ms / 1_000
        heapq.heappush(ready, free_at + part_s)
        if number == workers:
            first = free_at
        last = free_at
    return min(1.0, (tasks - workers - 1) * part_s / ((last - first) * workers))


def main(*, quick: bool) -> None:
    """Print what a scheduler takes with few workers and with many, and one line of JSON."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for workers in (100,) if quick else (100, 1_000, min(WORKERS, most - 100)):
        found = measured(workers, min(PARTS, 10 * workers), checks=workers <= 1_000)
        print(workers, {name: round(value, 3) for name, value in found.items()}, flush=True)
    print(json.dumps({"name": "scheduler", "ratios": found}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="few workers")
    parser.add_argument("--be-workers", nargs=3, metavar=("ADDRESS", "WORKERS", "PART_S"))
    given = parser.parse_args()
    if given.be_workers:
        where, count, seconds = given.be_workers
        asyncio.run(_be_workers(where, int(count), float(seconds)))
    else:
        main(quick=given.quick)
