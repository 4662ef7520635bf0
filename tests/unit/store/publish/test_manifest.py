"""The manifest has all of a store that is no file, and any change of it is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from toolkit.errors import NotAStoreError, StoreVersionError
from toolkit.store import Store
from toolkit.store.publish.manifest import (
    Manifest,
    _own_digest,
    published_source,
    read_manifest,
    written,
)
from toolkit.store.reading.moment import BOOKS, StoreState

from ..conftest import FIRST, JANUARY


@pytest.fixture(scope="module")
def moment(full_file: Path) -> StoreState:
    """The full store as it is."""
    return StoreState.now(Store(full_file))


@pytest.fixture
def manifest(moment: StoreState) -> Manifest:
    """The manifest of the full store, without files."""
    return Manifest.of(moment, [])


def test_all_bookkeeping_comes_back(moment: StoreState, manifest: Manifest) -> None:
    books = read_manifest(written(manifest), "m").books
    for table in BOOKS:
        assert books[table.name].sort(table.key).equals(moment.books[table.name])


def test_it_is_json_that_a_person_can_read(published: Path) -> None:
    found = json.loads((published / "manifest.json").read_text())
    assert found["source"]["label"] == "Replay of recorded data, example"
    stream = next(each for each in found["streams"] if each["key"] == FIRST)
    assert stream["kind"] == "price"
    assert stream["edge"][0]["step_s"] == 60
    assert {part["state"] for part in stream["coverage"]} == {"settled"}
    file = next(each for each in found["files"] if each["stream"] == FIRST)
    assert (file["month"], file["rows"], file["first_ts"]) == ("2026-01", 32, JANUARY)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[1]", b"\xff\xfe", b'{"format": 1, "store_format": "four"}', b"PAR1" * 100],
)
def test_what_is_no_manifest_is_one_line(content: bytes) -> None:
    with pytest.raises(NotAStoreError, match="not a manifest of published data") as refused:
        read_manifest(content, "place/manifest.json")
    assert "\n" not in str(refused.value)


def test_a_change_of_any_value_is_noticed(manifest: Manifest) -> None:
    content = written(manifest)
    for old, new in ((b'"rows":32', b'"rows":31'), (b"silent", b"silant"), (b"spot", b"sp0t")):
        if old in content:
            with pytest.raises(NotAStoreError):
                read_manifest(content.replace(old, new, 1), "m")
    with pytest.raises(NotAStoreError):
        read_manifest(content[: len(content) // 2], "m")


def test_files_of_other_names_are_refused_although_the_manifest_is_whole(
    manifest: Manifest,
) -> None:
    file = {"table": "../x", "stream": None, "month": "2026-01", "rows": 1, "bytes": 1}
    file |= {"sha256": "0" * 64, "first_ts": 0, "last_ts": 0}
    hostile = msgspec.convert(
        msgspec.to_builtins(manifest) | {"files": [file], "sha256": ""}, Manifest
    )
    signed = msgspec.structs.replace(hostile, sha256=_own_digest(hostile))
    with pytest.raises(NotAStoreError, match="another name"):
        read_manifest(written(signed), "m")


@pytest.mark.parametrize(("format_", "words"), [(0, "older"), (99, "newer")])
def test_another_format_is_refused_with_what_to_do(
    manifest: Manifest, format_: int, words: str
) -> None:
    other = msgspec.structs.replace(manifest, store_format=format_)
    with pytest.raises(StoreVersionError, match=f"an? {words} toolkit"):
        read_manifest(written(other), "m")


def test_the_source_of_an_older_format_is_known_and_one_without_a_source_is_no_manifest(
    manifest: Manifest,
) -> None:
    older = msgspec.structs.replace(manifest, store_format=0)
    assert published_source(written(older), "m") == manifest.source
    with pytest.raises(NotAStoreError, match="not a manifest"):
        published_source(b'{"format": 0, "store_format": 0}', "m")
    with pytest.raises(StoreVersionError, match="newer"):
        published_source(b'{"format": 99, "store_format": 0}', "m")
