"""A stream whose row or rows cannot be read leaves one entry that names it; all others are read."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pytest

import toolkit as tk
from tests.empty_store import empty_store
from toolkit.errors import NotAStoreError, StoreError
from toolkit.store import Store

from .conftest import SOURCE, committing

SOUND, BROKEN = "A_B:X.spot:Y.futures", "A_B:X.spot:Z.futures"
MINUTES = [(60 * at, 100.0 + at % 7, 101.0 + at % 5) for at in range(200)]

ROWS = "INSERT INTO spread FROM spread WHERE stream_id = 2 AND ts % 420 = 0"
FAULTS = {
    "a key that is none": ("UPDATE stream SET key = 'A_B??' WHERE stream_id = 2", "A_B??"),
    "an empty key": ("UPDATE stream SET key = '' WHERE stream_id = 2", ""),
    "a key of another kind": ("UPDATE stream SET kind = 'price' WHERE stream_id = 2", BROKEN),
    "a log of no family": (
        "UPDATE stream SET key = 'events/none' WHERE stream_id = 2",
        "events/none",
    ),
    "its row twice": ("INSERT INTO stream FROM stream WHERE stream_id = 2", BROKEN),
    "its key twice": (
        "INSERT INTO stream SELECT * REPLACE (9 AS stream_id) FROM stream WHERE stream_id = 2",
        BROKEN,
    ),
    "rows twice": (ROWS, BROKEN),
    "other rows twice": (
        ROWS.replace("FROM spread", "SELECT * REPLACE (1 AS buy_price) FROM spread"),
        BROKEN,
    ),
}


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    store = empty_store(tmp_path_factory.mktemp("readable") / "rail.duckdb", SOURCE)
    for key in (SOUND, BROKEN):
        committing(store)(key, MINUTES, answered=(0, 12_000))
    return store.path.read_bytes()


@pytest.mark.parametrize(("fault", "key"), FAULTS.values(), ids=FAULTS)
def test_what_cannot_be_read_is_one_entry_beside_all_others(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str, key: str
) -> None:
    path = tmp_path / "rail.duckdb"
    path.write_bytes(content)
    with duckdb.connect(str(path)) as connection:
        connection.execute(fault)
    rail = tk.open(path)
    rows = pl.concat(rail.store.groups("spread"))  # of which screens are made
    assert rows["trajectory"].unique().to_list() == [SOUND]
    assert rail.spread(SOUND).df.height == 200
    assert rail.store.known(rail.store.loads()["started_at"].max()).catalogue().height == 1
    found = {row["stream"]: row for row in rail.status().to_dicts()}
    assert found.keys() == {SOUND, key}
    assert (found[SOUND]["state"], found[key]["state"]) == ("held", "not readable")
    assert [each.stream for each in rail.store.unreadable()] == [key]
    assert ("rows" in fault or "spread" in fault) == ("is not readable and left out" in caplog.text)
    if key == BROKEN:
        with pytest.raises(StoreError, match=f"{BROKEN} is not readable: .*rail store verify"):
            rail.spread(BROKEN)


def test_a_loop_of_links_is_no_store(tmp_path: Path) -> None:
    one, other = tmp_path / "one.duckdb", tmp_path / "other.duckdb"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(NotAStoreError, match=r"one\.duckdb is a loop of symbolic links"):
        Store(one).catalogue()
