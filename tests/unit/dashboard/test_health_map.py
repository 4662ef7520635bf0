"""The map of coverage against a count of every second."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.dashboard.pages.health.measured import coverage_map
from toolkit.tables import LedgerState

STATES = [state.value for state in LedgerState]
SCHEMA = ["stream", "start_ts", "end_ts", "state"]


@given(
    st.integers(0, 5_000),
    st.lists(st.tuples(st.integers(1, 4_000), st.sampled_from(STATES)), min_size=1, max_size=8),
)
def test_each_cell_has_the_percent_of_its_seconds_in_each_state(first, parts):
    rows, seconds = [], {}
    for length, state in parts:
        rows.append(("a", first, first + length, state))
        seconds |= dict.fromkeys(range(first, first + length), state)
        first += length
    found = coverage_map(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    assert found is not None
    assert found.cells <= 62
    cells = [run[1:] for run in found.runs["a"] for _ in range(run[0])]
    assert len(cells) == found.cells
    for place, percents in enumerate(cells):
        begins = found.start + place * found.step_s
        within = [seconds.get(ts) for ts in range(begins, begins + found.step_s)]
        for state, percent in zip(STATES, percents, strict=True):
            share = 100 * within.count(state) / found.step_s
            assert percent == pytest.approx(share, abs=1)
            assert (percent > 0) == (share > 0)


@pytest.mark.parametrize(
    ("length_s", "cell"),
    [(3_600, "5 min"), (86_400, "1 h"), (7 * 86_400, "4 h"), (30 * 86_400, "1 day")],
)
def test_a_cell_is_as_short_as_the_time_allows_and_a_day_for_a_month(length_s, cell):
    rows = [("a", 86_400, 86_400 + length_s, "held"), ("b", 86_400, 90_000, "missing")]
    found = coverage_map(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    assert found is not None
    assert found.step_words == cell


def test_many_years_still_fit():
    rows = [("a", 0, 40 * 365 * 86_400, "held")]
    found = coverage_map(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    assert found is not None
    assert found.cells <= 62
    assert found.runs["a"][0][1] == 100
