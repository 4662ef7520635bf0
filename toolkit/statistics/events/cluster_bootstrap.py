"""95 % bands of means and medians of clustered values, by the cluster bootstrap.

Clusters are taken as independent, and whole clusters are drawn (Field and Welsh 2007). Bands use
Student's quantile with one degree of freedom less than clusters: the spread of draws alone is too
narrow for few clusters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from toolkit.reasons import Reason
from toolkit.statistics.events.clusters import (
    FEWEST_CLUSTERS,
    design_effect,
    effective_freedom,
    joined,
)
from toolkit.statistics.numeric.life_curve import TWO_SIDED_95
from toolkit.statistics.numeric.products import product
from toolkit.statistics.numeric.student import two_sided_95, two_sided_95_between
from toolkit.statistics.numeric.tails import share_interval

FEWEST_VALUES = 20
"""The fewest values with a band."""

_DRAWS = 999
_SEED = 20_261_123
_MOST_CLUSTERS = 400
_RANKS = 512

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ClusterBand:
    """The 95 % bands (lower, upper) of the mean and of the median."""

    mean: tuple[float, float]
    median: tuple[float, float]


def cluster_band(clusters: Integers, values: Floats) -> ClusterBand | None:
    """Return the bands of values, or None for too few values or clusters.

    ``clusters`` has the number of each value's cluster, from 0. Above 400 clusters, neighbours are
    joined. Above 512 values, medians of draws lie between two of 512 quantiles. The seed is fixed.

    >>> values = np.arange(40.0)
    >>> found = cluster_band(np.arange(40), values)
    >>> [round(end, 1) for end in found.mean]
    [15.9, 23.1]
    >>> cluster_band(np.zeros(40, dtype=np.int64), values) is None
    True
    """
    there = np.bincount(clusters) > 0
    count = int(there.sum())
    if count < FEWEST_CLUSTERS or values.size < FEWEST_VALUES:
        return None
    cluster, count = joined((np.cumsum(there) - 1)[clusters], count, _MOST_CLUSTERS)
    drawn = _draws(count)
    # differences from the mean keep the digits of what varies
    mean = float(values.mean())
    sums = np.bincount(cluster, weights=values - mean, minlength=count)
    sizes = np.bincount(cluster, minlength=count).astype(np.float64)
    means = mean + (drawn @ sums) / (drawn @ sizes)
    reach = two_sided_95(count - 1) * math.sqrt(count / (count - 1))
    return ClusterBand(
        mean=_about(mean, means, reach),
        median=_about(float(np.median(values)), _medians(cluster, values, drawn), reach),
    )


def no_band_reason(values: int) -> Reason:
    """Return why so many values have no band: too few of them, or of their clusters."""
    return Reason.TOO_FEW if values < FEWEST_VALUES else Reason.FEW_CLUSTERS


def cluster_share_interval(
    clusters: Integers, inside: npt.NDArray[np.bool_]
) -> tuple[float, float]:
    """Return the 95 % interval of the share of clustered events that are inside.

    The exact interval (Clopper and Pearson) of counts divided by the design effect, if that is
    above 1, with Student's quantile.

    >>> inside = np.repeat([True, False], 20)
    >>> [round(end, 2) for end in cluster_share_interval(np.arange(40), inside)]
    [0.34, 0.66]
    >>> [round(end, 2) for end in cluster_share_interval(np.arange(40) // 2, inside)]
    [0.25, 0.75]
    """
    of = np.unique(clusters, return_inverse=True)[1]
    effect, divisor = design_effect(of, (inside - inside.mean())[:, None]), 1.0
    if effect > 1 and 0 < of.max() < of.size - 1:
        freedom = np.array([max(effective_freedom(of), 1.0)])
        divisor = effect * (float(two_sided_95_between(freedom)[0]) / TWO_SIDED_95) ** 2
    counts = (np.array([each / divisor]) for each in (inside.sum(), inside.size))
    lower, upper = share_interval(*counts)
    return float(lower[0]), float(upper[0])


def _about(centre: float, drawn: Floats, reach: float) -> tuple[float, float]:
    half = reach * float(drawn.std())
    return centre - half, centre + half


def _medians(cluster: Integers, values: Floats, drawn: Floats) -> Floats:
    """Compute the median of each draw from the counts of each cluster below some ranks."""
    ranked = np.sort(values)
    if values.size > _RANKS:
        ranked = ranked[np.ceil((values.size - 1) * np.linspace(0, 1, _RANKS + 1)).astype(int)]
    levels = np.unique(ranked)
    rank = np.searchsorted(levels, values)
    count = drawn.shape[1]
    table = np.bincount(cluster * levels.size + rank, minlength=count * levels.size)
    below = np.cumsum(product(drawn, table.reshape(count, levels.size).astype(float)), axis=1)
    half = below[:, -1:] / 2
    # of an even number of values the median is the mean of the two in the middle
    lower = np.argmax(below >= half, axis=1)
    upper = np.argmax(below > half, axis=1)
    found: Floats = (levels[lower] + levels[upper]) / 2
    return found


@cache
def _draws(count: int) -> Floats:
    """Return the count of each cluster in each draw."""
    drawn = np.random.default_rng(_SEED).multinomial(count, np.full(count, 1 / count), _DRAWS)
    return drawn.astype(np.float64)
