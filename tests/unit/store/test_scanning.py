"""Rows of many trajectories: the same by series, in one piece, in groups and lazily."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dated import date_commit
from tests.empty_store import empty_store
from toolkit.errors import InputError, StoreError, UnknownTrajectoryError
from toolkit.intervals import EVER, Interval
from toolkit.market import Family, Trajectory
from toolkit.store import Batch, Store
from toolkit.store.file.maintenance import compact

from ...conftest import examples
from .conftest import EDGE, SOURCE, brought, frame_of

KEYS = [f"A{number}_B:X.spot" for number in (3, 1, 2)]


def commit_each(store: Store, *rows: Sequence[tuple[int, float]]) -> None:
    """Commit rows of each trajectory as one load, of all the same if once."""
    batch = Batch()
    for key, of_it in zip(KEYS, rows if len(rows) > 1 else rows * len(KEYS), strict=True):
        batch.add(Trajectory.parse(key), frame_of(of_it), Interval(0, 1), EDGE)
    brought(store, batch)


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Three trajectories of 5, 20 and 50 rows, each with some revised by a second load."""
    store = empty_store(tmp_path_factory.mktemp("scan") / "rail.duckdb", SOURCE, wait_s=60)
    for load, step in enumerate((1, 7), start=1):
        rows = [(60 * at, at + load / 4) for at in range(0, 50, step)]
        commit_each(store, *(rows[: -(-count // step)] for count in (5, 20, 50)))
        date_commit(store, 100 * load)
    return store


def by_series(store: Store, window: Interval, **options: Any) -> pl.DataFrame:
    return pl.concat(store.series(key, window, **options) for key in sorted(KEYS))


@examples(60)
@given(
    rows=st.integers(1, 90),
    start=st.integers(-60, 3_000),
    length=st.integers(1, 4_000),
    as_of=st.sampled_from([None, 50, 150, 250]),
)
def test_groups_of_any_size_are_the_rows_of_each_series(
    held: Store, rows: int, start: int, length: int, as_of: int | None
) -> None:
    window = Interval(start, start + length)
    groups = list(held.groups(Family.PRICE, window, as_of=as_of, rows=rows))
    found = pl.concat(groups)
    assert found.equals(by_series(held, window, as_of=as_of))
    assert held.scan(Family.PRICE, window, as_of=as_of).collect().equals(found)
    keys = [key for group in groups for key in group["trajectory"].unique()]
    assert sorted(keys) == sorted(set(keys)), "a trajectory is in two groups"


conditions = st.one_of(
    st.sampled_from(KEYS).map(lambda key: pl.col("trajectory") == key),
    st.lists(st.sampled_from(KEYS)).map(pl.col("trajectory").is_in),
    st.integers(-60, 3_000).map(lambda ts: pl.col("ts") >= ts),
    st.integers(-60, 3_000).map(lambda ts: pl.col("ts") < ts),
    st.integers(-60, 3_000).map(lambda ts: pl.lit(ts) <= pl.col("ts")),
    st.integers(0, 50).map(lambda at: pl.col("ts") == 60 * at),
    st.builds(
        lambda low, high, closed: pl.col("ts").is_between(low, high, closed=closed),
        st.integers(-60, 3_000),
        st.integers(-60, 3_000),
        st.sampled_from(["left", "right", "both", "none"]),
    ),
    st.floats(0, 50).map(lambda price: pl.col("price") > price),
)


@examples(60)
@given(
    parts=st.lists(conditions, max_size=4),
    columns=st.lists(st.sampled_from(["trajectory", "ts", "price", "volume"]), unique=True),
    head=st.sampled_from([None, 0, 1, 30]),
    streaming=st.booleans(),
)
def test_a_lazy_query_finds_what_it_finds_in_all_rows(
    held: Store, parts: list[pl.Expr], columns: list[str], head: int | None, streaming: bool
) -> None:
    def query(frame: pl.LazyFrame) -> pl.DataFrame:
        found = frame.filter(*parts).select(columns or pl.len())
        found = found if head is None else found.head(head)
        return found.collect(engine="streaming" if streaming else "in-memory")

    assert query(held.scan(Family.PRICE)).equals(query(by_series(held, EVER).lazy()))


def test_what_is_committed_between_two_groups_is_in_none(store: Store, commit: Callable) -> None:
    commit_each(store, [(120, 2.0), (60, 1.0)])
    groups, lazy = store.groups(Family.PRICE, rows=1), store.scan(Family.PRICE)
    first = next(groups)
    before = by_series(store, EVER)
    commit_each(store, [(180, 3.0), (60, 9.0)])
    commit("A0_B:X.spot", [(60, 1.0)])
    assert pl.concat([first, *groups]).equals(before)
    assert lazy.collect().equals(before)
    assert store.scan(Family.PRICE).collect().height == before.height + 4


def test_another_file_in_the_place_of_a_store_that_is_read_is_an_error(
    store: Store, commit: Callable, tmp_path: Path
) -> None:
    commit(KEYS[1], [(60, 1.0)])
    shutil.copy(store.path, tmp_path / "fewer.duckdb")
    commit(KEYS[0], [(60, 1.0)])
    groups = store.groups(Family.PRICE, rows=1)
    next(groups)
    shutil.move(tmp_path / "fewer.duckdb", store.path)
    with pytest.raises(StoreError, match="was exchanged or written anew while it was read"):
        list(groups)


def test_a_compaction_after_a_backfill_is_an_error_of_a_scan_that_is_under_way(
    store: Store, commit: Callable
) -> None:
    commit_each(store, [(120, 2.0), (180, 1.0)])
    groups, lazy = store.groups(Family.PRICE, rows=1), store.scan(Family.PRICE)
    next(groups)
    commit(KEYS[-1], [(60, 3.0)])  # in another order it is one of the rows that were counted
    compact(store)
    with pytest.raises(StoreError, match="written anew while it was read; read it again"):
        list(groups)
    with pytest.raises(Exception, match="written anew while it was read; read it again"):
        lazy.collect()


def test_a_compaction_alone_changes_nothing_for_a_scan_that_is_under_way(
    store: Store,
) -> None:
    for rows in ([(120, 2.0)], [(60, 1.0)]):  # which it puts in another order
        commit_each(store, rows)
    before = by_series(store, EVER)
    groups, lazy = store.groups(Family.PRICE, rows=1), store.scan(Family.PRICE)
    first = next(groups)
    compact(store)
    assert pl.concat([first, *groups]).equals(before)
    assert lazy.collect().equals(before)


def test_trajectories_are_asked_for_by_family_name_key_or_value(held: Store) -> None:
    alone = held.series(KEYS[0])
    for asked in (KEYS[0], Trajectory.parse(KEYS[0]), [KEYS[0]], [KEYS[0], KEYS[0]]):
        assert held.scan(asked).collect().equals(alone)
    assert held.scan("price").collect().equals(held.scan(Family.PRICE).collect())
    nothing = list(held.groups("spread"))
    assert [group.height for group in nothing] == [0]
    assert nothing[0].schema == held.scan("spread").collect_schema()


@pytest.mark.parametrize("asked", [[], 7, ["A_B:X.spot", "A_B:X.spot:Y.spot"]])
def test_what_is_no_family_and_no_trajectories_of_one_is_refused(held: Store, asked: Any) -> None:
    with pytest.raises(InputError, match=r"a kind \(price, .*\), or streams of one kind"):
        held.scan(asked)


def test_a_trajectory_that_was_never_asked_for_is_refused_at_once(held: Store) -> None:
    with pytest.raises(UnknownTrajectoryError, match=r"A9_B:X.spot is not held"):
        held.scan([KEYS[0], "A9_B:X.spot"])
