"""Coverage by polls, against a count poll by poll."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import InputError
from toolkit.statistics import quality
from toolkit.statistics.quality.coverage import PollCount, by_polls, poll_count, with_period

SCHEMA = {"ts": pl.Int64, "period_s": pl.Int64}


def polls(times: list[int], period_s: int | None = None) -> pl.DataFrame:
    return pl.DataFrame({"ts": times, "period_s": [period_s] * len(times)}, schema=SCHEMA)


@given(st.integers(2, 120), st.lists(st.booleans(), min_size=1, max_size=60), st.data())
def test_what_was_due_and_not_answered_is_missing_however_the_polls_jitter(
    period_s: int, answered: list[bool], data: st.DataObject
) -> None:
    """The reference: a schedule of polls, each answered or not, at most a fifth of it late."""
    late = st.integers(0, period_s // 5)
    times = [i * period_s + data.draw(late) for i, well in enumerate(answered) if well]
    found = poll_count(polls(times, period_s), 0, len(answered) * period_s)
    assert found.answered == sum(answered)
    assert found.missed == (answered.count(False) if times else 0)  # without a poll none is known


@given(st.integers(1, 600), st.lists(st.booleans(), min_size=1, max_size=60))
def test_of_a_schedule_that_is_kept_the_count_is_exact(period_s: int, answered: list[bool]) -> None:
    later = len(answered) * period_s
    times = [i * period_s for i, well in enumerate(answered) if well]
    found = poll_count(polls([*times, later], period_s), 0, later)
    assert (found.answered, found.missed) == (sum(answered), answered.count(False))


def test_each_period_counts_while_it_is_in_force() -> None:
    changed = pl.concat([polls([0, 30, 60], 30), polls([90, 150, 270], 60)])
    assert poll_count(changed, 0, 330) == PollCount(6, 1, 120)


def test_without_a_period_it_is_the_commonest_spacing_and_of_one_poll_unknown() -> None:
    assert with_period(polls([0, 30, 60, 150]))["period_s"].to_list() == [30] * 4
    assert poll_count(polls([0, 30, 60, 150]), 0, 180) == PollCount(4, 2, 90)
    assert poll_count(polls([30]), 0, 600) == PollCount(1, 0)
    assert poll_count(polls([]), 0, 600) == PollCount(0, 0)
    assert poll_count(polls([0, 30]), 600, 660) == PollCount(0, 2)
    assert PollCount(0, 0).coverage is None


@given(st.data())
def test_every_pair_has_the_coverage_of_the_polls_and_a_row_where_it_is_tracked(data) -> None:
    due = range(0, 1200, 60)
    answered = data.draw(st.lists(st.sampled_from(due), min_size=2, unique=True).map(sorted))
    shown = {
        pair: data.draw(st.lists(st.sampled_from(answered), min_size=1, unique=True))
        for pair in ("a", "b", "c")
    }
    frame = pl.DataFrame(
        [(pair, ts, 1.0) for pair, times in shown.items() for ts in times],
        schema={"trajectory": pl.String, "ts": pl.Int64, "value": pl.Float64},
        orient="row",
    )
    measured = quality.coverage(frame, 0, 1200, column="value", step_s=60)
    found = by_polls(measured, poll_count(polls(answered, 60), 0, 1200))
    for row in found.iter_rows(named=True):
        n = len(shown[row["trajectory"]])
        assert row["n"] == n
        assert row["not_tracked"] == len(answered) - n
        assert row["n_expected"] == len(due)
        assert row["coverage"] == pytest.approx(len(answered) / len(due))


def test_a_frame_without_a_period_is_refused() -> None:
    with pytest.raises(InputError, match="no period_s"):
        poll_count(pl.DataFrame({"ts": [0]}), 0, 60)
