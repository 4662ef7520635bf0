"""Published files make an equal store, or none at all; a copy of them is read and never written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from toolkit.errors import InputError, NotAStoreError, StoreError, StoreSourceError
from toolkit.market import Source
from toolkit.store import Store, StoreWriter
from toolkit.store.publish import PublishedRows, import_store, open_published, publish

from ..conftest import FEBRUARY, FIRST, JANUARY, ORIGIN, minutes, same


@pytest.fixture(params=["a folder", "obstore"])
def where(request: pytest.FixtureRequest, archive: Path) -> str:
    """The full store, published: a folder, and the same by the code for object stores."""
    return str(archive) if request.param == "a folder" else archive.as_uri()


@pytest.mark.slow
def test_an_imported_store_is_equal_and_publishes_the_same_files(
    full: Store, where: str, tmp_path: Path
) -> None:
    made = import_store(f"{where}/manifest.json", tmp_path / "made.duckdb")
    assert same(made, full)
    done = publish(made, where)
    assert done.uploaded_bytes == 0
    publish(made, tmp_path / "again")
    for file in (tmp_path / "published").glob("**/*.*"):
        again = tmp_path / "again" / file.relative_to(tmp_path / "published")
        assert again.read_bytes() == file.read_bytes()


def test_loads_go_on_in_an_imported_store(published: Path, tmp_path: Path, full: Store) -> None:
    made = import_store(published, tmp_path / "made.duckdb")
    StoreWriter(made).bind(full.source)
    assert StoreWriter(made).start_load(ORIGIN) == full.loads()["load_id"][0] + 1


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "harm", "words"),
    [
        ("price", damage, "is damaged"),
        ("event", Path.unlink, "is missing"),
        ("snapshot", damage, "is damaged"),
        ("delivery", Path.unlink, "is missing"),
    ],
)
def test_a_file_that_is_damaged_or_missing_leaves_no_store(
    where: str, tmp_path: Path, name: str, harm: Callable[[Path], None], words: str
) -> None:
    harm(min((tmp_path / "published" / name).glob("*.parquet")))
    before = set(tmp_path.iterdir())
    with pytest.raises(StoreError, match=words) as refused:
        import_store(where, tmp_path / "made.duckdb")
    assert "\n" not in str(refused.value)
    assert set(tmp_path.iterdir()) == before


def test_a_manifest_that_is_damaged_or_missing_leaves_no_store(where: str, tmp_path: Path) -> None:
    manifest = tmp_path / "published" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"silent", b"silant"))
    with pytest.raises(NotAStoreError):
        import_store(where, tmp_path / "made.duckdb")
    manifest.unlink()
    with pytest.raises(StoreError, match="is missing"):
        import_store(where, tmp_path / "made.duckdb")
    assert not (tmp_path / "made.duckdb").exists()


def test_a_store_that_is_there_is_left(full: Store, published: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is there already"):
        import_store(published, full.path)
    other = Store(tmp_path / "other.duckdb")
    StoreWriter(other).bind(Source("replay", "another"))
    with pytest.raises(StoreSourceError):
        import_store(published, other.path)
    assert other.catalogue().height == 0


def test_published_data_is_read_like_a_store_and_takes_no_rows(
    full: Store, where: str, tmp_path: Path
) -> None:
    held = open_published(where, tmp_path / "cache")
    assert same(held, full)
    fetched = list((tmp_path / "cache").glob("*/files/*/*.parquet"))
    assert bool(fetched) == where.startswith("file:")
    with pytest.raises(StoreError, match="takes no rows; `rail import"):
        StoreWriter(held)


def test_a_new_manifest_is_read_anew_and_fetches_what_changed(
    full: Store, archive: Path, tmp_path: Path, commit: Callable
) -> None:
    where, cache = archive.as_uri(), tmp_path / "cache"
    first = open_published(where, cache)
    assert open_published(where, cache).path == first.path
    before = {path: path.stat().st_mtime_ns for path in cache.glob("*/files/*/*.parquet")}
    commit(FIRST, minutes(FEBRUARY + 3_600, 10))
    publish(full, where)
    second = open_published(where, cache)
    assert second.path != first.path
    assert same(second, full)
    after = {path: path.stat().st_mtime_ns for path in cache.glob("*/files/*/*.parquet")}
    assert len(after.items() - before.items()) == 2
    assert len(after) == len(before)  # the files that are named no more are gone


KINDS = ("price", "spread", "funding")
EVER = (0, 2**34)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", [EVER, (JANUARY + 60, FEBRUARY + 600), (JANUARY, JANUARY + 60)])
def test_parts_have_the_rows_of_the_groups_of_a_store(
    full_file: Path, published: Path, kind: str, window: tuple[int, int]
) -> None:
    wanted = pl.concat(Store(full_file).groups(kind, window))
    for rows in (None, 1):
        parts = PublishedRows.of(str(published), kind, window, rows=rows).parts
        found = pl.concat([part.read() for part in parts])
        assert found.equals(wanted)
        assert found.schema == wanted.schema


def test_parts_are_of_the_keys_and_months_asked_for_and_refuse_files_that_were_changed(
    archive: Path,
) -> None:
    place = str(archive)
    (address,) = map(str, archive.glob("manifests/*.json"))
    (part,) = PublishedRows.of(place, "price", (FEBRUARY, 2**34), [FIRST]).parts
    assert part.keys == [FIRST]
    assert [file.month for _, files in part.streams for file in files] == ["2026-02"]
    assert [one.keys for one in part.each()] == [[FIRST]]
    (empty,) = PublishedRows.of(place, "price", EVER, ["Z_Z:X.spot"]).parts
    assert empty.read().is_empty()
    rows = PublishedRows.of(place, "price", EVER)
    assert rows.address == address
    with pytest.raises(InputError, match="kind: 'event'"):
        PublishedRows.of(address, "event", EVER)
    file = next((archive / "price").iterdir())
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(StoreError, match="is damaged"):
        [part.read() for part in rows.parts]
    file.unlink()
    with pytest.raises(StoreError, match="is missing"):
        [part.read() for part in rows.parts]
