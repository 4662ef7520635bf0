"""Results are kept whole, by their key, until nobody has asked for them in a month."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from toolkit.cluster.placement import KeptResults
from toolkit.errors import StoreError

FRAMES = [
    pl.DataFrame({"a": [1.5, None, float("nan")], "b": ["x", None, ""]}),
    pl.DataFrame(schema={"c": pl.Datetime("us", "UTC"), "d": pl.List(pl.Int32)}),
]


def test_a_result_is_what_was_put(tmp_path: Path) -> None:
    kept = KeptResults(tmp_path / "results")
    assert kept.get("one") is None
    kept.put("one", FRAMES)
    kept.put("one", [])  # another process was as fast
    found = kept.get("one")
    assert found is not None
    assert [
        each.equals(frame) and each.schema == frame.schema
        for each, frame in zip(found, FRAMES, strict=True)
    ] == [True, True]
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["one"]


def test_what_was_not_asked_for_in_a_month_is_removed(tmp_path: Path) -> None:
    kept = KeptResults(tmp_path)
    for name in ("old", "asked"):
        kept.put(name, FRAMES)
        os.utime(tmp_path / name, (0, 0))
    kept.get("asked")
    KeptResults(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["asked"]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="for results cannot be made"):
        KeptResults(tmp_path / "file" / "results")
