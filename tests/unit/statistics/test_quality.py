from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.quality import coverage


def times(*ts: int, trajectory: str = "a") -> pl.DataFrame:
    return pl.DataFrame(
        {"trajectory": [trajectory] * len(ts), "ts": list(ts)},
        schema={"trajectory": pl.String, "ts": pl.Int64},
    )


def one(frame: pl.DataFrame | pl.LazyFrame, start: int, end: int, **options) -> dict:
    result = coverage(frame, start, end, **options)
    assert result.height == 1
    return result.row(0, named=True)


MINUTES = tuple(range(0, 600, 60))
BLOCKS = (0, 60, 120, 480, 540)


@pytest.mark.parametrize(
    ("ts", "options", "shares", "segments", "gap"),
    [
        pytest.param(MINUTES, {}, (10, 1.0), 1, 0, id="a full grid"),
        pytest.param(MINUTES[:4], {}, (4, 360 / 600), 1, 0, id="the last stands three steps"),
        pytest.param(MINUTES[6:], {}, (4, 240 / 600), 1, 0, id="nothing stands before the first"),
        pytest.param(BLOCKS, {}, (5, (120 + 180 + 120) / 600), 2, 360, id="a gap"),
        pytest.param(BLOCKS, {"max_stale_s": 60}, (5, 0.5), 2, 360, id="one step"),
        pytest.param(BLOCKS, {"max_stale_s": 360}, (5, 1.0), 2, 360, id="long"),
        pytest.param((0, 60, 150, 210), {}, (4, (150 + 60 + 180) / 600), 1, 0, id="1.5 steps"),
        pytest.param((0, 60, 151, 211), {}, (4, (151 + 60 + 180) / 600), 2, 91, id="just above"),
        pytest.param((0, 540), {"step_s": 60}, (2, (180 + 60) / 600), 2, 540, id="two alone"),
    ],
)
def test_coverage_of_a_grid_made_by_hand(ts, options, shares, segments, gap):
    present, observed = shares
    row = one(times(*ts), 0, 600, **options)
    assert (row["n_expected"], row["coverage"]) == (10, present / 10)
    assert row["observed_share"] == pytest.approx(observed, rel=1e-15)
    assert (row["n_segments"], row["longest_gap_s"]) == (segments, gap)
    assert (row["t_first"], row["t_last"], row["n"]) == (ts[0], ts[-1], len(ts))
    assert row["coverage_reason"] is None


@pytest.mark.parametrize(
    ("ts", "window", "present", "expected"),
    [
        pytest.param((0, 60, 61, 119, 120), (0, 300), 3, 5, id="two in a bar count once"),
        pytest.param((0, 60, 120, 200, 300), (0, 360), 5, 6, id="late, in its own bar"),
        pytest.param((15, 75, 135, 255), (0, 300), 4, 5, id="bars that begin at 15 s"),
        pytest.param((60, 120, 180), (30, 210), 3, 3, id="a window beside the bars"),
        pytest.param((60, 120, 180), (1, 240), 3, 3, id="a part of a bar at the start"),
        pytest.param((0, 60, 120), (0, 181), 3, 4, id="a part of a bar at the end"),
        pytest.param((-180, -120, -60), (-240, 0), 3, 4, id="before 1970"),
        pytest.param((14_400, 43_200, 72_000), (0, 86_400), 3, 3, id="hours 4, 12 and 20"),
    ],
)
def test_a_row_counts_for_the_bar_it_falls_in(ts, window, present, expected):
    row = one(times(*ts), *window, step_s=28_800 if ts[0] == 14_400 else 60)
    assert (row["n_expected"], row["coverage"]) == (expected, present / expected)


def test_a_row_in_a_bar_that_began_before_the_window_is_not_among_its_bars():
    row = one(times(45, 60, 120, 240), 30, 300, step_s=60)
    assert (row["n"], row["n_expected"], row["coverage"]) == (4, 4, 0.75)


def test_more_rows_than_bars_leave_the_coverage_unknown():
    for row in (
        one(times(45, 60, 120, 180), 30, 240),
        one(times(0, 60, 61, 120), 0, 180, step_s=60),
    ):
        assert (row["n"], row["n_expected"]) == (4, 3)
        assert (row["coverage"], row["coverage_reason"]) == (None, "more_than_expected")


def test_the_step_is_that_of_the_rows_also_where_only_every_second_has_a_value():
    frame = times(*MINUTES).with_columns(price=pl.Series([1.0, None] * 5))
    row = one(frame, 0, 600, column="price")
    assert (row["step_s"], row["n"], row["coverage"]) == (60, 5, 0.5)


def counted(ts: np.ndarray, start: int, end: int, step: int) -> float:
    """The coverage, by going through the bars one by one."""
    inside = ts[(ts >= start) & (ts < end)]
    remainders, counts = np.unique(inside % step, return_counts=True)
    at = remainders[counts.argmax()]  # sorted, so the smallest of the commonest
    firsts = [bar for bar in range(at - step * (abs(start) // step + 2), end, step) if bar >= start]
    return sum(((ts >= bar) & (ts < min(bar + step, end))).any() for bar in firsts) / len(firsts)


def test_coverage_equals_going_through_the_bars_one_by_one():
    rng = np.random.default_rng(8)
    for _ in range(40):
        step, phase = int(rng.integers(2, 90)), int(rng.integers(0, 60))
        ts = np.arange(-40, 80) * step + phase
        off_the_grid = rng.integers(0, step, 120) * (rng.random(120) < 0.1)
        ts = np.unique((ts + off_the_grid)[rng.random(120) < 0.7])
        start, end = sorted(int(at) for at in rng.integers(-2000, 4000, 2))
        if not ((ts >= start) & (ts < end)).any():
            continue
        row = one(times(*ts.tolist()), start, end, step_s=step)
        assert row["coverage"] == counted(ts, start, end, step)


def test_the_observed_share_equals_counting_every_second_that_an_observation_stands():
    rng = np.random.default_rng(7)
    for _ in range(40):
        ts = np.sort(rng.choice(2000, size=rng.integers(2, 120), replace=False))
        start, end = 100, 1900
        inside = ts[(ts >= start) & (ts < end)]
        differences, counts = np.unique(np.diff(inside), return_counts=True)
        step = differences[counts.argmax()]  # sorted, so the smallest of the commonest
        stands = np.zeros(end, dtype=bool)
        for at in inside:
            stands[at : at + 3 * step] = True
        row = one(times(*ts.tolist()), start, end)
        assert row["step_s"] == step
        assert row["observed_share"] == stands[start:].sum() / (end - start)
        gaps = np.diff(inside)[np.diff(inside) > 1.5 * step]
        assert row["n_segments"] == len(gaps) + 1
        assert row["longest_gap_s"] == gaps.max(initial=0)


def test_the_smallest_step_wins_a_tie():
    assert one(times(0, 60, 120, 420, 720), 0, 900)["step_s"] == 60
    assert one(times(0, 300, 600, 660, 720), 0, 900)["step_s"] == 60


def test_one_observation_has_no_coverage_until_its_step_is_told():
    alone = one(times(0), 0, 600)
    assert (alone["n"], alone["coverage"], alone["step_s"]) == (1, None, None)
    assert (alone["n_segments"], alone["longest_gap_s"]) == (1, 0)
    assert alone["coverage_reason"] == "too_few"
    told = one(times(0), 0, 600, step_s=60)
    assert (told["coverage"], told["observed_share"]) == (0.1, 0.3)
    assert told["coverage_reason"] is None


def test_a_step_that_is_known_of_a_trajectory_gives_its_coverage_and_is_nothing_that_was_asked():
    rows = {"trajectory": ["a", "b", "b", "c"], "ts": [0, 0, 120, 60]}
    frame = pl.DataFrame(rows)
    by_rows, known = (coverage(frame, 0, 240, step_s=step) for step in (None, {"a": 60, "b": 60}))
    assert by_rows["coverage"].to_list() == [None, 1.0, None]
    assert known["coverage"].to_list() == [0.25, 0.5, None]
    assert known["params_hash"].equals(by_rows["params_hash"])


def test_a_trajectory_without_a_row_in_the_window_keeps_its_row():
    both = pl.concat([times(0, 60, 120), times(9000, trajectory="b")])
    result = coverage(both, 0, 180)
    assert result["trajectory"].to_list() == ["a", "b"]
    empty = result.row(1, named=True)
    assert (empty["n"], empty["coverage"], empty["n_segments"]) == (0, 0.0, 0)
    assert empty["t_first"] is empty["t_last"] is empty["longest_gap_s"] is None
    assert empty["coverage_reason"] == "empty"


def test_numbers_stay_with_their_trajectory_where_an_earlier_one_has_no_row_in_the_window():
    parts = [times(9000, trajectory="a"), times(0, 60, trajectory="b"), times(9060, trajectory="c")]
    result = coverage(pl.concat([*parts, times(0, 60, 120, trajectory="d")]), 0, 180)
    assert result["trajectory"].to_list() == ["a", "b", "c", "d"]
    assert result["n"].to_list() == [0, 2, 0, 3]


def test_rows_without_a_number_are_counted_and_leave_a_gap():
    frame = times(0, 60, 120, 180, 240).with_columns(
        price=pl.Series([1.0, 2.0, None, float("nan"), float("-inf")])
    )
    row = one(frame, 0, 300, column="price")
    assert (row["n"], row["n_null"], row["coverage"]) == (2, 3, 2 / 5)
    assert row["observed_share"] == 240 / 300
    rows = one(frame, 0, 300)
    assert (rows["n"], rows["n_null"], rows["coverage"]) == (5, 0, 1.0)


def test_integer_trajectories_keep_their_type():
    frame = times(0, 60).with_columns(trajectory=pl.Series([7, 7], dtype=pl.Int32))
    assert coverage(frame, 0, 120).schema["trajectory"] == pl.Int32


def test_two_rows_of_one_time_are_refused_and_named():
    frame = pl.concat([times(0, 60), times(0, 60, 60, 60, trajectory="b")])
    with pytest.raises(InputError, match=r"2 rows .* the first b at 1970-01-01 00:01 UTC"):
        coverage(frame, 0, 120)
    with pytest.raises(InputError, match="one row per trajectory and ts"):
        coverage(frame.lazy(), 0, 120)


def test_two_rows_of_one_time_outside_the_window_do_not_matter():
    frame = times(0, 60, 900, 900)
    assert one(frame, 0, 120)["n"] == 2


@pytest.mark.parametrize("column", ["trajectory", "ts"])
def test_a_null_key_is_refused_even_outside_the_window(column):
    frame = times(0, 60, 9000).with_columns(
        pl.when(pl.col("ts") < 9000).then(pl.col(column)).alias(column)
    )
    with pytest.raises(InputError, match="rows that have both"):
        coverage(frame, 0, 120)


def test_a_missing_column_is_named():
    with pytest.raises(InputError, match="column: 'price' is not allowed"):
        coverage(times(0), 0, 60, column="price")
