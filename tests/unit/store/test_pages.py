"""The pages beside a store: what is kept, for how long, and whose it is."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dated import date_load
from toolkit.errors import StoreError
from toolkit.intervals import Interval
from toolkit.market import SnapshotKind, SnapshotLog, Trajectory
from toolkit.store import Batch, LoadOrigin, Snapshot, Store, StoreWriter, profile_words
from toolkit.store.file.maintenance import back_up_store, compact
from toolkit.store.publish import import_store, publish
from toolkit.store.writing.pages import KeptPage, KeptRecord, packed_page, pages_path, read_pages
from toolkit.store.writing.remap import remap
from toolkit.wire.exchange import Response

from .conftest import EDGE, SOURCE, brought, faults_of, frame_of, writer_of

PRICE = Trajectory.parse("BTC_USD:KRAKEN.spot")
BODY = b'{"items":[{"ts":%d,"price":2.0,"mark_price":null,"volume":1.0}],"next_end_time":null}'
SCHEMAS = b'{"source": {"kind": "replay", "id": "x"}}'
ORIGIN = LoadOrigin("http://127.0.0.1:8700", 10_000, "5c4e", "0.1.0", schemas=SCHEMAS)


def load(store: Store, *times: int, body: bytes = BODY, days: float | None = None) -> StoreWriter:
    """Commit rows, each with its page, as one load of a commit a row."""
    writer = writer_of(store) if days is None else StoreWriter(store, pages_days=days)
    load_id = writer.start_load(ORIGIN)
    for ts in times:
        batch, window = Batch(), Interval(ts, ts + 60)
        batch.add(PRICE, frame_of([(ts, 2.0, None, 1.0)]), window, EDGE)
        batch.pages.append(packed_page(KeptPage(PRICE, window, Response(200, {}, body % ts))))
        writer.commit(load_id, batch)
    return writer


def kept(store: Store) -> list[KeptRecord]:
    with store.reading() as connection:
        return list(read_pages(connection, store.path))


def bodies(store: Store) -> list[bytes]:
    return [page.answer.body for record in kept(store) for page in record.pages]


def altered(store: Store, sql: str) -> None:
    with closing(sqlite3.connect(pages_path(store.path))) as pages, pages:
        pages.execute(sql)


def test_pages_come_back_as_they_were_with_their_load_and_schemas_to_this_user_alone(
    store: Store,
) -> None:
    load(store, 60, days=0)  # none are kept where none are wanted
    assert not pages_path(store.path).exists()
    load(store, 60, 120)
    assert stat.S_IMODE(pages_path(store.path).stat().st_mode) & 0o077 == 0
    records = kept(store)
    assert [(r.load_id, r.schema_hash, r.schemas) for r in records] == [(2, "5c4e", SCHEMAS)] * 2
    assert [list(record.pages) for record in records] == [
        [KeptPage(PRICE, Interval(ts, ts + 60), Response(200, {}, BODY % ts, PRICE.key))]
        for ts in (60, 120)
    ]


def test_large_and_small_pages_of_a_commit_keep_their_order(store: Store) -> None:
    batch, sent = Batch(), [b"s" * 9, b"l" * 100_000, b"", b"m" * 70_000, b"t"]
    batch.add(PRICE, frame_of([(60, 2.0)]), Interval(60, 120), EDGE)
    batch.pages = [packed_page(KeptPage(PRICE, Interval(0, 9), Response(200, {}, b))) for b in sent]
    brought(store, batch)
    assert bodies(store) == sent


def test_pages_older_than_they_are_to_be_kept_go_with_the_next_commit(store: Store) -> None:
    load(store, 60, 120)
    month_ago = int(time.time()) - 31 * 86_400
    altered(store, f"UPDATE record SET committed_at = {month_ago} WHERE record_id = 1")
    load(store, 180)
    assert bodies(store) == [BODY % 120, BODY % 180]
    with pytest.raises(StoreError, match=r"no page is kept .*KRAKEN.spot .*1970.*\(1 row\)"):
        remap(store, None)


def test_of_too_many_bytes_the_oldest_pages_go(store: Store) -> None:
    load(store, 60, 120, 180)
    altered(store, f"UPDATE record SET bytes = {2**31}")
    load(store, 240)
    assert bodies(store) == [BODY % 180, BODY % 240]


def test_what_no_commit_used_is_not_read_and_goes_with_the_next(store: Store) -> None:
    load(store, 60)
    unused = "SELECT 7, load_id, load_started_at, 0, '', 0, x'00' FROM record"
    altered(store, f"INSERT INTO record {unused}")
    assert bodies(store) == [BODY % 60]
    load(store, 120)
    assert bodies(store) == [BODY % 60, BODY % 120]


def test_the_pages_of_another_store_under_that_name_are_not_read(store: Store) -> None:
    load(store, 60, 120)
    date_load(store, 1, 99)
    assert bodies(store) == []


def test_a_new_store_under_the_name_of_an_old_one_drops_its_pages(store: Store) -> None:
    load(store, 60, 120)
    store.path.unlink()
    StoreWriter(store).bind(SOURCE)
    load(store, 180)
    assert bodies(store) == [BODY % 180]


def test_a_backup_has_the_pages_and_an_import_of_published_data_none(
    store: Store, tmp_path: Path
) -> None:
    load(store, 60)
    back_up_store(store, tmp_path / "copy.duckdb")
    assert bodies(Store(tmp_path / "copy.duckdb")) == [BODY % 60]
    publish(store, tmp_path / "archive")
    again = import_store(tmp_path / "archive", tmp_path / "again.duckdb")
    shutil.copy(pages_path(store.path), pages_path(again.path))
    assert bodies(again) == []


def test_a_compacted_store_still_has_its_pages(store: Store) -> None:
    load(store, 60)
    compact(store)
    load(store, 120)
    assert bodies(store) == [BODY % 60, BODY % 120]
    assert remap(store, None).rows == 2


@pytest.mark.slow
def test_damaged_pages_are_named_by_verify_and_refuse_a_remap_and_a_commit(store: Store) -> None:
    load(store, 60)
    assert faults_of(store) == []
    altered(store, "UPDATE record SET pages = x'28b52ffd00'")
    (fault,) = faults_of(store)
    assert fault.startswith("rail.duckdb.pages: cannot be read beyond page 0 (")
    with pytest.raises(StoreError, match="the pages of load 1 are damaged"):
        remap(store, None)
    pages_path(store.path).write_bytes(b"no database" * 100)
    for use in (lambda: load(store, 120), lambda: remap(store, None)):
        with pytest.raises(StoreError, match=r"rail\.duckdb\.pages, which has the pages that"):
            use()
    assert store.series(PRICE)["ts"].to_list() == [60]
    assert faults_of(store)[0].startswith("rail.duckdb.pages: cannot be read")


def test_a_remap_gives_way_to_a_writer_and_loses_nothing_of_it(store: Store) -> None:
    """Somebody commits all the time, so also between its copy and its end."""
    load(store, 60)
    ended = threading.Event()
    committed = [60]

    def commit_on() -> None:
        while not ended.is_set():
            committed.append(committed[-1] + 60)
            load(store, committed[-1])

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(commit_on)
        try:
            with pytest.raises(StoreError, match="was written to meanwhile, and is left as it is"):
                remap(store, None)
        finally:
            ended.set()
        writing.result()
    assert store.series(PRICE)["ts"].to_list() == committed
    assert remap(store, None).rows == len(committed)
    assert store.series(PRICE)["ts"].to_list() == committed


def test_what_snapshots_brought_keeps_the_hash_of_its_profile(store: Store) -> None:
    writer = load(store, 60)
    load_id = writer.start_load(replace(ORIGIN, profile_hash="wrong"))
    batch, window, log = Batch(), Interval(120, 180), SnapshotLog(SnapshotKind.ACTIVITY)
    batch.add(PRICE, frame_of([(120, 2.0, None, 1.0)]), window, EDGE)
    batch.pages.append(packed_page(KeptPage(PRICE, window, Response(200, {}, BODY % 120))))
    batch.add_snapshot(Snapshot(log, 9_000, b"{}"), EDGE)
    writer.commit(load_id, batch)
    remap(store, None)
    hashes = dict(store.loads().select("load_id", "profile_hash").iter_rows())
    assert hashes == {1: None, load_id: None, 3: "wrong"}
    assert store.rows_by_load().select("load_id", "rows").rows() == [(1, 1), (load_id, 1), (3, 1)]
    words = profile_words(store.loads(), store.rows_by_load(), "rail store remap")
    assert "2 without a file of yours, by loads 1, 2; 1 under a file of hash wrong" in words
    assert faults_of(store) == []
