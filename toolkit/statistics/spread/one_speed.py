"""A test of one speed beneath noise, the model that a half-life's interval rests on.

With x the deviations of an AR(1) with noise drawn anew at each observation, u(t) = x(t) - phi x(t
- 1) has no covariance with any observation before t - 1, nor with a wave of fixed period. So the
sums over t of u(t) times a window of earlier observations, and of u(t) times a cosine, are zero on
average. The windows are 2, 3 to 5, 6 to 20, 21 to 80, 81 to 320, 321 to 1,440 steps back and so on
by four, up to a seventh of the span. The waves are the first three half waves of the span, which a
shift of level or a drift follows, and that of the day, where the span has three.

Of each of the two groups the sums give a statistic J = g' V^-1 g (Hansen 1982), with V from the
sums over blocks of time, so that it holds under changing volatility, gaps and noise. Each J is
chi-squared at the true phi, with one degree of freedom a sum, and so, nearly, is what both add up
to. The smallest sum over the half-lives of the interval is compared with that distribution, with
one degree less. Noise with memory, two speeds, long memory, a season and a shift of level raise it.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from toolkit.statistics.numeric.lags import Floats, Integers, Observations

LEVEL = 0.025
"""The interval is given where the chance of a worse fit is at least this."""

_WINDOWS = (1, 2, 5, 20, 80, 320, 1_440)
_SPAN_PER_LAG = 7
_HALF_WAVES = 3
_DAY_S, _LEAST_DAYS, _LEAST_STEPS_A_DAY = 86_400, 3, 4
_BLOCK_STEPS = (10, 60)
_BLOCKS = 160
_LEAST_BLOCKS = 30
_SPEEDS = 25
_NEAREST_TO_ONE = 1e-6
_SINGULAR = 1e-10


def misfits(held: Observations, lower: Floats, upper: Floats) -> Floats:
    """Compute the chance of a worse fit of each trajectory, NaN where it cannot be tested.

    ``lower`` and ``upper`` are the ends of the intervals of the half-lives, in steps: 0 for below
    one, infinite for none, NaN where there is no interval.
    """
    found = np.full(len(held.numbers), np.nan)
    for place, (first, last) in enumerate(zip(held.begins, held.begins[1:], strict=False)):
        if not math.isnan(lower[place]):
            a_step = held.a_step if isinstance(held.a_step, int) else int(held.a_step[first])
            found[place] = _misfit(
                held.value[first:last],
                held.key[first:last] - held.key[first],
                a_step,
                int(held.step_s[place]),
                _speeds(lower[place], upper[place]),
            )
    return found


def chance_beyond(value: float, freedom: int) -> float:
    """Return the chance that chi-squared of so many degrees of freedom is above a value.

    By its finite series (Abramowitz and Stegun 1964, 26.4.4 and 26.4.5).

    >>> round(chance_beyond(18.307, 10), 6), round(chance_beyond(3.8415, 1), 6)
    (0.050001, 0.049999)
    """
    half, odd = value / 2, freedom % 2
    term = math.exp(-half) * (math.sqrt(half / math.pi) * 2 if odd else 1.0)
    total = math.erfc(math.sqrt(half)) if odd else 0.0
    for power in range(1 + odd, freedom + 1, 2):
        total += term
        term *= value / (power + 1)
    return total


def _speeds(lower: float, upper: float) -> Floats:
    """Spread phi over an interval of half-lives (steps), ends included."""
    low, high = (0.0 if steps == 0 else 0.5 ** (1 / steps) for steps in (lower, upper))
    first, last = (max(1 - phi, _NEAREST_TO_ONE) for phi in (low, high))
    left = np.geomspace(first, last, _SPEEDS)
    return np.append(1 - left, 1.0) if high == 1 else np.asarray(1 - left)


def _misfit(value: Floats, key: Integers, a_step: int, step_s: int, speeds: Floats) -> float:
    """Compute the chance of a worse fit of one trajectory."""
    span = int(key[-1]) // a_step + 1
    earlier = _before(key, a_step)
    previous = earlier - 1
    paired = np.flatnonzero((previous >= 0) & (key[previous] == key - a_step))
    size = min(max(span // _BLOCKS, _BLOCK_STEPS[0]), _BLOCK_STEPS[1])
    block = np.flatnonzero(np.diff(key[paired] // (size * a_step), prepend=-1))
    if len(block) < _LEAST_BLOCKS:
        return math.nan
    x = value - value.mean()
    now, before = x[paired], x[previous[paired]]
    worst, sums = np.zeros(len(speeds)), 0
    for instruments in (
        _windows(x, key, a_step, span, paired),
        _waves((key[paired] + a_step / 2) / a_step, span, _DAY_S / step_s),
    ):
        a, b = (np.add.reduceat(instruments * each, block, axis=1) for each in (now, before))
        worst += _distances(a, b, speeds)
        sums += len(instruments)
    return chance_beyond(float(worst.min()), sums - 1)


def _before(key: Integers, lag: int) -> Integers:
    """Count of each observation those at least ``lag`` before it, on the axis of the keys."""
    if key[-1] == len(key) - 1:
        return np.maximum(np.arange(len(key)) - lag + 1, 0)
    if key[-1] > 4 * len(key):
        return np.searchsorted(key, key - lag, side="right")
    until = np.cumsum(np.bincount(key))
    return np.where(key >= lag, until[key - lag], 0)


def _windows(x: Floats, key: Integers, a_step: int, span: int, paired: Integers) -> Floats:
    """Sum the observations in each window before the paired ones."""
    until = np.append(0.0, np.cumsum(x))
    edges = list(_WINDOWS)
    while 4 * edges[-1] * _SPAN_PER_LAG <= span:
        edges.append(4 * edges[-1])
    held = [edge for edge in edges if edge * _SPAN_PER_LAG <= span]
    # those at least one step more than an edge before: the edge's own step is the window's last
    sums = [until[_before(key, edge * a_step + 1)[paired]] for edge in held]
    return np.stack([near - far for near, far in pairwise(sums)])


def _waves(place: Floats, span: int, day: float) -> Floats:
    """Compute the half waves of the span and the wave of the day, at places in steps."""
    waves = [np.cos(np.pi * number * place / span) for number in range(1, _HALF_WAVES + 1)]
    if day >= _LEAST_STEPS_A_DAY and span >= _LEAST_DAYS * day:
        angle = 2 * np.pi * place / day
        waves += [np.cos(angle), np.sin(angle)]
    return np.stack(waves)


def _distances(a: Floats, b: Floats, speeds: Floats) -> Floats:
    """Compute J at each speed from the sums over blocks of u's two parts by instrument."""
    phi = speeds[:, None]
    sums = a.sum(axis=1) - phi * b.sum(axis=1)
    both = a @ b.T
    aa, ab, bb = a @ a.T, both + both.T, b @ b.T
    variance = aa - phi[:, None] * ab + np.square(phi)[:, None] * bb
    size = np.sqrt(np.einsum("kii->ki", variance))
    unit = np.divide(sums, size, out=np.zeros_like(sums), where=size > 0)
    alike = (
        variance / np.where(size > 0, size, 1)[:, :, None] / np.where(size > 0, size, 1)[:, None]
    )
    inverse = np.linalg.pinv(alike, rcond=_SINGULAR, hermitian=True)
    return np.asarray(np.einsum("ki,kij,kj->k", unit, inverse, unit))
