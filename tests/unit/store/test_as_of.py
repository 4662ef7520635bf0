"""Reading as of a time gives what a copy of the file made then gives, also inside one load."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dated import date_commit
from tests.empty_store import empty_store
from toolkit.intervals import EVER, Interval
from toolkit.market import EventFamily, EventLog, SnapshotKind, SnapshotLog, Source, Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, Snapshot, Store, StoreWriter
from toolkit.store.file.maintenance import compact
from toolkit.tables import DATED
from toolkit.wire.events.events import document_frame

from ...conftest import examples
from .conftest import frame_of

SOURCE = Source("replay", "example")
ORIGIN = LoadOrigin("http://127.0.0.1:8700", 10_000, None, "0.1.0")
EDGE = Edge(served_at=10_000, step_s=60)
PRICE = Trajectory.parse("A_B:X.spot")
SPLASHES = EventLog(EventFamily.SPLASH)
SPREADS = SnapshotLog(SnapshotKind.SPREAD)
PAIR = "snapshot-spread/A_B:X.spot:Y.spot"
SHOWN = (
    '{"items":[{"symbol":"A_B","buy_exchange":"X","buy_market":"spot","sell_exchange":"Y",'
    '"sell_market":"spot","spread_pct":%s}]}'
)


def batch_of(number: int) -> Batch:
    """Something of each kind: the same price, document and second as ever, with other values."""
    batch = Batch()
    batch.add(PRICE, frame_of([(60, number / 4), (60 * number, 9.0)]), Interval(60, 120), EDGE)
    event = {"family": "splash", "event_id": "e", "ts_ms": 60_000, "ts": 60}
    documents = document_frame([event | {"document": f'{{"n":{number}}}'}])
    batch.add_documents(SPLASHES, documents, Interval(0, 100), EDGE)
    batch.add_snapshot(Snapshot(SPREADS, 60, (SHOWN % number).encode()), EDGE)
    return batch


def answers(store: Store, as_of: int | None = None) -> list[list[tuple[object, ...]]]:
    """All that can be read as of a time."""
    with store.reading():
        frames = [
            store.series(PRICE, as_of=as_of),
            store.series(PRICE, as_of=as_of, ties=True),
            store.scan("price", as_of=as_of).collect(),
            store.events("splash", EVER, as_of=as_of),
            store.snapshots("spread", as_of=as_of),
            store.polls("spread", as_of=as_of),
        ]
    return [frame.rows() for frame in frames]


@pytest.mark.slow
@given(same_load=st.lists(st.booleans(), min_size=2, max_size=4), at=st.data())
@examples(8)
def test_as_of_a_time_is_a_copy_made_then_whether_in_one_load_or_several(
    tmp_path_factory: pytest.TempPathFactory, same_load: list[bool], at: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("copies")  # type: ignore[attr-defined]  # of pytest
    store = empty_store(folder / "rail.duckdb", SOURCE)
    writer, now, copies = StoreWriter(store), 1_000, []
    load_id = writer.start_load(ORIGIN)
    for number, same in enumerate(same_load, 1):
        now += at.draw(st.integers(1, 90))
        load_id = load_id if same else writer.start_load(ORIGIN)
        writer.commit(load_id, batch_of(number))
        date_commit(store, now)
        copies.append((now, shutil.copy(store.path, folder / f"{number}.duckdb")))
    compact(store)
    ends = [when for when, _ in copies[1:]] + [now + 1_000]
    for (when, copy), end in zip(copies, ends, strict=True):
        assert answers(store, when) == answers(store, end - 1) == answers(Store(copy))


def test_revisions_inside_one_load_are_seen_by_commit(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "rail.duckdb", SOURCE)
    writer = StoreWriter(store)
    load_id = writer.start_load(ORIGIN)
    for number in (2, 3):
        writer.commit(load_id, batch_of(number))
        date_commit(store, at=1_000 * number)
    for at, rows in ((1_999, []), (2_000, [2]), (2_999, [2]), (3_000, [3])):
        prices = store.series(PRICE, (60, 120), as_of=at)["price"].to_list()
        assert prices == [number / 4 for number in rows]
        documents = store.events("splash", EVER, as_of=at)["document"].to_list()
        assert documents == [f'{{"n":{number}}}' for number in rows]
        assert store.snapshots("spread", as_of=at).height == max([0, *(n - 1 for n in rows)])


def test_a_commit_has_the_second_of_the_local_clock(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "rail.duckdb", SOURCE)
    writer, before = StoreWriter(store), int(time.time())
    writer.commit(writer.start_load(ORIGIN), batch_of(1))
    with store.reading() as connection:
        for table in DATED:
            query = f"SELECT committed_at FROM {table.name}"
            for (at,) in connection.execute(query).fetchall():
                assert before <= at <= time.time()
    assert answers(store, int(time.time())) == answers(store)
    assert store.series(PRICE, as_of=before - 1).is_empty()
