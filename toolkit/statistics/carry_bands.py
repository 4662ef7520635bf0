"""95 % bands for the mean and the median over windows that overlap.

Holdings entered an hour apart share most of their settlements, so that many entries are few
observations. So their time is cut into cells, and the error of their mean is that of all means over
time (`toolkit.statistics.long_run`): the slow waves of the sums over cells, Student's t, and the
skewness of sums over blocks of cells. Where few cells make up most of the variance, it is known
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
from functools import cached_property

import numpy as np
import numpy.typing as npt

from toolkit.reasons import Reason
from toolkit.statistics.long_run import WAVES, Memory, ends_of, slow_variance
from toolkit.statistics.student import freedom_of, two_sided_95, two_sided_95_between

FEWEST_HORIZONS = 12
"""The fewest horizons, one after the other, that the entries must span for a band."""

_FEWEST_ENTRIES = 24
_CELLS = 120
_CELLS_A_BLOCK = 12
_NORMAL = 1.959964

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


def band(ts: Times, kept: Ranked, horizon_s: int, every_s: int, memory: Memory) -> Band | Reason:
    """Return the bands of values of windows that begin at ``ts`` (s, rising), or why there is none.

    ``every_s`` is the time between two windows where none is missing, and ``memory`` that of what
    the windows sum. There are too few where the windows span fewer than twelve horizons, where more
    than half of that time is without a window, or where there are fewer than 24.

    >>> ts, short = np.arange(2400) * 3600, Memory(None, 1.0)
    >>> found = band(ts, Ranked.of(np.sin(ts / 7200)), 28800, 3600, short)
    >>> [round(end, 4) for end in found.mean]
    [-0.0038, 0.0038]
    >>> band(ts[:90], Ranked.of(np.ones(90)), 28800, 3600, short)
    <Reason.TOO_FEW: 'too_few'>
    """
    if ts.size < _FEWEST_ENTRIES:
        return Reason.TOO_FEW
    span_s = int(ts[-1] - ts[0]) + every_s
    observed_s = ts.size * every_s
    if observed_s < FEWEST_HORIZONS * horizon_s or 2 * observed_s < span_s:
        return Reason.TOO_FEW
    if memory.reason is not None:
        return memory.reason
    begins = np.searchsorted(ts, ts[0] - np.arange(_CELLS) * -span_s // _CELLS)
    mean, at_most = kept.mean, kept.values <= kept.quantile(0.5)
    # differences from the mean keep the digits of what varies
    apart = np.empty((2, ts.size + 1))
    np.subtract(kept.values, mean, out=apart[0, :-1])
    np.subtract(at_most, np.count_nonzero(at_most) / ts.size, out=apart[1, :-1])
    apart[:, -1] = 0.0
    of_cells = cell_sums(apart, begins)
    variance = memory.excess * slow_variance(of_cells, horizon_s / span_s)
    error, share_error = np.sqrt(variance) / ts.size
    skewness = skewness_of_sum(of_cells[0], _CELLS_A_BLOCK)
    far = two_sided_95(WAVES) * _few_cells(of_cells[0])
    lower, upper = ends_of(*(np.array([float(each)]) for each in (error, skewness, far)))
    reach = min(two_sided_95(WAVES) * float(share_error), 0.5)
    return Band(
        mean=(mean + float(lower[0]), mean + float(upper[0])),
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
    if math.isinf(freedom):
        return 1.0
    return float(two_sided_95_between(np.array([freedom]))[0]) / _NORMAL


def skewness_of_sum(of_cells: Numbers, cells: int) -> float:
    """Compute the skewness of the sum over all cells, of which blocks of ``cells`` are independent.

    Blocks begin at each cell, and after the last cell comes the first.

    >>> round(skewness_of_sum(np.array([2.0, -1.0, -1.0]), 1), 3)
    0.408
    """
    around = np.concatenate([[0.0], of_cells, of_cells[:cells]]).cumsum()
    sums = around[cells : cells + of_cells.size] - around[: of_cells.size]
    sums -= sums.mean()
    blocks = of_cells.size / cells
    second, third = (float((sums**power).mean()) * blocks for power in (2, 3))
    return third / second**1.5 if second > 0 else 0.0
