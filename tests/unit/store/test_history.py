"""The ledger as of a time is the ledger that a copy of the file made then has."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dated import date_commit
from tests.empty_store import empty_store
from toolkit.errors import EmptyWindowError, InputError, RailError
from toolkit.intervals import EVER, Interval
from toolkit.market import EventFamily, EventLog, SnapshotKind, SnapshotLog, Stream, Trajectory
from toolkit.series import read_series
from toolkit.store import Batch, Edge, Gap, Ledger, Snapshot, Store, StoreWriter
from toolkit.store.file.maintenance import compact
from toolkit.store.publish import import_store, publish
from toolkit.tables import DATED
from toolkit.wire.event_log import document_frame
from toolkit.workspace.holdings import stream_states

from ...conftest import examples
from .conftest import EDGE, ORIGIN, SOURCE, faults_of, frame_of, writer_of

PRICES = [Trajectory.parse(f"A_B:{name}.spot") for name in ("W", "X", "Y", "Z")]
SPLASHES = EventLog(EventFamily.SPLASH)
SPREADS = SnapshotLog(SnapshotKind.SPREAD)
EVERY = (0, 20_000)

ANSWER = (
    b'{"items":[{"symbol":"A_B","buy_exchange":"X","buy_market":"spot","sell_exchange":"Y",'
    b'"sell_market":"spot","spread_pct":%d}]}'
)

SECOND = st.integers(0, 40).map(lambda step: 60 * step)
STRETCH = st.tuples(SECOND, st.integers(1, 10)).map(lambda at: Interval(at[0], at[0] + 60 * at[1]))
SOME = st.lists(st.sampled_from(PRICES), max_size=4, unique=True)

STEP = st.fixed_dictionaries(
    {
        "asked": st.tuples(SOME, STRETCH),
        "answered": st.tuples(SOME, STRETCH),
        "open": st.lists(STRETCH, max_size=2),
        "rows": st.lists(SECOND, max_size=3, unique=True),
        "log": st.none() | STRETCH,
        "clock": st.integers(2_000, 12_000),
        "reach": st.none() | st.integers(100, 3_000),
        "gap": st.none() | st.tuples(st.integers(1, 2), SECOND, st.none() | st.integers(1, 600)),
        "polled": st.booleans(),
        "heard_again": st.booleans(),
        "new_load": st.booleans(),
        "seconds": st.integers(0, 60),
    }
)


def batch_of(step: dict[str, Any]) -> Batch:
    """A batch with all that a step of a sequence brings."""
    batch = Batch()
    edge = Edge(step["clock"], retention_s=step["reach"], step_s=60, asked_at=step["clock"])
    streams, stretch = step["answered"]
    for stream in streams:
        rows = frame_of([(ts, step["clock"] / 7) for ts in sorted(step["rows"])])
        batch.add(stream, rows, stretch, edge, open_parts=step["open"])
    if step["log"]:
        at = step["log"].start
        event = {"family": "splash", "event_id": "e", "ts_ms": 1000 * at, "ts": at}
        documents = document_frame([event | {"document": f'{{"n":{step["clock"]}}}'}])
        batch.add_documents(
            SPLASHES, documents, step["log"], Edge(step["clock"]), open_parts=step["open"]
        )
    if step["gap"]:
        number, start, length_s = step["gap"]
        end = None if length_s is None else start + length_s
        batch.gaps[number] = Gap(number, PRICES[0], start, end, "closed")
    if step["polled"]:
        at = 2_000 + 60 * len(step["rows"])  # also other answers of the same second
        batch.add_snapshot(Snapshot(SPREADS, at, ANSWER % step["clock"]), edge)
    return batch


def in_full(known: Ledger) -> tuple[object, ...]:
    """A ledger with all that `Edge` does not compare, and without what is for loads alone."""
    if known.edge is None:
        return (known,)
    return (replace(known, edge=replace(known.edge, late_s=0)), known.edge.asked_at)


def answers(store: Store, as_of: int | None = None) -> list[list[tuple[object, ...]]]:
    """All rows, documents and answers that can be read as of a time."""
    with store.reading():
        kinds = pl.col("kind").is_in(["price", "snapshot-spread"])
        known = store.catalogue(as_of=as_of).filter(kinds)["stream"]
        frames = [
            *(store.series(key, as_of=as_of, ties=ties) for key in known for ties in (False, True)),
            store.scan("price", as_of=as_of).collect(),
            store.events("splash", EVER, as_of=as_of),
            store.snapshots("spread", as_of=as_of),
            store.polls("spread", as_of=as_of),
        ]
    return [frame.rows() for frame in frames]


def knowledge(store: Store, as_of: int | None = None) -> dict[str, Any]:
    """All that a store says of its ledger."""
    with store.reading():
        ledger = store.ledger(as_of=as_of)
        found: dict[str, Any] = {
            "ledger": {stream: in_full(known) for stream, known in ledger.items()},
            "gaps": store.gaps(as_of=as_of).rows(),
            "loads": store.loads(as_of=as_of).rows(),
            "catalogue": store.catalogue(as_of=as_of).rows(),
            "status": stream_states(store, as_of=as_of).drop("behind_s").rows(),
            "sql": sorted(store.sql("from held_coverage", as_of=as_of).rows()),
            "rows": sorted(store.sql("from prices", as_of=as_of).rows()),
            "answers": answers(store, as_of),
        }
        for key, kind, *_ in found["catalogue"]:
            if kind != "snapshot":
                known = ledger.get(Stream.parse(key))
                if kind == "snapshot-spread" or (known and known.edge):
                    states = store.coverage(Stream.parse(key), EVERY, as_of=as_of)
                    found[f"coverage {key}"] = states.rows()
    return found


@pytest.mark.slow
@given(st.lists(STEP, min_size=1, max_size=4))
@examples(15)
def test_the_ledger_as_of_each_commit_is_what_a_copy_made_then_has(
    tmp_path_factory: pytest.TempPathFactory, steps: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("copies")
    store = empty_store(folder / "rail.duckdb", SOURCE)
    writer, now, load_id = writer_of(store), 1_000, 0
    copies: dict[int, dict[str, Any]] = {}
    for step in steps:
        now += step["seconds"]
        if step["new_load"] or not load_id:
            load_id = writer.start_load(ORIGIN, step["asked"][0], step["asked"][1])
        else:
            writer.ask(dict.fromkeys(*step["asked"]))
        writer.commit(load_id, batch_of(step))
        if step["heard_again"]:
            writer.end_gaps(step["clock"])
        date_commit(store, now)
        copies[now] = knowledge(store)
    assert faults_of(store) == []
    compact(store)
    publish(store, folder / "published")
    imported = import_store(folder / "published", folder / "imported.duckdb")
    with store.reading(), imported.reading():  # a file is opened once for all questions
        assert faults_of(store) == faults_of(imported) == []
        for at, wanted in copies.items():
            assert knowledge(store, at) == wanted
            assert imported.ledger(as_of=at) == store.ledger(as_of=at)
            assert imported.gaps(as_of=at).equals(store.gaps(as_of=at))
        assert knowledge(store, 999)["catalogue"] == []


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A first answer and a gap as of 1000, more of both as of 2000. It is only read."""
    store = empty_store(tmp_path_factory.mktemp("two") / "rail.duckdb", SOURCE)
    writer = writer_of(store)
    load_id = writer.start_load(ORIGIN, PRICES[:1], Interval(0, 600))
    for at, end in ((1_000, 120), (2_000, 300)):
        batch = Batch(gaps={1: Gap(1, PRICES[0], 400, None if at == 1_000 else 500, "closed")})
        rows = frame_of([(ts, float(at)) for ts in range(0, end, 60)])
        batch.add(PRICES[0], rows, Interval(0, end), Edge(at, step_s=60, asked_at=at))
        writer.commit(load_id, batch)
        date_commit(store, at)
    return store


@pytest.fixture
def copy(two: Store, store: Store) -> Store:
    """A copy of it, to be changed."""
    shutil.copyfile(two.path, store.path)
    return store


def test_coverage_gaps_and_status_are_those_of_the_time(two: Store) -> None:
    with two.reading():  # once for all questions
        states = [two.coverage(PRICES[0], (0, 600), as_of=at).rows() for at in (1_999, 2_000)]
        assert states == [
            [(0, 120, "held"), (120, 600, "missing")],
            [(0, 300, "held"), (300, 600, "missing")],
        ]
        gaps = [two.gaps(as_of=at)["end_ts"].to_list() for at in (999, 1_000, 2_000)]
        assert gaps == [[], [None], [500]]
        shares = [stream_states(two, as_of=at)["answered_share"].to_list() for at in (999, 1_000)]
        assert shares == [[], [0.2]]
        assert stream_states(two)["answered_share"].to_list() == [0.5]


@pytest.mark.slow
def test_a_store_as_known_at_a_time_reads_all_as_of_then(two: Store) -> None:
    known = two.known(1_500)
    assert knowledge(known) == knowledge(two, 1_500) != knowledge(two)
    assert known.scan("price").collect().equals(two.scan("price", as_of=1_500).collect())
    assert known.known(2_500).as_of == 2_500
    for at, why in ((999, "held nothing as of"), (int(time.time()) + 3_600, "has been")):
        with pytest.raises(RailError, match=why):
            two.known(at)


def test_a_series_has_the_states_and_the_window_of_its_time(two: Store) -> None:
    then, now = (read_series(two, PRICES[0], as_of=at) for at in (1_500, 2_500))
    assert (then.window, now.window) == ((0, 600), (0, 600))
    assert then.gaps()["length_s"].to_list() == [480]
    assert now.gaps()["length_s"].to_list() == [300]
    with pytest.raises(EmptyWindowError, match="held nothing as of"):
        read_series(two, PRICES[0], as_of=999)


def test_a_stream_that_came_later_was_not_known(copy: Store) -> None:
    writer = StoreWriter(copy)
    writer.start_load(ORIGIN, PRICES[1:2], Interval(0, 600))
    date_commit(copy, 3_000)
    assert PRICES[1] in copy.ledger(as_of=3_000)
    assert PRICES[1] not in copy.ledger(as_of=2_999)
    with pytest.raises(
        EmptyWindowError, match=r"knew nothing of A_B:X.spot as of 1970-01-01 00:49"
    ):
        read_series(copy, PRICES[1], as_of=2_999)


def test_sql_as_of_a_time_reads_the_views_as_they_were_and_no_table(two: Store) -> None:
    for at, price, held in ((1_000, 1_000.0, 120), (2_000, 2_000.0, 300)):
        prices = two.sql("SELECT price FROM prices", as_of=at)["price"].to_list()
        assert prices == [price] * (held // 60)
        ends = two.sql("FROM held_coverage WHERE state = 'settled'", as_of=at)["end_ts"]
        assert ends.to_list() == [held]
    for name in ("price", "coverage", "stream"):
        with pytest.raises(InputError, match="the views prices"):
            two.sql(f"FROM {name}", as_of=1_000)


@pytest.mark.slow
def test_a_change_that_is_lost_or_made_by_hand_is_a_fault(copy: Store) -> None:
    for change, table in (
        ("DELETE FROM coverage_change WHERE change_id = 1", "coverage"),
        ("UPDATE edge SET served_at = 7", "edge"),
        ("DELETE FROM gap_change WHERE end_ts IS NOT NULL", "gap"),
    ):
        with StoreWriter(copy).writing() as connection:
            connection.execute(change)
        assert [fault for fault in faults_of(copy) if fault.startswith(f"{table}: its history")]


def test_streams_that_change_alike_are_one_row_and_what_did_not_change_is_none(
    store: Store,
) -> None:
    writer = writer_of(store)
    load_id = writer.start_load(ORIGIN, PRICES, Interval(0, 600))
    for _ in range(2):
        batch = Batch()
        for price in PRICES:
            batch.add(
                price, frame_of([(0, 1.0)]), Interval(0, 60), Edge(900, step_s=60, asked_at=9)
            )
        writer.commit(load_id, batch)
    with store.reading() as connection:
        for table, states in (("coverage_change", 2), ("edge_change", 1)):
            runs = connection.execute(
                f"SELECT first_stream_id, last_stream_id FROM {table}"
            ).fetchall()
            assert runs == [(1, 4)] * states


def test_functions_of_a_strangers_file_take_no_part_in_what_was_known(copy: Store) -> None:
    wanted = knowledge(copy, 1_000)
    with duckdb.connect(str(copy.path)) as connection:
        connection.execute("CREATE MACRO coalesce(x, y) AS 7; CREATE MACRO max(x) AS 7")
    assert knowledge(copy, 1_000) == wanted


def one_of_each(number: int) -> Batch:
    """Something of each kind: the same price, document and second as ever, with other values."""
    batch = Batch()
    batch.add(PRICES[1], frame_of([(60, number / 4), (60 * number, 9.0)]), Interval(60, 120), EDGE)
    event = {"family": "splash", "event_id": "e", "ts_ms": 60_000, "ts": 60}
    documents = document_frame([event | {"document": f'{{"n":{number}}}'}])
    batch.add_documents(SPLASHES, documents, Interval(0, 100), EDGE)
    batch.add_snapshot(Snapshot(SPREADS, 60, ANSWER % number), EDGE)
    return batch


def test_revisions_inside_one_load_are_seen_by_commit(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "rail.duckdb", SOURCE)
    writer = writer_of(store)
    load_id = writer.start_load(ORIGIN)
    for number in (2, 3):
        writer.commit(load_id, one_of_each(number))
        date_commit(store, at=1_000 * number)
    with store.reading():  # once for all questions
        for at, rows in ((1_999, []), (2_000, [2]), (2_999, [2]), (3_000, [3])):
            prices = store.series(PRICES[1], (60, 120), as_of=at)["price"].to_list()
            assert prices == [number / 4 for number in rows]
            documents = store.events("splash", EVER, as_of=at)["document"].to_list()
            assert documents == [f'{{"n":{number}}}' for number in rows]
            assert store.snapshots("spread", as_of=at).height == max([0, *(n - 1 for n in rows)])
            assert store.polls("spread", as_of=at)["ts"].to_list() == [60 for _ in rows]
            shown = store.series("snapshot-spread/A_B:X.spot:Y.spot", as_of=at)["spread_pct"]
            assert shown.to_list() == rows


def test_a_commit_has_the_second_of_the_local_clock(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "rail.duckdb", SOURCE)
    writer, before = writer_of(store), int(time.time())
    writer.commit(writer.start_load(ORIGIN), one_of_each(1))
    with store.reading() as connection:
        for table in DATED:
            query = f"SELECT committed_at FROM {table.name}"
            for (at,) in connection.execute(query).fetchall():
                assert before <= at <= time.time()
    assert answers(store, int(time.time())) == answers(store)
    assert store.series(PRICES[1], as_of=before - 1).is_empty()
