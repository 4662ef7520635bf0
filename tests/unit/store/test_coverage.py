"""The ledger stays as small as the holes in it are few, and reads only what is asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolkit.errors import InputError, StoreError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Stream, Trajectory
from toolkit.store import Batch, Edge, Gap, LoadOrigin, Store
from toolkit.store.writing.batch import Answered
from toolkit.tables import GapStatus
from toolkit.wire.event_log import document_frame

from .conftest import ORIGIN, brought, writer_of

LOGS = [Stream.parse(f"events/{family}") for family in ("spread", "splash", "funding")]


def polled(store: Store, at: int, streams: list[Stream]) -> None:
    """Ask for the day up to a moment, as a sync does each minute."""
    edge, batch = Edge(served_at=at, step_s=0), Batch()
    writer = writer_of(store)
    load_id = writer.start_load(ORIGIN, streams, Interval(at - 86_400, at))
    for stream in streams:
        batch.add_documents(stream, document_frame([]), Interval(at - 120, at), edge)
    writer.commit(load_id, batch)


def test_a_hole_in_what_was_answered_is_a_row_until_it_is_filled(store: Store) -> None:
    for at in (1_000_000, 2_000_000):
        polled(store, at, LOGS[:1])
    assert len(store.ledger()[LOGS[0]].answered) == 2
    batch = Batch()
    whole = Interval(0, 2_000_000)
    batch.add_documents(LOGS[0], document_frame([]), whole, Edge(served_at=3_000_000, step_s=0))
    brought(store, batch)
    assert store.ledger()[LOGS[0]].answered == [(0, 2_000_000)]


def test_the_ledger_of_some_streams_in_a_window_is_all_that_is_read(store: Store) -> None:
    polled(store, 1_000_000, LOGS)
    known = store.ledger(LOGS[:2], Interval(999_900, 2_000_000))
    assert list(known) == LOGS[:2]
    assert known[LOGS[0]].answered == [(999_900, 999_940)]
    assert known[LOGS[0]].asked == [(999_900, 1_000_000)]


def test_what_was_asked_and_never_answered_has_no_edge(store: Store) -> None:
    writer_of(store).start_load(ORIGIN, LOGS, Interval(0, 600))
    known = store.ledger()[LOGS[0]]
    assert (known.edge, known.answered, known.asked) == (None, [], [(0, 600)])
    for stream in (LOGS[0], Stream.parse("A_B:X.spot")):  # never answered, never asked for
        way = rf"nothing of {stream.key}; `rail sync \S+ --store \S+` asks for it"
        with pytest.raises(StoreError, match=way):
            store.coverage(stream, Interval(0, 600))


def test_a_log_is_unrecoverable_before_the_archive_and_missing_where_it_was_not_asked(
    store: Store,
) -> None:
    batch, edge = Batch(), Edge(served_at=1000, delay_s=30, retention_s=900, step_s=0)
    batch.add_documents(LOGS[0], document_frame([]), Interval(200, 1000), edge)
    brought(store, batch)
    assert store.coverage(LOGS[0], Interval(0, 1000)).rows() == [
        (0, 100, "unrecoverable"),
        (100, 200, "missing"),
        (200, 910, "held"),
        (910, 1000, "not yet known"),
    ]


def test_snapshots_are_of_moments_and_have_no_coverage(store: Store) -> None:
    with pytest.raises(InputError, match="a trajectory or an event log"):
        store.coverage(Stream.parse("snapshot/spread"), Interval(0, 60))


FUNDING, HOUR = "funding/A_B:X.futures:Y.futures", 3_600


def settled(at: int, hours: float) -> tuple[object, ...]:
    return (at, 1e-4, 2e-4, hours, hours, 1e-2)


HOLES = {
    "an interval that changed": (
        [settled(hour * HOUR, 4) for hour in range(0, 48, 4)]
        + [settled(hour * HOUR, 1) for hour in range(48, 72)],
        (72, HOUR, 72, [(0, 72, "held")]),
    ),
    "known until the next is due": (
        [settled(hour * HOUR, 8) for hour in range(0, 72, 8)],
        (71, 8 * HOUR, 62, [(0, 71, "held")]),
    ),
    "one that did not come": (
        [settled(hour * HOUR, 8) for hour in (0, 8, 24, 32)],
        (40, 8 * HOUR, 40, [(0, 16, "held"), (16, 24, "empty"), (24, 40, "held")]),
    ),
    "a rate in force each minute": (
        [settled(minute * 60, 8) for minute in [*range(120), *range(180, 300)]],
        (5, 60, 5, [(0, 2, "held"), (2, 3, "empty"), (3, 5, "held")]),
    ),
}


@pytest.mark.parametrize(("rows", "expected"), HOLES.values(), ids=HOLES)
def test_a_settlement_lasts_its_interval_and_one_that_did_not_come_is_a_hole_of_it(
    store: Store, commit: Callable[..., object], rows: list, expected: tuple
) -> None:
    hours, step_s, answered, states = expected
    edge = Edge(served_at=hours * HOUR, step_s=step_s)
    commit(FUNDING, rows, answered=(0, answered * HOUR), edge=edge)
    found = store.coverage(Stream.parse(FUNDING), Interval(0, hours * HOUR))
    assert [(start // HOUR, end // HOUR, state) for start, end, state in found.rows()] == states


KEY = Trajectory.parse("BTC_USDT:ALPHA.spot")
SPREADS = EventLog(EventFamily.SPREAD)


def load(store: Store) -> int:
    return writer_of(store).start_load(LoadOrigin("http://h", 0, None, "0"))


def lost(store: Store, *gaps: Gap) -> int:
    load_id, batch = load(store), Batch()
    batch.gaps = {gap.number: gap for gap in gaps}
    writer_of(store).commit(load_id, batch)
    return load_id


def answered(store: Store, start: int, end: int, *, retention_s: int | None = None) -> int:
    """The log answers for a stretch, long after it."""
    load_id, batch = load(store), Batch()
    edge = Edge(served_at=100_000, retention_s=retention_s, step_s=0)
    batch.add_documents(SPREADS, document_frame([]), Interval(start, end), edge)
    writer_of(store).commit(load_id, batch)
    return load_id


def statuses(store: Store) -> list[str]:
    return store.gaps()["status"].to_list()


def test_a_gap_is_open_then_ended_and_stays_one_row(store: Store) -> None:
    load_id = lost(store, Gap(1, SPREADS, 100, None, "closed with 1011"))
    batch = Batch()
    batch.gaps[1] = Gap(1, SPREADS, 100, 160, "closed with 1011")
    writer_of(store).commit(load_id, batch)
    assert store.gaps().rows() == [
        (load_id, 1, "events/spread", 100, 160, "closed with 1011", "open", None)
    ]


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
    writer_of(store).end_gaps(200)
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
    writer_of(store).commit(load_id, batch)
    assert store.gaps().sort("gap_id").select("stream", "status", "repaired_load_id").rows() == [
        (keys[0].key, "repaired", load_id),
        (keys[1].key, "open", None),
        (keys[2].key, "open", None),
        (keys[3].key, "repaired", load_id),
    ]
