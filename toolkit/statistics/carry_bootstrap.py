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


@dataclass(frozen=True, slots=True)
class Ranked:
    """Values, the ``order`` of their places by size, and the values in that order."""

    values: Numbers
    order: Times
    rising: Numbers

    @classmethod
    def of(cls, values: Numbers) -> Ranked:
        """Rank values, none of which is NaN."""
        order = np.argsort(values)
        return cls(values, order, values[order])

    def moved(self, by: float) -> Ranked:
        """Return the values with ``by`` added to each, which leaves their order."""
        return Ranked(self.values + by, self.order, self.rising + by)


def middle(rising: Numbers) -> float:
    """Return the median of rising values.

    >>> middle(np.array([1.0, 2.0, 4.0, 5.0]))
    3.0
    """
    return float(rising[(rising.size - 1) // 2] + rising[rising.size // 2]) / 2


def band(ts: Times, kept: Ranked, horizon_s: int, every_s: int) -> Band | None:
    """Return the bands of values of windows that begin at ``ts`` (s, rising), or None for too few.

    ``every_s`` is the time between two windows where none is missing. There are too few where the
    windows span fewer than twelve horizons, where more than half of that time is without a window,
    or where there are fewer than 24. Draws are by a fixed seed, so that equal values have equal
    bands.

    >>> ts = np.arange(2400) * 3600
    >>> found = band(ts, Ranked.of(np.sin(ts / 7200)), 28800, 3600)
    >>> [round(end, 2) for end in found.mean]
    [-0.0, 0.0]
    >>> band(ts[:90], Ranked.of(np.ones(90)), 28800, 3600) is None
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
    # differences from the mean keep the digits of what varies
    mean = float(kept.values.mean())
    sums = np.bincount(cell, weights=kept.values - mean, minlength=_CELLS)
    of_blocks, places = _of_blocks(cells, sums), _drawn(cells)
    drawn = of_blocks.take(places).sum(axis=0)
    counts = _of_blocks(cells, np.bincount(cell, minlength=_CELLS)).take(places).sum(axis=0)
    skewness = 0.0
    if (spread := float(drawn.std())) > 0:
        of_all, skewness = _moments_of_all(of_blocks, len(places))
        quantile *= of_all / spread
    return Band(
        mean=_about(mean, mean + drawn / counts, quantile, skewness),
        median=_about(middle(kept.rising), _medians(cell, kept, cells, counts / 2), quantile),
    )


def _medians(cell: Times, kept: Ranked, cells: int, half: Numbers) -> Numbers:
    """Compute the median of each draw, from how many values of each cell are below some ranks.

    ``half`` is half of how many values each draw has.
    """
    rising = kept.rising
    levels = rising[np.ceil(np.linspace(0, 1, _RANKS + 1) * (rising.size - 1)).astype(np.int64)]
    levels = levels[np.append(levels[1:] > levels[:-1], True)]
    ends = np.searchsorted(rising, levels, side="right")
    # in a column more, before those of the levels, no value is
    width = levels.size + 1
    column = np.repeat(np.arange(1, width), np.diff(ends, prepend=0))
    table = np.bincount(cell[kept.order] * width + column, minlength=_CELLS * width)
    after, low, high = _halfway(cells, np.cumsum(table.reshape(_CELLS, width), axis=1), half)
    before = np.maximum(after - 1, 0)
    part = (half - low) / (high - low)
    # a value that many share is a step, and nothing lies between it and the one before
    smooth = (high - low) < 4 * half / _RANKS
    between = levels[before] + part * (levels[after] - levels[before])
    found: Numbers = np.where(smooth, between, levels[after])
    return found


def _halfway(cells: int, at_most: Times, half: Numbers) -> tuple[Times, Times, Times]:
    """Find the first level that ``half`` of the values of each draw are at most.

    ``at_most`` counts the values of each cell by level, after a column of none. Returned are the
    level's place, how many are at most the level before it, 0 for none, and how many are at most
    it.
    """
    width = at_most.shape[1]
    of_blocks, places = _of_blocks(cells, at_most), width * _drawn(cells)
    below, above = np.zeros(_DRAWS, np.int64), np.full(_DRAWS, width - 1)
    low, high = below, np.rint(2 * half).astype(np.int64)
    while np.any(below + 1 < above):
        between = (below + above) // 2
        found = of_blocks.take(places + between).sum(axis=0)
        reached = found >= half
        below, above = np.where(reached, below, between), np.where(reached, between, above)
        low, high = np.where(reached, low, found), np.where(reached, found, high)
    return above - 1, low, high


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
def _drawn(cells: int) -> Times:
    """Draw blocks of so many cells until all are drawn: their places in `_of_blocks`, by draw."""
    count = math.ceil(_CELLS / cells)
    begins = np.random.default_rng(_SEED).integers(0, _CELLS, (count, _DRAWS))
    begins[-1] += _CELLS
    return begins


def _of_blocks(cells: int, of_cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Sum the cells of each block, by where it begins: of whole ones, then of the last of a draw.

    The last one has as many cells as are left. After the last cell comes the first.
    """
    around = np.concatenate([np.zeros_like(of_cells[:1]), of_cells, of_cells[:cells]])
    since = np.cumsum(around, axis=0)
    lengths = (cells, (_CELLS - 1) % cells + 1)
    return np.concatenate([since[each : each + _CELLS] - since[:_CELLS] for each in lengths])


def _moments_of_all(of_blocks: Numbers, count: int) -> tuple[float, float]:
    """Compute deviation and skewness over all draws there are, of which some hundred are drawn.

    A draw has ``count`` blocks, the last of which is of the second kind.
    """
    sums = of_blocks.reshape(2, _CELLS)
    apart = sums - sums.mean(axis=1, keepdims=True)
    # blocks are drawn apart from each other, so that their second and third moments add up
    second, third = ((apart**power).mean(axis=1) @ (count - 1, 1) for power in (2, 3))
    return math.sqrt(second), float(third / second**1.5)


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
