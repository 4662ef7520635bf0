"""Whatever batches arrive, the store holds each answer once and in order: against plain dicts."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from tests.dated import date_load
from tests.empty_store import empty_store
from toolkit.intervals import Interval, difference, union
from toolkit.market import Family, Source, Trajectory
from toolkit.store import Batch, Edge, Inserted, LoadOrigin, StoreWriter
from toolkit.store.ledger.coverage import record, record_answers
from toolkit.store.ledger.history import AS_NOW, known_ledger
from toolkit.store.writing.batch import Answered
from toolkit.store.writing.ingest import insert_rows
from toolkit.tables import COVERAGE, COVERAGE_CHANGE, SERIES, STREAM, CoverageState
from toolkit.wire.findings import LostStretch, lost_within

from ..conftest import examples

TABLE = SERIES[Family.PRICE]
NAMES = ("stream_id", "ts", *(column.name for column in TABLE.values))
ORIGIN = LoadOrigin("http://127.0.0.1:8700", 0, None, "0.1.0")

Row = tuple[int, int, float | None, float | None, float | None, str | None]
Held = dict[tuple[int, int], list[tuple[object, ...]]]

VALUE = st.sampled_from([None, 0.0, 1.0, 1.5])
ROW = st.tuples(
    st.integers(1, 2),
    st.integers(0, 3).map(lambda minute: 60 * minute),
    VALUE,
    st.sampled_from([None, 1.0]),
    st.none(),
    st.sampled_from([None, None, '{"a":1}']),
)

BATCHES = st.lists(st.lists(ROW, max_size=10), min_size=1, max_size=5)


def take(held: Held, batch: list[Row]) -> Inserted:
    """The model: every key's answers, oldest first."""
    new = revised = 0
    distinct = list(dict.fromkeys(batch))
    keys = [row[:2] for row in distinct]
    for row in distinct:
        key, values = row[:2], row[2:]
        answers = held.setdefault(key, [])
        several = keys.count(key) > 1
        known = answers if several else answers[-1:]
        if values not in known:
            new, revised = new + (not answers), revised + bool(answers)
            answers.append(values)
    return Inserted(new, revised, len(batch) - new - revised)


def frame(batch: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(batch, {name: TABLE.schema[name] for name in NAMES}, orient="row")


@contextlib.contextmanager
def price_table() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(TABLE.ddl)
        for table in (COVERAGE, COVERAGE_CHANGE, STREAM):
            connection.execute(table.ddl)
        yield connection


def answers(connection: duckdb.DuckDBPyConnection) -> Held:
    """What the table holds, each key's rows by revision, which must count up from 0."""
    found: Held = {}
    query = f"SELECT {', '.join(NAMES)}, revision FROM price ORDER BY stream_id, ts, revision"
    for *row, revision in connection.execute(query).fetchall():
        known = found.setdefault((row[0], row[1]), [])
        assert revision == len(known)
        known.append(tuple(row[2:]))
    return found


@given(BATCHES)
@example([[(1, 60, value, None, None, None)] for value in (1.0, 1.5, 1.0)])
@examples(60)
def test_every_answer_is_held_once_in_order_and_counted_also_when_given_again(batches) -> None:
    held: Held = {}
    with price_table() as connection:
        for load_id, batch in enumerate(batches, 1):
            inserted = insert_rows(connection, Family.PRICE, frame(batch), load_id)
            assert inserted == take(held, batch)
            assert inserted.new + inserted.revised + inserted.repeated == len(batch)
            assert answers(connection) == held
            again = insert_rows(connection, Family.PRICE, frame(batch), load_id + 1)
            assert again == Inserted(repeated=len(batch))
            assert answers(connection) == held


@given(st.lists(ROW, max_size=20, unique_by=lambda row: row[:2]), st.data())
@examples(40)
def test_it_does_not_matter_how_rows_of_different_keys_are_divided(rows, data) -> None:
    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    with price_table() as whole, price_table() as parts:
        insert_rows(whole, Family.PRICE, frame(rows), 1)
        for part in (shuffled[:cut], shuffled[cut:]):
            insert_rows(parts, Family.PRICE, frame(part), 1)
        assert answers(whole) == answers(parts)


SECOND = st.integers(0, 30)
STRETCHES = st.lists(st.tuples(SECOND, SECOND), max_size=5)


@given(st.lists(st.dictionaries(st.integers(1, 2), STRETCHES), min_size=1, max_size=6))
@example([{1: [each]} for each in ((1, 3), (2, 4), (8, 9), (4, 6), (1, 4))])
@examples(60)
def test_the_ledger_is_what_was_recorded_in_as_few_rows_as_there_are_holes(answered) -> None:
    wanted: dict[int, list[tuple[int, int]]] = {1: [], 2: []}
    with price_table() as connection:
        for stretches in answered:
            record(connection, CoverageState.SETTLED, stretches)
            record(connection, CoverageState.ASKED, {3: [(0, 30)]})
            for number, parts in stretches.items():
                wanted[number] += parts
        for number, parts in wanted.items():
            recorded = connection.execute(
                "SELECT start_ts, end_ts FROM coverage WHERE stream_id = ?", [number]
            ).fetchall()
            assert sorted(recorded) == union(parts)


LOST = st.lists(st.builds(LostStretch, SECOND, SECOND, st.sampled_from("ab")), max_size=3)


@given(st.lists(st.tuples(SECOND, SECOND, LOST, st.booleans()), min_size=1, max_size=6))
@examples(60)
def test_a_second_is_as_the_last_answer_told_unless_it_is_settled(answers) -> None:
    known: dict[int, str] = {}
    with price_table() as connection:
        connection.execute("INSERT INTO stream VALUES (1, 'price', 'A_B:X.spot', 0, 0, 0, 0, 0)")
        for clock, (start, end, told, settles) in enumerate(answers):
            answer = Interval(start, max(start + 1, end))
            lost = lost_within(told, [answer])
            left = difference([answer], [(each.start, each.end) for each in lost])
            record_answers(
                connection,
                {1: left if settles else []},
                {1: [] if settles else left},
                {1: clock},
                answers={1: [Answered(answer, lost=lost)]},
            )
            for second in set(range(*answer)) - {s for s in known if known[s] == "settled"}:
                why = [each.why for each in told if each.start <= second < each.end]
                known[second] = why[0] if why else "settled" if settles else "provisional"
        rows = connection.execute(
            "SELECT start_ts, end_ts, coalesce(why, state), state FROM coverage"
        ).fetchall()
        found = [(second, what) for start, end, what, _ in rows for second in range(start, end)]
        assert sorted(found) == sorted(known.items())
        assert {state for *_, what, state in rows if what in "ab"} <= {"lost"}
        history = connection.execute(known_ledger()["coverage"].replace(AS_NOW, "")).fetchall()
        assert sorted(history, key=str) == sorted(
            connection.execute("FROM coverage").fetchall(), key=str
        )


@given(BATCHES)
@examples(10)
def test_a_store_gives_back_what_was_known_after_each_load(batches) -> None:
    trajectories = {1: Trajectory.parse("A_B:X.spot"), 2: Trajectory.parse("A_B:Y.spot")}
    edge = Edge(served_at=10_000, step_s=60)
    known: Held = {}
    history: list[dict[tuple[int, int], tuple[object, ...]]] = [{}]
    with tempfile.TemporaryDirectory() as folder:
        store = empty_store(Path(folder) / "rail.duckdb", Source("replay", "example"))
        writer = StoreWriter(store)
        for rows in batches:
            batch = Batch()
            for row in rows:
                page = frame([row]).drop("stream_id")
                batch.add(trajectories[row[0]], page, Interval(row[1], row[1] + 60), edge)
            load_id = writer.start_load(ORIGIN)
            assert writer.commit(load_id, batch) == take(known, rows)
            date_load(store, load_id, at=load_id)
            history.append({key: values[-1][:3] for key, values in known.items()})
        asked = {number: trajectories[number] for number, _ in known}
        for as_of, wanted in enumerate(history):
            found = {
                (number, ts): tuple(values)
                for number, trajectory in asked.items()
                for _, ts, *values in store.series(trajectory, as_of=as_of).rows()
            }
            assert found == wanted
        for trajectory, ledger in store.ledger().items():
            held = [(ts, ts + 60) for ts in store.series(trajectory)["ts"]]
            assert ledger.answered == union(held)
