"""The error of a mean of values over time, against their long-run mean.

It is that of the slow part of the values: the mean square of their sums with cosines of 1 to B half
waves over the time, which give Student's t with B degrees of freedom (Lazarus and others 2018).

If values remember longer than the last wave, as funding often does, the mean varies more. So their
memory is judged first (`memories`): the squares of the cosine sums are exponential draws about the
spectrum (Whittle 1953), which is compared with those of an AR(1) with noise and of a fractional
difference of order d (Granger and Joyeux 1980), with equal priors. The mean has an interval if the
posterior chance that d is above 0.2, or that the decay takes more than a sixth of the time, is
below 0.3.

The ends of an interval are moved by the skewness of the sum (Hall 1992, `ends_of`).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl

from toolkit.reasons import Reason
from toolkit.statistics.numeric.arrays import Flags, Floats, Integers, product
from toolkit.statistics.numeric.tails import two_sided_95_between

WAVES = 8
"""How many cosines the error of a mean is from, where the time is cut into many cells."""
FEWEST_VALUES = 4
"""Of fewer numbers, one a week, a mean has no error."""
FEWEST_POINTS = 24
"""Of a shorter series the memory is not judged."""
MOST_POINTS = 1_100
"""Of a longer series neighbouring values are averaged."""

_CHANCE = 0.3
_TAIL = 0.025
_SAME = 1e-12
_MOMENTS = ("second", "third")
_ORDERS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.44, 0.47, 0.49)
_LONG_ORDER = 0.22
_LONGEST_DECAY, _LONG_DECAY = 1 / 2, 1 / 6.5
_FIRST_DECAY, _DECAY_RATIO = 0.7, 1.5
_DECAY_NOISE = (0.0, 0.15, 0.35, 0.6, 0.8)
_ORDER_NOISE = (0.0, 0.2)
_MOST_SKEWED = 0.3
"""The skewness of a mean from which on Hall's cubic turns: its ends would be at many errors."""
_STRAIGHT = 1e-6  # a skewness below this moves nothing, and would be divided by


class Band(NamedTuple):
    """The 95 % bands (lower, upper) of the mean and of the median."""

    mean: tuple[float, float]
    median: tuple[float, float]

    def moved(self, by: float) -> Band:
        """Return the bands with ``by`` added."""
        (low, high), (below, above) = self
        return Band((low + by, high + by), (below + by, above + by))


class Memory(NamedTuple):
    """How long a series remembers.

    ``reason`` says why its mean has no interval, None if it has one. ``excess`` is the variance of
    the mean over that of the slowest waves, 1 without an interval.
    """

    reason: Reason | None
    excess: float


class _Spectra(NamedTuple):
    """Spectra: one row per frequency, one column per process, ``long`` if it remembers too long."""

    inverse: Floats
    prior: Floats
    long: Flags
    excess: Floats


def waves_of(weeks: int) -> int:
    """Return how many cosines the error of a mean of so many numbers uses."""
    return round(math.pow(weeks, 2 / 3))


def moments_of(name: str, values: pl.Expr, most: int) -> list[pl.Expr]:
    """Build what `with_ends` needs of the mean of values in the order of their times.

    These are the error, and the second and third moment of the values. ``most`` is the largest
    number of values of a mean. With fewer than four the error is null.
    """
    count, apart = pl.len().cast(pl.Float64), values - values.mean()
    error = pl.lit(None, pl.Float64)
    if most >= FEWEST_VALUES:
        waves = count.pow(2 / 3).round()
        phase = math.pi * (pl.int_range(pl.len()) + 0.5) / count
        squares = (
            pl.when(wave <= waves)
            .then(2 * (apart * (wave * phase).cos()).sum().pow(2))
            .otherwise(0.0)
            for wave in range(1, waves_of(most) + 1)
        )
        error = (pl.sum_horizontal(squares) / waves).sqrt() / count
    return [
        error.alias(f"{name}_error"),
        (apart.pow(2).sum() / (count - 1)).alias(f"{name}_second"),
        (apart.pow(3).sum() * count / ((count - 1) * (count - 2))).alias(f"{name}_third"),
    ]


def with_ends(found: pl.DataFrame, key: str, count: str, *names: str) -> pl.DataFrame:
    """Add the ends of 95 % intervals, less their mean: ``NAME_lower`` and ``NAME_upper``.

    ``count`` is the column of how many values a mean is of. With fewer than four the ends are null.
    The skewness is that of all rows of a ``key``.
    """
    counts = found[count].cast(pl.Float64).fill_null(0.0).to_numpy()
    enough = counts >= FEWEST_VALUES
    kept = np.maximum(counts, FEWEST_VALUES)
    far = two_sided_95_between(np.round(kept ** (2 / 3)))
    ends = {}
    for name in names:
        second, third = (
            pl.when(pl.col(count) >= FEWEST_VALUES).then(f"{name}_{moment}").mean().over(key)
            for moment in _MOMENTS
        )
        columns = found.select(pl.col(f"{name}_error"), third / second.pow(1.5))
        error, skewness = (
            each.cast(pl.Float64).fill_null(np.nan).to_numpy() for each in columns.iter_columns()
        )
        of_mean = np.clip(skewness / np.sqrt(kept), -_MOST_SKEWED, _MOST_SKEWED)
        both = ends_of(error, of_mean, far)
        for end, values in zip(("lower", "upper"), both, strict=True):
            ends[f"{name}_{end}"] = pl.Series(np.where(enough, values, np.nan))
    return found.with_columns(**ends).with_columns(pl.col(*ends).fill_nan(None))


def ends_of(error: Floats, skewness: Floats, far: Floats) -> tuple[Floats, Floats]:
    """Compute the ends of 95 % intervals less their mean, ``far`` errors away without skewness."""
    return -error * unskewed(far, skewness), -error * unskewed(-far, skewness)


def unskewed(quantile: Floats, skewness: Floats) -> Floats:
    """Invert Hall's t + a t^2 / 3 + a^2 t^3 / 27 + a / 6: the quantile of a skewed error."""
    straight = ~(np.abs(skewness) >= _STRAIGHT) | np.isinf(skewness)
    a = np.where(straight, 1.0, skewness)
    turned = 3 / a * (np.cbrt(1 + a * (quantile - a / 6)) - 1)
    return np.where(straight, quantile, turned)


def slow_variance(of_cells: Floats, length: float = 0.0) -> Floats:
    """Compute the variance of each row's sum over all cells, from its slowest waves.

    A row has the sums of values less their mean over cells of equal time. If each value is itself a
    mean over a part ``length`` of the whole time, what that takes from the waves is added back.
    """
    found = product(of_cells, _cosines(of_cells.shape[1]))
    taken = np.sinc(np.arange(1, WAVES + 1) * length / 2) ** 2
    return np.asarray((found**2).mean(axis=1) * of_cells.shape[1] / taken.mean())


def evenly(at: Integers, values: Floats, step: int) -> Floats:
    """Place values of rising times at equal steps from the first, NaN where there is none."""
    place = (at - at[0]) // step
    series = np.full(int(place[-1]) + 1, np.nan)
    series[place] = values
    return series


def memories(series: list[Floats]) -> list[Memory]:
    """Judge how long each series remembers: values at equal steps, NaN for unknown.

    The outer 2.5 % of values are clipped, so that a few spikes do not decide.
    """
    return [_memory(values) for values in series]


def _memory(values: Floats) -> Memory:
    known = np.flatnonzero(~np.isnan(values))
    if known.size < FEWEST_POINTS:
        return Memory(Reason.TOO_FEW, 1.0)
    inside = _shortened(values[known[0] : known[-1] + 1])
    seen = ~np.isnan(inside)
    if 2 * np.count_nonzero(seen) < inside.size:
        return Memory(Reason.TOO_FEW, 1.0)
    apart = _without_spikes(inside[seen])
    least, most = float(apart.min()), float(apart.max())
    if most - least <= _SAME * max(abs(least), abs(most)):
        return Memory(None, 1.0)
    # a step without a value counts as the mean
    inside[seen], inside[~seen] = apart - apart.mean(), 0.0
    squares, spectra = _cosine_squares(inside), _spectra(inside.size)
    likely = spectra.prior - 0.5 * squares.size * np.log(squares @ spectra.inverse)
    weights = np.exp(likely - likely.max())
    short = np.where(spectra.long, 0.0, weights)
    of_short = float(short.sum())
    if of_short <= (1 - _CHANCE) * float(weights.sum()):
        return Memory(Reason.LONG_MEMORY, 1.0)
    return Memory(None, max(float((short * spectra.excess).sum()) / of_short, 1.0))


def _shortened(values: Floats) -> Floats:
    """Average neighbouring known values, to at most `MOST_POINTS`."""
    together = -(-values.size // MOST_POINTS)
    if together == 1:
        return values.copy()
    parts = values[: values.size // together * together].reshape(-1, together)
    known = ~np.isnan(parts)
    count = known.sum(axis=1)
    sums = np.where(known, parts, 0.0).sum(axis=1)
    return np.where(2 * count >= together, sums / np.maximum(count, 1), np.nan)


def _without_spikes(values: Floats) -> Floats:
    """Clip the outer values to the ends of the others, unless these are all the same."""
    least, most = np.quantile(values, [_TAIL, 1 - _TAIL])
    return (
        values if most - least <= _SAME * max(abs(least), abs(most)) else values.clip(least, most)
    )


def _cosine_squares(values: Floats) -> Floats:
    """Compute the squares of the sums with cosines of 1, 2 and more half waves."""
    count = values.size
    turned = np.exp(-0.5j * np.pi * np.arange(count) / count)
    sums = (np.fft.rfft(np.concatenate([values, values[::-1]]))[:count] * turned).real[1:]
    return np.asarray(sums**2 / (2 * count))


@lru_cache(maxsize=64)
def _spectra(count: int) -> _Spectra:
    angle = np.pi * np.arange(1, count) / count
    columns, long, excess = [np.ones(count - 1)], [False], [1.0]

    def add(spectrum: Floats, of_mean: float, noises: tuple[float, ...], is_long: bool) -> None:
        for noise in noises:
            column = (1 - noise) * spectrum + noise
            columns.append(column)
            long.append(is_long)
            excess.append(((1 - noise) * of_mean + noise) / column[:WAVES].mean())

    decay = _FIRST_DECAY
    while decay < _LONGEST_DECAY * count:
        left = math.exp(-1 / decay)
        spectrum = (1 - left**2) / (1 + left**2 - 2 * left * np.cos(angle))
        ends = 2 * left * (1 - left**count) / (count * (1 - left**2))
        of_mean = (1 + left) / (1 - left) - ends
        add(spectrum, of_mean, _DECAY_NOISE, decay > _LONG_DECAY * count)
        decay *= _DECAY_RATIO
    for order in _ORDERS:
        scale = math.gamma(1 - order) ** 2 / math.gamma(1 - 2 * order)
        spectrum = scale * (2 * np.sin(angle / 2)) ** (-2 * order)
        add(spectrum, _of_mean(order, count), _ORDER_NOISE, order > _LONG_ORDER)
    table, marks = np.stack(columns, axis=1), np.array(long)
    shares = np.where(marks, marks.sum(), (~marks).sum())
    prior = -np.log(shares) - 0.5 * np.log(table).sum(axis=0)
    return _Spectra(1 / table, prior, marks, np.array(excess))


def _of_mean(order: float, count: int) -> float:
    """Return the limit of the variance of the mean of a fractional difference (Hosking 1996)."""
    shape = math.gamma(1 - order) / (math.gamma(1 + order) * (1 + 2 * order))
    return float(shape * count ** (2 * order))


@lru_cache(maxsize=16)
def _cosines(cells: int) -> Floats:
    """Return the cosines of 1 to B half waves over so many cells, one per column, of length 1."""
    half_waves = np.outer(np.arange(cells) + 0.5, np.arange(1, WAVES + 1))
    return np.asarray(math.sqrt(2 / cells) * np.cos(np.pi / cells * half_waves))
