"""95 % bands for the mean and the median over windows that overlap, by a block bootstrap.

Holdings entered an hour apart share most of their settlements, so that many entries are few
observations. Here whole stretches of time are drawn again instead of entries (circular blocks,
Politis and Romano 1992). A block is an eighth of the time, and where five horizons are longer than
that, five horizons, at most a quarter of the time: so it holds several horizons, and what a rate
remembers. Blocks are drawn apart from each other, so that the moments of a sum over them are known
for all draws there are, and none is made. Few blocks show too little of the variance, and its
estimate is itself uncertain. So the bands are Student's: as a normal figure over the root of its
circular block variance is distributed where blocks stay a fixed part of the time.

Where most is earned in a few times of high rates, the mean of the entries is mostly below the true
one, and the less certain the higher it is. So the ends of its band are moved by the skewness of the
sums over blocks (Hall 1992, On the removal of skewness by transformation, Journal of the Royal
Statistical Society B 54). Few cells of the time make up most of the variance then, and it is known
with as few degrees of freedom (Satterthwaite 1946, An approximate distribution of estimates of
variance components, Biometrics Bulletin 2): so the band of the mean reaches further, by Student's
quantile over the normal one.

The share of entries that kept at most the median is a mean too. The ends of the median's band are
the quantiles at the ends of that share's band (Woodruff 1952, Confidence intervals for medians and
other position measures, Journal of the American Statistical Association 47).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from toolkit.statistics.student import freedom_of, two_sided_95_between

FEWEST_HORIZONS = 12
"""The fewest horizons, one after the other, that the entries must span for a band."""

_FEWEST_ENTRIES = 24
_CELLS = 120
_LEAST_PART, _LARGEST_PART = 1 / 8, 1 / 4
_HORIZONS_A_BLOCK = 5
_MEMORY = 1.05  # what a rate remembers beyond a block, chosen on AR(1) rates
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


@dataclass(frozen=True)
class Ranked:
    """Values in the order of their times, and the same from the least to the largest."""

    values: Numbers
    rising: Numbers

    @cached_property
    def mean(self) -> float:
        """The mean of the values."""
        return float(self.values.mean())

    @classmethod
    def of(cls, values: Numbers) -> Ranked:
        """Rank values, none of which is NaN."""
        return cls(values, np.sort(values))

    def moved(self, by: float) -> Ranked:
        """Return the values with ``by`` added to each."""
        return Ranked(self.values + by, self.rising + by)

    def quantile(self, share: float) -> float:
        """Return a quantile, on the line between the two values about it.

        >>> Ranked.of(np.array([4.0, 1.0, 2.0])).quantile(0.75)
        3.0
        """
        below, above, part = _about(share, self.rising.size)
        return _between(float(self.rising[below]), float(self.rising[above]), part)


def quantiles(values: Numbers, *shares: float) -> list[float]:
    """Return a few quantiles of values that are in no order, as `Ranked` does.

    >>> quantiles(np.array([4.0, 1.0, 2.0]), 0.5, 0.75)
    [2.0, 3.0]
    """
    about = [_about(share, values.size) for share in shares]
    places = sorted({place for *both, _ in about for place in both})
    found = dict(zip(places, at_places(values, places), strict=True))
    return [_between(found[below], found[above], part) for below, above, part in about]


def at_places(values: Numbers, places: Iterable[int]) -> list[float]:
    """Return what sorting would bring to some rising places: it sorts no more than that takes.

    >>> at_places(np.array([4.0, 1.0, 2.0]), [1, 2])
    [2.0, 4.0]
    """
    left, since, found = values.copy(), 0, []
    for place in places:
        left.partition(place - since)
        left, since = left[place - since :], place
        found.append(float(left[0]))
    return found


def _about(share: float, size: int) -> tuple[int, int, float]:
    """Return the places about a quantile, and its part of the way from the one to the other."""
    at = share * (size - 1)
    below = math.floor(at)
    return below, min(below + 1, size - 1), at - below


def _between(low: float, high: float, part: float) -> float:
    """Return the point on the line, from the nearer end, as numpy goes."""
    return low + part * (high - low) if part < 0.5 else high - (1 - part) * (high - low)


def band(ts: Times, kept: Ranked, horizon_s: int, every_s: int) -> Band | None:
    """Return the bands of values of windows that begin at ``ts`` (s, rising), or None for too few.

    ``every_s`` is the time between two windows where none is missing. There are too few where the
    windows span fewer than twelve horizons, where more than half of that time is without a window,
    or where there are fewer than 24.

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
    begins = np.searchsorted(ts, ts[0] - np.arange(_CELLS) * -span_s // _CELLS)
    mean, at_most = kept.mean, kept.values <= kept.quantile(0.5)
    # differences from the mean keep the digits of what varies
    apart = np.empty((2, ts.size + 1))
    np.subtract(kept.values, mean, out=apart[0, :-1])
    np.subtract(at_most, np.count_nonzero(at_most) / ts.size, out=apart[1, :-1])
    apart[:, -1] = 0.0
    of_cells = cell_sums(apart, begins)
    (error, share_error), (skewness, _) = moments_of_sums(of_cells, cells)
    far = quantile * _few_cells(of_cells[0])
    error, reach = error / ts.size, min(quantile * share_error / ts.size, 0.5)
    return Band(
        mean=(
            mean - error * _unskewed(far, skewness),
            mean - error * _unskewed(-far, skewness),
        ),
        median=(kept.quantile(0.5 - reach), kept.quantile(0.5 + reach)),
    )


def cell_sums(values: Numbers, begins: Times) -> Numbers:
    """Sum each row over each cell.

    ``begins`` has the column at which each cell begins, and the last column is in none.

    >>> cell_sums(np.array([[1.0, 2.0, 4.0, 0.0]]), np.array([0, 2])).tolist()
    [[3.0, 4.0]]
    """
    sums: Numbers = np.add.reduceat(values, begins, axis=1)
    empty = begins == np.append(begins[1:], values.shape[1] - 1)
    if empty.any():
        sums[:, empty] = 0.0
    return sums


def _few_cells(sums: Numbers) -> float:
    """Return how much further a band reaches where few cells make up most of the variance."""
    freedom = freedom_of(np.square(sums))
    return (
        1.0
        if math.isinf(freedom)
        else float(two_sided_95_between(np.array([freedom]))[0]) / _NORMAL
    )


def moments_of_sums(of_cells: Numbers, cells: int) -> tuple[list[float], list[float]]:
    """Compute deviation and skewness of each row's sum, over all draws of blocks of cells.

    ``of_cells`` has a column for each cell. A draw takes blocks of ``cells`` cells until it has as
    many as there are: its last block has those that are left. After the last cell comes the first.

    >>> moments_of_sums(np.array([[1.0, -1.0, 1.0, -1.0]]), 1)
    ([2.0], [0.0])
    """
    rows, count = of_cells.shape
    around = np.concatenate([np.zeros((rows, 1)), of_cells, of_cells[:, :cells]], axis=1)
    since = around.cumsum(axis=1)
    sums = np.empty((rows, count, 2))
    for length, of_blocks in zip((cells, (count - 1) % cells + 1), sums.T, strict=True):
        np.subtract(since[:, length : length + count], since[:, :count], out=of_blocks.T)
    sums -= np.add.reduce(sums, axis=1, keepdims=True) / count
    # blocks are drawn apart from each other, so that their second and third moments add up
    blocks = np.array([(count - 1) // cells, 1])
    second, third = (np.add.reduce(sums**power, axis=1) / count @ blocks for power in (2, 3))
    cubed = second**1.5
    skewness = np.divide(third, cubed, out=np.zeros_like(third), where=cubed > 0)
    return np.sqrt(second).tolist(), skewness.tolist()


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
