"""A scheduler and its workers in processes of their own, and functions that they import."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from toolkit.statistics import spread

ROOT = Path(__file__).parents[3]


def noted(frame: pl.DataFrame, start: int, end: int, *, log: str, pause_s: float) -> pl.DataFrame:
    """Summarise spreads slowly, and append the trajectories and the process to a file."""
    time.sleep(pause_s)
    line = json.dumps([os.getpid(), frame["trajectory"].unique().sort().to_list()])
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    return spread.summary(frame, start, end)


def notes(log: Path) -> list[tuple[int, list[str]]]:
    """Which process computed which trajectories, by `noted`."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [tuple(json.loads(line)) for line in lines]


def refusing(frame: pl.DataFrame, start: int, end: int, *, key: str) -> pl.DataFrame:
    """Fail where the rows have a trajectory."""
    if key in frame["trajectory"]:
        raise ArithmeticError("a level\nbelow 0")
    return spread.summary(frame, start, end)


def deadly(_frame: pl.DataFrame) -> pl.DataFrame:
    """End the process that computes it."""
    os._exit(9)


class Scheduler:
    """A scheduler on loopback, and its workers."""

    def __init__(self, folder: Path, *options: str, protocol: str = "tcp") -> None:
        self._folder = folder
        self._environment = os.environ | {"POLARS_MAX_THREADS": "1"}
        self._host = f"{protocol}://127.0.0.1"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.file = folder / f"scheduler-{time.monotonic_ns()}.json"
        listens = ["--host", self._host, "--port", "0", "--no-dashboard", "--no-jupyter"]
        self.process = self._start("dask_scheduler", *listens, *options)
        while not self.file.exists() or not self.file.read_text().endswith("}"):
            assert self.process.poll() is None
            time.sleep(0.05)

    @property
    def address(self) -> str:
        """Where it listens."""
        return str(json.loads(self.file.read_text())["address"])

    def add_worker(self, *options: str) -> subprocess.Popen[bytes]:
        """Start a worker of one thread, which nobody starts again."""
        listens = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", self._host]
        return self._start(
            "dask_worker", *listens, *options, "--local-directory", str(self._folder)
        )

    def _start(self, command: str, *options: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", f"distributed.cli.{command}", *options),
                *("--scheduler-file", str(self.file)),
            ],
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    def end(self) -> None:
        """Kill what was started, the workers first."""
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()


@contextlib.contextmanager
def cluster(
    folder: Path, workers: int, *options: str, protocol: str = "tcp"
) -> Iterator[Scheduler]:
    """Run a scheduler with so many workers for the block. ``options`` are those of all of them."""
    scheduler = Scheduler(folder, *options, protocol=protocol)
    try:
        for _ in range(workers):
            scheduler.add_worker(*options)
        yield scheduler
    finally:
        scheduler.end()
