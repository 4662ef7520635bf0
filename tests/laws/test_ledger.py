"""The ledger's arithmetic against sets of seconds, and its cost at ten thousand stretches."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.intervals import Interval, difference, intersection, union
from toolkit.store import Edge, to_ask, unchanged
from toolkit.store.ledger.ledger import (
    LATE_S,
    SETTLE_S,
    UNKNOWN_STEP_S,
    final_part,
    states,
    stretches,
)
from toolkit.tables import LedgerState

SECOND = st.integers(-50, 400)
WINDOWS = st.tuples(SECOND, st.integers(1, 300)).map(lambda pair: Interval(pair[0], sum(pair)))
STRETCHES = st.lists(st.tuples(SECOND, SECOND), max_size=8)
EDGES = st.builds(
    Edge,
    st.integers(0, 500),
    delay_s=st.integers(0, 90),
    retention_s=st.none() | st.integers(0, 500),
    step_s=st.integers(1, 90),
    tail_ts=st.none() | st.integers(-50, 500),
)


@given(
    step_s=st.integers(1, 200),
    delay_s=st.integers(0, 90),
    clock=st.integers(500, 900),
    later_s=st.integers(0, 250),
    late_rows=st.integers(0, 2),
)
def test_bars_that_may_have_changed_are_asked_for(
    step_s: int, delay_s: int, clock: int, later_s: int, late_rows: int
) -> None:
    def bars(at: int, final_s: int) -> set[int]:
        return {ts for ts in range(0, at, step_s) if ts + step_s + delay_s + final_s <= at}

    visible = (clock - delay_s) // step_s
    tail_ts = max(0, visible - late_rows) * step_s
    before = Edge(clock, delay_s=delay_s, step_s=step_s, tail_ts=tail_ts)
    now = replace(before, served_at=clock + later_s)
    answered = [(0, before.final_before)] if before.final_before > 0 else []
    same = unchanged([(0, clock)], answered, before, now, bars=True)
    changed = any(
        bars(now.served_at, final_s) != bars(clock, final_s) for final_s in (0, SETTLE_S + 1)
    )
    if later_s == 0:
        assert same or not answered
    elif changed or late_rows:
        assert not same
    elif answered:
        assert seconds(to_ask(Interval(0, 2_000), [*answered, *same], now)) == set()


def seconds(intervals) -> set[int]:
    return {second for start, end in intervals for second in range(start, end)}


def may_change(second: int, edge: Edge) -> bool:
    """Whether a row stamped so may still appear or be revised."""
    on_time = second + edge.step_s + edge.delay_s + SETTLE_S < edge.served_at
    before_the_tail = edge.tail_ts is None or second < edge.tail_ts
    return not (on_time and (before_the_tail or second < edge.served_at - LATE_S))


def state_of(second: int, answered: set[int], held: set[int], edge: Edge) -> LedgerState:
    """What is known of one second, said in words."""
    if second in answered:
        return LedgerState.HELD if second in held else LedgerState.EMPTY
    if may_change(second, edge):
        return LedgerState.UNKNOWN
    if edge.retention_s is not None and second < edge.served_at - edge.retention_s:
        return LedgerState.UNRECOVERABLE
    return LedgerState.MISSING


def known(*facts, lost=()) -> list[tuple[Interval, LedgerState]]:
    """The rows of `states`."""
    found = states(*facts, lost=lost)
    return [(Interval(*ends), LedgerState(state)) for *ends, state in found.rows()]


@given(WINDOWS, STRETCHES, STRETCHES, EDGES)
def test_states_tile_the_window_in_order_and_merged(window, answered, held, edge) -> None:
    found = known(window, answered, held, edge)
    assert found[0][0].start == window.start
    assert found[-1][0].end == window.end
    for (before, state), (after, following) in itertools.pairwise(found):
        assert before.end == after.start
        assert state is not following
    for interval, _ in found:
        assert interval.start < interval.end


@given(WINDOWS, STRETCHES, STRETCHES, EDGES, STRETCHES)
def test_the_state_of_every_second_is_the_one_its_facts_give_it(
    window, answered, held, edge, lost
) -> None:
    a, h, gone = seconds(answered), seconds(held), seconds(lost)
    for interval, state in known(window, answered, held, edge, lost=lost):
        for second in range(*interval):
            assert state is (LedgerState.LOST if second in gone else state_of(second, a, h, edge))


@given(WINDOWS, STRETCHES, EDGES)
def test_asked_is_what_has_begun_is_reachable_and_not_answered(window, answered, edge) -> None:
    oldest = window.start if edge.retention_s is None else edge.served_at - edge.retention_s
    wanted = {
        second
        for second in seconds([window]) - seconds(answered)
        if oldest <= second < edge.served_at
    }
    asked = to_ask(window, answered, edge)
    assert seconds(asked) == wanted
    assert asked == union(asked)


@given(WINDOWS, EDGES)
def test_what_is_recorded_is_all_that_can_no_longer_change_and_nothing_else(answer, edge) -> None:
    assert seconds(final_part(answer, edge)) == {
        second for second in range(*answer) if not may_change(second, edge)
    }


@pytest.mark.parametrize("tail_ts", [None, 0, 300_000, 399_000, 399_879, 399_880, 500_000])
def test_emptiness_after_the_newest_row_is_believed_after_a_day(tail_ts: int | None) -> None:
    edge = Edge(400_000, 0, None, 60, tail_ts)
    found = final_part(Interval(0, 400_000), edge)
    assert found == [(0, edge.final_before)]
    for second in (edge.final_before - 1, edge.final_before):
        assert may_change(second, edge) == (second == edge.final_before)


def test_while_no_step_is_known_a_day_is_taken() -> None:
    unknown, a_day = Edge(10**6, 5), Edge(10**6, 5, None, UNKNOWN_STEP_S)
    assert unknown.final_before == a_day.final_before == 10**6 - 5 - SETTLE_S - 86_400


@given(st.lists(st.integers(-50, 300), max_size=20), st.integers(1, 40), st.integers(0, 80))
def test_rows_stand_for_their_step_and_bridge_what_the_tolerance_allows(
    times, step_s, apart_s
) -> None:
    ordered = sorted(times)
    bridged = [
        (before, after)
        for before, after in itertools.pairwise(ordered)
        if after - before <= apart_s
    ]
    wanted = seconds([*((ts, ts + step_s) for ts in times), *bridged])
    found = [tuple(i) for i in stretches(pl.Series(times, dtype=pl.Int64), step_s, apart_s)]
    assert seconds(found) == wanted
    assert found == union(found)


class Counted(int):
    """An int that counts how often two of its kind are compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) < int(other)

    def __le__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) <= int(other)

    def __gt__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) > int(other)

    def __ge__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) >= int(other)

    __hash__ = int.__hash__


def comparisons(work: Callable, count: int) -> int:
    """How many comparisons it takes over ``count`` stretches on either side."""
    left, right = (
        [(Counted(10 * i + shift), Counted(10 * i + shift + 6)) for i in range(count)]
        for shift in (0, 3)
    )
    Counted.compared = 0
    work(left, right)
    return Counted.compared


WHOLE = (Interval(Counted(0), Counted(10**6)), Edge(2 * 10**6, step_s=60))
WORKS: dict[str, Callable] = {
    "union": lambda a, b: union([*a, *b]),
    "intersection": intersection,
    "difference": difference,
    "difference of the whole": lambda a, _: difference([WHOLE[0]], a),
    "to_ask": lambda a, _: to_ask(WHOLE[0], a, WHOLE[1]),
}


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.slow
def test_ten_times_the_stretches_cost_little_more_than_ten_times_the_comparisons(work: str) -> None:
    few, many = (comparisons(WORKS[work], count) for count in (1_000, 10_000))
    assert few >= 1_000
    assert many < 16 * few
