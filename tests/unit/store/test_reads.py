"""What a store answers about what it holds, against small stores made by hand."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import polars as pl
import pytest

from toolkit.errors import InputError, UnknownTrajectoryError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, Store, event_logs
from toolkit.store.reading.lookup import held_trajectory
from toolkit.tables import BROUGHT, EVENT, LOAD
from toolkit.wire.event_log import document_frame

from .conftest import EDGE, brought, writer_of

KEY, OTHER = "A_B:X.spot", "A_B:X.spot:Y.spot"
PRICE, SPREAD = Trajectory.parse(KEY), Trajectory.parse(OTHER)


def minutes(*numbers: int) -> list[tuple[int, float]]:
    """Rows at these minutes, newest first."""
    return [(60 * number, 1.0) for number in sorted(numbers, reverse=True)]


def test_the_catalogue_counts_what_is_held_of_each_stream(store: Store, commit: Callable) -> None:
    commit(OTHER, [(600, 1.0, 1.1, 10.0)], edge=Edge(5000, 30, None, None))
    commit(KEY, minutes(1, 2, 3), edge=Edge(9000, 0, 86_400, 60))
    commit(KEY, [(120, 2.0), (240, 1.0)], edge=Edge(9100, 0, 3600, 60))
    commit("C_D:X.spot", [])
    found = store.catalogue()
    assert found["asked_at"].dtype == pl.Int64
    assert found["asked_at"].null_count() == 0
    assert found.drop("asked_at").rows() == [
        (KEY, "price", 4, 1, 60, 240, 60, 3600, 0, 9100, 1),
        ("C_D:X.spot", "price", 0, 0, None, None, 60, None, 0, 10_000, 1),
        (OTHER, "spread", 1, 0, 600, 600, None, None, 30, 5000, None),
    ]
    assert found.columns == [
        *("stream", "kind", "rows", "revisions", "first_ts", "last_ts", "step_s"),
        *("retention_s", "delay_s", "served_at", "asked_at", "answered_until"),
    ]


def test_an_event_log_is_known_to_the_end_of_its_own_answers(
    store: Store, commit: Callable
) -> None:
    columns = {n: t for n, t in EVENT.schema.items() if n not in ("revision", *BROUGHT)}
    nothing = pl.DataFrame(schema=columns)
    batch = Batch()
    for family, end in ((EventFamily.SPREAD, 9000), (EventFamily.SPLASH, 5000)):
        edge = Edge(served_at=9000, delay_s=30, step_s=0)
        batch.add_documents(EventLog(family), nothing, Interval(0, end), edge)
    brought(store, batch)
    commit(KEY, minutes(1, 2, 3), edge=Edge(20_000, 0, 86_400, 60))  # another stream's later clock
    known = dict(event_logs(store.catalogue()).select("family", "known_until").iter_rows())
    assert known == {"spread": 8970, "splash": 5000}


CONTINUITY = {
    (60, 120, 180, 240): (0, 0, 0),
    (0, 60, 120, 300, 360, 1200): (2, 2 + 13, 780),
    (0, 60, 120, 210, 270): (0, 0, 0),  # up to half a step late
    (0, 60, 120, 211, 271): (1, 1, 31),
    (60,): (0, 0, 0),
    (0, 300, 600, 660, 720): (2, 8, 240),
    (0, 60, 120, 420, 720): (2, 8, 240),
    (0, 60, 360, 420, 720, 1620): (3, 4 + 4 + 14, 840),
    (0, 300, 600, 900, 960): (0, 0, 0),
    (0, 60, 360, 660, 960): (0, 0, 0),
    (0, 60, 120, 420): (1, 4, 240),
}
"""Holes, absent rows and the longest hole (s) of trajectories with rows at these times."""


def test_the_step_is_the_commonest_spacing_the_shortest_of_several(
    store: Store, page: Callable
) -> None:
    batch, keys = Batch(), {f"A{n}_B:X.spot": times for n, times in enumerate(CONTINUITY)}
    for key, times in keys.items():
        batch.add(Trajectory.parse(key), page([(ts, 1.0) for ts in times]), Interval(0, 1), EDGE)
    brought(store, batch)
    found = store.continuity().drop("kind", "tied_rows").rows()
    assert {keys[key]: tuple(counts) for key, *counts in found} == CONTINUITY


def test_a_revision_is_not_another_row(store: Store, commit: Callable) -> None:
    commit(KEY, [(60, 9.0), (180, 9.0), (180, 8.0)])
    commit(OTHER, [])
    commit(KEY, [(ts, 1.0) for ts in (60, 120, 180)])
    assert store.continuity().rows() == [(KEY, "price", 0, 0, 0, 0)]
    assert store.counts(Interval(0, 1000)) == {PRICE: 3}


def test_counts_are_of_rows_in_the_half_open_window(store: Store, commit: Callable) -> None:
    commit(KEY, minutes(1, 2, 3))
    commit(OTHER, minutes(3, 4))
    assert store.counts(Interval(60, 180)) == {PRICE: 2}
    assert store.counts(Interval(60, 181)) == {PRICE: 3, SPREAD: 1}
    assert store.counts(Interval(1000, 2000)) == {}


def test_a_series_is_sorted_and_half_open(store: Store, commit: Callable) -> None:
    commit(KEY, [(180, 3.0, 3.5, 30.0, '{"a":1}'), (60, 1.0), (120, None), (-60, 1.0)])
    found = store.series(PRICE)
    assert found.rows() == [
        (KEY, -60, 1.0, None, None),
        (KEY, 60, 1.0, None, None),
        (KEY, 120, None, None, None),
        (KEY, 180, 3.0, 3.5, 30.0),
    ]
    values = dict.fromkeys(("price", "mark_price", "volume"), pl.Float64)
    assert found.schema == {"trajectory": pl.String, "ts": pl.Int64} | values
    assert store.series(PRICE, Interval(60, 180))["ts"].to_list() == [60, 120]
    assert store.series(PRICE, Interval(61, 10_000))["ts"].to_list() == [120, 180]
    assert store.series(PRICE, Interval(-10_000, 61))["ts"].to_list() == [-60, 60]


def test_a_series_of_nothing_has_the_columns_of_one_with_rows(
    store: Store, commit: Callable
) -> None:
    commit(OTHER, [(60, 1.0, 1.1, 10.0)])
    full = store.series(SPREAD)
    assert full.columns == ["trajectory", "ts", "buy_price", "sell_price", "spread_pct"]
    for empty in (store.series(SPREAD, Interval(61, 99)), store.series(SPREAD, as_of=0)):
        assert empty.height == 0
        assert empty.schema == full.schema
    with pytest.raises(UnknownTrajectoryError, match=r"A_B:Y.spot:Z.spot is not held"):
        store.series(Trajectory.parse("A_B:Y.spot:Z.spot"))


def test_a_pair_held_both_ways_round_is_read_as_it_is_asked_for(
    store: Store, commit: Callable
) -> None:
    commit(SPREAD.swapped.key, [(60, 1.0, 1.1)])
    assert held_trajectory(store, SPREAD) == SPREAD.swapped
    commit(OTHER, [(60, 1.1, 1.0)])
    assert [held_trajectory(store, each) for each in (SPREAD, SPREAD.swapped)] == [
        SPREAD,
        SPREAD.swapped,
    ]


def test_an_empty_or_backward_window_is_refused(store: Store, commit: Callable) -> None:
    commit(KEY, minutes(1, 2, 3))
    for ends in ((60, 60), (61, 60), (120, -120)):
        for ask in (
            lambda window: store.series(PRICE, window),
            store.counts,
            lambda window: store.coverage(PRICE, window),
        ):
            with pytest.raises(InputError, match="window"):
                ask(Interval(*ends))


@pytest.fixture
def covered(store: Store, commit: Callable) -> Callable[..., list[tuple[int, int, str]]]:
    """The coverage of a price with rows at the minutes 0 to 3, 6 to 9 and 12, answered to 960."""
    commit(
        KEY, minutes(*range(4), *range(6, 10), 12), answered=(0, 960), edge=Edge(2000, step_s=60)
    )

    def build(start: int, end: int, **options: int) -> list[tuple[int, int, str]]:
        return store.coverage(PRICE, Interval(start, end), **options).rows()

    return build


def test_coverage_tells_held_empty_missing_and_not_yet_known_apart_and_bridges_by_a_tolerance(
    covered: Callable,
) -> None:
    assert covered(-120, 2400) == [
        (-120, 0, "missing"),
        (0, 240, "held"),
        (240, 360, "empty"),
        (360, 600, "held"),
        (600, 720, "empty"),
        (720, 780, "held"),
        (780, 960, "empty"),
        (960, 1880, "missing"),
        (1880, 2400, "not yet known"),
    ]
    assert covered(0, 960, tolerance_s=180) == [(0, 780, "held"), (780, 960, "empty")]
    assert covered(0, 960, tolerance_s=179)[:2] == [(0, 240, "held"), (240, 360, "empty")]
    with pytest.raises(InputError, match="tolerance_s: -1 is not allowed"):
        covered(0, 960, tolerance_s=-1)


def test_without_tolerance_a_row_ends_with_its_step(store: Store, commit: Callable) -> None:
    commit(KEY, [(0, 1.0), (60, 1.0), (150, 1.0)], answered=(0, 210))
    assert store.coverage(PRICE, Interval(0, 210)).rows() == [(0, 210, "held")]
    assert store.coverage(PRICE, Interval(0, 210), tolerance_s=0).rows() == [
        (0, 120, "held"),
        (120, 150, "empty"),
        (150, 210, "held"),
    ]


def test_a_part_of_the_window_says_what_the_whole_says(store: Store, covered: Callable) -> None:
    def states(start: int, end: int, tolerance_s: int | None) -> list[str]:
        found = store.coverage(PRICE, Interval(start, end), tolerance_s=tolerance_s)
        stretches = found.with_columns(seconds=pl.col("end_ts") - pl.col("start_ts"))
        return stretches.select(pl.col("state").repeat_by("seconds").explode())["state"].to_list()

    assert covered(0, 60)
    for tolerance_s in (None, 0, 30, 90, 180, 600):
        whole = states(-120, 2400, tolerance_s)
        for start, end in [(0, 960), (30, 50), (230, 250), (250, 350), (300, 361), (590, 1900)]:
            assert states(start, end, tolerance_s) == whole[start + 120 : end + 120]


def test_without_a_known_step_a_row_vouches_for_its_second(store: Store, commit: Callable) -> None:
    commit(KEY, [(60, 1.0)], answered=(0, 120), edge=Edge(served_at=200_000))
    assert store.coverage(PRICE, Interval(0, 180)).rows() == [
        (0, 60, "empty"),
        (60, 61, "held"),
        (61, 120, "empty"),
        (120, 180, "missing"),
    ]


def test_what_the_plan_no_longer_reaches_is_unrecoverable_unless_held(
    store: Store, commit: Callable
) -> None:
    commit(KEY, minutes(1, 2), answered=(60, 180), edge=Edge(10_000, 0, 9000, 60))
    assert store.coverage(PRICE, Interval(0, 1200)).rows() == [
        (0, 60, "unrecoverable"),
        (60, 180, "held"),
        (180, 1000, "unrecoverable"),
        (1000, 1200, "missing"),
    ]


def test_an_answer_of_which_nothing_is_final_leaves_only_the_edge(
    store: Store, commit: Callable
) -> None:
    edge = Edge(1000, 60, 86_400, 60)
    commit(KEY, [(900, 1.0)], answered=(820, 1000), edge=edge)
    known = store.ledger()[PRICE]
    assert (known.edge, known.answered) == (edge, [])
    assert store.coverage(PRICE, Interval(700, 1000)).rows() == [
        (700, 820, "missing"),
        (820, 1000, "not yet known"),
    ]


def test_loads_tell_what_was_asked_where_and_what_was_found(store: Store) -> None:
    origin = LoadOrigin("http://one", 10_000, "5c4e", "0.1.0")
    writer = writer_of(store)
    assert [writer.start_load(origin) for _ in range(3)] == [1, 2, 3]
    writer.finish_load(1, [])
    writer.finish_load(3, [{"kind": "next_missing", "times": 2}])
    loads = store.loads()
    assert loads.schema == LOAD.schema
    assert loads["load_id"].to_list() == [3, 2, 1]
    assert loads["finding"].to_list() == ['[{"kind": "next_missing", "times": 2}]', None, None]
    assert loads["finished_at"].is_null().to_list() == [False, True, False]
    assert loads.select(
        "served_at", "base_url", "schema_hash", "toolkit_version"
    ).unique().rows() == [(10_000, "http://one", "5c4e", "0.1.0")]


def test_a_store_shows_its_path_and_reaches_another_process(store: Store) -> None:
    assert repr(store) == f"Store({str(store.path)!r})"
    assert pickle.loads(pickle.dumps(store)).source == store.source


def test_of_an_events_documents_of_one_time_the_closing_is_last_also_without_their_text(
    store: Store,
) -> None:
    rows = [
        {"family": "spread", "event_id": "a", "event_type": f"spread.{kind}", "ts_ms": 60_000}
        | {"ts": 60, "document": "{}"}
        for kind in ("closed", "opened")
    ]
    batch = Batch()
    batch.documents.append(document_frame(rows))
    brought(store, batch)
    held = store.events(EventFamily.SPREAD, Interval(0, 100))
    assert held["event_type"].to_list() == ["spread.opened", "spread.closed"]
    without = store.events("spread", Interval(0, 100), whole=False)
    assert without.equals(held.drop("document"))
