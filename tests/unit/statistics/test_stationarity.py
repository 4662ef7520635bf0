"""Unit roots, variance ratios and autocorrelation against statsmodels and plain numpy."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from statsmodels.tsa.adfvalues import mackinnonp
from statsmodels.tsa.stattools import acf, adfuller

from tests.calibration.form import frame_of
from toolkit.errors import InputError
from toolkit.statistics.numeric.unit_root import chance_below
from toolkit.statistics.spread import stationarity

from .conftest import only


def lo_mackinlay(levels: np.ndarray, q: int) -> tuple[float, float]:
    """Equations 5 to 8 of Lo and MacKinlay (1988) on one run: overlapping, debiased, robust."""
    change = np.diff(levels)
    n, mu = len(change), (levels[-1] - levels[0]) / len(change)
    one = ((change - mu) ** 2).sum() / (n - 1)
    many = sum((levels[t + q] - levels[t] - q * mu) ** 2 for t in range(n - q + 1))
    ratio = many / (q * (n - q + 1) * (1 - q / n)) / one
    square = (change - mu) ** 2
    theta = sum(
        (2 * (q - k) / q) ** 2 * n * (square[k:] @ square[:-k]) / square.sum() ** 2
        for k in range(1, q)
    )
    return ratio, math.sqrt(n) * (ratio - 1) / math.sqrt(theta)


@pytest.mark.parametrize(
    ("phi", "lags"), [(-0.4, 7), (0.2, 0), (0.9, 5), (0.99, None), (0.9999, None), (1.0, 0)]
)
def test_the_unit_root_test_equals_statsmodels(phi, lags, autoregressive, series, start):
    values = 40 + 3 * autoregressive(phi, 3000, seed=11)[0]
    row = only(stationarity(series(values), start, start + 180_000, adf_lags=lags))
    expected = math.floor(12 * 30**0.25) if lags is None else lags
    t, chance, used, count, critical = adfuller(
        values, maxlag=expected, autolag=None, result_object=False
    )[:5]
    assert (row["adf_n"], row["adf_lags"], count) == (3000, used, 3000 - used - 1)
    assert row["adf_t"] == pytest.approx(t, rel=1e-10)
    assert row["adf_p_value"] == pytest.approx(chance, rel=1e-6, abs=1e-300)
    for name in ("1", "5", "10"):
        assert row[f"adf_critical_{name}pct"] == pytest.approx(critical[f"{name}%"], rel=1e-12)
    assert row["rejects_unit_root_5pct"] == (t < critical["5%"])


def test_the_unit_root_test_of_many_rows_is_that_of_one_piece(autoregressive, series, start):
    values = autoregressive(0.98, 45_000, seed=5)[0]
    row = only(stationarity(series(values), start, start + 2_700_000, adf_lags=3))
    t = adfuller(values, maxlag=3, autolag=None, result_object=False)[0]
    assert row["adf_t"] == pytest.approx(t, rel=1e-10)


@pytest.mark.parametrize("phi", [0.5, 0.99])
def test_variance_ratios_equal_the_formulas_of_lo_and_mackinlay(phi, autoregressive, series, start):
    rng = np.random.default_rng(3)
    values = autoregressive(phi, 8000, seed=2)[0] * np.exp(rng.standard_normal(8000) / 3)
    row = only(stationarity(series(values), start, start + 480_000))
    for q in (2, 10, 60, 240, 1440):
        ratio, z = lo_mackinlay(values, q)
        assert row[f"variance_ratio_{q}"] == pytest.approx(ratio, rel=1e-10)
        assert row[f"variance_ratio_{q}_z"] == pytest.approx(z, rel=1e-10)


def test_the_longest_run_is_tested_and_no_difference_spans_a_gap(autoregressive, series, start):
    values = autoregressive(0.9, 1500, seed=7)[0]
    values[600:] += 1e6  # a level that only a difference across the gap would see
    ts = start + 60 * (np.arange(1500) + np.where(np.arange(1500) >= 600, 37, 0))
    row = only(stationarity(series(values, ts=ts), start, start + 100_000, adf_lags=4))
    t = adfuller(values[600:], maxlag=4, autolag=None, result_object=False)[0]
    assert row["adf_n"] == 900
    assert row["adf_t"] == pytest.approx(t, rel=1e-9)
    runs = [values[:600], values[600:]]
    changes = np.concatenate([np.diff(run) for run in runs])
    mean = changes.mean()
    far = [(run[10:] - run[:-10] - 10 * mean) ** 2 for run in runs]
    windows = sum(map(len, far))
    ratio = np.concatenate(far).sum() / (10 * windows * (1 - 10 / len(changes)))
    assert row["variance_ratio_10"] == pytest.approx(ratio / changes.var(ddof=1), rel=1e-9)


def test_autocorrelation_is_that_of_the_pairs(autoregressive, series, start):
    values = autoregressive(0.98, 6000, seed=9)[0]
    whole = only(stationarity(series(values), start, start + 360_000))
    for lag, found in enumerate(acf(values, nlags=60)):
        if lag in (1, 10, 60):
            assert whole[f"acf_{lag}"] == pytest.approx(found, abs=0.02)
    kept = np.flatnonzero(np.random.default_rng(4).random(6000) >= 0.2)
    frame = series(values[kept], ts=start + 60 * kept)
    row = only(stationarity(frame, start, start + 360_000))
    for lag in (1, 10, 60, 1440):
        first = kept[np.isin(kept + lag, kept)]
        assert row[f"acf_{lag}_pairs"] == len(first)
        expected = np.corrcoef(values[first], values[first + lag])[0, 1]
        assert row[f"acf_{lag}"] == pytest.approx(expected, rel=1e-10)


def test_what_cannot_be_tested_is_null_with_its_reason(series, start):
    def reasons(values, **asked) -> set[str]:
        row = only(stationarity(series(values, **asked), start, start + 10**6))
        assert all(row[name] is None for name in ("adf_t", "variance_ratio_2", "acf_1"))
        return {reason for name, reason in row.items() if name.endswith("_reason") and reason}

    assert reasons([math.nan]) == {"empty"}
    assert reasons([1.0, 2.0, 3.0]) == {"too_few"}
    assert reasons([0.1] * 3000) == {"degenerate", "too_few"}
    trend = only(stationarity(series([0.1 * k for k in range(3000)]), start, start + 10**6))
    assert trend["adf_reason"] == trend["variance_ratio_60_reason"] == "degenerate"
    growth = only(stationarity(series(2.0 ** np.arange(60)), start, start + 10**6, adf_lags=3))
    assert (growth["adf_t"], growth["adf_reason"]) == (None, "degenerate")
    jumps = [0.0] * 1000 + [1.0] * 1000 + [0.0] * 1000  # two changes, never within ten steps
    row = only(stationarity(series(jumps), start, start + 10**6))
    assert (row["variance_ratio_10_z"], row["variance_ratio_10_reason"]) == (None, "degenerate")
    with pytest.raises(InputError, match="adf_lags"):
        stationarity(series([1.0]), adf_lags=-1)


def test_leg_swap_and_scale_change_nothing(autoregressive, series, start):
    values = autoregressive(0.9, 2000, seed=1)[0]
    alone = stationarity(series(values), start, start + 120_000)
    swapped = stationarity(series(-8 * values), start, start + 120_000)
    for name, dtype in alone.schema.items():
        if dtype == pl.Float64 and alone[name].item() is not None:
            assert swapped[name].item() == pytest.approx(alone[name].item(), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_a_random_walk_is_rejected_as_often_as_the_level(missing):
    """300 walks with bursts of volatility: z beyond 1.96 in 5 %, and uniform unit root chances."""
    rng = np.random.default_rng([20261123, round(100 * missing)])
    count, length = 300, 1500
    level = np.exp(np.cumsum(rng.standard_normal((count, length)) * 0.05, axis=1) / 2)
    walks = np.cumsum(rng.standard_normal((count, length)) * np.minimum(level, 5), axis=1)
    kept = rng.random(walks.shape) >= missing
    frame = frame_of(60 * np.arange(length), kept, spread_log_bps=walks)
    found = stationarity(frame, 0, 60 * length, adf_lags=1)
    for q in (2, 10):
        z = found[f"variance_ratio_{q}_z"].drop_nulls()
        assert z.len() > 0.95 * count
        assert 0.025 < (z.abs() > 1.96).mean() < 0.085, q
    assert 0.02 < found["rejects_unit_root_5pct"].mean() < 0.1
    for chance in (0.05, 0.2, 0.5, 0.8):
        error = math.sqrt(chance * (1 - chance) / count)
        assert abs((found["adf_p_value"] < chance).mean() - chance) < 3.5 * error


@pytest.mark.parametrize("t", [-30, -18.83, -10, -3, -1.61, -1.6, 0, 2.7, 2.74, 5])
def test_the_chance_is_that_of_mackinnon(t):
    assert chance_below(t) == pytest.approx(mackinnonp(t, regression="c", N=1), rel=1e-9)
