"""Clusters of events: which may depend on each other, and the choice between several kinds.

Clusters are taken as independent. The design effect (Kish 1965; for counts the Fano factor) is the
variance of the clusters' contributions to an estimate over that of independent events.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from toolkit.analyses import Parameter
from toolkit.errors import InputError
from toolkit.statistics.events.paths import CLUSTERS, clusters_of
from toolkit.statistics.numeric.tails import gamma_tails

AUTO, NONE = "auto", "none"
KINDS = (AUTO, NONE, "symbol", *CLUSTERS)
LIVES_IN = Parameter(
    "Within what lives may depend on each other. auto: what widens the intervals most.",
    choices=KINDS,
)
FEWEST_CLUSTERS = 10
"""The fewest clusters with an interval."""
LEAST_FREEDOM = 3.0
"""The fewest degrees of freedom with an interval: less if few clusters have most events."""
MOST_CLUSTERS = 100
"""Above this number neighbouring clusters are joined."""

_FROM_DATA = ("path", "day", "symbol", "trajectory")
_SURE = 0.01

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters of events: the number of each event's, and whether there are too ``few``."""

    kind: str
    of: Integers
    count: int
    few: bool

    @property
    def joined(self) -> tuple[Integers, int]:
        """The numbers and the count after joining neighbours to at most 100."""
        return joined(self.of, self.count, MOST_CLUSTERS)


def joined(of: Integers, count: int, most: int) -> tuple[Integers, int]:
    """Join neighbouring clusters if there are more than ``most``."""
    return (of * most // count, most) if count > most else (of, count)


def checked_cluster_kind(cluster: str, allowed: Sequence[str] = KINDS) -> str:
    """Return ``cluster``, or raise `InputError` if it is not allowed."""
    if cluster not in allowed:
        raise InputError("cluster", cluster, allowed)
    return cluster


def clusters_text(kind: str, count: int) -> str:
    """Return in words which clusters an interval allows for."""
    if kind == NONE:
        return "events apart"
    return f"{count:,} clusters, by {kind.replace('_', ' and ')}"


def effective_freedom(of: Integers) -> float:
    """Return the degrees of freedom of clusters: (sum of sizes)^2 / sum of squares, less 1."""
    sizes = np.bincount(of).astype(np.float64)
    return float(sizes.sum() ** 2 / np.square(sizes).sum() - 1)


def clusters_of_lives(lives: pl.DataFrame, asked: str) -> dict[str, Integers]:
    """Return the number of each life's cluster, from 0, by kind: the one asked for, else all known.

    ``lives`` have t_open (Int64, s) and duration_s (Float64), with ``_symbol`` and ``_trajectory``
    (Int64) if known. A path is as long as 95 % of the lives. Raises `InputError` if a kind needs a
    missing column.

    >>> lives = pl.DataFrame({"t_open": [0, 50, 120], "duration_s": [60.0] * 3})
    >>> {kind: of.tolist() for kind, of in clusters_of_lives(lives, "auto").items()}
    {'path': [0, 0, 1], 'day': [0, 0, 0]}
    """
    if asked == NONE:
        return {}
    known = [name for name in ("symbol", "trajectory") if f"_{name}" in lives.columns]
    if asked != AUTO and asked not in (*known, "path", "day"):
        needs = "symbol" if asked == "symbol" else "trajectory"
        if needs not in known:
            raise InputError("cluster", asked, "path or day: the lives have no symbol and legs")
    kinds = [each for each in _FROM_DATA if each in (*known, "path", "day")]
    lasted = lives["duration_s"].to_numpy()
    path_s = max(1, math.ceil(np.quantile(lasted, 0.95, method="higher"))) if lasted.size else 1
    found = {}
    for kind in kinds if asked == AUTO else [asked]:
        name = "_symbol" if kind == "symbol" else "_trajectory"
        trajectory = pl.col(name) if name in lives.columns else pl.lit(0)
        events = lives.select(trajectory.alias("trajectory"), ts="t_open")
        own = "trajectory" if kind == "symbol" else kind
        found[kind] = clusters_of(events, own, path_s) - 1
    return found


def chosen_clusters(asked: str, kinds: Mapping[str, Integers], influence: Floats) -> Clusters:
    """Choose the clusters that widen the intervals of an estimate most.

    ``influence`` has the contribution of each event (row) to the error of each estimate (column).
    auto chooses the largest design effect above 1 among kinds with 10 or more clusters, or a kind
    with fewer, marked ``few``, if its effect is larger with a p-value below 0.01. Without an effect
    above 1 each event is a cluster.

    >>> pulled = np.repeat([1.0, -1.0], 20)[:, None]
    >>> kinds = {"day": np.repeat(np.arange(10), 4), "symbol": np.arange(40) % 20}
    >>> chosen_clusters("auto", kinds, pulled).kind
    'day'
    """
    apart = Clusters(NONE, np.arange(len(influence)), len(influence), few=False)
    counts = {kind: int(of.max(initial=-1)) + 1 for kind, of in kinds.items()}
    if asked != AUTO:
        for kind, of in kinds.items():
            few = counts[kind] < FEWEST_CLUSTERS or effective_freedom(of) < LEAST_FREEDOM
            return Clusters(kind, of, counts[kind], few)
        return apart
    best, widest = apart, 1.0
    effects = {
        kind: design_effect(of, influence)
        for kind, of in kinds.items()
        if 1 < counts[kind] < len(influence)
    }
    for kind, effect in effects.items():
        if counts[kind] >= FEWEST_CLUSTERS and effect > widest:
            few = effective_freedom(kinds[kind]) < LEAST_FREEDOM
            best, widest = Clusters(kind, kinds[kind], counts[kind], few), effect
    for kind, effect in effects.items():
        if counts[kind] < FEWEST_CLUSTERS and effect > widest:
            half = (counts[kind] - 1) / 2
            if gamma_tails(np.array([half]), np.array([half * effect / widest]))[1][0] < _SURE:
                return Clusters(kind, kinds[kind], counts[kind], few=True)
    return best


def design_effect(of: Integers, influence: Floats) -> float:
    """Return the largest design effect of clusters on some estimates, 0 if nothing varies.

    >>> design_effect(np.array([0, 0, 1, 1]), np.array([[1.0], [1.0], [-1.0], [-1.0]]))
    4.0
    """
    count = int(of.max(initial=0)) + 1
    squares = np.square(influence).sum(axis=0)
    sums = np.stack([np.bincount(of, weights=each, minlength=count) for each in influence.T])
    between = np.square(sums).sum(axis=1) * count / max(count - 1, 1)
    return float(np.divide(between, squares, out=np.zeros(squares.shape), where=squares > 0).max())
