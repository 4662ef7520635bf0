from __future__ import annotations

import pytest

from toolkit.errors import InputError
from toolkit.intervals import Interval, clip, difference, intersection, total_s, union


@pytest.mark.parametrize(("start", "end"), [(60, 60), (61, 60)])
def test_an_empty_or_reversed_window_is_refused(start: int, end: int) -> None:
    with pytest.raises(InputError, match="a start before its end"):
        Interval.checked(start, end)


def test_a_window_in_milliseconds_is_refused_as_an_input() -> None:
    with pytest.raises(InputError, match="Unix seconds"):
        Interval.checked(1_677_628_800_000, 0)


def test_an_interval_prints_its_open_end_in_utc() -> None:
    assert str(Interval(59, 3600)) == "[1970-01-01 00:00:59 UTC, 1970-01-01 01:00 UTC)"


def test_touching_intervals_become_one() -> None:
    assert union([(0, 60), (60, 120)]) == [(0, 120)]


def test_a_gap_of_one_second_stays() -> None:
    assert union([(0, 60), (61, 120)]) == [(0, 60), (61, 120)]


def test_nothing_taken_together_is_nothing() -> None:
    assert union([]) == intersection([], [(0, 9)]) == difference([], [(0, 9)]) == []
    assert clip([(0, 9)], (5, 5)) == []
    assert total_s([]) == 0


def test_the_second_at_the_end_belongs_to_the_next_interval() -> None:
    assert intersection([(0, 60)], [(60, 120)]) == []
    assert difference([(0, 120)], [(60, 120)]) == [(0, 60)]


@pytest.mark.parametrize("start", [10, 11, 12])
def test_what_begins_after_the_end_takes_nothing_away(start: int) -> None:
    assert difference([(0, 10)], [(start, start + 1)]) == [(0, 10)]


def test_a_whole_without_itself_is_nothing() -> None:
    assert difference([(0, 60), (70, 80)], [(0, 100)]) == []


def test_results_are_intervals_whatever_came_in() -> None:
    for found in (
        union([(0, 60)]),
        intersection([(0, 60)], [(0, 60)]),
        difference([(0, 60)], []),
        clip([(0, 60)], (0, 60)),
    ):
        assert [interval.length_s for interval in found] == [60]
