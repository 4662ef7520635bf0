from __future__ import annotations

import math

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


def pairs_apart(ts: np.ndarray, values: np.ndarray, apart_s: int) -> np.ndarray:
    """One loop over the rows that hold a number: (earlier, later) exactly so far apart."""
    held = {t: v for t, v in zip(ts.tolist(), values.tolist(), strict=True) if math.isfinite(v)}
    return np.array([(held[t], held[t + apart_s]) for t in sorted(held) if t + apart_s in held])


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
def test_phi_equals_a_regression_on_the_pairs_one_step_apart(
    missing, autoregressive, series, start
):
    rng = np.random.default_rng(8)
    values = autoregressive(0.97, 3000, seed=4)[0]
    values[rng.random(3000) < missing] = math.nan
    ts = start + 60 * np.arange(3000)
    present = rng.random(3000) >= missing
    row = only(half_life(series(values[present], ts=ts[present]), start, start + 180_000))
    pairs = pairs_apart(ts[present], values[present], 60)
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


def test_the_half_life_of_the_ar1_follows_from_its_phi(autoregressive, series, start):
    row = only(half_life(series(autoregressive(0.95, 2000, seed=5)[0]), start, start + 120_000))
    assert row["half_life_ar1_s"] == pytest.approx(seconds(row["ar1_phi"]), rel=1e-12)
    assert row["half_life_s"] == pytest.approx(seconds(row["half_life_phi"]), rel=1e-12)


@pytest.mark.parametrize("step_s", [1, 60, 3600])
def test_the_half_life_is_in_seconds_whatever_the_step(step_s, autoregressive, series, start):
    values = autoregressive(0.9, 2000, seed=6)[0]
    frame = series(values, step_s=step_s)
    row = only(half_life(frame, start, start + 2000 * step_s))
    minutes = only(half_life(series(values), start, start + 120_000))
    assert row["step_s"] == step_s
    for name in ("half_life_s", "half_life_lower_s", "half_life_upper_s", "half_life_ar1_s"):
        assert row[name] == pytest.approx(minutes[name] * step_s / 60, rel=1e-12)


def many(paths: np.ndarray, start: int) -> pl.DataFrame:
    count, length = paths.shape
    return pl.DataFrame(
        {
            "trajectory": np.repeat(np.arange(count), length),
            "ts": np.tile(start + 60 * np.arange(length), count),
            "spread_log_bps": paths.ravel(),
        }
    )


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_a_known_half_life_is_recovered_beneath_noise(share, autoregressive, start):
    """40 paths of 69 minutes, of which noise of 5 % makes 12 by an AR(1)."""
    phi, length = 0.99, 10_000
    paths = autoregressive(phi, length, seed=7, paths=40)
    noise = np.random.default_rng(8).standard_normal(paths.shape)
    paths = paths + noise * math.sqrt(share / (1 - share) / (1 - phi**2))
    result = half_life(many(paths, start), start, start + 60 * length)
    assert 0.8 < result["half_life_s"].median() / seconds(phi) < 1.2
    assert result["noise_share"].mean() == pytest.approx(share, abs=0.03)
    assert result["half_life_ar1_s"].fill_null(0).median() < 0.3 * seconds(phi)
    assert result["half_lives_differ"].all()
    assert result["half_life_acf_error"].max() < 0.1
    assert result["half_life_ar1_acf_error"].min() > 0.3


def test_without_noise_both_half_lives_agree(autoregressive, start):
    result = half_life(many(autoregressive(0.97, 10_000, seed=3, paths=20), start), start, 2**31)
    ratio = result["half_life_s"] / result["half_life_ar1_s"]
    assert 0.95 < ratio.median() < 1.1
    assert not result["half_lives_differ"].any()
    assert abs(result["noise_share"].mean()) < 0.01


def test_gaps_do_not_shorten_the_half_life(autoregressive, start):
    """By pairs of neighbours among the rows that are left it was 5,002 s for 41,568."""
    paths = autoregressive(0.999, 10_080, seed=12, paths=40)
    frame = many(paths, start)
    kept = np.random.default_rng(13).random(frame.height) >= 0.2
    thinned = half_life(frame.filter(kept), start, start + 604_800)
    steps = thinned["half_life_s"].fill_null(math.inf)
    assert 0.7 < steps.median() / seconds(0.999) < 1.6
    assert (thinned["half_life_lower_s"] < seconds(0.999)).mean() > 0.9


def hours_then_minutes(hours: int, minutes: int, paths: np.ndarray, start: int) -> pl.DataFrame:
    """Rows at whole hours first, and then at each minute, of paths that run on in minutes."""
    at = np.concatenate([60 * np.arange(hours), 60 * hours + np.arange(minutes)])
    count = len(paths)
    return pl.DataFrame(
        {
            "trajectory": np.repeat(np.arange(count), len(at)),
            "ts": np.tile(start + 60 * at, count),
            "spread_log_bps": paths[:, at].ravel(),
        }
    )


@pytest.mark.parametrize(("hours", "minutes"), [(200, 8000), (1500, 1400)])
def test_hours_among_minutes_change_no_half_life(hours, minutes, autoregressive, start):
    """Neighbours within 1.5 steps of an hour were pairs, which made 45 minutes of 10."""
    phi = 0.5 ** (1 / 10) if minutes > hours else 0.5 ** (1 / 600)
    paths = autoregressive(phi, 60 * hours + minutes, seed=14, paths=20)
    frame = hours_then_minutes(hours, minutes, paths, start)
    result = half_life(frame, start, start + 60 * (60 * hours + minutes))
    assert set(result["step_s"]) == {60 if minutes > hours else 3600}
    assert 0.8 < result["half_life_s"].median() / seconds(phi) < 1.25
    assert 0.6 < result["half_life_ar1_s"].median() / seconds(phi) < 1.25
    covers = result.select(
        (pl.col("half_life_lower_s").fill_null(0) < seconds(phi))
        & (pl.col("half_life_upper_s").fill_null(math.inf) > seconds(phi))
    ).to_series()
    assert covers.mean() >= 0.8


def test_a_hundred_pairs_are_enough_for_an_ar1_and_one_less_is_too_few(
    autoregressive, series, start
):
    values = autoregressive(0.5, 101, seed=1)[0]
    enough = only(half_life(series(values), start, start + 60_000))
    assert (enough["ar1_pairs"], enough["ar1_reason"]) == (100, None)
    short = only(half_life(series(values[1:]), start, start + 60_000))
    assert (short["ar1_pairs"], short["ar1_phi"]) == (99, None)
    assert short["ar1_reason"] == short["half_life_ar1_reason"] == "too_few"
    assert enough["half_life_reason"] == "too_few"  # 99 triples


def test_a_frozen_quote_is_degenerate(series, start):
    row = only(half_life(series([0.1] * 500), start, start + 30_000))
    assert (row["ar1_phi"], row["ar1_reason"]) == (None, "degenerate")
    assert row["half_life_s"] is None


@pytest.mark.parametrize("growth", [1.0001, 1.05, -1.05])
def test_a_spread_that_runs_away_has_no_half_life(growth, series, start):
    row = only(half_life(series(growth ** np.arange(300.0)), start, start + 18_000))
    assert row["ar1_phi"] == pytest.approx(growth, rel=1e-6)
    assert row["half_life_s"] is row["half_life_upper_s"] is row["half_life_ar1_s"] is None
    assert row["half_life_reason"] == row["half_life_ar1_reason"] == "no_reversion"


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.2])
def test_a_spread_that_halves_within_a_step_is_below_it(phi, autoregressive, series, start):
    row = only(half_life(series(autoregressive(phi, 5000, seed=2)[0]), start, start + 300_000))
    assert row["ar1_phi"] == pytest.approx(phi, abs=0.05)
    assert row["ar1_reason"] is None
    for name in ("half_life", "half_life_lower", "half_life_ar1"):
        assert (row[f"{name}_s"], row[f"{name}_reason"]) == (None, "below_step")


def test_a_random_walk_has_no_upper_bound_and_a_lower_one(series, start):
    walk = np.cumsum(np.random.default_rng(4).standard_normal(5000))
    row = only(half_life(series(walk), start, start + 300_000))
    assert (row["half_life_upper_s"], row["half_life_upper_reason"]) == (None, "no_reversion")
    assert row["half_life_lower_s"] > 60 * 300


def test_too_few_blocks_of_time_give_a_half_life_without_an_interval(autoregressive, series, start):
    row = only(half_life(series(autoregressive(0.97, 130, seed=1)[0]), start, start + 7800))
    assert row["half_life_reason"] is None
    assert row["half_life_lower_reason"] == row["half_life_upper_reason"] == "too_few"


def test_pairs_do_not_reach_from_one_trajectory_into_the_next(autoregressive, series, start):
    parts = [
        series(1000.0 * k + path, trajectory=f"t{k}")
        for k, path in enumerate(autoregressive(0.9, 150, seed=3, paths=5))
    ]
    result = half_life(pl.concat(parts), start, start + 9000)
    assert result["ar1_pairs"].to_list() == [149] * 5
    assert result["ar1_phi"].max() < 0.99
