"""Laws of downsampling: what may be left out, and what never is."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from toolkit.charts import downsample
from toolkit.errors import InputError

VALUES = st.one_of(
    st.none(),
    st.just(float("nan")),
    st.floats(-1e9, 1e9, allow_nan=False),
    st.sampled_from([0.0, 1.0, float("inf"), float("-inf")]),
)


@st.composite
def frames(draw):
    """Rows in the order of ts: regular, irregular, tied; a run of nulls somewhere."""
    steps = draw(st.lists(st.sampled_from([0, 1, 60, 60, 60, 86_400]), min_size=1, max_size=300))
    n = len(steps)
    one, two = (draw(st.lists(VALUES, min_size=n, max_size=n)) for _ in range(2))
    cut = draw(st.integers(0, n))
    ts = pl.Series(steps).cum_sum()
    return pl.DataFrame(
        {"ts": ts, "one": [*one[:cut], *[None] * (n - cut)], "two": two, "row": range(n)},
        schema_overrides={"one": pl.Float64, "two": pl.Float64},
    )


budgets = st.integers(8, 120)


@given(frames(), budgets)
@settings(deadline=None)
def test_rows_are_a_sorted_subset_within_the_budget_with_ends_extremes_and_a_null(frame, points):
    kept = downsample(frame, ["one", "two"], points=points)
    assert kept.height <= max(points, 0)
    assert kept["row"].is_unique().all()
    assert kept["row"].is_sorted()
    assert kept["ts"].is_sorted()
    assert_frame_equal(kept, frame[kept["row"]])
    assert kept["row"][0] == 0
    assert kept["row"][-1] == frame.height - 1
    for column in ("one", "two"):
        before, after = (f[column].fill_nan(None) for f in (frame, kept))
        assert (after.min(), after.max()) == (before.min(), before.max())
    kept = downsample(frame, "one", points=points)
    before, after = (f["one"].fill_nan(None) for f in (frame, kept))
    assert (after.null_count() > 0) == (before.null_count() > 0)


@given(frames())
@settings(deadline=None)
def test_a_small_frame_comes_back_as_it_is(frame):
    assert_frame_equal(downsample(frame, "two", points=300), frame)


@given(frames(), budgets, st.randoms())
@settings(deadline=None)
def test_rows_out_of_order_are_sorted_first(frame, points, random):
    distinct = frame.unique("ts", keep="first", maintain_order=True)
    order = list(range(distinct.height))
    random.shuffle(order)
    assert_frame_equal(
        downsample(distinct[order], "two", points=points),
        downsample(distinct, "two", points=points),
    )


def test_every_planted_spike_survives():
    n, spikes = 100_000, range(1000, 99_000, 2003)
    height = pl.Series([0.0] * n).scatter(list(spikes), [9.0] * len(spikes))
    frame = pl.DataFrame({"ts": pl.int_range(0, n * 60, 60, eager=True), "price": height})
    kept = downsample(frame, "price", points=2000)
    assert kept.filter(pl.col("price") == 9.0)["ts"].to_list() == [60 * i for i in spikes]


def test_columns_that_move_together_use_most_of_the_budget():
    n = 50_000
    wave = (pl.int_range(0, n, eager=True) / 7).sin()
    frame = pl.DataFrame({"ts": range(n), "one": wave, "two": wave * 2, "three": wave + 1})
    assert 1500 < downsample(frame, ["one", "two", "three"], points=2000).height <= 2000


def test_a_null_stretch_of_two_buckets_leaves_a_null_row():
    price = [1.0] * 400 + [None] * 50 + [1.0] * 550
    frame = pl.DataFrame({"ts": range(1000), "price": price})
    kept = downsample(frame, "price", points=122)
    inside = kept.filter(pl.col("ts").is_between(400, 449))
    assert inside.height >= 1
    assert inside["price"].null_count() == inside.height


@pytest.mark.parametrize(
    ("frame", "columns", "points"),
    [
        (pl.DataFrame({"ts": [0]}), "price", 10),
        (pl.DataFrame({"ts": [0], "price": ["1"]}), "price", 10),
        (pl.DataFrame({"ts": [0, None], "price": [1.0, 2.0]}), "price", 10),
        (pl.DataFrame({"ts": [0], "price": [1.0]}), "price", 4),
    ],
)
def test_what_cannot_be_downsampled_is_refused(frame, columns, points):
    with pytest.raises(InputError):
        downsample(frame, columns, points=points)


def test_a_time_that_is_null_is_refused_by_what_it_is():
    frame = pl.DataFrame({"ts": [0, None], "price": [1.0, 2.0]})
    with pytest.raises(InputError, match="ts: 'a null' is not allowed; allowed: a column without"):
        downsample(frame, "price")
