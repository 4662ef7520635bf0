"""95 % bands for the mean and the median over windows that overlap, by a block bootstrap.

Holdings entered an hour apart share most of their settlements, so that many entries are few
observations. Here whole stretches of time are drawn again instead of entries (circular blocks,
Politis and Romano 1992). A block is an eighth of the time, and where five horizons are longer than
that, five horizons, at most a quarter of the time: so it holds several horizons, and what a rate
remembers. Few blocks show too little of the variance, and its estimate is itself uncertain. So
the bands are Student's: as a normal figure over the root of its circular block variance is
distributed where blocks stay a fixed part of the time.

Where most is earned in a few times of high rates, the mean of the entries is mostly below the true
one, and the less certain the higher it is. So the ends of its band are moved by the skewness of the
sums over blocks (Hall 1992, On the removal of skewness by transformation, Journal of the Royal
Statistical Society B 54).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

FEWEST_HORIZONS = 12
"""The fewest horizons, one after the other, that the entries must span for a band."""

_FEWEST_ENTRIES = 24
_CELLS = 120
_LEAST_PART, _LARGEST_PART = 1 / 8, 1 / 4
_HORIZONS_A_BLOCK = 5
_MEMORY = 1.05  # what a rate remembers beyond a block, chosen on AR(1) rates
_DRAWS = 499
_SEED = 20_261_123
_RANKS = 128
_NORMAL = 1.959964
_STRAIGHT = 1e-6  # a skewness below this moves nothing, and would be divided by

Numbers = npt.NDArray[np.float64]
Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Band:
    """The 95 % bands of the mean and of the median, each the lower and the upper end."""

    mean: tuple[float, float]
    median: tuple[float, float]

    def moved(self, by: float) -> Band:
        """Return the bands of the values with ``by`` added to each.

        >>> Band((0.0, 2.0), (1.0, 2.0)).moved(-1).mean
        (-1.0, 1.0)
        """
        (low, high), (below, above) = self.mean, self.median
        return Band((low + by, high + by), (below + by, above + by))


def band(ts: Times, values: Numbers, horizon_s: int, every_s: int) -> Band | None:
    """Return the bands of values of windows that begin at ``ts`` (s, rising), or None for too few.

    ``every_s`` is the time between two windows where none is missing. There are too few where the
    windows span fewer than twelve horizons, where more than half of that time is without a window,
    or where there are fewer than 24. Draws are by a fixed seed, so that equal values have equal
    bands.

    >>> ts = np.arange(2400) * 3600
    >>> found = band(ts, np.sin(ts / 7200), 28800, 3600)
    >>> [round(end, 2) for end in found.mean]
    [-0.0, 0.0]
    >>> band(ts[:90], np.ones(90), 28800, 3600) is None
    True
    """
    if ts.size < _FEWEST_ENTRIES:
        return None
    span_s = int(ts[-1] - ts[0]) + every_s
    observed_s = ts.size * every_s
    if observed_s < FEWEST_HORIZONS * horizon_s or 2 * observed_s < span_s:
        return None
    part = min(max(_HORIZONS_A_BLOCK * horizon_s / span_s, _LEAST_PART), _LARGEST_PART)
    cells = math.ceil(part * _CELLS)
    quantile = _quantile(cells / _CELLS)
    # sums over overlapping windows are correlated over a horizon: a block misses a third of it
    quantile *= _MEMORY / math.sqrt(1 - horizon_s / (3 * span_s * cells / _CELLS))
    cell = (ts - ts[0]) * _CELLS // span_s
    counts = np.bincount(cell, minlength=_CELLS).astype(np.float64)
    # differences from the mean keep the digits of what varies
    mean = float(values.mean())
    sums = np.bincount(cell, weights=values - mean, minlength=_CELLS).astype(np.float64)
    drawn = _drawn(cells, sums)
    means = mean + drawn / _drawn(cells, counts)
    if (spread := float(drawn.std())) > 0:
        of_all, skewness = _moments_of_all(cells, sums)
        quantile *= of_all / spread
    else:
        skewness = 0.0
    median = float(np.median(values))
    return Band(
        mean=_about(mean, means, quantile, skewness),
        median=_about(median, _medians(cell, values, cells), quantile),
    )


def _medians(cell: Times, values: Numbers, cells: int) -> Numbers:
    """Compute the median of each draw, from how many values of each cell are below some ranks."""
    order = np.argsort(values)
    ranked = values[order]
    places = np.ceil(np.linspace(0, 1, _RANKS + 1) * (values.size - 1)).astype(np.int64)
    levels = np.unique(ranked[places])
    new = np.diff(np.searchsorted(ranked, levels, side="right"), prepend=0)
    rank = np.repeat(np.arange(levels.size), new)
    table = np.bincount(cell[order] * levels.size + rank, minlength=_CELLS * levels.size)
    at_most = np.cumsum(table.reshape(_CELLS, levels.size), axis=1)
    after, low, high = _halfway(cells, at_most)
    before = np.maximum(after - 1, 0)
    half = _drawn(cells, at_most[:, -1]) / 2
    part = (half - low) / (high - low)
    # a value that many share is a step, and nothing lies between it and the one before
    smooth = (high - low) < 4 * half / _RANKS
    between = levels[before] + part * (levels[after] - levels[before])
    found: Numbers = np.where(smooth, between, levels[after])
    return found


def _halfway(cells: int, at_most: Times) -> tuple[Times, Times, Times]:
    """Find the first level that half of each draw is at most, and how many are at most it.

    ``at_most`` counts the values of each cell by level. Returned are the level's place, how many
    are at most the level before it, 0 for none, and how many are at most it.
    """
    width = at_most.shape[1]
    since = np.cumsum(np.concatenate([np.zeros_like(at_most[:1]), at_most, at_most]), axis=0)
    begins, ends = (width * np.stack(each) for each in zip(*_blocks(cells), strict=True))

    def drawn(level: Times) -> Times:
        found: Times = (since.take(ends + level) - since.take(begins + level)).sum(axis=0)
        return found

    first, last = np.zeros(_DRAWS, np.int64), np.full(_DRAWS, width - 1)
    half = drawn(last) / 2
    while np.any(first < last):
        middle = (first + last) // 2
        reached = drawn(middle) >= half
        first, last = np.where(reached, first, middle + 1), np.where(reached, middle, last)
    return first, np.where(first > 0, drawn(np.maximum(first - 1, 0)), 0), drawn(first)


def _about(
    centre: float, drawn: Numbers, quantile: float, skewness: float = 0.0
) -> tuple[float, float]:
    """Return the ends of a band about a figure, given draws of it and the skewness of its error."""
    error = float(drawn.std())
    return centre - error * _unskewed(quantile, skewness), centre - error * _unskewed(
        -quantile, skewness
    )


def _unskewed(quantile: float, skewness: float) -> float:
    """Return the quantile of a skewed error over its deviation, from that of a symmetric one.

    It is the inverse of Hall's cubic transformation t + a t^2 / 3 + a^2 t^3 / 27 + a / 6.

    >>> [round(_unskewed(end, 0.3), 2) for end in (-2.0, 0.0, 2.0)]
    [-2.73, -0.05, 1.66]
    """
    if abs(skewness) < _STRAIGHT:
        return quantile
    return 3 / skewness * (math.cbrt(1 + skewness * (quantile - skewness / 6)) - 1)


@cache
def _blocks(cells: int) -> tuple[tuple[Times, Times], ...]:
    """Draw blocks of so many cells until all are drawn: where each begins and ends, by draw."""
    count = math.ceil(_CELLS / cells)
    first = np.random.default_rng(_SEED).integers(0, _CELLS, (count, _DRAWS))
    return tuple(
        (begins, begins + min(cells, _CELLS - at * cells)) for at, begins in enumerate(first)
    )


def _drawn(cells: int, of_cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Sum the cells of each draw, by differences of sums since the first: of counts exactly."""
    twice = np.concatenate([np.zeros_like(of_cells[:1]), of_cells, of_cells])
    since = np.cumsum(twice, axis=0, dtype=of_cells.dtype)
    found = np.zeros((_DRAWS, *of_cells.shape[1:]), of_cells.dtype)
    for begins, ends in _blocks(cells):
        found += since[ends]
        found -= since[begins]
    return found


def _moments_of_all(cells: int, of_cells: Numbers) -> tuple[float, float]:
    """Compute deviation and skewness over all draws there are, of which some hundred are drawn."""
    since = np.cumsum(np.concatenate([np.zeros(1), of_cells, of_cells]))
    lengths = [int(ends[0] - begins[0]) for begins, ends in _blocks(cells)]
    sums = np.stack([since[each : each + _CELLS] - since[:_CELLS] for each in lengths])
    apart = sums - sums.mean(axis=1, keepdims=True)
    # blocks are drawn apart from each other, so that their second and third moments add up
    second, third = (float((apart**power).mean(axis=1).sum()) for power in (2, 3))
    return math.sqrt(second), third / second**1.5


@cache
def _quantile(part: float) -> float:
    """Return by how many standard errors a band reaches, of blocks that are a part of the time.

    The circular block variance of white noise is a sum over frequencies j of the weights
    2 (sin(pi j part) / (pi j))^2 / part, each times an exponential of mean 1, and independent of
    the mean. Its expectation is 1 - part of the true one. With the degrees of freedom that have its
    variance (Satterthwaite 1946) the ratio is Student's.
    """
    j = np.arange(1, 20_001)
    weights = 2 * (np.sin(np.pi * j * part) / (np.pi * j)) ** 2 / part
    freedom = 2 * (1 - part) ** 2 / float((weights**2).sum())
    z = _NORMAL
    # Student's 97.5 % point from the normal's, Cornish and Fisher
    student = z + (z**3 + z) / (4 * freedom)
    student += (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    student += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    return student / math.sqrt(1 - part)
