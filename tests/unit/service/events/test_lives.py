"""Hysteresis: against a machine that goes row by row, and that only some rows before matter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import InputError
from toolkit.service.events.lives import Rule, spans

from ....conftest import examples

RULE = Rule(1.0, 0.5, step=0.3, every_s=2, max_age_s=6, lost_after_s=3)

# Gaps at and around every limit of the rule; a series longer than the memory of 18 s.
rows = st.lists(
    st.tuples(
        st.sampled_from([1, 1, 1, 1, 2, 3, 4, 7]),
        st.sampled_from([0.2, 0.5, 0.7, 0.7, 0.9, 1.0, 1.0, 1.25, 1.6, 2.0]),
    ),
    max_size=60,
)
# Mostly wide, so that lives expire and stay muted.
wide_rows = st.lists(
    st.tuples(
        st.sampled_from([1, 1, 2, 3]), st.sampled_from([0.7, 0.7, 0.7, 0.7, 0.7, 0.9, 0.9, 1.2])
    ),
    min_size=20,
    max_size=60,
)


def columns(series: list[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Times and values; the first row stands at 100."""
    gaps = [gap for gap, _ in series]
    ts = 100 + np.cumsum([0, *gaps[1:]])[: len(series)]
    return ts.astype(np.int64), np.array([value for _, value in series], dtype=np.float64)


def by_times(ts: np.ndarray, values: np.ndarray, rule: Rule, start: int, end: int) -> list[tuple]:
    """What `spans` finds, with times instead of rows."""
    return [
        (
            int(ts[span.first]),
            tuple((int(ts[told.row]), told.peak) for told in span.updates),
            span.closed_at,
            span.reason,
            span.peak,
        )
        for span in spans(ts, values, rule, start, end)
    ]


@given(rows | wide_rows, st.integers(0, 8), st.sampled_from([1, 3, 6, 11]), st.sampled_from([0, 2]))
@examples(500)
def test_lives_are_those_of_a_machine_that_goes_row_by_row(
    brute_force: Callable[..., list[tuple]],
    series: list[tuple[int, float]],
    later: int,
    max_age_s: int,
    every_s: int,
) -> None:
    rule = Rule(1.0, 0.5, step=0.3, every_s=every_s, max_age_s=max_age_s, lost_after_s=3)
    ts, values = columns(series)
    end = (int(ts[-1]) if len(ts) else 100) + 1 + later
    assert by_times(ts, values, rule, 0, end) == brute_force(
        ts.tolist(), values.tolist(), rule, end
    )


@given(rows | wide_rows)
@examples(300)
def test_rows_before_the_memory_of_a_rule_change_nothing(series: list[tuple[int, float]]) -> None:
    ts, values = columns(series)
    end = 100 + sum(gap for gap, _ in series) + 10
    whole = by_times(ts, values, RULE, 0, end)
    for start in range(100, end):
        remembered = ts >= start - RULE.memory_s
        assert by_times(ts[remembered], values[remembered], RULE, start, end) == [
            life for life in whole if life[2] is None or life[2] >= start
        ]


def ended(values: list[float], gaps: dict[int, int] | None = None, end: int = 10_000) -> list:
    """Close times and reasons of one row a second from 0 on, with longer gaps before some rows."""
    steps = [(gaps or {}).get(place, 1) for place in range(len(values))]
    ts = np.cumsum([0, *steps[1:]])
    return [
        (int(ts[span.first]), span.closed_at, span.reason)
        for span in spans(ts, np.array(values), RULE, 0, end)
    ]


def test_a_value_between_the_thresholds_neither_opens_nor_closes() -> None:
    assert ended([0.7, 1.0, 0.7, 0.5, 0.49]) == [(1, 4, "converged")]


def test_a_series_that_stops_is_lost_when_its_time_is_up_and_may_open_again() -> None:
    assert ended([1.2, 1.2, 1.2], {2: 4}) == [(0, 4, "leg_lost"), (5, 8, "leg_lost")]


def test_a_series_is_not_lost_before_its_time_is_up() -> None:
    assert ended([1.2, 1.2], end=4) == [(0, None, None)]
    assert ended([1.2, 1.2], end=5) == [(0, 4, "leg_lost")]


def test_what_stays_wide_expires_once_and_is_not_told_again() -> None:
    assert ended([1.2] * 40, end=40) == [(0, 6, "expired")]


@pytest.mark.parametrize("between", [[0.4], [0.7] * 7])
def test_what_expired_opens_again_after_it_converged_or_was_calm_for_long(
    between: list[float],
) -> None:
    found = ended([1.2] * 9 + between + [1.2], end=9 + len(between) + 1)
    assert found == [(0, 6, "expired"), (9 + len(between), None, None)]


def test_updates_wait_their_time_and_tell_the_peak_since_the_opening() -> None:
    values = np.array([1.0, 1.6, 1.1, 1.1, 2.0, 0.4])
    (span,) = spans(np.arange(6), values, RULE, 0, 100)
    assert [(told.row, told.peak) for told in span.updates] == [(2, 1.6), (4, 2.0)]
    assert span.peak == 2.0


@pytest.mark.parametrize(
    ("name", "value"),
    [("close", 0.0), ("step", 0.0), ("every_s", -1), ("max_age_s", 0), ("lost_after_s", 0)],
)
def test_a_rule_that_makes_no_sense_is_refused(name: str, value: float) -> None:
    given_values = {"close": 0.5, "step": None, "every_s": 0, "max_age_s": 60, "lost_after_s": 60}
    with pytest.raises(InputError, match=f"^{name}:"):
        Rule(open=1.0, **{**given_values, name: value})
