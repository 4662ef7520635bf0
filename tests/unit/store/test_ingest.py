"""What a commit does: new rows in, changed answers beside the old ones, all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl
import pytest

from tests.dated import date_commit
from toolkit.errors import StoreError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Family, Trajectory
from toolkit.store import Batch, Edge, Inserted, LoadOrigin, Store
from toolkit.tables import SERIES, TIE
from toolkit.wire.event_log import document_frame

from .conftest import EDGE, ORIGIN, brought, writer_of

KEY = "A_B:X.spot"
PRICE, SPREAD = Trajectory.parse(KEY), Trajectory.parse("A_B:X.spot:Y.spot")
FUNDING = Trajectory.parse("A_B:X.spot:Y.spot", Family.FUNDING)
TABLES = ("stream", "coverage", "edge", *(table.name for table in SERIES.values()))


def sizes(store: Store) -> dict[str, int]:
    with store.reading() as connection:
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
            for name in TABLES
        }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1.0, 1.0), (1.0, 1.0 + 2**-52)),
        ((1.0, 1.0, 1.0, '{"a":1}'), (1.0, 1.0, 1.0, '{"a": 1}')),
    ],
)
def test_the_smallest_difference_is_a_revision_and_no_difference_is_none(
    commit: Callable, first: tuple, second: tuple
) -> None:
    assert commit(KEY, [(60, *first)]) == Inserted(new=1)
    assert commit(KEY, [(60, *first)]) == Inserted(repeated=1)
    assert commit(KEY, [(60, *second)]) == Inserted(revised=1)
    assert commit(KEY, [(60, *second)]) == Inserted(repeated=1)


def test_a_commit_lays_its_rows_down_in_order(store: Store, page: Callable) -> None:
    batch = Batch()
    for key in ("C_D:X.spot", KEY):
        for rows in ([(180, 1.0)], [(120, 1.0), (60, 1.0), (60, 2.0)]):
            batch.add(Trajectory.parse(key), page(rows), Interval(0, 60), EDGE)
    brought(store, batch)
    with store.reading() as connection:
        laid = connection.execute(
            "SELECT stream_id, ts, revision FROM price ORDER BY rowid"
        ).fetchall()
    assert laid == sorted(laid)
    assert len(laid) == 8


def test_the_same_legs_in_two_families_are_two_trajectories(store: Store, page: Callable) -> None:
    assert SPREAD.legs_key == FUNDING.legs_key
    batch = Batch()
    batch.add(SPREAD, page([(60, 1.0, 1.1)], Family.SPREAD), Interval(0, 120), EDGE)
    batch.add(FUNDING, page([(0, 0.1), (60, 0.2)], Family.FUNDING), Interval(0, 180), EDGE)
    writer = writer_of(store)
    assert writer.commit(writer.start_load(ORIGIN), batch) == Inserted(new=3)
    assert writer.commit(writer.start_load(ORIGIN), batch) == Inserted(repeated=3)
    assert store.series(SPREAD)["buy_price"].to_list() == [1.0]
    assert store.series(FUNDING)["buy_rate"].to_list() == [0.1, 0.2]
    assert store.counts(Interval(0, 120)) == {SPREAD: 1, FUNDING: 2}
    assert store.catalogue().select("stream", "kind", "rows").rows() == [
        (FUNDING.key, "funding", 2),
        (SPREAD.key, "spread", 1),
    ]
    assert {t: k.answered for t, k in store.ledger().items()} == {
        SPREAD: [(0, 120)],
        FUNDING: [(0, 180)],
    }
    assert store.coverage(SPREAD, Interval(0, 180))["state"].to_list() == [
        "empty",
        "held",
        "missing",
    ]
    assert store.coverage(FUNDING, Interval(0, 180))["state"].to_list() == ["held", "empty"]


def test_the_edge_is_that_of_the_last_load_and_of_its_last_page(
    store: Store, page: Callable, commit: Callable
) -> None:
    commit(KEY, [], edge=Edge(900, 5, 100, None))
    writer = writer_of(store)
    load_id = writer.start_load(ORIGIN)
    for edge in (Edge(1000, 10, None, None), Edge(1000, 10, None, 60)):
        batch = Batch()
        batch.add(PRICE, page([]), Interval(0, 1), edge)
        writer.commit(load_id, batch)
        assert store.ledger()[PRICE].edge == edge
    assert sizes(store)["edge"] == 1


def test_an_answer_without_rows_in_the_same_batch_leaves_the_newest_row_the_newest(
    store: Store, page: Callable
) -> None:
    writer, batch = writer_of(store), Batch()
    batch.add(PRICE, page([]), Interval(1, 2), Edge(1000, 10, None, 60, tail_ts=940))
    batch.add(PRICE, page([]), Interval(0, 1), Edge(1000, 10, None, 60))
    writer.commit(writer.start_load(ORIGIN), batch)
    edge = store.ledger()[PRICE].edge
    assert edge is not None
    assert edge.tail_ts == 940


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda frame: frame.drop("sell_price"), pl.exceptions.PolarsError),
        (lambda frame: frame.with_columns(spread_pct=pl.lit("x")), pl.exceptions.PolarsError),
        (lambda frame: frame.with_columns(ts=pl.lit(None, pl.Int64)), StoreError),
        (lambda frame: frame.with_columns(extra=pl.lit("{")), StoreError),
    ],
    ids=["column missing", "numbers as text", "null time", "extra is no JSON"],
)
def test_a_batch_with_a_bad_frame_leaves_nothing_of_itself(
    store: Store, page: Callable, commit: Callable, spoil: Callable, error: type[Exception]
) -> None:
    frame = spoil(page([(60, 1.0, 1.1, 10.0)], Family.SPREAD))
    commit(KEY, [(60, 1.0)])
    before = sizes(store)
    batch = Batch()
    batch.add(PRICE, page([(60, 2.0), (120, 1.0)]), Interval(0, 180), EDGE)
    batch.add(SPREAD, frame, Interval(0, 180), EDGE)
    with pytest.raises(error):
        brought(store, batch)
    assert sizes(store) == before
    assert list(store.ledger()) == [PRICE]
    assert store.series(PRICE)["price"].to_list() == [1.0]


def test_a_batch_of_nothing_changes_nothing(store: Store) -> None:
    writer = writer_of(store)
    assert writer.commit(writer.start_load(ORIGIN), Batch()) == Inserted()
    assert set(sizes(store).values()) == {0}


def test_a_page_without_rows_makes_the_trajectory_known(store: Store, commit: Callable) -> None:
    assert commit(KEY, [], answered=(0, 600)) == Inserted()
    assert store.catalogue().row(0, named=True)["rows"] == 0
    assert store.coverage(PRICE, Interval(0, 600)).rows() == [(0, 600, "empty")]


def test_what_comes_twice_in_one_load_is_told_from_what_was_held_before_it(
    store: Store, page: Callable
) -> None:
    document = {"family": "splash", "event_id": "e", "ts_ms": 60_000, "ts": 60, "document": "{}"}
    log, stretch = EventLog(EventFamily.SPLASH), Interval(0, 180)

    def batch(*rows: tuple[int, float]) -> Batch:
        made = Batch()
        made.add(PRICE, page([*rows, (120, 2.0), (60, 1.0)], Family.PRICE), stretch, EDGE)
        made.add_documents(log, document_frame([document]), stretch, EDGE)
        return made

    writer = writer_of(store)
    first = writer.start_load(ORIGIN)
    assert writer.commit(first, batch()).repeats_counted == "0 held already"
    assert writer.commit(first, batch()).repeats_counted == "0 held already, 3 came twice"
    second = writer.start_load(ORIGIN)
    assert writer.commit(second, batch()).repeats_counted == "3 held already"
    both = batch((170, 3.0), (170, 3.0))
    assert writer.commit(second, both).repeats_counted == "3 held already, 1 came twice"


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
        writer = writer_of(store)
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
    date_commit(store, at=1)
    keep([(60, 2.0, seq(2)), (60, 1.5, seq(1))], key=BY_SEQ)
    date_commit(store, at=2)
    assert store.series(PRICE, as_of=1, ties=True)["price"].to_list() == [1.0]
    assert store.series(PRICE, as_of=2, ties=True)["price"].to_list() == [1.5, 2.0]


def test_a_load_without_keys_leaves_the_key_as_it_is(store: Store, keep: Callable) -> None:
    keep([(60, 1.0, seq(1))], key=BY_SEQ)
    writer_of(store).start_load(LoadOrigin("webhook", 0, None, "0"))
    with store.reading() as connection:
        facts = dict(connection.execute("SELECT * FROM meta").fetchall())
    assert facts["price_key"] == '["ts", "seq"]'
