"""Tails and quantiles of the gamma, beta and Student's distributions, for exact intervals.

Shapes are numbers above 0, whole or not. Functions take arrays of one length, and are right to
about 12 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import polars as pl

from toolkit.reasons import Reason
from toolkit.statistics.core.contract import first_reason, whole_number
from toolkit.statistics.numeric.arrays import Floats

_EXACT_BELOW = 15.0
_SMALL = 0.1
_TERMS = 22
_MOST_STEPS = 20_000
_MOST_HALVINGS = 100
_LEAST = 1e-300
_DIGITS = 2e-15


def gamma_tails(shape: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Compute the chances that a gamma variable of scale 1 is below and above x."""
    shape, x = np.broadcast_arrays(np.asarray(shape, float), np.asarray(x, float))
    some = x > 0
    low = some & (x < shape + 1)
    high = some & ~low
    below = np.zeros(x.shape)
    above = np.ones(x.shape)
    below[low] = _poisson(shape[low], x[low]) * _series(shape[low], x[low])
    above[low] = 1 - below[low]
    above[high] = _poisson(shape[high], x[high]) * shape[high] * _fraction(shape[high], x[high])
    below[high] = 1 - above[high]
    return below, above


def gamma_quantile(shape: Floats, below: float) -> Floats:
    """Compute the point of a gamma variable of scale 1 with a given chance below it."""
    shape = np.asarray(shape, float)
    normal = _normal_quantile(below)
    # Wilson and Hilferty, and for small shapes the first term of the series
    root = 1 - 1 / (9 * shape) + normal / (3 * np.sqrt(shape))
    logs = np.array([math.lgamma(each + 1) for each in shape.tolist()])
    first = (math.log(below) + logs) / shape
    start = np.where(root > 0.2, np.log(shape) + 3 * np.log(np.maximum(root, 0.2)), first)

    def excess(at: Floats) -> tuple[Floats, Floats]:
        x = np.exp(at)
        low, high = gamma_tails(shape, x)
        slope = _poisson(shape, x) * shape
        if below <= 0.5:
            return np.log(low / below), slope / low
        return np.log((1 - below) / high), slope / high

    return np.exp(_solved(excess, start, np.full(shape.shape, -700.0), np.full(shape.shape, 60.0)))


def poisson_interval(counts: Floats) -> tuple[Floats, Floats]:
    """Compute the exact 95 % interval of the mean of Poisson counts (Garwood 1936)."""
    counts, place = np.unique(np.asarray(counts, float), return_inverse=True)
    lower = np.zeros(counts.shape)
    some = counts > 0
    lower[some] = gamma_quantile(counts[some], 0.025)
    return lower[place], gamma_quantile(counts + 1, 0.975)[place]


def beta_tails(first: Floats, second: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Compute the chances that a beta variable is below and above x, from 0 to 1."""
    first, second, x = np.broadcast_arrays(
        *(np.asarray(each, float) for each in (first, second, x))
    )
    turned = x > (first + 1) / (first + second + 2)
    a, b = np.where(turned, second, first), np.where(turned, first, second)
    at = np.where(turned, 1 - x, x)
    near = np.zeros(x.shape)
    some = at > 0
    part = _beta_slope(a[some], b[some], at[some], 1 - at[some]) / a[some]
    near[some] = part * _beta_fraction(a[some], b[some], at[some])
    return np.where(turned, 1 - near, near), np.where(turned, near, 1 - near)


def share_interval(part: Floats, whole: Floats) -> tuple[Floats, Floats]:
    """Compute the exact 95 % interval of the share ``part / whole`` (Clopper and Pearson 1934)."""
    # each pair of counts once, as one number
    pairs, place = np.unique(np.asarray(part) + 1j * np.asarray(whole), return_inverse=True)
    part, whole = pairs.real, pairs.imag
    lower, upper = np.zeros(part.shape), np.ones(part.shape)
    some, more = part > 0, part < whole
    lower[some] = _beta_quantile(part[some], (whole - part)[some] + 1, 0.025)
    upper[more] = 1 - _beta_quantile((whole - part)[more], part[more] + 1, 0.025)
    return lower[place], upper[place]


def share_columns(count: str, of: str, name: str) -> list[pl.Expr]:
    """Build a count, its share of another with the exact interval, and the reason for none."""

    def end(place: int) -> pl.Expr:
        def interval(both: Sequence[pl.Series]) -> pl.Series:
            found = share_interval(*(each.to_numpy() for each in both))[place]
            return pl.Series(found, dtype=pl.Float64)

        exact = pl.map_batches([count, of], interval, return_dtype=pl.Float64)
        return pl.when(pl.col(of) > 0).then(exact)

    return [
        pl.col(count),
        pl.when(pl.col(of) > 0).then(pl.col(count) / pl.col(of)).alias(name),
        end(0).alias(f"{name}_lower"),
        end(1).alias(f"{name}_upper"),
        first_reason({Reason.EMPTY: pl.col(of) == 0}).alias(f"{name}_reason"),
    ]


def _beta_quantile(first: Floats, second: Floats, below: float) -> Floats:
    mean = first / (first + second)
    start = np.log(mean / (1 - mean)) - 2 / np.sqrt(first * (1 - mean) + 0.5)

    def excess(at: Floats) -> tuple[Floats, Floats]:
        x, rest = 1 / (1 + np.exp(-at)), 1 / (1 + np.exp(at))
        low = beta_tails(first, second, x)[0]
        return np.log(low / below), _beta_slope(first, second, x, rest) / low

    far = np.full(mean.shape, 700.0)
    return 1 / (1 + np.exp(-_solved(excess, start, -far, far)))


def _solved(
    excess: Callable[[Floats], tuple[Floats, Floats]], at: Floats, low: Floats, high: Floats
) -> Floats:
    """Find where a rising function is 0, by Newton's steps that stay between the bounds."""
    at = np.clip(at, low, high)
    for _ in range(_MOST_HALVINGS if at.size else 0):
        with np.errstate(all="ignore"):
            missing, slope = excess(at)
            step = at - missing / slope
        low, high = np.where(missing < 0, at, low), np.where(missing > 0, at, high)
        inside = (step >= low) & (step <= high)
        moved = np.where(missing == 0, at, np.where(inside, step, (low + high) / 2))
        # a step of Newton's leaves an error of its square
        enough = np.where(inside, 1e-9, 1e-14)
        done = np.abs(moved - at) <= enough * np.maximum(np.abs(at), 1)
        at = moved
        if done.all():
            break
    return at


def _poisson(count: Floats, mean: Floats) -> Floats:
    """Compute the Poisson density of a count above 0, whole or not, without loss (Loader 2000)."""
    density = np.exp(-_stirling(count) - _deviance(count, mean)) / np.sqrt(2 * np.pi * count)
    return np.asarray(density, np.float64)


def _beta_slope(first: Floats, second: Floats, x: Floats, rest: Floats) -> Floats:
    """Compute x^a (1 - x)^b / B(a, b): the slope of the chance by the logit of x."""
    whole = first + second
    logs = _stirling(whole) - _stirling(first) - _stirling(second)
    logs -= _deviance(first, whole * x) + _deviance(second, whole * rest)
    slope = np.exp(logs) * np.sqrt(first * second / (2 * np.pi * whole))
    return np.asarray(slope, np.float64)


def _stirling(count: Floats) -> Floats:
    """Compute by how much log(count!) exceeds Stirling's formula."""
    inverse = 1 / count
    square = inverse * inverse
    far = inverse * (
        1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    )
    near = count < _EXACT_BELOW
    exact = [
        math.lgamma(each + 1) - (each + 0.5) * math.log(each) + each - 0.5 * math.log(2 * math.pi)
        for each in count[near].tolist()
    ]
    far[near] = exact
    return far


def _deviance(count: Floats, mean: Floats) -> Floats:
    """Compute count log(count / mean) + mean - count, also if the two are close."""
    apart = (mean - count) / count
    with np.errstate(all="ignore"):
        wide = apart - np.log(mean / count)
    near = np.where(np.abs(apart) < _SMALL, apart, 0.0)
    close = np.zeros(count.shape)
    for power in range(_TERMS, 1, -1):
        close = (-1) ** power / power + near * close
    found = np.where(np.abs(apart) < _SMALL, near * near * close, wide)
    return np.asarray(count * found, np.float64)


def _series(shape: Floats, x: Floats) -> Floats:
    """Sum 1 + x / (a + 1) + x^2 / ((a + 1)(a + 2)) + ... to the last digit."""
    total, term, at = np.ones(x.shape), np.ones(x.shape), shape.copy()
    for _ in range(_MOST_STEPS if x.size else 0):
        at += 1
        term *= x / at
        total += term
        if (term <= _DIGITS * total).all():
            break
    return total


def _fraction(shape: Floats, x: Floats) -> Floats:
    """Evaluate the continued fraction of the upper gamma integral, by Lentz."""
    below = x + 1 - shape
    other = np.full(x.shape, 1 / _LEAST)
    inverse = 1 / _off_zero(below)
    found = inverse.copy()
    for step in range(1, _MOST_STEPS if x.size else 1):
        part = -step * (step - shape)
        below = below + 2
        inverse = 1 / _off_zero(part * inverse + below)
        other = _off_zero(below + part / other)
        change = inverse * other
        found *= change
        if (np.abs(change - 1) <= _DIGITS).all():
            break
    return found


def _beta_fraction(first: Floats, second: Floats, x: Floats) -> Floats:
    """Evaluate the continued fraction of the lower beta integral, by Lentz."""
    other = np.ones(x.shape)
    inverse = 1 / _off_zero(1 - (first + second) * x / (first + 1))
    found = inverse.copy()
    for step in range(1, _MOST_STEPS if x.size else 1):
        at = first + 2 * step
        even = step * (second - step) * x / ((at - 1) * at)
        odd = -(first + step) * (first + second + step) * x / (at * (at + 1))
        for part in (even, odd):
            inverse = 1 / _off_zero(1 + part * inverse)
            other = _off_zero(1 + part / other)
            change = inverse * other
            found *= change
        if (np.abs(change - 1) <= _DIGITS).all():
            break
    return found


def _off_zero(values: Floats) -> Floats:
    return np.where(np.abs(values) < _LEAST, _LEAST, values)


def _normal_quantile(below: float) -> float:
    """Return about where a standard normal variable has a chance below it, as a start."""
    low, high = -9.0, 9.0
    for _ in range(50):
        middle = (low + high) / 2
        small = 0.5 * math.erfc(-middle / math.sqrt(2)) < below
        low, high = (middle, high) if small else (low, middle)
    return low


_HALVINGS = 100


@cache
def two_sided_95(freedom: int) -> float:
    """Return the 97.5 % point of Student's t, for a whole number of degrees of freedom from 1."""
    whole_number("freedom", freedom, 1)
    below, above = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        if _inside(middle, freedom) < 0.95:
            below = middle
        else:
            above = middle
    return math.sqrt(freedom) * math.tan(below)


def two_sided_95_between(freedom: Floats) -> Floats:
    """Return these points for any degrees of freedom, NaN for NaN."""
    known = {max(int(each), 1) for each in freedom.ravel().tolist() if not math.isnan(each)}
    if not known:
        return np.full(freedom.shape, np.nan)
    whole = sorted(known | {each + 1 for each in known})
    points = [two_sided_95(each) for each in whole]
    return np.interp(-1 / freedom, [-1 / each for each in whole], points)


def two_sided_chance(t: Floats, freedom: Floats) -> Floats:
    """Return the chance that abs(Student's t) is at least each, for any freedom above 0."""
    return beta_tails(freedom / 2, np.full(t.shape, 0.5), freedom / (freedom + t * t))[0]


def freedom_of(squares: Floats) -> float:
    """Return the degrees of freedom of a variance that is a sum of squares (Satterthwaite 1946)."""
    most = float(np.square(squares).sum())
    return float(squares.sum()) ** 2 / most if most else math.inf


def _inside(angle: float, freedom: int) -> float:
    """Sum the chance that abs(t) is below sqrt(freedom) tan(angle), by its finite series."""
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for power in range(2 + odd, freedom - 1, 2):
        term *= math.cos(angle) ** 2 * (power - 1) / power
        total += term
    share = math.sin(angle) * total
    return 2 / math.pi * (angle + share) if odd else share


def false_discoveries(p_value: pl.Expr, *by: str) -> pl.Expr:
    """Build the q-values of p-values, by Benjamini and Hochberg. A null is not a test.

    ``by`` names columns of families of tests, by default all rows.
    """
    scaled = p_value * p_value.count() / p_value.rank("max")
    # of the groups that are at least so unsure, the smallest
    order = scaled.sort_by(p_value, descending=True, nulls_last=True).cum_min()
    found = order.gather(p_value.rank("ordinal", descending=True) - 1)
    return found.over(*by) if by else found
