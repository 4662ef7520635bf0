from __future__ import annotations

import inspect
import math
import re

import numpy as np
import polars as pl
import pytest

from toolkit.statistics.spread import half_life, noise_robust_half_life


def only(result: pl.DataFrame) -> dict:
    assert result.height == 1
    return result.row(0, named=True)


def seconds(phi: float) -> float:
    return -math.log(2) * 60 / math.log(phi)


def covariance(values: np.ndarray, lag: int) -> float:
    """Over all pairs of neighbours ``lag`` apart whose ten minutes hold a number each."""
    pairs = [
        (values[k - lag], values[k])
        for k in range(lag, len(values))
        if np.isfinite(values[k - lag : k + 1]).all()
    ]
    earlier, later = np.array(pairs).T
    return float(np.mean((earlier - earlier.mean()) * (later - later.mean())))


@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_every_figure_equals_a_loop_over_the_pairs_inside_segments(
    missing, autoregressive, series, start
):
    rng = np.random.default_rng(5)
    values = autoregressive(0.95, 3000, seed=1)[0] + rng.standard_normal(3000)
    values[rng.random(3000) < missing] = math.nan
    row = only(noise_robust_half_life(series(values), start, start + 180_000))
    near, far = covariance(values, 1), covariance(values, 10)
    phi = (far / near) ** (1 / 9)
    assert row["noise_robust_phi"] == pytest.approx(phi, rel=1e-11)
    assert row["noise_share"] == pytest.approx(1 - near / phi / np.nanvar(values), rel=1e-9)
    assert row["half_life_noise_robust_s"] == pytest.approx(seconds(phi), rel=1e-9)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_a_known_half_life_is_recovered_beneath_noise(share, autoregressive, start):
    """40 paths; noise of 5 % of the variance makes of 69 minutes 12 to who looks a step back."""
    phi, count, length = 0.99, 40, 10_000
    paths = autoregressive(phi, length, seed=7, paths=count)
    variance = 1 / (1 - phi**2)
    noise = np.random.default_rng(8).standard_normal(paths.shape)
    paths = paths + noise * math.sqrt(variance * share / (1 - share))
    frame = pl.DataFrame(
        {
            "trajectory": np.repeat(np.arange(count), length),
            "ts": np.tile(start + 60 * np.arange(length), count),
            "spread_log_bps": paths.ravel(),
        }
    )
    result = noise_robust_half_life(frame, start, start + 60 * length)
    assert result["half_life_noise_robust_s"].null_count() == 0
    assert abs(result["noise_robust_phi"].mean() - phi) < 0.0015
    assert 0.8 < result["half_life_noise_robust_s"].median() / seconds(phi) < 1.2
    assert result["noise_share"].mean() == pytest.approx(share, abs=0.03)
    assert result["half_life_s"].median() < 0.3 * seconds(phi)


def test_without_noise_both_half_lives_agree_and_the_share_is_none(autoregressive, series, start):
    row = only(
        noise_robust_half_life(
            series(autoregressive(0.97, 20_000, seed=3)[0]), start, start + 1_200_000
        )
    )
    assert row["half_life_noise_robust_s"] == pytest.approx(row["half_life_s"], rel=0.2)
    assert abs(row["noise_share"]) < 0.01


def test_a_null_has_its_reason(autoregressive, series, start):
    rng = np.random.default_rng(2)
    reached = {
        "empty": series([None] * 200),
        "too_few": series(autoregressive(0.9, 109, seed=1)[0]),
        "degenerate": series([0.1] * 500),
        "no_memory": series(np.tile([1.0, -1.0], 300) + 0.01 * rng.standard_normal(600)),
    }
    for reason, frame in reached.items():
        row = only(noise_robust_half_life(frame, start, start + 60_000))
        assert row["noise_robust_reason"] == row["half_life_noise_robust_reason"] == reason
        assert row["noise_robust_phi"] is row["noise_share"] is None
        assert row["half_life_noise_robust_s"] is None
    wave = only(
        noise_robust_half_life(series(np.cos(np.arange(500) * math.pi / 5)), start, start + 60_000)
    )
    assert wave["noise_robust_phi"] > 1
    assert wave["noise_robust_reason"] is None
    assert wave["half_life_noise_robust_s"] is None
    assert wave["half_life_noise_robust_reason"] == "no_reversion"


def test_a_hundred_pairs_ten_apart_are_enough(autoregressive, series, start):
    values = autoregressive(0.95, 110, seed=1)[0]
    row = only(noise_robust_half_life(series(values), start, start + 60_000))
    assert (row["noise_robust_pairs"], row["noise_robust_reason"]) == (100, None)


def test_the_columns_are_those_of_the_half_life_and_those_in_the_table(
    autoregressive, series, start
):
    frame = series(autoregressive(0.9, 300, seed=1)[0])
    result = noise_robust_half_life(frame, start, start + 18_000)
    plain = half_life(frame, start, start + 18_000)
    table = re.findall(
        r"^(\w+) +(Int64|Float64|String) +(none|count|fraction|s)\b",
        inspect.getdoc(noise_robust_half_life),
        flags=re.MULTILINE,
    )
    assert [name for name, *_ in table] == result.drop(plain.columns).columns
    assert all(dtype == str(result.schema[name]) for name, dtype, _ in table)
    same = [name for name in plain.columns if name not in ("method", "params_hash")]
    assert result.select(same).equals(plain.select(same))
