"""Where the demo's store is kept: one file for each market, in the user's data folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.errors import StoreError
from toolkit.market import Source
from toolkit.store import Store, StoreWriter
from toolkit.workspace import demo_store, store_beside
from toolkit.workspace.settings import FOLDERS

OURS = Source("simulated", "seed-7-2701ceaf8055")


def test_a_relative_data_home_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    assert FOLDERS.user_data_path.is_absolute()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert FOLDERS.user_data_path == tmp_path / "machine-rail"


def test_another_market_has_a_file_of_its_own_and_the_first_one_stays(tmp_path: Path) -> None:
    path, others = demo_store(OURS, tmp_path / "new")
    assert (path.name, others) == ("demo-2701ceaf8055.duckdb", [])
    path.write_text("kept")
    later, others = demo_store(Source("simulated", "seed-7-0123456789ab"), tmp_path / "new")
    assert (later.name, others) == ("demo-0123456789ab.duckdb", [path])
    assert path.read_text() == "kept"
    assert demo_store(OURS, tmp_path / "new") == (path, [])


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A store of an earlier version's market."""
    path = tmp_path / "mine.duckdb"
    StoreWriter(Store(path)).bind(Source("simulated", "seed-7-0123456789ab"))
    return path


def test_beside_a_named_store_of_an_earlier_market_one_of_this_begins(earlier: Path) -> None:
    before = earlier.read_bytes()
    beside = earlier.with_name("mine-2701ceaf8055.duckdb")
    assert store_beside(earlier, OURS) == beside
    StoreWriter(Store(beside)).bind(OURS)
    assert store_beside(earlier, OURS) == store_beside(beside, OURS) == beside
    assert earlier.read_bytes() == before
    assert Store(earlier).source == Source("simulated", "seed-7-0123456789ab")


def test_a_named_store_of_this_market_of_none_and_of_a_real_source_is_meant_itself(
    earlier: Path, tmp_path: Path
) -> None:
    assert store_beside(earlier, Source("simulated", "seed-7-0123456789ab")) == earlier
    assert store_beside(tmp_path / "new.duckdb", OURS) == tmp_path / "new.duckdb"
    assert store_beside(earlier, Source("live", "rail")) == earlier
    real = tmp_path / "real.duckdb"
    StoreWriter(Store(real)).bind(Source("live", "rail"))
    assert store_beside(real, OURS) == real


def test_a_folder_that_cannot_be_made_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be made: .*; name a file: rail demo"):
        demo_store(OURS, tmp_path / "file" / "machine-rail")
