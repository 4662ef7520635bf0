"""Changes of rates and their q-values, against scipy and by hand."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from toolkit.errors import InputError
from toolkit.statistics.events import rate_changes
from toolkit.statistics.numeric.tails import false_discoveries

from .event_lives import openings

WEEK = 604_800


def weeks(before: int, after: int, symbol: str = "A_B") -> pl.DataFrame:
    """So many openings in each of two weeks."""
    times = [*range(before), *range(WEEK, WEEK + after)]
    return openings(times, 0, 2 * WEEK, symbol=[symbol] * len(times))


@pytest.mark.parametrize("counts", [(0, 1), (3, 0), (2, 9), (40, 41), (7, 30)])
@pytest.mark.parametrize("held_before_s", [WEEK, WEEK // 3])
def test_the_test_is_exact_and_the_interval_agrees_with_it(counts, held_before_s):
    before, after = counts
    held = pl.DataFrame(
        {"family": ["spread"] * 2, "start_ts": [0, WEEK], "end_ts": [held_before_s, 2 * WEEK]}
    )
    row = rate_changes(weeks(before, after), held=held, cluster="none").row(0, named=True)
    total, chance = before + after, Fraction(WEEK, WEEK + held_before_s)

    def exactly(parts: range) -> Fraction:
        return sum(
            (comb(total, k) * chance**k * (1 - chance) ** (total - k) for k in parts), Fraction()
        )

    tails = exactly(range(after, total + 1)), exactly(range(after + 1))
    assert row["p_value"] == pytest.approx(float(min(1, 2 * min(tails))), rel=1e-10)
    times = held_before_s / WEEK
    interval = stats.binomtest(after, total).proportion_ci(method="exact")
    lower = interval.low / (1 - interval.low) * times
    assert row["ratio_lower"] == pytest.approx(lower, rel=1e-9, abs=1e-15)
    if before:
        assert row["ratio"] == pytest.approx(after / before * times)
        upper = interval.high / (1 - interval.high) * times
        assert row["ratio_upper"] == pytest.approx(upper, rel=1e-9)
        assert (row["p_value"] < 0.05) == (not lower <= 1 <= upper)
    else:
        assert (row["ratio"], row["ratio_reason"]) == (None, "too_few")
        assert (row["ratio_upper"], row["ratio_upper_reason"]) == (None, "too_few")


def test_the_last_week_of_a_longer_window_is_compared_with_the_one_before():
    times = [*range(5), *range(2 * WEEK, 2 * WEEK + 3), *range(3 * WEEK, 3 * WEEK + 6)]
    row = rate_changes(openings(times, 0, 4 * WEEK)).row(0, named=True)
    assert (row["n_before"], row["n"], row["window_start"]) == (3, 6, 2 * WEEK)
    days = rate_changes(openings([100, 200, 90_000], 0, 2 * 86_400), length_s=86_400)
    assert days.select("n_before", "n").row(0) == (2, 1)
    with pytest.raises(InputError, match="two times 7 d at least"):
        rate_changes(openings(times, 0, 2 * WEEK - 1))


def test_nothing_held_or_nothing_opened_has_a_reason():
    held = pl.DataFrame({"family": ["spread"], "start_ts": [WEEK], "end_ts": [2 * WEEK]})
    row = rate_changes(weeks(3, 4), held=held).row(0, named=True)
    assert (row["rate_before_per_day"], row["rate_before_reason"]) == (None, "empty")
    assert (row["p_value"], row["p_value_reason"]) == (None, "empty")
    early = openings([1], 0, 4 * WEEK)
    assert rate_changes(early)["ratio_lower_reason"].item() == "empty"
    assert rate_changes(early.clear()).is_empty()


def test_the_false_discoveries_of_many_groups_are_those_of_scipy():
    rng = np.random.default_rng(2)
    parts = [
        weeks(int(before), int(after), f"S{k:02}")
        for k, (before, after) in enumerate(rng.poisson([[8, 20]] * 5 + [[8, 8]] * 25))
    ]
    found = rate_changes(pl.concat(parts), ["symbol"], cluster="none")
    expected = stats.false_discovery_control(found["p_value"].to_numpy())
    np.testing.assert_allclose(found["q_value"], expected, rtol=1e-12)


def q_values(chances):
    rows = pl.DataFrame({"p": chances}, schema={"p": pl.Float64})
    return rows.select(false_discoveries(pl.col("p"))).to_series()


@pytest.mark.parametrize("count", [1, 2, 50])
def test_q_values_equal_statsmodels(count):
    chances = np.random.default_rng(count).beta(0.4, 1, count).round(2)  # with ties
    found = q_values(chances)
    assert found.to_list() == pytest.approx(multipletests(chances, method="fdr_bh")[1], rel=1e-12)


def test_a_null_is_no_test_and_the_order_of_rows_changes_nothing():
    chances = pl.Series([0.04, None, 0.01, 0.02, None])
    found = q_values(chances)
    assert found.to_list() == [0.04, None, 0.03, 0.03, None]
    assert q_values(chances.reverse()).to_list() == found.reverse().to_list()
    assert q_values([None, None]).to_list() == [None, None]


def test_at_most_a_share_q_of_the_discoveries_is_false():
    """400 screens of 40 pairs of which 30 are null: the mean share of false discoveries."""
    rng = np.random.default_rng(3)
    shares, any_of_null = [], 0
    for _ in range(400):
        null, real = rng.random(30), rng.beta(0.05, 5, 10)
        found = q_values(np.concatenate([null, real])).to_numpy() <= 0.1
        shares.append(found[:30].sum() / max(found.sum(), 1))
        any_of_null += (q_values(null) <= 0.1).any()
    assert np.mean(shares) <= 0.1
    assert abs(any_of_null / 400 - 0.1) < 3.5 * 0.015  # where all are null, each is false
