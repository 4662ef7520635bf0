"""A whole store has no fault, and each breach of a law is named."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from toolkit.errors import StoreError
from toolkit.store import Store
from toolkit.store.file.maintenance import verify

BREACHES = {
    "INSERT INTO price FROM price LIMIT 1": "price: several rows share a key: 1 (",
    "DELETE FROM price WHERE revision = 0 AND ts = 1767225600 AND stream_id = 2": (
        "price: revisions are missing: 1 (2, 1767225600"
    ),
    "UPDATE spread SET load_id = 99": "spread: rows of no load that is known: 1 (99)",
    "UPDATE gap SET repaired_load_id = 99": "gap: rows of no load that is known: 1 (99)",
    "UPDATE funding SET stream_id = 99": "funding: rows of no stream that is known: 1 (99)",
    "UPDATE stream SET rows = rows + 1 WHERE kind = 'events'": (
        "stream: counters differ from what is held (key, counted, then held): 1 "
        "(events/spread, 2, 1, 1, 1)"
    ),
    "UPDATE stream SET last_ts = NULL WHERE kind = 'price'": "stream: counters differ",
    "DELETE FROM snapshot": "stream: counters differ",
    "UPDATE coverage SET end_ts = start_ts": "coverage: stretches of no length",
    "UPDATE coverage SET state = 'known'": "coverage: stretches of no length or of an unknown",
    "INSERT INTO coverage SELECT * REPLACE (start_ts + 1 AS start_ts) FROM coverage "
    "WHERE end_ts - start_ts > 10": "coverage: stretches that overlap",
    "UPDATE stream SET key = 'no key' WHERE kind = 'price'": "stream: 'no key' is not a key of",
    "UPDATE stream SET kind = 'spread' WHERE kind = 'price'": "is not a key of the kind 'spread'",
    "UPDATE event SET ts = ts + 1": "event: ts and ts_ms differ: 2 (",
    "DROP TABLE gap": "gap: the table is missing or has other columns",
    "ALTER TABLE price DROP volume": "price: the table is missing or has other columns",
}


@pytest.mark.slow
def test_a_store_with_something_of_everything_is_whole(full: Store) -> None:
    assert verify(full) == []


@pytest.mark.parametrize(("breach", "fault"), BREACHES.items())
def test_each_breach_is_named(full: Store, breach: str, fault: str) -> None:
    with duckdb.connect(str(full.path)) as connection:
        connection.execute(breach)
    found = verify(full)
    assert any(fault in each for each in found), found
    assert all("\n" not in each for each in found)


@pytest.mark.slow
def test_a_block_that_was_changed_is_found(full: Store) -> None:
    with duckdb.connect(str(full.path)) as connection:
        connection.execute(
            "INSERT INTO delivery SELECT 'x' || i, i, NULL, md5(i::VARCHAR), 1 "
            "FROM range(200000) r(i)"
        )
    content = bytearray(full.path.read_bytes())
    for start in range(len(content) // 4, len(content), 2**17):
        content[start : start + 64] = bytes(each ^ 255 for each in content[start : start + 64])
    full.path.write_bytes(content)
    found = verify(full)
    assert found
    assert "cannot be read to its end" in found[-1]


def test_a_file_that_is_no_store_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        verify(Store(tmp_path / "none.duckdb"))
