from __future__ import annotations

from pathlib import Path

import pytest

from tests.empty_store import empty_store
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Source, Trajectory
from toolkit.store import Batch, Edge, Gap, LoadOrigin, Store, StoreWriter
from toolkit.store.writing.batch import Answered
from toolkit.tables import GapStatus
from toolkit.wire.events.events import document_frame

KEY = Trajectory.parse("BTC_USDT:ALPHA.spot")
SPREADS = EventLog(EventFamily.SPREAD)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return empty_store(tmp_path / "s.duckdb", Source("replay", "x"))


def load(store: Store) -> int:
    return StoreWriter(store).start_load(LoadOrigin("http://h", 0, None, "0"))


def lost(store: Store, *gaps: Gap) -> int:
    load_id, batch = load(store), Batch()
    batch.gaps = {gap.number: gap for gap in gaps}
    StoreWriter(store).commit(load_id, batch)
    return load_id


def answered(store: Store, start: int, end: int, *, retention_s: int | None = None) -> int:
    """The log answers for a stretch, long after it."""
    load_id, batch = load(store), Batch()
    edge = Edge(served_at=100_000, retention_s=retention_s, step_s=0)
    batch.add_documents(SPREADS, document_frame([]), Interval(start, end), edge)
    StoreWriter(store).commit(load_id, batch)
    return load_id


def statuses(store: Store) -> list[str]:
    return store.gaps()["status"].to_list()


def test_a_gap_is_open_then_ended_and_stays_one_row(store: Store) -> None:
    load_id = lost(store, Gap(1, SPREADS, 100, None, "closed with 1011"))
    batch = Batch()
    batch.gaps[1] = Gap(1, SPREADS, 100, 160, "closed with 1011")
    StoreWriter(store).commit(load_id, batch)
    assert store.gaps().rows() == [
        (load_id, 1, "events/spread", 100, 160, "closed with 1011", "open", None)
    ]


def test_a_gap_of_a_trajectory_names_it(store: Store) -> None:
    lost(store, Gap(1, KEY, 100, 160, "silent for 600 s"))
    assert store.gaps()["stream"].to_list() == [KEY.key]


def test_only_answers_for_all_of_a_gap_repair_it_whichever_loads_gave_them(store: Store) -> None:
    lost(store, Gap(1, SPREADS, 100, 160, "x"), Gap(2, SPREADS, 500, 600, "y"))
    answered(store, 90, 130)
    assert statuses(store) == [GapStatus.OPEN] * 2
    by = answered(store, 130, 170)
    assert store.gaps().select("gap_id", "status", "repaired_load_id").rows() == [
        (2, "open", None),
        (1, "repaired", by),
    ]


def test_a_gap_without_an_end_is_never_repaired(store: Store) -> None:
    lost(store, Gap(1, SPREADS, 100, None, "x"))
    answered(store, 0, 1_000)
    assert statuses(store) == [GapStatus.OPEN]
    StoreWriter(store).end_gaps(200)
    answered(store, 0, 1_000)
    assert statuses(store) == [GapStatus.REPAIRED]


def test_a_gap_that_the_archive_has_left_behind_is_unrepairable_for_good(store: Store) -> None:
    lost(store, Gap(1, SPREADS, 100, 160, "x"))
    answered(store, 130, 170, retention_s=99_870)
    assert statuses(store) == [GapStatus.UNREPAIRABLE]
    answered(store, 0, 1_000)
    assert statuses(store) == [GapStatus.UNREPAIRABLE]


def test_each_of_many_gaps_is_settled_by_the_answers_for_its_own_trajectory(store: Store) -> None:
    keys = [Trajectory.parse(f"C{number}_USDT:ALPHA.spot") for number in range(4)]
    lost(store, *(Gap(n, key, 100 + n, 160, "x") for n, key in enumerate(keys)))
    load_id, batch, edge = load(store), Batch(), Edge(served_at=100_000, step_s=60)
    for key, answer in zip(keys, [(0, 900), (0, 140), (120, 900), (103, 160)], strict=True):
        batch.answered[key], batch.edges[key] = [Answered(Interval(*answer))], edge
    StoreWriter(store).commit(load_id, batch)
    assert store.gaps().sort("gap_id").select("stream", "status", "repaired_load_id").rows() == [
        (keys[0].key, "repaired", load_id),
        (keys[1].key, "open", None),
        (keys[2].key, "open", None),
        (keys[3].key, "repaired", load_id),
    ]


def test_answers_for_another_stream_repair_nothing(store: Store) -> None:
    lost(store, Gap(1, EventLog(EventFamily.SPLASH), 100, 160, "x"), Gap(2, KEY, 100, 160, "x"))
    answered(store, 0, 1_000)
    assert statuses(store) == [GapStatus.OPEN] * 2
