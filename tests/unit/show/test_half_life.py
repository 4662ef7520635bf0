"""What stands beside a half-life, of rows of the statistic itself."""

import numpy as np
import polars as pl
import pytest

from toolkit.reasons import Reason
from toolkit.show.values import doubt_of, half_life_note
from toolkit.statistics.spread import half_life


def row_of(values):
    ts = 60 * np.arange(len(values))
    frame = pl.DataFrame({"trajectory": "a", "ts": ts, "spread_log_bps": values})
    return half_life(frame, 0, 60 * len(values)).row(0, named=True)


def walk(n, phi, seed=5):
    drawn, level, values = np.random.default_rng(seed), 0.0, []
    for step in drawn.normal(size=n):
        level = phi * level + step
        values.append(level)
    return values


def test_a_half_life_with_an_upper_bound_has_no_note():
    row = row_of(walk(5_000, 0.97))
    assert row["half_life_upper_s"] is not None
    assert (doubt_of(row, "half_life_s"), half_life_note(row)) == (None, "")


def test_one_without_an_upper_bound_is_unreliable():
    row = next(row for seed in range(50) if _unbounded(row := row_of(walk(400, 1.0, seed))))
    assert doubt_of(row, "half_life_s") is Reason.NO_REVERSION
    assert half_life_note(row).startswith("half-life unreliable: a spread that never returns")


def _unbounded(row):
    return row["half_life_s"] is not None and row["half_life_upper_s"] is None


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([1.0, 2.0], "too few rows for a half-life"),
        ([1.0] * 500, "does not vary"),
        (np.random.default_rng(1).normal(size=500), "half-life under 1 step"),
    ],
)
def test_without_one_the_note_is_why(values, note):
    assert half_life_note(row_of(values)) == note


@pytest.mark.parametrize("reason", Reason)
def test_any_reason_for_which_a_bound_is_null_is_said(reason):
    row = {"half_life_s": 1.0, "half_life_upper_s": None, "half_life_upper_reason": reason.value}
    assert half_life_note(row) == (f"half-life unreliable: {reason.words.removeprefix('none: ')}")
