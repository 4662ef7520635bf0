"""Interval arithmetic against the plainest model there is: the set of seconds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolkit.intervals import Interval, clip, difference, intersection, total_s, union

SECOND = st.integers(-20, 40)
PAIR = st.tuples(SECOND, SECOND)
PAIRS = st.lists(PAIR, max_size=12)


def seconds(intervals: list[tuple[int, int]]) -> set[int]:
    return {second for start, end in intervals for second in range(start, end)}


def assert_is(found: list[Interval], wanted: set[int]) -> None:
    """The seconds wanted, as sorted intervals of which no two touch and none is empty."""
    assert seconds(found) == wanted
    edges = [edge for interval in found for edge in interval]
    assert edges == sorted(set(edges))
    assert all(isinstance(interval, Interval) for interval in found)


@given(PAIRS)
def test_a_union_holds_exactly_the_seconds_of_its_parts(a) -> None:
    assert_is(union(a), seconds(a))


@given(PAIRS, PAIRS)
def test_an_intersection_holds_exactly_the_seconds_in_both(a, b) -> None:
    assert_is(intersection(a, b), seconds(a) & seconds(b))


@given(PAIRS, PAIRS)
def test_a_difference_holds_exactly_the_seconds_not_in_the_other(a, b) -> None:
    assert_is(difference(a, b), seconds(a) - seconds(b))


@given(PAIRS, PAIR)
def test_a_clip_holds_exactly_the_seconds_in_the_window(a, window) -> None:
    assert_is(clip(a, window), seconds(a) & seconds([window]))


@given(PAIRS)
def test_a_total_counts_each_second_once(a) -> None:
    assert total_s(a) == len(seconds(a))
