from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from statsmodels.tsa.stattools import acf

from toolkit.statistics.spread import half_life


def only(frame, start, end):
    return half_life(frame, start, end).row(0, named=True)


@pytest.mark.parametrize("phi", [0.6, 0.97, 0.99])
def test_the_autocorrelation_of_one_speed_halves_after_the_half_life(
    phi, autoregressive, series, start
):
    row = only(series(autoregressive(phi, 20_000, seed=3)[0]), start, start + 1_200_000)
    assert row["acf_half_lag_s"] == pytest.approx(-60 * math.log(2) / math.log(phi), rel=0.25)


def test_the_lag_is_where_the_autocorrelation_of_statsmodels_crosses_half_of_its_level(
    autoregressive, series, start
):
    fast, slow = (autoregressive(phi, 20_000, seed=seed)[0] for phi, seed in ((0.8, 1), (0.99, 2)))
    values = (
        fast / fast.std() / 2 + slow / slow.std() + np.random.default_rng(5).standard_normal(20_000)
    )
    row = only(series(values), start, start + 1_200_000)
    found = acf(values, nlags=2000)
    crosses = int(np.argmax(found <= (1 - row["noise_share"]) / 2))
    assert row["acf_half_lag_s"] / 60 == pytest.approx(crosses, rel=0.1)
    assert row["half_life_lower_reason"] == "several_speeds"


def test_gaps_and_neighbours_do_not_move_the_lag(autoregressive, series, start):
    values = autoregressive(0.997, 9000, seed=7)[0]
    kept = np.flatnonzero(np.random.default_rng(8).random(9000) >= 0.3)
    alone = series(values[kept], ts=start + 60 * kept)
    row = only(alone, start, start + 540_000)
    whole = only(series(values), start, start + 540_000)
    assert row["acf_half_lag_s"] == pytest.approx(whole["acf_half_lag_s"], rel=0.2)
    other = series(values[:300] * 2 + 5, trajectory="0")
    beside = half_life(pl.concat([other, alone]), start, start + 540_000)
    assert beside.row(1, named=True) == row


def test_a_lag_that_the_window_does_not_show_is_null_with_its_reason(series, start):
    trend = np.arange(3000.0) + np.random.default_rng(1).standard_normal(3000)
    row = only(series(trend), start, start + 180_000)
    assert (row["acf_half_lag_s"], row["acf_half_lag_reason"]) == (None, "too_short")
    white = only(series(np.random.default_rng(2).standard_normal(3000)), start, start + 180_000)
    assert (white["acf_half_lag_s"], white["acf_half_lag_reason"]) == (None, "below_step")
    flat = only(series([1.0] * 3000), start, start + 180_000)
    assert (flat["acf_half_lag_s"], flat["acf_half_lag_reason"]) == (None, "degenerate")
