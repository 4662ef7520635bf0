"""Hysteresis: against a machine that goes row by row, and that only some rows before matter."""

from __future__ import annotations

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
    brute_force, series, later, max_age_s, every_s
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


@pytest.mark.parametrize(
    ("name", "value"),
    [("close", 0.0), ("step", 0.0), ("every_s", -1), ("max_age_s", 0), ("lost_after_s", 0)],
)
def test_a_rule_that_makes_no_sense_is_refused(name: str, value: float) -> None:
    given_values = {"close": 0.5, "step": None, "every_s": 0, "max_age_s": 60, "lost_after_s": 60}
    with pytest.raises(InputError, match=f"^{name}:"):
        Rule(open=1.0, **{**given_values, name: value})
