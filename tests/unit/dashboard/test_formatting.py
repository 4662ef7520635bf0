"""Numbers and reasons in words: a null is a dash with its reason, never 0."""

import random

import polars as pl

from toolkit.dashboard.pages.trajectory.below import statistics_rows
from toolkit.show.values import NULL
from toolkit.statistics.spread import summary


def lines_of(values, column="spread_log_bps", half_life=True):
    frame = pl.DataFrame(
        {
            "trajectory": ["a"] * len(values),
            "ts": [60 * i for i in range(len(values))],
            column: pl.Series(values, dtype=pl.Float64),
        }
    )
    row = summary(frame, 0, 60 * len(values), column=column).row(0, named=True)
    return {line["statistic"]: line for line in statistics_rows(row, "USD", half_life=half_life)}


def test_every_statistic_of_a_spread_has_a_value_or_a_reason():
    for values in ([None], [1.0], [2.0] * 300, [float(i % 17) for i in range(300)]):
        for line in lines_of(values).values():
            assert (line["value"] in (NULL, "under 1 step")) == bool(line["reason"])


def test_a_constant_spread_has_a_deviation_of_zero_and_no_half_life():
    lines = lines_of([2.0] * 300)
    assert lines["standard deviation"]["value"] == "0.00 bps"
    assert lines["half-life"]["value"] == NULL
    assert lines["half-life"]["reason"] == "the values do not vary"


def test_a_half_life_below_a_step_is_under_one_step_with_its_reason():
    rng = random.Random(1)
    lines = lines_of([rng.gauss(0, 1) for _ in range(300)])
    for label in ("half-life", "half-life by AR(1)"):
        assert lines[label]["value"] == "under 1 step"
        assert lines[label]["reason"] == "shorter than the spacing of the observations can show"


def test_a_price_has_no_half_life_and_keeps_its_digits():
    lines = lines_of([0.0000123, 0.0000123], column="price", half_life=False)
    assert "half-life" not in lines
    assert lines["mean"]["value"] == "0.0000123 USD"
