"""The ledger stays as small as the holes in it are few, and reads only what is asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolkit.errors import InputError, StoreError
from toolkit.intervals import Interval
from toolkit.market import Stream
from toolkit.store import Batch, Edge, Store, StoreWriter
from toolkit.wire.events.events import document_frame

from .conftest import ORIGIN

LOGS = [Stream.parse(f"events/{family}") for family in ("spread", "splash", "funding")]


def polled(store: Store, at: int, streams: list[Stream]) -> None:
    """Ask for the day up to a moment, as a sync does each minute."""
    edge, batch = Edge(served_at=at, step_s=0), Batch()
    writer = StoreWriter(store)
    load_id = writer.start_load(ORIGIN, streams, Interval(at - 86_400, at))
    for stream in streams:
        batch.add_documents(stream, document_frame([]), Interval(at - 120, at), edge)
    writer.commit(load_id, batch)


def sizes(store: Store) -> dict[str, int]:
    with store.reading() as connection:
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
            for name in ("stream", "coverage", "edge")
        }


@pytest.mark.slow
def test_polling_again_and_again_adds_no_row_to_the_ledger(store: Store) -> None:
    polled(store, 100_000, LOGS)
    first = sizes(store)
    for minute in range(1, 10):
        polled(store, 100_000 + 60 * minute, LOGS)
    assert sizes(store) == first == {"stream": 3, "coverage": 6, "edge": 3}
    (answered,) = store.ledger()[LOGS[0]].answered
    assert answered == (99_880, 100_000 + 60 * 9 - 60)


def test_a_hole_in_what_was_answered_is_a_row_until_it_is_filled(store: Store) -> None:
    for at in (1_000_000, 2_000_000):
        polled(store, at, LOGS[:1])
    assert len(store.ledger()[LOGS[0]].answered) == 2
    batch = Batch()
    whole = Interval(0, 2_000_000)
    batch.add_documents(LOGS[0], document_frame([]), whole, Edge(served_at=3_000_000, step_s=0))
    writer = StoreWriter(store)
    writer.commit(writer.start_load(ORIGIN), batch)
    assert store.ledger()[LOGS[0]].answered == [(0, 2_000_000)]


def test_the_ledger_of_some_streams_in_a_window_is_all_that_is_read(store: Store) -> None:
    polled(store, 1_000_000, LOGS)
    known = store.ledger(LOGS[:2], Interval(999_900, 2_000_000))
    assert list(known) == LOGS[:2]
    assert known[LOGS[0]].answered == [(999_900, 999_940)]
    assert known[LOGS[0]].asked == [(999_900, 1_000_000)]


def test_what_was_asked_and_never_answered_has_no_edge(store: Store) -> None:
    StoreWriter(store).start_load(ORIGIN, LOGS, Interval(0, 600))
    known = store.ledger()[LOGS[0]]
    assert (known.edge, known.answered, known.asked) == (None, [], [(0, 600)])
    with pytest.raises(StoreError, match=r"`rail sync events/spread --store \S+` asks for it"):
        store.coverage(LOGS[0], Interval(0, 600))


def test_a_log_holds_all_that_it_was_answered_for(store: Store) -> None:
    polled(store, 1_000_000, LOGS)
    assert store.coverage(LOGS[0], Interval(999_000, 1_000_000)).rows() == [
        (999_000, 999_880, "missing"),
        (999_880, 999_940, "held"),
        (999_940, 1_000_000, "not yet known"),
    ]


def test_a_log_is_unrecoverable_before_the_archive_and_missing_where_it_was_not_asked(
    store: Store,
) -> None:
    batch, edge = Batch(), Edge(served_at=1000, delay_s=30, retention_s=900, step_s=0)
    batch.add_documents(LOGS[0], document_frame([]), Interval(200, 1000), edge)
    writer = StoreWriter(store)
    writer.commit(writer.start_load(ORIGIN), batch)
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


def states_of(store: Store, end: int) -> list[tuple[int, int, str]]:
    found = store.coverage(Stream.parse(FUNDING), Interval(0, end))
    return [(start // HOUR, end // HOUR, state) for start, end, state in found.rows()]


def test_settlements_whose_interval_changed_are_held_throughout(
    store: Store, commit: Callable[..., object]
) -> None:
    rows = [settled(hour * HOUR, 4) for hour in range(0, 48, 4)]
    rows += [settled(hour * HOUR, 1) for hour in range(48, 72)]
    edge = Edge(served_at=72 * HOUR, step_s=HOUR)
    commit(FUNDING, rows, answered=(0, 72 * HOUR), edge=edge)
    assert states_of(store, 72 * HOUR) == [(0, 72, "held")]


def test_a_settlement_that_is_held_is_known_until_the_next_one_is_due(
    store: Store, commit: Callable[..., object]
) -> None:
    rows = [settled(hour * HOUR, 8) for hour in range(0, 72, 8)]
    edge = Edge(served_at=71 * HOUR, step_s=8 * HOUR)
    commit(FUNDING, rows, answered=(0, 62 * HOUR), edge=edge)
    assert states_of(store, 71 * HOUR) == [(0, 71, "held")]


def test_a_settlement_that_did_not_come_is_a_hole_of_its_interval(
    store: Store, commit: Callable[..., object]
) -> None:
    rows = [settled(hour * HOUR, 8) for hour in (0, 8, 24, 32)]
    edge = Edge(served_at=40 * HOUR, step_s=8 * HOUR)
    commit(FUNDING, rows, answered=(0, 40 * HOUR), edge=edge)
    assert states_of(store, 40 * HOUR) == [(0, 16, "held"), (16, 24, "empty"), (24, 40, "held")]


def test_a_rate_in_force_that_is_told_each_minute_lasts_a_minute(
    store: Store, commit: Callable[..., object]
) -> None:
    rows = [settled(minute * 60, 8) for minute in [*range(120), *range(180, 300)]]
    edge = Edge(served_at=5 * HOUR, step_s=60)
    commit(FUNDING, rows, answered=(0, 5 * HOUR), edge=edge)
    assert states_of(store, 5 * HOUR) == [(0, 2, "held"), (2, 3, "empty"), (3, 5, "held")]
