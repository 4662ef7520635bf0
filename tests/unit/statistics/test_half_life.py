from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2, median_abs_deviation
from statsmodels.regression.linear_model import OLS
from statsmodels.tools import add_constant
from statsmodels.tsa.ar_model import AutoReg
from statsmodels.tsa.stattools import acf

from tests.calibration import form
from toolkit.statistics.numeric.lags import Observations
from toolkit.statistics.spread import half_life, stationarity
from toolkit.statistics.spread.half_life import CRITICAL, LEVEL, chance_beyond, without_spikes

from .conftest import only


def seconds(phi: float, step_s: int = 60) -> float:
    return -math.log(2) * step_s / math.log(phi)


def frame_of(paths: np.ndarray, start: int = 0, kept: np.ndarray | None = None) -> pl.DataFrame:
    return form.frame_of(start + 60 * np.arange(paths.shape[1]), kept, spread_log_bps=paths)


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


@pytest.mark.parametrize("step_s", [1, 60, 3600])
def test_the_half_life_is_in_seconds_whatever_the_step(step_s, autoregressive, series, start):
    values = autoregressive(0.9, 2000, seed=6)[0]
    frame = series(values, step_s=step_s)
    row = only(half_life(frame, start, start + 2000 * step_s))
    minutes = only(half_life(series(values), start, start + 120_000))
    assert row["step_s"] == step_s
    for name in ("half_life_s", "half_life_lower_s", "half_life_upper_s", "half_life_ar1_s"):
        assert row[name] == pytest.approx(minutes[name] * step_s / 60, rel=1e-12)
    assert row["half_life_ar1_s"] == pytest.approx(seconds(row["ar1_phi"], step_s), rel=1e-12)
    assert row["half_life_s"] == pytest.approx(seconds(row["half_life_phi"], step_s), rel=1e-12)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_a_known_half_life_is_recovered_beneath_noise(share, autoregressive, start):
    """40 paths of 69 minutes, of which noise of 5 % makes 12 by an AR(1)."""
    phi, length = 0.99, 10_000
    paths = autoregressive(phi, length, seed=7, paths=40)
    noise = np.random.default_rng(8).standard_normal(paths.shape)
    paths = paths + noise * math.sqrt(share / (1 - share) / (1 - phi**2))
    result = half_life(frame_of(paths, start), start, start + 60 * length)
    assert 0.8 < result["half_life_s"].median() / seconds(phi) < 1.2
    assert result["noise_share"].mean() == pytest.approx(share, abs=0.03)
    assert result["half_life_ar1_s"].fill_null(0).median() < 0.3 * seconds(phi)
    assert result["half_lives_differ"].all()
    assert result["half_life_acf_error"].max() < 0.1
    assert result["half_life_ar1_acf_error"].min() > 0.3


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_without_noise_each_half_life_is_the_known_one_also_with_gaps(
    missing, autoregressive, start
):
    paths = autoregressive(0.97, 10_000, seed=3, paths=20)
    kept = np.random.default_rng(13).random(paths.shape) >= missing
    result = half_life(frame_of(paths, start, kept), start, 2**31)
    for name in ("half_life_s", "half_life_ar1_s", "acf_half_lag_s"):
        assert result[name].median() == pytest.approx(seconds(0.97), rel=0.1), name
    ratio = result["half_life_s"] / result["half_life_ar1_s"]
    assert 0.95 < ratio.median() < 1.1
    assert not result["half_lives_differ"].any()
    assert abs(result["noise_share"].mean()) < 0.01


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


def test_a_short_window_has_a_half_life_without_an_interval_or_an_interval_without_its_test(
    autoregressive, series, start
):
    row = only(half_life(series(autoregressive(0.97, 130, seed=1)[0]), start, start + 7800))
    assert row["half_life_reason"] is None
    assert row["half_life_lower_reason"] == row["half_life_upper_reason"] == "too_few"
    row = only(half_life(frame_of(autoregressive(0.9, 250, seed=1)), 0, 15_000))
    assert (row["fit_p_value"], row["fit_reason"]) == (None, "too_few")
    assert row["half_life_upper_s"] is not None or row["half_life_upper_reason"] == "no_reversion"


def rows_of(parts: list[tuple[list[int], list[float]]], step_s: int = 60) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "number": [k for k, (ts, _) in enumerate(parts) for _ in ts],
            "ts": [t for ts, _ in parts for t in ts],
            "value": [v for _, values in parts for v in values],
            "step_s": [step_s for ts, _ in parts for _ in ts],
        },
        schema={"number": pl.UInt32, "ts": pl.Int64, "value": pl.Float64, "step_s": pl.Int64},
    )


def loop(ts: list[int], values: list[float], lag: int, step_s: int = 60) -> list[float]:
    """Triples, span, and the block sums of the definition, one observation at a time."""
    held = dict(zip(ts, values, strict=True))
    found = [
        (t, held[t], held[t + step_s], held[t + (1 + lag) * step_s])
        for t in ts
        if t + step_s in held and t + (1 + lag) * step_s in held
    ]
    if not found:
        return [0.0, 1.0 + lag, *[0.0] * 5]
    means = np.mean(np.array(found), axis=0)
    blocks: dict[int, list[float]] = {}
    for t, *three in found:
        z, near, far = (value - mean for value, mean in zip(three, means[1:], strict=True))
        block = blocks.setdefault((t - ts[0]) // ((5 * lag + 10) * step_s), [0.0, 0.0])
        block[0] += z * far
        block[1] += z * near
    a, b = np.array(list(blocks.values())).T
    apart = np.diff([t for t, *_ in found]) / step_s
    span = np.minimum(apart, 1 + lag).sum() + 1 + lag
    return [len(found), span, a.sum(), b.sum(), (a * a).sum(), (a * b).sum(), (b * b).sum()]


@pytest.mark.parametrize("lag", [1, 9])
def test_sums_over_triples_equal_a_loop(lag):
    """With gaps, hours among minutes, minutes off the step, one row, and none that match."""
    rng = np.random.default_rng(3)
    minutes = [60 * k for k in range(600) if rng.random() < 0.8]
    hours = [60_000 + 3600 * k for k in range(40)]
    off = [60 * k + (k % 7 == 0) for k in range(400)]
    times = [minutes + hours, off, [5], [0, 61, 200], minutes]
    parts = [(ts, (1e3 + rng.standard_normal(len(ts))).tolist()) for ts in times]
    held = Observations.of(rows_of(parts))
    decay = held.decay(held.later(1), held.later(1 + lag), lag)
    for k, (ts, values) in enumerate(parts):
        found = [float(column[k]) for column in decay[1:8]]
        assert found == pytest.approx(loop(ts, values, lag), rel=1e-9, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("c", [0.0, 5.0, 50.0, 200.0])
def test_the_table_is_that_of_a_regression_over_simulated_paths(c):
    """4,000 paths of 2,000 steps; the tails of 60,000 are within what so few can show."""
    rng = np.random.default_rng(11)
    length, paths = 2000, 4000
    phi = math.exp(-c / length)
    level = rng.standard_normal(paths) / math.sqrt(1 - phi**2) if c else np.zeros(paths)
    levels = np.empty((length, paths))
    shocks = rng.standard_normal((length, paths))
    for at in range(length):
        levels[at] = level
        level = phi * level + shocks[at]
    levels -= levels.mean(axis=0)
    statistic = (levels * shocks).sum(axis=0) / np.sqrt((levels**2).sum(axis=0))
    expected = CRITICAL[CRITICAL[:, 0] == c][0, 1:]
    found = np.quantile(statistic, [0.025, 0.5, 0.975])
    assert found == pytest.approx(expected, abs=0.15)


def test_the_lag_is_where_the_autocorrelation_of_statsmodels_crosses_half_of_its_level(
    autoregressive, series, start
):
    fast, slow = (autoregressive(phi, 20_000, seed=seed)[0] for phi, seed in ((0.8, 1), (0.99, 2)))
    values = (
        fast / fast.std() / 2 + slow / slow.std() + np.random.default_rng(5).standard_normal(20_000)
    )
    row = only(half_life(series(values), start, start + 1_200_000))
    found = acf(values, nlags=2000)
    crosses = int(np.argmax(found <= (1 - row["noise_share"]) / 2))
    assert row["acf_half_lag_s"] / 60 == pytest.approx(crosses, rel=0.1)
    assert row["half_life_lower_reason"] == "several_speeds"


def test_gaps_and_neighbours_do_not_move_the_lag(autoregressive, series, start):
    values = autoregressive(0.997, 9000, seed=7)[0]
    kept = np.flatnonzero(np.random.default_rng(8).random(9000) >= 0.3)
    alone = series(values[kept], ts=start + 60 * kept)
    row = only(half_life(alone, start, start + 540_000))
    whole = only(half_life(series(values), start, start + 540_000))
    assert row["acf_half_lag_s"] == pytest.approx(whole["acf_half_lag_s"], rel=0.2)
    other = series(values[:300] * 2 + 5, trajectory="0")
    beside = half_life(pl.concat([other, alone]), start, start + 540_000)
    assert beside.row(1, named=True) == row


def test_a_lag_that_the_window_does_not_show_is_null_with_its_reason(series, start):
    trend = np.arange(3000.0) + np.random.default_rng(1).standard_normal(3000)
    row = only(half_life(series(trend), start, start + 180_000))
    assert (row["acf_half_lag_s"], row["acf_half_lag_reason"]) == (None, "too_short")
    values = np.random.default_rng(2).standard_normal(3000)
    white = only(half_life(series(values), start, start + 180_000))
    assert (white["acf_half_lag_s"], white["acf_half_lag_reason"]) == (None, "below_step")
    flat = only(half_life(series([1.0] * 3000), start, start + 180_000))
    assert (flat["acf_half_lag_s"], flat["acf_half_lag_reason"]) == (None, "degenerate")
    assert (flat["ar1_phi"], flat["ar1_reason"], flat["half_life_s"]) == (None, "degenerate", None)


def numbered(*paths) -> pl.DataFrame:
    number = np.repeat(np.arange(len(paths)), [len(path) for path in paths])
    return pl.DataFrame({"number": number, "value": np.concatenate(paths).astype(float)})


def test_a_spike_is_beyond_six_deviations_of_the_median():
    values = np.random.default_rng(2).standard_t(2, 2000)
    shares, kept = without_spikes(numbered(values, np.arange(5)))
    apart = np.abs(values - np.median(values))
    spikes = apart > 6 * median_abs_deviation(values, scale="normal")
    assert spikes.any()
    share = (apart[spikes] ** 2).sum() / (apart**2).sum()
    assert shares["spike_share"].to_list() == [pytest.approx(share, rel=1e-12), 0.0]
    assert kept["number"].unique().to_list() == [0]  # of the other nothing is left out
    assert kept["value"].to_list() == values[~spikes].tolist()
    assert without_spikes(numbered([5, 5, 5]))[0]["spike_share"].to_list() == [None]


def test_a_tick_at_which_most_values_are_makes_no_spikes_of_the_next_ticks():
    values = np.round(0.6 * np.random.default_rng(3).standard_normal(3000))
    assert (values == 0).mean() > 0.5
    shares, kept = without_spikes(numbered(values))
    assert shares["spike_share"].to_list() == [0.0]
    assert kept.is_empty()


MINUTES, WEEK = 10_080, 604_800


@pytest.mark.parametrize("freedom", range(1, 14))
def test_the_chance_is_that_of_scipy(freedom):
    for value in (0.01, 1.0, 8.0, 40.0):
        assert chance_beyond(value, freedom) == pytest.approx(chi2.sf(value, freedom), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("phi", [0.9, 0.99, 0.999, 1.0])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_one_speed_beneath_noise_is_rejected_as_often_as_the_level(phi, missing, autoregressive):
    """200 weeks: 2.5 % with a standard error of 1.1 %, and few chances below it."""
    paths = autoregressive(phi, MINUTES, seed=5, paths=200)
    noise = np.random.default_rng(2).standard_normal(paths.shape)
    paths = paths + 0.1 * paths.std(axis=1, keepdims=True) * noise
    kept = np.random.default_rng(3).random(paths.shape) >= missing
    found = half_life(frame_of(paths, kept=kept), 0, WEEK)["fit_p_value"]
    assert (found < LEVEL).mean() < LEVEL + 3.5 * 0.011
    assert 0.3 < found.median() < 0.95


def test_two_speeds_a_season_and_a_shift_have_a_reason_in_the_place_of_bounds(autoregressive):
    body = autoregressive(0.97, MINUTES, seed=1, paths=6)
    body = body / body.std(axis=1, keepdims=True)
    slow = autoregressive(0.9985, MINUTES, seed=2, paths=6)
    fast = autoregressive(0.8, MINUTES, seed=3, paths=6)
    minute = np.arange(MINUTES)
    unfit = {
        "season": body + 1.5 * np.sin(2 * np.pi * minute / 1440),
        "shift": body + 3 * (minute > 4000),
        "speeds": fast / fast.std(axis=1, keepdims=True) + slow / slow.std(axis=1, keepdims=True),
        "ticks": 2 * np.round(slow / slow.std(axis=1, keepdims=True) / 2),
    }
    for name, paths in unfit.items():
        found = half_life(frame_of(paths), 0, WEEK)
        bounds = found.select("half_life_lower_s", "half_life_upper_s")
        assert bounds.null_count().row(0) == (6, 6), name
        assert set(found["half_life_lower_reason"]) == {"several_speeds"}, name
        assert found["half_life_s"].null_count() + found["half_life_reason"].null_count() == 6
        assert found["fit_p_value"].max() < LEVEL
    assert half_life(frame_of(body), 0, WEEK)["half_life_upper_s"].null_count() <= 1


def test_spikes_are_named_and_the_half_life_without_them_is_that_of_the_rest(autoregressive):
    paths = autoregressive(0.97, MINUTES, seed=1, paths=5)
    paths = paths / paths.std(axis=1, keepdims=True)
    for at in range(500, MINUTES, 1600):
        paths[:, at : at + 40] += 100 * 0.8 ** np.arange(40)
    found = half_life(frame_of(paths), 0, WEEK)
    assert set(found["half_life_upper_reason"]) == {"spikes_dominate"}
    assert found["spike_share"].min() > 0.5
    assert found["half_life_s"].fill_null(0).max() < 600
    assert found["half_life_without_spikes_s"].median() == pytest.approx(23 * 60, rel=0.35)


def test_no_spread_both_returns_and_never_returns_without_a_reason(autoregressive):
    """Of 40 weeks near a unit root some are rejected by one test and not bounded by the other."""
    paths = autoregressive(0.9985, MINUTES, seed=6, paths=40)
    frame = frame_of(paths)
    found = half_life(frame, 0, WEEK)
    returns = stationarity(frame, 0, WEEK)["rejects_unit_root_5pct"]
    reasons = pl.concat(
        [found.filter(returns)[f"half_life_{end}reason"].drop_nulls() for end in ("", "upper_")]
    )
    assert "tests_disagree" in reasons
    assert "no_reversion" not in reasons
    assert "no_reversion" in found.filter(~returns)["half_life_upper_reason"]
