"""A file in a published place is whole or not there, and what killed processes left is removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from toolkit.errors import StoreError
from toolkit.store.publish.destinations import (
    Bucket,
    Destination,
    Folder,
    is_published,
    manifest_in,
    place_of,
)


@pytest.fixture(params=["folder", "obstore"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Destination:
    """A place that is not there yet."""
    path = tmp_path / "place"
    return Folder(path) if request.param == "folder" else Bucket(path.as_uri())


def sizes(place: Destination) -> dict[str, int]:
    """The bytes of each file."""
    return {name: file.bytes for name, file in place.files().items()}


def test_what_is_written_can_be_listed_read_replaced_and_removed(place: Destination) -> None:
    assert place.files() == {}
    place.write("price/a", b"one")
    place.write("price/a", b"three")
    place.write("b", b"")
    assert sizes(place) == {"price/a": 5, "b": 0}
    assert all(abs(each.written_at - time.time()) < 60 for each in place.files().values())
    assert place.read("price/a") == b"three"
    place.remove("price/a")
    assert sizes(place) == {"b": 0}


def test_a_file_is_exchanged_only_where_it_is_what_it_was_taken_for(place: Destination) -> None:
    assert place.exchange("manifest", None, b"one")
    for before in (None, b"another"):
        assert not place.exchange("manifest", before, b"two")
    assert place.read("manifest") == b"one"


def test_a_file_that_is_missing_is_named(place: Destination) -> None:
    with pytest.raises(StoreError, match=r"price/a is missing; publish there again"):
        place.read("price/a")


def test_an_address_of_no_known_kind_is_one_line() -> None:
    with pytest.raises(StoreError, match="cannot be used") as refused:
        place_of("nowhere://bucket/folder")
    assert "\n" not in str(refused.value)


def test_drafts_of_killed_processes_are_no_files_and_old_ones_are_removed(tmp_path: Path) -> None:
    place = Folder(tmp_path)
    place.write("a", b"1")
    young, old = tmp_path / ".b.1.new", tmp_path / ".b.2.new"
    for draft in (young, old):
        draft.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert sizes(place) == {"a": 1}
    assert young.exists()
    assert not old.exists()


def test_what_names_published_data(tmp_path: Path) -> None:
    assert not is_published(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    assert is_published(tmp_path)
    assert is_published(tmp_path / "manifest.json")
    assert not is_published(None)
    assert not is_published("a\0b")
    assert place_of("manifest.json").name == "."
    pinned = f"manifests/{'0f' * 32}.json"
    assert is_published(tmp_path / pinned)
    assert (place_of(pinned).name, manifest_in(pinned)) == (".", pinned)
    assert (place_of(tmp_path / pinned).name, manifest_in(tmp_path)) == (
        str(tmp_path),
        "manifest.json",
    )
    assert place_of(f"{tmp_path.as_uri()}/").name == tmp_path.as_uri()
