"""The index of Hill against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from toolkit.statistics.spread import tail_index


def test_the_index_is_that_of_a_pareto_fitted_beyond_x_min(series):
    rng = np.random.default_rng(3)
    values = rng.standard_t(3, 7321) * 10
    row = tail_index(series(values)).row(0, named=True)
    sizes = np.sort(np.abs(values))[::-1]
    for percent in (1, 2, 5, 10):
        k = 7321 * percent // 100
        fitted = stats.pareto.fit(sizes[:k], floc=0, fscale=sizes[k])[0]
        assert row[f"tail_{percent}pct_n"] == k
        assert row[f"spread_tail_{percent}pct_x_min_log_bps"] == sizes[k]
        assert row[f"tail_{percent}pct_index"] == pytest.approx(fitted, rel=1e-9)
        assert row[f"tail_{percent}pct_error"] == pytest.approx(fitted / math.sqrt(k), rel=1e-9)


def test_few_equal_or_no_sizes_have_no_index_but_a_reason(series):
    few = tail_index(series(np.arange(1.0, 1001.0))).row(0, named=True)
    assert (few["tail_2pct_n"], few["tail_2pct_index"], few["tail_2pct_reason"]) == (
        20,
        None,
        "too_few",
    )
    assert few["tail_5pct_n"] == 50
    assert few["tail_5pct_reason"] == "too_few", "one day has no daily error"
    assert few["tail_5pct_index"] is not None
    flat = tail_index(series([7.0] * 2000)).row(0, named=True)
    zeros = tail_index(series([0.0] * 1990 + [5.0] * 10)).row(0, named=True)
    assert flat["tail_10pct_reason"] == zeros["tail_10pct_reason"] == "degenerate"
    assert tail_index(series([None]))["tail_10pct_reason"].item() == "empty"


def test_scale_legs_and_order_change_nothing_but_x_min(series):
    values = np.random.default_rng(1).standard_t(4, 6000)
    one = tail_index(series(values))
    other = tail_index(series(-4 * values).sample(fraction=1, shuffle=True, seed=2))
    names = [name for name in one.columns if name.endswith(("index", "_n", "_days"))]
    for name in names:
        assert other[name].item() == pytest.approx(one[name].item(), rel=1e-12)
    x_min = "spread_tail_5pct_x_min_log_bps"
    assert other[x_min].item() == 4 * one[x_min].item()


def test_the_daily_error_is_that_of_the_jackknife_over_the_days(series):
    rng = np.random.default_rng(3)
    ts = 900 * np.flatnonzero(rng.random(40 * 96) >= 0.1)
    sizes, days = np.abs(rng.standard_t(3, len(ts))), ts // 86_400
    row = tail_index(series(sizes, ts=ts, step_s=900)).row(0, named=True)
    for percent in (2, 5, 10):
        without = []
        for day in np.unique(days):
            left = np.sort(sizes[days != day])[::-1]
            k = len(left) * percent // 100
            without.append(np.log(left[:k] / left[k]).mean())
        error = np.std(without) * math.sqrt(len(without) - 1)
        expected = error * row[f"tail_{percent}pct_index"] ** 2
        assert row[f"tail_{percent}pct_daily_error"] == pytest.approx(expected, rel=1e-9)
