"""A store comes into being whole, once, for one source, in a file that older readers open."""

from __future__ import annotations

import logging
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.dated import make_older
from tests.empty_store import empty_store
from toolkit.errors import NotAStoreError, StoreError, StoreSourceError, StoreVersionError
from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory
from toolkit.store import LoadOrigin, Store, StoreWriter
from toolkit.store.file import schema
from toolkit.store.file.connection import opened
from toolkit.store.file.engine import own_files
from toolkit.store.file.maintenance import back_up_store
from toolkit.store.file.schema import (
    FORMAT_VERSION,
    OLDEST_VERSION,
    backup_path,
    draft_of,
    made,
    read_format,
)
from toolkit.tables import TABLES
from toolkit.wire.quota import Allowance

from .conftest import SOURCE, committing, faults_of, writer_of

BINDS = """
import sys
from toolkit.errors import StoreSourceError
from toolkit.market import Source
from toolkit.intervals import Interval
from toolkit.store import Store, StoreWriter
writer = StoreWriter(Store(sys.argv[1], wait_s=60))
print("ready", flush=True)
sys.stdin.readline()
try:
    writer.bind(Source("replay", sys.argv[2]))
except StoreSourceError:
    print("refused", flush=True)
else:
    print("bound", flush=True)
"""

COMMITS = """
import sys
from toolkit.store import Store, StoreWriter
with StoreWriter(Store(sys.argv[1])).writing() as connection:
    connection.execute("INSERT INTO meta VALUES ('own', 'fact')")
    connection.execute("COMMIT")
    print("committed", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.slow
@pytest.mark.parametrize("sources", [["one"] * 4, ["one", "two", "three", "four"]])
def test_of_processes_that_make_one_store_at_once_those_of_its_source_have_it(
    child: Callable, tmp_path: Path, sources: list[str]
) -> None:
    path = tmp_path / "rail.duckdb"
    processes = [child(BINDS, path, source) for source in sources]
    assert [process.hear() for process in processes] == ["ready"] * 4
    for process in processes:
        process.tell()
    said = [process.hear() for process in processes]
    assert [process.end() for process in processes] == [0] * 4
    made = Store(path).source.id
    assert said == ["bound" if source == made else "refused" for source in sources]
    assert list(tmp_path.iterdir()) == [path]


def test_a_store_has_every_table_and_knows_nothing(store: Store) -> None:
    with store.reading() as connection:
        made = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert {name for (name,) in made} == {table.name for table in TABLES}
    assert store.catalogue().height == store.loads().height == store.continuity().height == 0
    assert store.ledger() == store.counts(Interval(0, 1)) == {}


def test_the_file_is_of_a_version_that_duckdb_1_5_reads_also_after_commits(
    store: Store, commit: Callable
) -> None:
    for rows in ([], [(60, 1.0)]):
        commit("A_B:X.spot", rows)
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH '{store.path}' AS made (READ_ONLY)")
            found = connection.execute(
                "SELECT tags FROM duckdb_databases() WHERE database_name = 'made'"
            ).fetchall()
        assert found == [({"storage_version": "v1.5.0+"},)]


@pytest.mark.parametrize(
    "name",
    ["o'clock.duckdb", "mehr Zöpfe.duckdb", "no_ending", "a;b.db", "'#?", "'#/[*].db", "a\\b/c/d?"],
)
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / name)
    store.path.parent.mkdir(parents=True, exist_ok=True)
    writer = writer_of(store)
    writer.bind(SOURCE)
    with writer.writing() as connection:
        connection.execute("INSERT INTO meta VALUES ('own', 'fact')")
    back_up_store(store, store.path.with_name("copy"))
    assert (store.source, Store(store.path.with_name("copy")).source) == (SOURCE, SOURCE)
    assert {path.name for path in store.path.parent.iterdir()} == {store.path.name, "copy"}


@pytest.mark.parametrize("name", ["what?/rail.duckdb", "what\\rail.duckdb"])
def test_a_place_where_duckdb_can_keep_no_file_is_refused_by_its_reason(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    with pytest.raises(StoreError, match=r"cannot be used: DuckDB finds no log in a folder"):
        StoreWriter(Store(path)).bind(SOURCE)


@pytest.mark.slow
def test_what_a_killed_writer_committed_is_read_from_its_log_or_nothing_is(
    store: Store, child: Callable
) -> None:
    odd = store.path.parent / "a\\b" / store.path.name
    odd.parent.mkdir()
    store.path.rename(odd)
    other = child(COMMITS, odd)
    assert other.hear() == "committed"
    other.kill()
    assert own_files(odd)[1].stat().st_size > 0
    unread = odd.parent.rename(odd.parent.with_name("what?")) / odd.name
    with pytest.raises(StoreError, match=r"cannot be used: DuckDB finds no log in a folder"):
        _ = Store(unread).source
    unread.parent.rename(odd.parent)
    with opened(odd, writable=False) as connection:
        found = connection.execute("SELECT value FROM meta WHERE name = 'own'").fetchall()
    assert found == [("fact",)]


def test_what_lies_beside_a_store_for_a_while_is_as_private_as_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = os.umask(0o022)
    folder, seen = store.path.parent, Counter[int]()

    def look() -> None:
        seen.update(stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir())

    try:
        store.path.chmod(0o640)
        with writer_of(store).writing() as connection:
            connection.execute("INSERT INTO meta VALUES ('own', 'fact')")
            connection.execute("COMMIT")
            connection.execute("BEGIN")
            look()
            assert own_files(store.path)[1].stat().st_size > 0
        assert seen == {0o640: 2}
        monkeypatch.setattr(schema, "_give_name", lambda *paths: (look(), os.link(*paths)))
        back_up_store(store, store.path.with_name("copy"))
        with draft_of(store.path) as draft, made(draft, {}):
            look()
    finally:
        os.umask(usual)
    assert set(seen) == {0o640, 0o600, 0o700}  # files, and folders that nobody else looks into
    assert stat.S_IMODE(store.path.with_name("copy").stat().st_mode) == 0o600


def test_a_use_that_writes_nothing_leaves_no_log(store: Store) -> None:
    with opened(store.path, writable=True):
        assert own_files(store.path)[1].exists()
    assert [path.name for path in store.path.parent.iterdir()] == [store.path.name]


def test_a_link_to_where_nothing_is_yet_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "link.duckdb"
    link.symlink_to(tmp_path / "rail.duckdb")
    StoreWriter(Store(link)).bind(SOURCE)
    assert link.is_symlink()
    assert Store(tmp_path / "rail.duckdb").source == SOURCE


def test_binding_again_changes_nothing(store: Store) -> None:
    before = store.path.read_bytes()
    StoreWriter(store).bind(SOURCE)
    assert store.path.read_bytes() == before


def test_another_source_is_refused_and_both_are_named(store: Store) -> None:
    with pytest.raises(StoreSourceError) as refused:
        StoreWriter(store).bind(Source("simulated", "other"))
    assert SOURCE.label in str(refused.value)
    assert "SIMULATED market, other" in str(refused.value)
    assert refused.value.path == str(store.path)
    assert store.source == SOURCE


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent/rail.duckdb", "absent is not a directory; make it first"),
        ("file/rail.duckdb", "file is not a directory; make it first"),
        ("x" * 300, "cannot be made .*File name too long"),
    ],
)
def test_a_place_where_none_can_be_made_is_refused_and_nothing_is_left(
    tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=words) as refused:
        StoreWriter(Store(tmp_path / name)).bind(SOURCE)
    assert "\n" not in str(refused.value)
    assert ";" in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


ORIGIN = LoadOrigin("http://two", 20, None, "0.2.0", Allowance("builder", 600, 60, 599))
PRICE = Trajectory.parse("A_B:X.spot")
Rows = dict[str, list[tuple[object, ...]]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rows]:
    """A store of the format before this one, and all that it had in this format."""
    store = empty_store(tmp_path_factory.mktemp("older") / "rail.duckdb", SOURCE)
    committing(store)("A_B:X.spot", [(60, 1.0), (120, 2.0)])
    rows = whole(store.path)
    make_older(store)
    return store.path, rows


@pytest.fixture
def old(store: Store, both: tuple[Path, Rows]) -> Store:
    """A copy of the older store."""
    shutil.copyfile(both[0], store.path)
    return store


@pytest.fixture
def new(both: tuple[Path, Rows]) -> Rows:
    """All of the same store in this format."""
    return both[1]


def whole(path: Path) -> Rows:
    """Every column and row of every table of a file."""
    with duckdb.connect(str(path), read_only=True) as connection:
        names = [
            n for (n,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        ]
        return {
            n: [*found.description, *sorted(found.fetchall(), key=str)]
            for n in names
            for found in [connection.execute(f"FROM {n}")]
        } | {"views": connection.execute("SELECT view_name, sql FROM duckdb_views()").fetchall()}


def held_format(path: Path) -> int:
    with duckdb.connect(str(path), read_only=True) as connection:
        return read_format(connection, path)


def test_the_first_look_brings_it_to_this_format_and_nothing_it_held_is_lost(
    old: Store, new: Rows
) -> None:
    assert held_format(old.path) == OLDEST_VERSION
    assert old.gaps().is_empty()
    assert held_format(old.path) == FORMAT_VERSION
    assert whole(old.path) == new
    assert faults_of(old) == []
    Store(old.path).catalogue()
    assert whole(old.path) == new


@pytest.mark.parametrize(
    "look",
    [lambda store: store.sql("FROM prices"), lambda store: StoreWriter(store).bind(SOURCE)],
    ids=["query", "bind"],
)
def test_a_query_or_a_bind_is_such_a_look_of_this_process(
    old: Store, new: Rows, look: Callable[[Store], object], caplog: pytest.LogCaptureFixture
) -> None:
    look(old)
    assert whole(old.path) == new
    assert f"to {FORMAT_VERSION}; as it was" in caplog.text


def test_the_store_as_it_was_is_kept_beside_it_and_the_user_reads_where(
    old: Store, caplog: pytest.LogCaptureFixture
) -> None:
    before = whole(old.path)
    taken = backup_path(old.path, OLDEST_VERSION)
    taken.write_bytes(b"of another store")
    copy = backup_path(old.path, OLDEST_VERSION)
    with caplog.at_level(logging.WARNING):
        old.loads()
    assert whole(copy) == before
    assert taken.read_bytes() == b"of another store"
    (line,) = (record.getMessage() for record in caplog.records)
    assert f"from store format {OLDEST_VERSION} to {FORMAT_VERSION}" in line
    assert str(copy) in line
    assert {path.name for path in old.path.parent.iterdir()} >= {old.path.name, copy.name}


def test_a_file_with_functions_in_place_of_duckdbs_is_left_as_it_is(old: Store) -> None:
    with duckdb.connect(str(old.path)) as connection:
        connection.execute("CREATE MACRO coalesce(x) AS 7; CREATE MACRO lower(x) AS 7")
    with pytest.raises(NotAStoreError, match="functions in place of DuckDB's"):
        old.series(PRICE)
    assert held_format(old.path) == OLDEST_VERSION
    assert not backup_path(old.path, OLDEST_VERSION).with_name("rail.format-10-2.duckdb").exists()


def test_loads_go_on_after_the_migration(old: Store) -> None:
    writer = StoreWriter(old)
    load = writer.start_load(ORIGIN, [PRICE], Interval(0, 600))
    assert old.ledger([PRICE])[PRICE].asked[-1][1] >= 600
    writer.keep_allowance(load, Allowance("builder", 600, 60, 7))
    writer.keep_allowance(load, None)
    assert old.loads().row(0, named=True)["quota_left"] == 7


@pytest.mark.parametrize("version", [1, OLDEST_VERSION - 1])
def test_a_store_of_a_format_that_no_release_wrote_is_refused_and_left_as_it_is(
    old: Store, version: int
) -> None:
    with duckdb.connect(str(old.path)) as connection:
        connection.execute(
            "UPDATE meta SET value = ? WHERE name = 'format_version'", [str(version)]
        )
    before = whole(old.path)
    for use in (old.loads, lambda: StoreWriter(old).start_load(ORIGIN)):
        with pytest.raises(StoreVersionError, match=rf"store format {version}, .* 10 to 11\)"):
            use()
    assert whole(old.path) == before
    assert not list(old.path.parent.glob("*.format-*"))
