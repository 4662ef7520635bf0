"""Files that cannot be used: each refused by its kind, in one line that says what to do."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from toolkit.errors import NotAStoreError, StoreError, StoreLockedError, StoreVersionError
from toolkit.store import LoadOrigin, Store, StoreWriter
from toolkit.store.file.maintenance import compact
from toolkit.store.file.schema import FORMAT_VERSION

from .conftest import HOLDS_THE_FILE, SOURCE

USES: dict[str, Callable[[Store], object]] = {
    "reading": lambda store: store.source,
    "writing": lambda store: StoreWriter(store).finish_load(1, []),
    "binding": lambda store: StoreWriter(store).bind(SOURCE),
}


def database(path: Path, *statements: str) -> None:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def of_newer_duckdb(path: Path) -> None:
    """A file whose header names a storage version of the future, under a matching checksum."""
    StoreWriter(Store(path)).bind(SOURCE)
    content = bytearray(path.read_bytes())
    struct.pack_into("<Q", content, 12, 9999)
    checksum = 5381
    for (word,) in struct.iter_unpack("<Q", content[8:4096]):
        checksum ^= word * 0xBF58476D1CE4E5B9 % 2**64
    struct.pack_into("<Q", content, 0, checksum)
    path.write_bytes(content)


def cut_short(path: Path) -> None:
    StoreWriter(Store(path)).bind(SOURCE)
    path.write_bytes(path.read_bytes()[:20_000])


def of_newer_toolkit(path: Path) -> None:
    StoreWriter(Store(path)).bind(SOURCE)
    newer = f"UPDATE meta SET value = '{FORMAT_VERSION + 1}' WHERE name = 'format_version'"
    database(path, newer, "DELETE FROM meta WHERE name LIKE 'source%'", "DROP TABLE price")


def of_sqlite(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE meta (name, value)")


def with_a_view(path: Path) -> None:
    StoreWriter(Store(path)).bind(SOURCE)
    view = "CREATE VIEW meta AS SELECT name, content AS value FROM facts, read_text('/etc/hosts')"
    database(path, "ALTER TABLE meta RENAME TO facts", view)


FAULTS: dict[str, tuple[Callable[[Path], object], type[StoreError], str]] = {
    "a text": (lambda p: p.write_text("hello" * 1000), NotAStoreError, "nor a DuckDB file"),
    "an empty file": (lambda p: p.touch(), NotAStoreError, "nor a DuckDB file"),
    "a few bytes": (lambda p: p.write_bytes(b"DUCK"), NotAStoreError, "nor a DuckDB file"),
    "a directory": (lambda p: p.mkdir(), NotAStoreError, "is a directory; name a file"),
    "an empty DuckDB file": (database, NotAStoreError, "not a store of this toolkit"),
    "a DuckDB file of something else": (
        lambda p: database(p, "CREATE TABLE trades (price DOUBLE)"),
        NotAStoreError,
        "is a DuckDB file, but not a store",
    ),
    "a DuckDB file with another meta table": (
        lambda p: database(p, "CREATE TABLE meta (version INTEGER)"),
        NotAStoreError,
        "is a DuckDB file, but not a store",
    ),
    "a DuckDB file with other facts": (
        lambda p: database(p, "CREATE TABLE meta AS SELECT 'format_version' AS name, 'x' AS value"),
        NotAStoreError,
        "is a DuckDB file, but not a store",
    ),
    "a SQLite file": (of_sqlite, NotAStoreError, "is a SQLite file"),
    "a pipe": (os.mkfifo, NotAStoreError, "is a pipe or a device; name a file"),
    "a store with a view in place of a table": (
        with_a_view,
        NotAStoreError,
        r"has views in place of tables \(meta\)",
    ),
    "a store cut short": (cut_short, StoreError, "put a sound copy in its place"),
    "a store of a newer toolkit": (of_newer_toolkit, StoreVersionError, "update the toolkit"),
    "a store of a newer DuckDB": (of_newer_duckdb, StoreVersionError, "update the toolkit"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_is_no_store_is_refused_in_one_line_and_left_as_it_is(
    tmp_path: Path, fault: str, use: str
) -> None:
    make, kind, words = FAULTS[fault]
    path = tmp_path / "block.duckdb"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=words) as refused:
        USES[use](Store(path, wait_s=10**9))
    assert type(refused.value) is kind
    assert "\n" not in str(refused.value)
    assert str(path) in str(refused.value)
    assert refused.value.path == str(path)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_view_that_takes_a_tables_place_between_two_uses_is_refused(store: Store) -> None:
    assert store.loads().is_empty()
    with_a_view(store.path)
    for use in USES.values():
        with pytest.raises(NotAStoreError, match=r"has views in place of tables \(meta\)"):
            use(store)


@pytest.mark.parametrize("use", ["reading", "writing"])
@pytest.mark.parametrize("name", ["absent.duckdb", "absent/rail.duckdb"])
def test_where_no_file_is_the_way_to_make_one_is_named(tmp_path: Path, name: str, use: str) -> None:
    with pytest.raises(StoreError, match=r"there is no store at .*; `rail sync .*` makes one"):
        USES[use](Store(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def others_folder() -> Iterator[Path]:
    """A folder with a store, which this process uses as a user that owns neither."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        StoreWriter(Store(folder / "rail.duckdb")).bind(SOURCE)
        yield folder
        folder.chmod(0o755)


@pytest.fixture
def no_privilege() -> Iterator[Callable[[], object]]:
    """Gives up the superuser's right to open anything, for the rest of the test."""
    superuser = os.geteuid() == 0
    yield lambda: os.seteuid(65_534) if superuser else None
    if superuser:
        os.seteuid(0)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("hidden", ["rail.duckdb", "."])
def test_a_file_this_user_may_not_open_is_refused(
    others_folder: Path, no_privilege: Callable[[], object], hidden: str, use: str
) -> None:
    (others_folder / hidden).chmod(0)
    no_privilege()
    with pytest.raises(StoreError) as refused:
        USES[use](Store(others_folder / "rail.duckdb"))
    assert type(refused.value) is StoreError
    assert str(refused.value) == f"{others_folder / 'rail.duckdb'} " + (
        "cannot be made (Permission denied); name a place where this user may write"
        if (use, hidden) == ("binding", ".")
        else "may not be opened by this user; change its permissions or name another store"
    )


@pytest.mark.parametrize(
    ("mode", "words"),
    [(0o444, "may not be opened by this user"), (0o666, r"this user may make no files in")],
    ids=["the file", "the folder"],
)
def test_what_this_user_may_only_read_is_read_and_a_load_or_a_compaction_is_refused(
    others_folder: Path, no_privilege: Callable[[], object], mode: int, words: str
) -> None:
    path = others_folder / "rail.duckdb"
    path.chmod(mode)
    others_folder.chmod(0o555)
    before = path.read_bytes()
    no_privilege()
    store = Store(path)
    assert store.loads().is_empty()
    for work, why in (
        (lambda: StoreWriter(store).start_load(LoadOrigin("http://h", 1, None, "0")), words),
        (lambda: compact(store), "cannot be rewritten .*Permission denied.* is left as it was"),
    ):
        with pytest.raises(StoreError, match=why) as refused:
            work()
        assert "\n" not in str(refused.value)
    assert path.read_bytes() == before
    assert list(others_folder.iterdir()) == [path]


def test_a_store_in_a_folder_of_others_is_read_and_who_holds_it_is_named(
    others_folder: Path, no_privilege: Callable[[], object], child: Callable
) -> None:
    path = others_folder / "rail.duckdb"
    path.chmod(0o644)
    holder = child(HOLDS_THE_FILE, path, "writing")
    assert holder.hear() == "holding"
    no_privilege()
    with pytest.raises(StoreLockedError) as refused:
        Store(path, wait_s=0.1).loads()
    assert refused.value.pid == holder.pid
    holder.tell()
    assert Store(path, wait_s=60).loads().height == 0
    assert list(others_folder.iterdir()) == [path]
