"""By what events are compared: bands of sizes, exchanges without an order, hours."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.events.groups import with_groups


def lives(sizes, legs="X.spot → Y.spot", opened=0):
    frame = pl.DataFrame({"size": sizes}, schema={"size": pl.Float64})
    return frame.with_columns(t_open=pl.lit(opened, pl.Int64), legs=pl.lit(legs, pl.String))


def band(size: float) -> float:
    """Find the band by exact fractions, one step at a time."""
    edges = [Fraction(step) * Fraction(10) ** power for power in range(-4, 6) for step in (1, 2, 5)]
    below = [edge for edge in edges if float(edge) <= abs(size)]
    return float(below[-1]) if below else 0.0


def test_a_band_begins_at_one_two_or_five_of_each_power_of_ten():
    rng = np.random.default_rng(7)
    exact = [step * 10.0**power for power in range(-4, 5) for step in (1, 2, 5)]
    sizes = [*exact, *(10 ** rng.uniform(-6, 5, 2_000)), -3.0, 0.0, 0.2, 0.3, 1_000.0]
    found = with_groups(lives(sizes))["size_from"].to_list()
    assert found == [band(size) for size in sizes]


def test_without_a_size_there_is_no_band():
    assert with_groups(lives([None, 2.0]))["size_from"].to_list() == [None, 2.0]
    assert with_groups(lives([])).is_empty()


def test_both_exchanges_are_one_group_in_any_order():
    legs = [
        "X.spot → Y.spot",
        "Y.futures → X.spot",
        "X.spot → X.futures",
        "X.spot",
        None,
        "A.B.dex",
    ]
    frame = pl.DataFrame({"legs": legs, "t_open": [0, 3_600, 86_399, 86_400, None, 7_200]})
    found = with_groups(frame.with_columns(size=pl.lit(None, pl.Float64)))
    assert found["exchange"].to_list() == ["X + Y", "X + Y", "X", "X", None, "A.B"]
    assert found["hour"].to_list() == [0, 1, 23, 0, None, 2]


def test_a_column_that_is_missing_is_named():
    with pytest.raises(InputError, match="legs"):
        with_groups(lives([1.0]).drop("legs"))
