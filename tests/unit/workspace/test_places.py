"""Where the demo's store is kept: one file for each market, in the user's data folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.errors import StoreError
from toolkit.market import Source
from toolkit.workspace import data_folder, demo_store

OURS = Source("simulated", "seed-7-acd8ce16f9b1")


def test_a_relative_data_home_is_not_followed(tmp_path: Path) -> None:
    assert data_folder({"XDG_DATA_HOME": "data"}).is_absolute()
    assert data_folder({"XDG_DATA_HOME": str(tmp_path)}) == tmp_path / "machine-rail"


def test_another_market_has_a_file_of_its_own_and_the_first_one_stays(tmp_path: Path) -> None:
    path, others = demo_store(OURS, tmp_path / "new")
    assert (path.name, others) == ("demo-acd8ce16f9b1.duckdb", [])
    path.write_text("kept")
    later, others = demo_store(Source("simulated", "seed-7-0123456789ab"), tmp_path / "new")
    assert (later.name, others) == ("demo-0123456789ab.duckdb", [path])
    assert path.read_text() == "kept"
    assert demo_store(OURS, tmp_path / "new") == (path, [])


def test_a_folder_that_cannot_be_made_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be made: .*; name a file: rail demo"):
        demo_store(OURS, tmp_path / "file" / "machine-rail")
