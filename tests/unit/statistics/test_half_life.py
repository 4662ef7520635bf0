from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from statsmodels.regression.linear_model import OLS
from statsmodels.tools import add_constant
from statsmodels.tsa.ar_model import AutoReg

from toolkit.statistics.spread import half_life


def only(result: pl.DataFrame) -> dict:
    assert result.height == 1
    return result.row(0, named=True)


def seconds(phi: float, step_s: int = 60) -> float:
    return -math.log(2) * step_s / math.log(phi)


def pairs_inside_segments(ts: np.ndarray, values: np.ndarray, step_s: int) -> np.ndarray:
    """One loop over the rows that hold a number: (earlier, later) where nothing lies between."""
    kept = [(t, v) for t, v in zip(ts.tolist(), values.tolist(), strict=True) if math.isfinite(v)]
    return np.array([(a[1], b[1]) for a, b in pairwise(kept) if b[0] - a[0] <= 1.5 * step_s])


@pytest.mark.parametrize("phi", [-0.4, 0.1, 0.5, 0.9, 0.99, 0.999])
def test_phi_equals_statsmodels_on_a_full_grid(phi, autoregressive, series, start):
    values = 40 + 3 * autoregressive(phi, 4000, seed=3)[0]
    row = only(half_life(series(values), start, start + 240_000))
    by_pairs = OLS(values[1:], add_constant(values[:-1])).fit()
    by_autoregression = AutoReg(values, lags=1, trend="c").fit()
    assert row["ar1_pairs"] == 3999
    assert row["ar1_phi"] == pytest.approx(by_pairs.params[1], rel=1e-12, abs=1e-12)
    assert row["ar1_phi"] == pytest.approx(by_autoregression.params[1], rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("missing", [0.01, 0.05, 0.2, 0.5])
def test_phi_equals_a_regression_on_the_pairs_inside_segments(
    missing, autoregressive, series, start
):
    rng = np.random.default_rng(8)
    values = autoregressive(0.97, 3000, seed=4)[0]
    values[rng.random(3000) < missing] = math.nan
    ts = start + 60 * np.arange(3000)
    present = rng.random(3000) >= missing
    row = only(half_life(series(values[present], ts=ts[present]), start, start + 180_000))
    pairs = pairs_inside_segments(ts[present], values[present], 60)
    fitted = OLS(pairs[:, 1], add_constant(pairs[:, 0])).fit()
    assert row["ar1_pairs"] == len(pairs)
    assert row["ar1_phi"] == pytest.approx(fitted.params[1], rel=1e-12)


def test_phi_keeps_its_digits_far_from_zero(autoregressive, series, start):
    """On values of 1e6 with a deviation of 1e-2 eight digits cancel in a one-pass sum."""
    values = 1e6 + 1e-2 * autoregressive(0.8, 500, seed=2)[0]
    row = only(half_life(series(values), start, start + 30_000))
    exact = np.asarray(values, dtype=np.longdouble)
    earlier, later = exact[:-1] - exact[:-1].mean(), exact[1:] - exact[1:].mean()
    assert row["ar1_phi"] == pytest.approx(
        float((later @ earlier) / (earlier @ earlier)), rel=1e-12
    )


def test_every_figure_follows_from_phi_by_its_formula(autoregressive, series, start):
    row = only(half_life(series(autoregressive(0.95, 2000, seed=5)[0]), start, start + 120_000))
    phi, pairs = row["ar1_phi"], row["ar1_pairs"]
    error = math.sqrt((1 - phi**2) / pairs)
    corrected = phi + (1 + 3 * phi) / pairs
    expected = {
        "ar1_phi_standard_error": error,
        "ar1_phi_corrected": corrected,
        "half_life_s": seconds(phi),
        "half_life_lower_s": seconds(phi - 1.96 * error),
        "half_life_upper_s": seconds(phi + 1.96 * error),
        "half_life_corrected_s": seconds(corrected),
    }
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("step_s", [1, 60, 3600])
def test_the_half_life_is_in_seconds_whatever_the_step(step_s, autoregressive, series, start):
    values = autoregressive(0.9, 500, seed=6)[0]
    frame = series(values, step_s=step_s)
    row = only(half_life(frame, start, start + 500 * step_s))
    assert row["step_s"] == step_s
    assert row["half_life_s"] == pytest.approx(seconds(row["ar1_phi"], step_s), rel=1e-12)


def many(paths: np.ndarray, start: int) -> pl.DataFrame:
    count, length = paths.shape
    return pl.DataFrame(
        {
            "trajectory": np.repeat(np.arange(count), length),
            "ts": np.tile(start + 60 * np.arange(length), count),
            "spread_log_bps": paths.ravel(),
        }
    )


@pytest.mark.parametrize("phi", [0.5, 0.9, 0.97])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_known_half_life_is_recovered_and_its_interval_covers_it(
    phi, missing, autoregressive, start
):
    """300 paths: the corrected phi is right on average, the 95 % interval in 90 to 98 % of them."""
    frame = many(autoregressive(phi, 2000, seed=9, paths=300), start)
    kept = np.random.default_rng(10).random(frame.height) >= missing
    result = half_life(frame.filter(kept), start, start + 120_000)
    assert result.height == 300
    corrected = result["ar1_phi_corrected"].to_numpy()
    assert abs(corrected.mean() - phi) < 4 * corrected.std() / math.sqrt(300)
    covers = result.select(
        (pl.col("half_life_lower_s") < seconds(phi)) & (pl.col("half_life_upper_s") > seconds(phi))
    ).to_series()
    assert 0.90 < covers.mean() < 0.98


def test_gaps_do_not_shorten_the_half_life(autoregressive, start):
    paths = autoregressive(0.98, 5000, seed=12, paths=40)
    frame = many(paths, start)
    kept = np.random.default_rng(13).random(frame.height) >= 0.2
    full = half_life(frame, start, start + 300_000)["half_life_s"]
    thinned = half_life(frame.filter(kept), start, start + 300_000)["half_life_s"]
    assert 0.85 < thinned.mean() / full.mean() < 1.15


def test_a_hundred_pairs_are_enough_and_one_less_is_too_few(autoregressive, series, start):
    values = autoregressive(0.5, 101, seed=1)[0]
    enough = only(half_life(series(values), start, start + 60_000))
    assert (enough["ar1_pairs"], enough["ar1_reason"]) == (100, None)
    short = only(half_life(series(values[1:]), start, start + 60_000))
    assert (short["ar1_pairs"], short["ar1_phi"]) == (99, None)
    assert short["ar1_reason"] == short["half_life_reason"] == "too_few"


def test_a_frozen_quote_is_degenerate(series, start):
    row = only(half_life(series([0.1] * 500), start, start + 30_000))
    assert (row["ar1_phi"], row["ar1_reason"]) == (None, "degenerate")
    assert row["half_life_s"] is None


@pytest.mark.parametrize("growth", [1.0001, 1.05, -1.05])
def test_a_spread_that_runs_away_has_no_half_life(growth, series, start):
    row = only(half_life(series(growth ** np.arange(300.0)), start, start + 18_000))
    assert row["ar1_phi"] == pytest.approx(growth, rel=1e-6)
    assert row["ar1_phi_standard_error"] is None
    reasons = [name for name in row if name.startswith("half_life") and name.endswith("_reason")]
    assert {row[name] for name in ["ar1_reason", *reasons]} == {"no_reversion"}
    assert {row[name.replace("_reason", "_s")] for name in reasons} == {None}


def test_a_spread_that_alternates_halves_faster_than_a_step_can_show(autoregressive, series, start):
    row = only(half_life(series(autoregressive(-0.5, 1000, seed=2)[0]), start, start + 60_000))
    assert -0.6 < row["ar1_phi"] < -0.4
    assert row["ar1_reason"] is None
    assert (row["half_life_s"], row["half_life_reason"]) == (None, "below_step")


def test_an_interval_that_reaches_one_has_no_upper_end(autoregressive, series, start):
    row = only(half_life(series(autoregressive(0.999, 400, seed=1)[0]), start, start + 24_000))
    assert row["ar1_phi"] < 1 < row["ar1_phi"] + 1.96 * row["ar1_phi_standard_error"]
    assert (row["half_life_upper_s"], row["half_life_upper_reason"]) == (None, "no_reversion")
    assert 0 < row["half_life_lower_s"] < row["half_life_s"]


def test_an_interval_that_reaches_zero_has_no_lower_end(autoregressive, series, start):
    row = only(half_life(series(autoregressive(0.05, 400, seed=2)[0]), start, start + 24_000))
    assert row["ar1_phi"] - 1.96 * row["ar1_phi_standard_error"] < 0 < row["ar1_phi"]
    assert (row["half_life_lower_s"], row["half_life_lower_reason"]) == (None, "below_step")
    assert 0 < row["half_life_s"] < row["half_life_upper_s"]


def test_pairs_do_not_reach_from_one_trajectory_into_the_next(autoregressive, series, start):
    parts = [
        series(1000.0 * k + path, trajectory=f"t{k}")
        for k, path in enumerate(autoregressive(0.9, 150, seed=3, paths=5))
    ]
    result = half_life(pl.concat(parts), start, start + 9000)
    assert result["ar1_pairs"].to_list() == [149] * 5
    assert result["ar1_phi"].max() < 0.99
