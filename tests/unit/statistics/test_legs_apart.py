"""The legs with the lowest and the highest figure, against a sort of plain tuples."""

import random

import polars as pl
import pytest

from toolkit.statistics.funding.dispersion import highest_leg, lowest_leg

LEG, VALUE = pl.col("leg"), pl.col("value")


def found(rows):
    frame = pl.DataFrame(rows, schema=["leg", "value"], orient="row").with_columns(group=0)
    grouped = frame.group_by("group").agg(low=lowest_leg(LEG, VALUE), high=highest_leg(LEG, VALUE))
    return grouped.select("low", "high").row(0)


@pytest.mark.parametrize("seed", range(20))
def test_of_equal_figures_the_first_by_name_is_taken_in_any_order_of_rows(seed):
    drawn = random.Random(seed)
    rows = [(f"{name}.futures", float(drawn.randrange(3))) for name in "MKZXA"[: seed % 4 + 2]]
    low = min(rows, key=lambda row: (row[1], row[0]))
    high = min((row for row in rows if row != low), key=lambda row: (-row[1], row[0]))
    for order in (rows, sorted(rows), sorted(rows, key=lambda row: -row[1])):
        assert found(order) == (low[0], high[0])


@pytest.mark.parametrize("falling", [True, False])
def test_a_column_that_is_known_to_be_sorted_names_the_same_legs(falling):
    rows = pl.DataFrame({"leg": ["K", "M", "X", "Z"], "value": [-1.0, -1.0, 1.0, 1.0]})
    ordered = rows.sort("value", "leg", descending=[falling, False])
    assert ordered.select(lowest_leg(LEG, VALUE), high=highest_leg(LEG, VALUE)).row(0) == ("K", "X")


def test_one_leg_is_the_lowest_and_the_highest():
    assert found([("X.futures", 1.0)]) == ("X.futures", "X.futures")
