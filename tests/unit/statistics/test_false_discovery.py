from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.multitest import multipletests

from toolkit.statistics.screening import q_values


@pytest.mark.parametrize("count", [1, 2, 50])
def test_q_values_equal_statsmodels(count):
    chances = np.random.default_rng(count).beta(0.4, 1, count).round(2)  # with ties
    found = q_values(pl.Series(chances))
    assert found.to_list() == pytest.approx(multipletests(chances, method="fdr_bh")[1], rel=1e-12)


def test_a_null_is_no_test_and_the_order_of_rows_changes_nothing():
    chances = pl.Series([0.04, None, 0.01, 0.02, None])
    found = q_values(chances)
    assert found.to_list() == [0.04, None, 0.03, 0.03, None]
    assert q_values(chances.reverse()).to_list() == found.reverse().to_list()
    assert q_values(pl.Series([None, None])).to_list() == [None, None]


def test_at_most_a_share_q_of_the_discoveries_is_false():
    """400 screens of 40 pairs of which 30 are null: the mean share of false discoveries."""
    rng = np.random.default_rng(3)
    shares, any_of_null = [], 0
    for _ in range(400):
        null, real = rng.random(30), rng.beta(0.05, 5, 10)
        found = q_values(pl.Series(np.concatenate([null, real]))).to_numpy() <= 0.1
        shares.append(found[:30].sum() / max(found.sum(), 1))
        any_of_null += (q_values(pl.Series(null)) <= 0.1).any()
    assert np.mean(shares) <= 0.1
    assert abs(any_of_null / 400 - 0.1) < 3.5 * 0.015  # where all are null, each is false
