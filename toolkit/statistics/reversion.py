"""How fast a correlation decays, with an interval that holds where it hardly does.

The decay over a lag k of observations x about their mean is tested at each half-life: with z an
observation, x(1) the next one and x(1 + k) the one k steps on, the sum of z (x(1 + k) - phi^k x(1))
is zero on average where phi is the true decay per step. Noise that is drawn anew at each
observation is in none of the three products' means, so that it moves nothing but the spread of the
sum. Divided by its standard error, which is taken from the sums over blocks of time and so holds
under noise, overlapping lags and changing volatility, the sum is Student's t where the window is
many half-lives long, and the statistic of Dickey and Fuller where there is no reversion. In between
its distribution depends on one number, c: how many times ln 2 half-lives fit into the window. The
half-lives that a test at 5 % does not reject are the interval (a confidence set by inversion, after
Stock 1991), and the one at which the statistic is at its median is the estimate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from toolkit.statistics.lags import Decay, Floats

CRITICAL = np.array(
    [
        (0.0, -3.127, -1.566, 0.229),
        (0.5, -3.035, -1.441, 0.387),
        (1.0, -2.961, -1.333, 0.490),
        (2.0, -2.858, -1.152, 0.669),
        (3.0, -2.801, -1.043, 0.784),
        (5.0, -2.702, -0.868, 0.971),
        (7.5, -2.578, -0.726, 1.130),
        (10.0, -2.538, -0.645, 1.241),
        (15.0, -2.447, -0.538, 1.389),
        (20.0, -2.384, -0.466, 1.452),
        (30.0, -2.314, -0.388, 1.556),
        (50.0, -2.260, -0.296, 1.665),
        (75.0, -2.187, -0.239, 1.699),
        (100.0, -2.176, -0.217, 1.731),
        (150.0, -2.135, -0.166, 1.787),
        (200.0, -2.110, -0.148, 1.798),
    ]
)
"""c, and the 2.5 %, 50 % and 97.5 % points of the statistic under it.

From 60,000 stationary paths of 4,000 steps each: the t-statistic of a regression with an intercept.
"""

_NORMAL = np.array([[-1.959964], [0.0], [1.959964]])
_LEAST_FREEDOM = 4.0
_NOISE_SHARE = 0.05
_GRID = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 120)])
_HALVINGS = 48


class Reversion(NamedTuple):
    """Of each trajectory, half-lives in steps: 0 for below one step, infinite for no reversion."""

    steps: Floats
    lower: Floats
    """NaN, as ``upper``, where the blocks are too few for an interval."""
    upper: Floats


def reversion(decay: Decay, noise_share: Floats) -> Reversion:
    """Estimate the half-lives, and their 95 % intervals, from the sums over triples.

    The distribution under no reversion assumes that the sum's error comes from the spread itself.
    Where times without a triple weigh some steps more than others, part of it is normal. Then
    each point lies between the table's and the normal's, by the share of the error that is the
    spread's own (`_own_share`). Where more than 5 % of the variance is noise, the estimate and the
    lower bound are those of the normal, which makes the interval wider.
    """
    with np.errstate(all="ignore"):
        freedom = decay.b**2 / decay.bb
        own = _own_share(decay)
        noisy = noise_share > _NOISE_SHARE
        of_normal = np.where(noisy, 0.0, own)
        found = decay.span * math.log(2) / _accepted_from(decay, freedom, own, of_normal)
        upper, steps, lower = np.where(np.isnan(found), 0.0, found)
        unknown = ~(freedom >= _LEAST_FREEDOM)
        return Reversion(steps, np.where(unknown, np.nan, lower), np.where(unknown, np.nan, upper))


def _own_share(decay: Decay) -> Floats:
    """Compute the share of the sum's error that is the spread's own, and not from random gaps.

    A step is in the sum once for each triple whose lag covers it, out of k possible ones. With
    observations missing at random, a share q of them left, p = q^3 of the times have a triple, and
    two neighbouring triples share an observation. So the squared deviation of that count from its
    mean k p is k p (1 - p) u on average, with u = 1 + 2 (1 - 1/k) q^2 / (1 + q + q^2). These
    deviations are drawn apart from the spread. The sum's error is (1 + u (1 - p) / (p k)) times
    that without gaps, and the share is one over the root of it.
    """
    present = np.minimum(decay.triples / decay.span, 1)
    left = np.cbrt(present)
    uneven = 1 + 2 * (1 - 1 / decay.lag) * left**2 / (1 + left + left**2)
    return np.asarray(1 / np.sqrt(1 + uneven * (1 - present) / (present * decay.lag)))


def _accepted_from(decay: Decay, freedom: Floats, *own: Floats) -> Floats:
    """Find the smallest c at which the statistic reaches each quantile: NaN where it is at none.

    The result has a row for each quantile. The largest c asked about is that of a half-life of one
    step. ``own`` are the shares of the spread's own error: for the lowest, and for the others.
    """
    shares = np.stack([own[min(quantile, 1)] for quantile in range(len(_NORMAL))])
    # Fisher's expansion of Student's 97.5 % point, over the normal's
    student = 1 + 1.2104 / freedom + 1.44 / freedom**2

    def excess(c: Floats) -> Floats:
        critical = _critical(c, shares)
        found = _statistic(decay, student, c) - critical
        return np.where(np.isnan(found), -critical, found)

    grid = decay.span * math.log(2) * _GRID[:, None]
    reached = excess(np.stack([grid] * len(_NORMAL), axis=1)) >= 0
    at = reached.argmax(axis=0)
    rows = np.arange(len(decay.span))
    below, above = grid[np.maximum(at - 1, 0), rows], grid[at, rows]
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        inside = excess(middle) >= 0
        below, above = np.where(inside, below, middle), np.where(inside, middle, above)
    return np.where(at > 0, above, np.where(reached[0], 0.0, np.nan))


def _statistic(decay: Decay, student: Floats, c: Floats) -> Floats:
    """Compute the sum over its standard error, brought from Student's scale to the normal's."""
    left = np.exp(-decay.lag * c / decay.span)
    variance = decay.aa - 2 * left * decay.ab + left * left * decay.bb
    error = np.sqrt(np.maximum(variance, 0) / (1 - decay.overlap))
    return (decay.a - left * decay.b) / (error * student)


def _critical(c: Floats, own: Floats) -> Floats:
    """Interpolate the table between roots of c, and beyond its end towards the normal.

    The last axes of ``c`` are the quantiles and the trajectories, as those of the result.
    """
    of_c, ends = CRITICAL[:, 0], CRITICAL[-1, 1:, None]
    roots, of_roots, near = np.sqrt(c), np.sqrt(of_c), np.empty_like(c)
    for quantile, points in enumerate(CRITICAL.T[1:]):
        near[..., quantile, :] = np.interp(roots[..., quantile, :], of_roots, points)
    far = _NORMAL + (ends - _NORMAL) * np.sqrt(of_c[-1] / np.maximum(c, of_c[-1]))
    found = np.where(c <= of_c[-1], near, far)
    return np.asarray(own * found + (1 - own) * _NORMAL)
