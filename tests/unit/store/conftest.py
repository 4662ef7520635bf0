"""A store in an empty folder, pages and batches to fill it, and other processes that use it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from toolkit.intervals import Interval
from toolkit.market import Family, Source, Trajectory
from toolkit.store import Batch, Edge, Inserted, LoadOrigin, Store, StoreWriter
from toolkit.tables import SERIES

SOURCE = Source("replay", "example")
ORIGIN = LoadOrigin("http://127.0.0.1:8700", 10_000, "5c4e", "0.1.0")
EDGE = Edge(served_at=10_000, step_s=60)


class Child:
    """A process that runs a program, told and heard line by line."""

    def __init__(self, program: str, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def hear(self) -> str:
        """The next line it prints, "" once it has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def tell(self) -> None:
        """One empty line into its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self._process.kill()
        self._process.communicate()

    def end(self) -> int:
        """Wait until it ends by itself: its exit code."""
        self._process.communicate(timeout=120)
        return self._process.returncode


@pytest.fixture
def child() -> Iterator[Callable[..., Child]]:
    """Starts a program (the source, then its arguments) that does not outlive the test."""
    started = []

    def start(program: str, *arguments: object) -> Child:
        started.append(Child(program, *arguments))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store, patient enough for a busy machine."""
    made = Store(tmp_path / "rail.duckdb", wait_s=60)
    StoreWriter(made).bind(SOURCE)
    return made


@pytest.fixture
def page() -> Callable[..., pl.DataFrame]:
    """A page's frame: rows of (ts, values of the family ...), what is not given being null."""

    def build(rows: Sequence[tuple[object, ...]], family: Family = Family.PRICE) -> pl.DataFrame:
        names = ["ts", *(column.name for column in SERIES[family].values)]
        padded = [(*row, *(None,) * (len(names) - len(row))) for row in rows]
        schema = {name: SERIES[family].schema[name] for name in names}
        return pl.DataFrame(padded, schema=schema, orient="row")

    return build


@pytest.fixture
def commit(store: Store, page: Callable[..., pl.DataFrame]) -> Callable[..., Inserted]:
    """Commits one page of a trajectory, given by key, as a load of its own."""

    def write(
        key: str,
        rows: Sequence[tuple[object, ...]],
        *,
        answered: tuple[int, int] = (0, 1),
        edge: Edge = EDGE,
        started_at: int | None = None,
    ) -> Inserted:
        trajectory = Trajectory.parse(key)
        batch = Batch()
        batch.add(trajectory, page(rows, trajectory.family), Interval(*answered), edge)
        writer = StoreWriter(store)
        load_id = writer.start_load(ORIGIN)
        if started_at is not None:
            with writer.writing() as connection:
                connection.execute(
                    "UPDATE load SET started_at = ? WHERE load_id = ?", [started_at, load_id]
                )
        return writer.commit(load_id, batch)

    return write
