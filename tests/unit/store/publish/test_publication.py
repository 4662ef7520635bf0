"""A store published: one file per stream and month, written once, read by anybody."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest

import toolkit as tk
from toolkit.errors import (
    InputError,
    NotAStoreError,
    StoreError,
    StoreSourceError,
    StoreVersionError,
)
from toolkit.market import Source
from toolkit.store import Store, StoreWriter
from toolkit.store.file.schema import FORMAT_VERSION
from toolkit.store.publish import Published, import_store, publications, publish

from ..conftest import FEBRUARY, FIRST, JANUARY, PAIR, committing, minutes

PRICES = """
stream              month    rows
A_B:X.spot          2026-01  32
A_B:X.spot          2026-02  30
A_B:Y.spot          2026-01  10
A_B:Y.spot          2026-02  10
C_D:X.spot          2026-01  2
"""


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by its name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.glob("**/*")
        if path.is_file()
    }


@pytest.fixture(params=["a folder", "obstore"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place to publish: a folder, and the same by way of the code for object stores."""
    folder = tmp_path / "published"
    return str(folder) if request.param == "a folder" else folder.as_uri()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that ``where`` names."""
    return tmp_path / "published"


def folder_of(name: str) -> str:
    """The folder of a file that was published: the table."""
    return name.partition("/")[0]


def test_there_is_one_file_per_stream_and_month_and_what_did_not_change_is_not_written_again(
    full: Store, where: str, folder: Path, commit: Callable
) -> None:
    first = publish(full, where)
    before = content(folder)
    files = list(folder.glob("price/*.parquet"))
    assert first.files == len(list(folder.glob("*/*.parquet"))) == first.uploaded_files
    assert first.uploaded_bytes == first.bytes == sum(map(len, before.values()))
    assert first.kept_files == first.kept_bytes == 0
    month = pl.from_epoch("ts").dt.strftime("%Y-%m").alias("month")
    rows = pl.concat(map(pl.read_parquet, files))
    counted = rows.group_by("stream", month).len().sort("stream", "month")
    wanted = [line.split() for line in PRICES.strip().splitlines()[1:]]
    assert [list(map(str, row)) for row in counted.rows()] == wanted
    assert len(files) == len(wanted)

    again = publish(full, where)
    assert content(folder) == before
    assert (again.uploaded_files, again.uploaded_bytes) == (0, 0)
    assert (again.kept_files, again.kept_bytes) == (first.files, first.bytes)

    commit(FIRST, minutes(FEBRUARY + 3_600, 10))
    done = publish(full, where)
    fresh = {name: data for name, data in content(folder).items() if before.get(name) != data}
    assert sorted(map(folder_of, fresh)) == ["edge_change", "manifest.json", "manifests", "price"]
    file = next(name for name in fresh if folder_of(name) == "price")
    assert pl.read_parquet(fresh[file])["ts"].to_list()[-1] == FEBRUARY + 3_600 + 540
    assert done.uploaded_files == 2
    assert done.uploaded_bytes == sum(map(len, fresh.values()))
    assert set(before) <= set(content(folder))  # a reader of the older manifest loses nothing


def test_the_same_rows_give_the_same_files_whatever_their_order(
    full: Store, published: Path, tmp_path: Path
) -> None:
    with duckdb.connect(str(full.path)) as connection:
        connection.execute("CREATE OR REPLACE TABLE price AS FROM price ORDER BY hash(ts)")
    publish(full, tmp_path / "two")
    assert content(tmp_path / "two") == content(published)


def test_a_file_that_was_cut_is_written_again(
    full: Store, where: str, archive: Path, published: Path
) -> None:
    file = next(archive.glob("price/*.parquet"))
    file.write_bytes(file.read_bytes()[:-1])
    assert publish(full, where).uploaded_files == 1
    assert content(archive) == content(published)


def test_a_place_with_another_source_is_refused(full: Store, where: str, tmp_path: Path) -> None:
    other = Store(tmp_path / "other.duckdb")
    StoreWriter(other).bind(Source("replay", "of another"))
    publish(other, where)
    with pytest.raises(StoreSourceError, match="another source"):
        publish(full, where)


def of_an_older_store_format(folder: Path) -> Path:
    """Make the manifest of a folder one of a store format before this one, and return its path."""
    path = folder / "manifest.json"
    text = path.read_text()
    path.write_text(
        text.replace(f'"store_format": {FORMAT_VERSION}', f'"store_format": {FORMAT_VERSION - 1}')
    )
    assert path.read_text() != text
    return path


def test_a_publication_of_an_older_format_is_published_again_from_its_own_source_alone(
    full: Store, archive: Path, tmp_path: Path
) -> None:
    manifest = (archive / "manifest.json").read_bytes()
    older = of_an_older_store_format(archive)
    with pytest.raises(StoreVersionError, match="publish there again with this one, from the sto"):
        import_store(archive, tmp_path / "again.duckdb")
    other = Store(tmp_path / "other.duckdb")
    StoreWriter(other).bind(Source("replay", "of another"))
    with pytest.raises(StoreSourceError, match="another source"):
        publish(other, archive)
    assert publish(full, archive).uploaded_bytes == len(manifest)
    assert older.read_bytes() == manifest


def test_a_file_of_a_users_own_named_manifest_is_left(full: Store, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "my extension"}')
    with pytest.raises(NotAStoreError, match="nothing was written"):
        publish(full, tmp_path)
    assert (tmp_path / "manifest.json").read_text() == '{"name": "my extension"}'
    assert not list(tmp_path.glob("*/*.parquet"))


def test_a_place_that_cannot_be_written_is_one_line(full: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        publish(full, tmp_path / "file")


def test_a_store_without_rows_is_published_as_such(store: Store, tmp_path: Path) -> None:
    done = publish(store, tmp_path / "empty")
    assert isinstance(done, Published)
    assert (done.files, done.rows) == (0, 0)
    assert sorted(map(folder_of, content(tmp_path / "empty"))) == ["manifest.json", "manifests"]


READERS: dict[str, Callable[[Path], list[tuple[object, ...]]]] = {
    "polars": lambda folder: (
        pl.scan_parquet(folder / "spread" / "*.parquet")
        .select("stream", "ts", "buy_price", "sell_price", "extra")
        .sort("ts")
        .collect()
        .rows()
    ),
    "duckdb": lambda folder: duckdb.sql(
        "SELECT stream, ts, buy_price, sell_price, extra "
        f"FROM read_parquet('{folder}/spread/*.parquet') ORDER BY ts"
    ).fetchall(),
    "pandas": lambda folder: [
        tuple(None if pd.isna(value) else value for value in row)
        for row in pd.read_parquet(folder / "spread")
        .sort_values("ts")[["stream", "ts", "buy_price", "sell_price", "extra"]]
        .itertuples(index=False)
    ],
}


@pytest.mark.parametrize("reader", READERS)
def test_others_read_the_files_without_us(published: Path, reader: str) -> None:
    assert READERS[reader](published) == [
        (PAIR, JANUARY, 1.0, 1.1, '{"seq":1}'),
        (PAIR, FEBRUARY, 2.0, None, None),
    ]


@pytest.fixture(scope="module")
def made_twice(full_file: Path, published: Path, tmp_path_factory: Any) -> tuple[Path, str, str]:
    """A folder with a store and two publications of it, and the names of their manifests."""
    folder = tmp_path_factory.mktemp("twice")
    store = Store(shutil.copy(full_file, folder / "rail.duckdb"))
    place = shutil.copytree(published, folder / "archive")
    (older,) = (file.name for file in place.glob("manifests/*.json"))
    committing(store)(FIRST, minutes(FEBRUARY + 3_600, 10))
    return folder, older, publish(store, place).address.rpartition("/")[2]


@pytest.fixture
def twice(full: Store, tmp_path: Path, made_twice: tuple[Path, str, str]) -> tuple[Path, str, str]:
    """A place with two publications of a store, and their addresses: the older and the newer."""
    made, older, newer = made_twice
    shutil.copyfile(made / "rail.duckdb", full.path)
    place = shutil.copytree(made / "archive", tmp_path / "archive")
    return place, f"{place}/manifests/{older}", f"{place}/manifests/{newer}"


def aged(address: str) -> None:
    """Let a manifest be of the year 1970."""
    os.utime(address, (0, 0))


def test_each_is_listed_with_what_it_has_the_newest_first(
    twice: tuple[Path, str, str], full: Store
) -> None:
    place, older, newer = twice
    found = publications(place)
    assert found["address"].to_list() == [newer, older]
    assert found["newest"].to_list() == [True, False]
    assert found["rows"][0] == found["rows"][1] + 10
    assert found["last_ts"][0] >= FEBRUARY + 3_600 + 540
    publish(full, place)
    assert publications(place).equals(found)
    assert publications(place / "nowhere").is_empty()


@pytest.mark.slow
def test_an_older_one_is_opened_and_imported_as_it_was(
    twice: tuple[Path, str, str], full: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place, older, newer = twice
    with tk.open(older) as then, tk.open(place) as now:
        assert then.store.published == older
        assert now.store.published == newer
        assert now.store.series(FIRST).equals(full.series(FIRST))
        assert then.store.series(FIRST).height == full.series(FIRST).height - 10
    made = import_store(older, tmp_path / "made.duckdb")
    assert publish(made, tmp_path / "again").address.endswith(older.rpartition("/")[2])


@pytest.mark.slow
def test_those_older_than_asked_for_are_removed_with_files_that_no_other_names(
    twice: tuple[Path, str, str], full: Store
) -> None:
    place, older, newer = twice
    (place / "price" / "notes.txt").write_text("a user's own")
    before = set(place.glob("*/*.parquet"))
    assert publish(full, place, keep="30d").removed_files == 0
    assert set(place.glob("*/*.parquet")) == before
    aged(older)
    aged(newer)
    done = publish(full, place, keep="30d")
    assert done.removed_files == 2
    assert publications(place)["address"].to_list() == [newer]
    assert len(list(place.glob("*/*.parquet"))) == len(before) - 2
    assert (place / "price" / "notes.txt").exists()
    with pytest.raises(StoreError, match=r"manifests/\w+\.json is missing"):
        tk.open(older)


def test_a_length_of_time_that_is_none_is_refused_before_anything_is_written(
    full: Store, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="keep: 'forever' is not allowed"):
        publish(full, tmp_path / "archive", keep="forever")
    assert not (tmp_path / "archive").exists()


def test_a_manifest_under_the_name_of_another_is_refused(twice: tuple[Path, str, str]) -> None:
    _, older, newer = twice
    Path(older).write_bytes(Path(newer).read_bytes())
    with pytest.raises(NotAStoreError, match="is another publication than its name says"):
        tk.open(older)
