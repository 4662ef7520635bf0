"""A store in an empty folder, pages and batches to fill it, and other processes that use it."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from tests.forked import PYTHON
from toolkit.intervals import Interval
from toolkit.market import (
    EventFamily,
    EventLog,
    Family,
    SnapshotKind,
    SnapshotLog,
    Source,
    Trajectory,
)
from toolkit.store import (
    Batch,
    Delivered,
    Edge,
    Gap,
    Inserted,
    LoadOrigin,
    Snapshot,
    Store,
    StoreWriter,
    keep_deliveries,
)
from toolkit.store.file.maintenance import verify
from toolkit.tables import SERIES, TABLES
from toolkit.wire.event_log import document_frame

SOURCE = Source("replay", "example")
ORIGIN = LoadOrigin("http://127.0.0.1:8700", 10_000, "5c4e", "0.1.0")
EDGE = Edge(served_at=10_000, step_s=60)


@functools.lru_cache(4)
def writer_of(store: Store) -> StoreWriter:
    """The one writer of a test's store: the first use of each takes 20 ms more than the others."""
    return StoreWriter(store)


USES = {"reading": Store.reading, "writing": lambda store: writer_of(store).writing()}
HOLDS_THE_FILE = """
import sys, duckdb
with duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "reading") as connection:
    print("holding", flush=True)
    sys.stdin.readline()
print("let go", flush=True)
"""


class Child:
    """A process that runs a program, told and heard line by line."""

    def __init__(self, program: str, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [PYTHON, "-c", program, *map(str, arguments)],
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
def tmp_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """An empty folder, under one name for all tests: stores at new paths need new engines."""
    folder = tmp_path_factory.getbasetemp() / "test"
    folder.mkdir(mode=0o700)
    yield folder
    folder.rename(tmp_path_factory.mktemp(re.sub(r"\W", "_", request.node.name)[:30]))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store, patient enough for a busy machine."""
    store = Store(tmp_path / "rail.duckdb", wait_s=60)
    writer_of(store).bind(SOURCE)
    return store


def frame_of(rows: Sequence[tuple[object, ...]], family: Family = Family.PRICE) -> pl.DataFrame:
    """A page's frame: rows of (ts, values of the family ...), what is not given being null."""
    names = ["ts", *(column.name for column in SERIES[family].values)]
    padded = [(*row, *(None,) * (len(names) - len(row))) for row in rows]
    schema = {name: SERIES[family].schema[name] for name in names}
    return pl.DataFrame(padded, schema=schema, orient="row")


@pytest.fixture
def page() -> Callable[..., pl.DataFrame]:
    """Makes a page's frame, see `frame_of`."""
    return frame_of


def brought(store: Store, batch: Batch) -> Inserted:
    """Commits a batch as a load of its own."""
    writer = writer_of(store)
    return writer.commit(writer.start_load(ORIGIN), batch)


def committing(store: Store) -> Callable[..., Inserted]:
    """Commits one page of a trajectory, given by key, as a load of its own."""
    writer = writer_of(store)

    def write(
        key: str,
        rows: Sequence[tuple[object, ...]],
        *,
        answered: tuple[int, int] = (0, 1),
        edge: Edge = EDGE,
    ) -> Inserted:
        trajectory = Trajectory.parse(key)
        batch = Batch()
        batch.add(trajectory, frame_of(rows, trajectory.family), Interval(*answered), edge)
        return writer.commit(writer.start_load(ORIGIN), batch)

    return write


@pytest.fixture
def commit(store: Store) -> Callable[..., Inserted]:
    """Commits a page to the store, see `committing`."""
    return committing(store)


JANUARY, FEBRUARY = 1_767_225_600, 1_769_904_000
FIRST, SECOND, PAIR = "A_B:X.spot", "A_B:Y.spot", "A_B:X.spot:Y.spot"


def minutes(start: int, n: int, price: float = 1.0) -> list[tuple[int, float]]:
    """Rows of a price, one a minute."""
    return [(start + 60 * i, price + i / 100) for i in range(n)]


@pytest.fixture(scope="session")
def full_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with something in every table, over two months, loaded in no order."""
    store = Store(tmp_path_factory.mktemp("full") / "rail.duckdb", wait_s=60)
    writer, commit = writer_of(store), committing(store)
    writer.bind(SOURCE)
    commit(SECOND, minutes(FEBRUARY - 600, 20), answered=(JANUARY, FEBRUARY + 600))
    commit(FIRST, minutes(FEBRUARY, 30, 2.0), answered=(FEBRUARY, FEBRUARY + 1_800))
    commit(FIRST, minutes(JANUARY, 30), answered=(JANUARY, JANUARY + 3_600))
    commit(FIRST, [(JANUARY, 7.0), (JANUARY + 60, 7.5)])  # revisions
    commit(PAIR, [(JANUARY, 1.0, 1.1, 10.0, '{"seq":1}'), (FEBRUARY, 2.0, None, None)])
    commit(f"funding/{PAIR.replace('spot', 'futures')}", [(JANUARY, 1e-4, 2e-4, 8.0, 8.0, 1e-2)])
    load_id, batch = writer.start_load(ORIGIN), Batch()
    log, snapshots = EventLog(EventFamily.SPREAD), SnapshotLog(SnapshotKind.SYMBOLS)
    event = {"family": "spread", "event_id": "e1", "ts_ms": JANUARY * 1000, "ts": JANUARY}
    documents = [event | {"document": text} for text in ('{"a":1}', '{"a":"é"}')]
    batch.add_documents(log, document_frame(documents), Interval(JANUARY, FEBRUARY), EDGE)
    batch.add_snapshot(Snapshot(snapshots, JANUARY, b'{"symbols":[]}'), EDGE)
    batch.add_snapshot(Snapshot(snapshots, FEBRUARY, b'{"symbols":[1]}'), EDGE)
    batch.gaps[1] = Gap(1, log, JANUARY, JANUARY + 60, "silent")
    trajectory = Trajectory.parse("C_D:X.spot")
    batch.rows[trajectory] = [frame_of([(JANUARY, 1.0), (JANUARY, 2.0)])]
    batch.tied[trajectory] = {JANUARY}
    writer.commit(load_id, batch)
    keep_deliveries(writer, load_id, [Delivered("d1", None, "{}")], document_frame([]))
    writer.finish_load(load_id, [{"kind": "drift"}])
    writer.ask({Trajectory.parse("E_F:X.spot"): Interval(0, 60)})
    return store.path


@pytest.fixture
def full(store: Store, full_file: Path) -> Store:
    """A copy of `full_file`, in place of the empty store."""
    shutil.copyfile(full_file, store.path)
    return store


def faults_of(store: Store) -> list[str]:
    """All that `verify` finds, in one opening: by itself it lets others write after each query."""
    with store.reading():
        return verify(store)


def everything(store: Store) -> dict[str, pl.DataFrame]:
    """Every row of every table, in an order of its own."""
    with store.reading() as connection:
        return {
            table.name: connection.sql(f"SELECT {', '.join(table.names)} FROM {table.name}")
            .pl()
            .sort(pl.all())
            for table in TABLES
        }


def same(one: Store, other: Store) -> bool:
    """Whether two stores hold the same."""
    left, right = everything(one), everything(other)
    differing = [name for name in left if not left[name].equals(right[name])]
    assert not differing, differing
    return True
