from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

from toolkit.statistics.spread import half_life, stationarity
from toolkit.statistics.spread.half_life import LEVEL, chance_beyond

MINUTES, WEEK = 10_080, 604_800


def frame_of(paths: np.ndarray, kept: np.ndarray | None = None) -> pl.DataFrame:
    kept = np.ones(paths.shape, bool) if kept is None else kept
    count, length = paths.shape
    return pl.DataFrame(
        {
            "trajectory": np.broadcast_to(np.arange(count)[:, None], paths.shape)[kept],
            "ts": np.broadcast_to(60 * np.arange(length), paths.shape)[kept],
            "spread_log_bps": paths[kept],
        }
    )


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
    found = half_life(frame_of(paths, kept), 0, WEEK)["fit_p_value"]
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
    """Of 120 weeks near a unit root some are rejected by one test and not bounded by the other."""
    paths = autoregressive(0.9985, MINUTES, seed=6, paths=120)
    frame = frame_of(paths)
    found = half_life(frame, 0, WEEK)
    returns = stationarity(frame, 0, WEEK)["rejects_unit_root_5pct"]
    reasons = pl.concat(
        [found.filter(returns)[f"half_life_{end}reason"].drop_nulls() for end in ("", "upper_")]
    )
    assert "tests_disagree" in reasons
    assert "no_reversion" not in reasons
    assert "no_reversion" in found.filter(~returns)["half_life_upper_reason"]


def test_a_window_too_short_for_the_test_says_so(autoregressive):
    row = half_life(frame_of(autoregressive(0.9, 250, seed=1)), 0, 15_000).row(0, named=True)
    assert (row["fit_p_value"], row["fit_reason"]) == (None, "too_few")
    assert row["half_life_upper_s"] is not None or row["half_life_upper_reason"] == "no_reversion"
