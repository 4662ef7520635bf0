"""Rows read from published files are those of the store, to the last bit."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from toolkit.errors import InputError, StoreError
from toolkit.store import Store
from toolkit.store.publish import PublishedRows, publish

from ..conftest import FEBRUARY, FIRST, JANUARY

KINDS = ("price", "spread", "funding")
EVER = (0, 2**34)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", [EVER, (JANUARY + 60, FEBRUARY + 600), (JANUARY, JANUARY + 60)])
def test_parts_have_the_rows_of_the_groups_of_a_store(
    full: Store, tmp_path: Path, kind: str, window: tuple[int, int]
) -> None:
    publish(full, tmp_path / "archive")
    wanted = pl.concat(full.groups(kind, window))
    for rows in (None, 1):
        parts = PublishedRows.of(str(tmp_path / "archive"), kind, window, rows=rows).parts
        found = pl.concat([part.read() for part in parts])
        assert found.equals(wanted)
        assert found.schema == wanted.schema


def test_keys_and_months_are_those_that_are_asked_for(full: Store, tmp_path: Path) -> None:
    publish(full, tmp_path / "archive")
    (part,) = PublishedRows.of(str(tmp_path / "archive"), "price", (FEBRUARY, 2**34), [FIRST]).parts
    assert part.keys == [FIRST]
    assert [file.month for _, files in part.streams for file in files] == ["2026-02"]
    (empty,) = PublishedRows.of(str(tmp_path / "archive"), "price", EVER, ["Z_Z:X.spot"]).parts
    assert empty.read().is_empty()
    assert [one.keys for one in part.each()] == [[FIRST]]


def test_a_file_that_is_not_the_one_published_is_refused(full: Store, tmp_path: Path) -> None:
    publish(full, tmp_path / "archive")
    rows = PublishedRows.of(str(tmp_path / "archive"), "price", EVER)
    file = next((tmp_path / "archive" / "price").iterdir())
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(StoreError, match="is damaged"):
        [part.read() for part in rows.parts]
    file.unlink()
    with pytest.raises(StoreError, match="is missing"):
        [part.read() for part in rows.parts]


def test_the_address_is_that_of_the_publication(full: Store, tmp_path: Path) -> None:
    address = publish(full, tmp_path / "archive").address
    assert PublishedRows.of(str(tmp_path / "archive"), "price", EVER).address == address
    with pytest.raises(InputError, match="kind: 'event'"):
        PublishedRows.of(address, "event", EVER)
