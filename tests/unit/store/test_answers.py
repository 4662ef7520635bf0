"""Provisional answers: what stays, what is asked for again, and how few rows they are."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.intervals import Interval, total_s
from toolkit.store.ledger.ledger import (
    CHECK_AGES_S,
    Provisional,
    due_parts,
    renewed,
    rowless_parts,
    without,
)

STRETCHES = st.tuples(st.integers(0, 90), st.integers(1, 30)).map(lambda p: (p[0], sum(p)))
ANSWERS = st.lists(
    st.tuples(st.lists(STRETCHES, min_size=1, max_size=3), st.integers(0, 5_000)), max_size=8
)


def seconds(parts) -> set[int]:
    return {second for start, end, *_ in parts for second in range(start, end)}


@given(ANSWERS)
def test_every_second_that_was_answered_is_there_once_with_times_that_it_had(rounds) -> None:
    held: list[Provisional] = []
    times: dict[int, list[int]] = {}
    clock = 0
    for stretches, later in rounds:
        clock += later
        held = renewed(held, stretches, clock)
        for second in seconds(stretches):
            times.setdefault(second, []).append(clock)
    assert seconds(held) == set(times)
    assert total_s((part.start, part.end) for part in held) == sum(p.end - p.start for p in held)
    for part in held:
        for second in range(part.start, part.end):
            assert part.first_served_at <= times[second][0], "it is asked for again no later"
            assert part.served_at <= times[second][-1]


@given(ANSWERS, STRETCHES)
def test_what_is_settled_is_no_longer_provisional(rounds, settled) -> None:
    held: list[Provisional] = []
    for stretches, clock in rounds:
        held = renewed(held, stretches, clock)
    assert seconds(without(held, [settled])) == seconds(held) - set(range(*settled))


@pytest.mark.slow
def test_polling_every_five_minutes_for_a_month_keeps_few_rows() -> None:
    held: list[Provisional] = []
    asked_again_s = 0
    for now in range(0, 30 * 86_400, 300):
        due = due_parts(held, now)
        asked_again_s += total_s(due)
        held = renewed(held, [*due, (now, now + 300)], now)
        assert len(held) <= 12
    assert asked_again_s < 10 * 30 * 86_400, "each second is asked for a few times"


def test_an_answer_is_due_at_each_age_once_and_then_weekly() -> None:
    held = [Provisional(0, 60, 0, 0)]
    found = []
    for now in range(0, 40 * 86_400, 60):
        if due_parts(held, now):
            found.append(now)
            held = renewed(held, [(0, 60)], now)
    weeks = [CHECK_AGES_S[-1] + 7 * 86_400 * week for week in range(1, 6)]
    assert found == [*CHECK_AGES_S, *weeks]


@given(st.sets(st.integers(0, 40), max_size=40), st.integers(0, 2_400), st.sampled_from([60, 300]))
def test_a_step_without_a_row_is_open_where_it_is_young_long_or_at_an_end(
    minutes, young_from, reach_s
) -> None:
    answered = Interval(0, 41 * 60)
    times = pl.Series([60 * minute for minute in sorted(minutes)], dtype=pl.Int64)
    found = rowless_parts(answered, times, 60, young_from=young_from, reach_s=reach_s)
    for minute in set(range(41)) - minutes:
        first = max((m + 1 for m in minutes if m < minute), default=0)
        last = min((m for m in minutes if m > minute), default=41)
        open_part = (
            first == 0 or last == 41 or 60 * last > young_from or 60 * (last - first) > reach_s
        )
        inside = set(range(60 * minute, 60 * minute + 60)) <= seconds(found)
        assert inside or not open_part
