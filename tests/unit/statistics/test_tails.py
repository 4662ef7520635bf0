"""Tails and quantiles against scipy, exact fractions and the limits of floats."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import special, stats

from toolkit.errors import InputError
from toolkit.statistics.numeric.tails import (
    beta_tails,
    gamma_quantile,
    gamma_tails,
    poisson_interval,
    share_interval,
    two_sided_95,
)


def test_both_gamma_tails_are_those_of_scipy_from_tiny_shapes_to_large_ones():
    rng = np.random.default_rng(1)
    shape = np.exp(rng.uniform(-5, 9, 3_000))
    x = shape * np.exp(rng.normal(0, 1.2 / np.sqrt(shape) + 0.01))
    below, above = gamma_tails(shape, x)
    np.testing.assert_allclose(below, special.gammainc(shape, x), rtol=1e-11, atol=2e-13)
    np.testing.assert_allclose(above, special.gammaincc(shape, x), rtol=1e-11, atol=2e-13)
    edge = gamma_tails(np.array([2.0]), np.array([0.0]))
    assert [part.item() for part in edge] == [0.0, 1.0]


@pytest.mark.parametrize("below", [0.025, 0.5, 0.975])
def test_gamma_quantiles_are_those_of_scipy(below):
    shape = np.exp(np.random.default_rng(2).uniform(-3, 12, 2_000))
    expected = special.gammaincinv(shape, below)
    np.testing.assert_allclose(gamma_quantile(shape, below), expected, rtol=1e-11)


def test_the_interval_of_a_count_is_that_of_the_chi_square_distribution():
    counts = np.array([0, 1, 2, 3, 10, 99, 1_000, 12_345, 1_000_000], dtype=float)
    lower, upper = poisson_interval(counts)
    assert lower[0] == 0
    np.testing.assert_allclose(lower[1:], stats.chi2.ppf(0.025, 2 * counts[1:]) / 2, rtol=1e-12)
    np.testing.assert_allclose(upper, stats.chi2.ppf(0.975, 2 * counts + 2) / 2, rtol=1e-12)
    assert poisson_interval(np.array([]))[0].size == 0


def test_beta_tails_are_sums_of_exact_fractions():
    for whole in (1, 2, 7, 40):
        for part in range(1, whole + 1):
            for chance in (Fraction(1, 7), Fraction(1, 2), Fraction(9, 10)):
                exact = sum(
                    comb(whole, k) * chance**k * (1 - chance) ** (whole - k)
                    for k in range(part, whole + 1)
                )
                shapes = np.array([float(part)]), np.array([float(whole - part + 1)])
                below, above = beta_tails(*shapes, np.array([float(chance)]))
                assert below.item() == pytest.approx(float(exact), rel=1e-12)
                assert above.item() == pytest.approx(float(1 - exact), rel=1e-11, abs=1e-14)


def test_the_interval_of_a_share_is_the_exact_one_of_scipy():
    rng = np.random.default_rng(3)
    whole = rng.integers(1, 2_000, 60)
    part = np.floor(rng.random(60) * (whole + 1)).astype(int)
    part[:5], part[5:10] = 0, whole[5:10]
    lower, upper = share_interval(part.astype(float), whole.astype(float))
    for k, each in enumerate(zip(part, whole, strict=True)):
        expected = stats.binomtest(*map(int, each)).proportion_ci(method="exact")
        assert (lower[k], upper[k]) == pytest.approx((expected.low, expected.high), abs=1e-11)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 12, 51, 400])
def test_the_point_is_that_of_scipy(freedom):
    assert two_sided_95(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-12)


def test_no_freedom_is_refused():
    with pytest.raises(InputError, match="freedom"):
        two_sided_95(0)
