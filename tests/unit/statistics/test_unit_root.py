from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.tsa.adfvalues import mackinnonp
from statsmodels.tsa.stattools import adfuller

from toolkit.statistics.numeric.unit_root import chance_below, unit_root
from toolkit.statistics.spread import stationarity


@pytest.mark.parametrize("phi", [-0.4, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("lags", [None, 0, 7])
def test_the_test_equals_statsmodels(phi, lags, autoregressive):
    values = 1e3 + autoregressive(phi, 4000, seed=4)[0]
    found = unit_root(values, lags)
    t, chance, used, count = adfuller(values, maxlag=found.lags, autolag=None, result_object=False)[
        :4
    ]
    assert (found.lags, found.observations) == (used, count)
    assert found.t == pytest.approx(t, rel=1e-9)
    assert chance_below(found.t) == pytest.approx(chance, rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("t", [-30, -18.83, -10, -3, -1.61, -1.6, 0, 2.7, 2.74, 5])
def test_the_chance_is_that_of_mackinnon(t):
    assert chance_below(t) == pytest.approx(mackinnonp(t, regression="c", N=1), rel=1e-9)


def test_the_chance_is_beside_the_statistic(autoregressive, series, start):
    values = autoregressive(0.99, 3000, seed=1)[0]
    row = stationarity(series(values), start, start + 180_000).row(0, named=True)
    expected = adfuller(values, maxlag=row["adf_lags"], autolag=None, result_object=False)[1]
    assert row["adf_p_value"] == pytest.approx(expected, rel=1e-9)
    assert row["adf_t"] is not None


def test_walks_have_chances_that_are_uniform(autoregressive):
    walks = autoregressive(1.0, 1000, seed=8, paths=400)
    chances = np.array([chance_below(unit_root(walk, 2).t) for walk in walks])
    for level in (0.05, 0.2, 0.5, 0.8):
        error = math.sqrt(level * (1 - level) / 400)
        assert abs((chances < level).mean() - level) < 3.5 * error


@pytest.mark.parametrize("values", [np.zeros(500), 0.1 * np.arange(500.0), 2.0 ** np.arange(60.0)])
def test_what_follows_exactly_from_the_rows_before_has_no_statistic(values):
    assert math.isnan(unit_root(values, 3).t)
    assert not unit_root(values, 3).rejected
