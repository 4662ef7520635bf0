"""Observations an exact number of steps later, against a loop."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.statistics.numeric.lags import Observations

from ...conftest import examples

LAGS = (1, 2, 30, 1_440)


def partners(rows: list[tuple[int, int, int]], steps: int) -> list[int]:
    at = {(number, ts): place for place, (number, ts, _) in enumerate(rows)}
    return [at.get((number, ts + steps * step_s), -1) for number, ts, step_s in rows]


def observed(rows: list[tuple[int, int, int]]) -> Observations:
    frame = pl.DataFrame(rows, schema=["number", "ts", "step_s"], orient="row")
    return Observations.of(frame.with_columns(value=pl.col("ts") * 1.0))


# seconds apart: whole steps of 60 s and of 120 s; times between two steps; few in a long time
@pytest.mark.parametrize(("apart_s", "most"), [(60, 50), (20, 200), (60, 500_000)])
@examples(30)
@given(data=st.data())
def test_a_partner_is_exactly_so_many_steps_later(apart_s: int, most: int, data) -> None:
    rows = []
    for number in range(data.draw(st.integers(1, 4))):
        drawn = data.draw(st.sets(st.integers(0, most), min_size=1, max_size=60))
        rows += [(number, apart_s * (2 - number % 2) * k, 60 * (2 - number % 2)) for k in drawn]
    rows.sort()
    held = observed(rows)
    for steps in LAGS:
        assert held.later(steps).tolist() == partners(rows, steps)
    some = [place for place in range(len(rows)) if place % 3]
    if some:
        kept = held.some(some, held.value[some])
        assert kept.later(2).tolist() == partners([rows[place] for place in some], 2)
