"""Publications of one place: each can be read by its own address until it is removed by its age."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import toolkit as tk
from toolkit.errors import InputError, NotAStoreError, StoreError
from toolkit.store import Store
from toolkit.store.publish import import_store, publications, publish

from ..conftest import FEBRUARY, FIRST, minutes


@pytest.fixture
def twice(full: Store, tmp_path: Path, commit: Callable) -> tuple[Path, str, str]:
    """A place with two publications, and their addresses: the older and the newer."""
    place = tmp_path / "archive"
    older = publish(full, place).address
    commit(FIRST, minutes(FEBRUARY + 3_600, 10))
    return place, older, publish(full, place).address


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
