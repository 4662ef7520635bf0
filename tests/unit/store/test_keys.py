"""Rows that share a time: rows of their own where the service allows it, and never revisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.dated import date_load
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory
from toolkit.store import Batch, Edge, Inserted, LoadOrigin, Store, StoreWriter
from toolkit.tables import TIE

PRICE = Trajectory.parse("A_B:X.spot")
EDGE = Edge(served_at=10_000, step_s=60)
BY_SEQ = ("ts", "seq")

Rows = Sequence[tuple[object, ...]]


@pytest.fixture
def keep(store: Store, page: Callable) -> Callable[..., Inserted]:
    """Commit pages of (ts, price, extra), newest first, under a key."""

    def write(*pages: Rows, key: tuple[str, ...] = ("ts",), tied: Sequence[int] = ()) -> Inserted:
        origin = LoadOrigin("http://h", 10_000, None, "0", None, {Family.PRICE: key})
        batch = Batch()
        for rows in pages:
            padded = [(ts, price, None, None, *extra) for ts, price, *extra in rows]
            batch.add(PRICE, page(padded), Interval(0, 1), EDGE, tied=tied)
        writer = StoreWriter(store)
        return writer.commit(writer.start_load(origin), batch)

    return write


def held(store: Store) -> list[tuple[int, float]]:
    return store.series(PRICE, ties=True).select("ts", "price").rows()


def seq(number: int) -> str:
    return f'{{"seq":{number}}}'


def test_rows_told_apart_by_the_key_are_rows_of_their_own_in_its_order(
    store: Store, keep: Callable
) -> None:
    rows = [(120, 4.0, seq(0)), (60, 3.0, seq(10)), (60, 2.0, seq(9)), (60, 1.0, seq(8))]
    assert keep(rows, key=BY_SEQ) == Inserted(new=4)
    assert keep(rows, key=BY_SEQ) == Inserted(repeated=4)
    assert held(store) == [(60, 1.0), (60, 2.0), (60, 3.0), (120, 4.0)]
    assert store.series(PRICE)["price"].to_list() == [3.0, 4.0]
    assert store.scan(Family.PRICE, Interval(0, 200)).collect()["price"].to_list() == [3.0, 4.0]
    assert store.catalogue().select("rows", "revisions").row(0) == (4, 0)
    assert store.counts(Interval(0, 200)) == {PRICE: 4}
    assert store.continuity().select("holes", "tied_rows").row(0) == (0, 2)


def test_a_changed_answer_of_a_tied_row_is_a_revision_of_that_row_alone(
    store: Store, keep: Callable
) -> None:
    keep([(60, 2.0, seq(2)), (60, 1.0, seq(1))], key=BY_SEQ)
    assert keep([(60, 1.5, seq(1))], key=BY_SEQ) == Inserted(revised=1)
    assert keep([(60, 1.7, seq(1)), (60, 3.0, seq(3))], key=BY_SEQ) == Inserted(1, 1)
    assert held(store) == [(60, 1.7), (60, 2.0), (60, 3.0)]
    with store.reading() as connection:
        found = connection.execute("SELECT price, revision FROM price ORDER BY revision").fetchall()
    assert found == [(1.0, 0), (1.5, 1), (1.7, 2), (2.0, TIE), (3.0, 2 * TIE)]
    assert store.catalogue().select("rows", "revisions").row(0) == (3, 2)


def test_a_column_of_the_store_can_tell_rows_apart(store: Store, keep: Callable) -> None:
    assert keep([(60, 2.0), (60, 1.0)], key=("ts", "price")) == Inserted(new=2)
    assert keep([(60, 2.0, seq(1))], key=("ts", "price")) == Inserted(revised=1)
    assert held(store) == [(60, 1.0), (60, 2.0)]


def test_without_a_key_every_other_value_is_another_row(store: Store, keep: Callable) -> None:
    assert keep([(60, 3.0), (60, 2.0)], [(60, 1.0), (60, 2.0)], key=()) == Inserted(3, 0, 1)
    assert keep([(60, 2.0)], key=()) == Inserted(repeated=1)
    assert keep([(60, 0.5)], key=()) == Inserted(new=1)
    assert held(store) == [(60, 1.0), (60, 2.0), (60, 3.0), (60, 0.5)]


def test_several_rows_of_one_page_are_no_revisions_though_the_key_is_the_time(
    store: Store, keep: Callable
) -> None:
    assert keep([(120, 9.0), (60, 2.0), (60, 1.0)], tied=[60]) == Inserted(new=3)
    assert held(store) == [(60, 1.0), (60, 2.0), (120, 9.0)]
    assert keep([(60, 2.0)]) == Inserted(repeated=1)
    assert keep([(60, 3.0)]) == Inserted(new=1)
    assert keep([(120, 8.0)]) == Inserted(revised=1)
    assert held(store) == [(60, 1.0), (60, 2.0), (60, 3.0), (120, 8.0)]


def test_rows_that_a_page_edge_parts_are_told_apart_too(store: Store, keep: Callable) -> None:
    assert keep([(120, 9.0), (60, 2.0)], [(60, 1.0), (0, 5.0)], tied=[60]) == Inserted(new=4)
    assert held(store) == [(0, 5.0), (60, 1.0), (60, 2.0), (120, 9.0)]


def test_what_was_known_earlier_has_the_ties_of_then(store: Store, keep: Callable) -> None:
    keep([(60, 1.0, seq(1))], key=BY_SEQ)
    keep([(60, 2.0, seq(2)), (60, 1.5, seq(1))], key=BY_SEQ)
    for load_id in (1, 2):
        date_load(store, load_id, at=load_id)
    assert store.series(PRICE, as_of=1, ties=True)["price"].to_list() == [1.0]
    assert store.series(PRICE, as_of=2, ties=True)["price"].to_list() == [1.5, 2.0]


def test_a_load_without_keys_leaves_the_key_as_it_is(store: Store, keep: Callable) -> None:
    keep([(60, 1.0, seq(1))], key=BY_SEQ)
    StoreWriter(store).start_load(LoadOrigin("webhook", 0, None, "0"))
    with store.reading() as connection:
        facts = dict(connection.execute("SELECT * FROM meta").fetchall())
    assert facts["price_key"] == '["ts", "seq"]'
