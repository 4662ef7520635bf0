"""A disk without room: one line says so, and the store is whole then and later.

The limit of a file's size stands in for the disk: it can be set anywhere, at any byte.
"""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from tests.dated import make_older
from tests.empty_store import empty_store
from toolkit.errors import StoreError
from toolkit.intervals import EVER, Interval
from toolkit.market import Trajectory
from toolkit.store import Batch, Edge, Store
from toolkit.store.file.engine import full_disk
from toolkit.store.file.maintenance import back_up_store, compact
from toolkit.store.file.schema import FORMAT_VERSION, OLDEST_VERSION, read_format
from toolkit.store.publish import import_store, publish

from .conftest import ORIGIN, SOURCE, brought, faults_of, frame_of, writer_of

PRICE = Trajectory.parse("A_B:X.spot")
FULL = r"cannot be written: the disk is full, .* \(File too large\); free space in .* and try again"


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process gets longer than so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def batch_of(count: int) -> Batch:
    batch = Batch()
    rows = [(ts, ts / 7, ts / 3) for ts in range(count)]
    batch.add(PRICE, frame_of(rows), Interval(0, count), Edge(10**6, step_s=1))
    return batch


@pytest.mark.parametrize(
    ("rows", "size"),
    [(5, 0), (5, 4096), (5000, 4096)],
    ids=["no log", "no checkpoint", "part of a log"],
)
def test_a_commit_says_so_and_succeeds_once_there_is_room(
    store: Store, rows: int, size: int
) -> None:
    writer = writer_of(store)
    load_id = writer.start_load(ORIGIN)
    with room_for(size):
        for _ in range(2):
            with pytest.raises(StoreError, match=FULL) as refused:
                writer.commit(load_id, batch_of(rows))
            assert type(refused.value) is StoreError
            assert "\n" not in str(refused.value)
            assert refused.value.path == str(store.path)
        assert store.loads().height == 1
        assert store.counts(EVER).get(PRICE, 0) in {0, rows}
    written = writer.commit(load_id, batch_of(rows))
    assert (written.new + written.repeated, written.revised) == (rows, 0)
    assert store.counts(EVER) == {PRICE: rows}
    assert store.series(PRICE)["ts"].to_list() == list(range(rows))
    assert list(store.path.parent.iterdir()) == [store.path]


@pytest.mark.parametrize("size", [0, 4096, 20_000, 300_000])
def test_a_creation_says_so_and_leaves_nothing(tmp_path: Path, size: int) -> None:
    store = Store(tmp_path / "rail.duckdb")
    writer = writer_of(store)
    with room_for(size), pytest.raises(StoreError, match=FULL) as refused:
        writer.bind(SOURCE)
    assert "\n" not in str(refused.value)
    assert refused.value.path == str(store.path)
    assert list(tmp_path.iterdir()) == []
    writer.bind(SOURCE)
    assert store.source == SOURCE


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the format before this one, whose migration writes much."""
    store = empty_store(tmp_path_factory.mktemp("older") / "rail.duckdb", SOURCE)
    brought(store, batch_of(5_000))
    with duckdb.connect(str(store.path)) as connection:
        connection.execute(
            "INSERT INTO coverage SELECT 1, 'asked', 10 * i, 10 * i + 5, NULL, NULL, NULL "
            "FROM range(100_000, 345_760) r(i)"
        )
    make_older(store)
    return store.path


def test_a_migration_says_so_and_leaves_the_store_as_it_was(store: Store, older: Path) -> None:
    shutil.copyfile(older, store.path)
    copy = store.path.with_name("rail.format-10.duckdb")
    for size, named in ((0, copy), (4096, copy), (300_000, copy), (2_300_000, store.path)):
        with room_for(size), pytest.raises(StoreError, match=FULL) as refused:
            Store(store.path).loads()
        assert "\n" not in str(refused.value)
        assert (size, refused.value.path) == (size, str(named))
        left = {file.name for file in store.path.parent.iterdir()}
        assert left <= {"rail.duckdb", "rail.duckdb.wal"}
        with duckdb.connect(str(store.path), read_only=True) as connection:
            assert read_format(connection, store.path) == OLDEST_VERSION
    assert Store(store.path).counts(EVER) == {PRICE: 5_000}
    with duckdb.connect(str(store.path), read_only=True) as connection:
        assert read_format(connection, store.path) == FORMAT_VERSION


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 4096, 300_000])
def test_a_new_file_that_finds_no_room_is_not_there_and_the_store_is_as_it_was(
    store: Store, size: int
) -> None:
    brought(store, batch_of(20_000))
    names = ("archive", "backup.duckdb", "import.duckdb")
    archive, backup, imported = (store.path.with_name(name) for name in names)
    publish(store, archive)
    works: list[tuple[Path, Callable[[], object]]] = [
        (store.path, lambda: compact(store)),
        (backup, lambda: back_up_store(store, backup)),
        (imported, lambda: import_store(archive, imported)),
    ]
    for named, work in works:
        with room_for(size), pytest.raises(StoreError, match=FULL) as refused:
            work()
        assert "\n" not in str(refused.value)
        assert refused.value.path == str(named)
        assert set(store.path.parent.iterdir()) == {store.path, archive}
    for path, work in works:
        work()
        assert Store(path).counts(EVER) == {PRICE: 20_000}
        assert faults_of(Store(path)) == []


@pytest.mark.parametrize(
    "words",
    [
        "No space left on device",
        "Disk quota exceeded",
        "File too large",
        "This limit was set by the 'max_temp_directory_size' setting",
    ],
)
def test_each_way_to_be_full_is_known(words: str) -> None:
    error = duckdb.IOException(f"IO Error: Checkpoint failed\nOriginal error: {words}")
    assert full_disk(Path("rail.duckdb"), error) is not None
    assert full_disk(Path("rail.duckdb"), OSError(5, "Input/output error")) is None
