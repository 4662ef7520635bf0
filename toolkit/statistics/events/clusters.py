"""Clusters of events that may depend on each other, overdispersion, and bands that allow for both.

The design effect (Kish 1965; for counts the Fano factor) is the variance of the clusters'
contributions to an estimate over that of independent events.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl

from toolkit.analyses import Parameter
from toolkit.errors import InputError
from toolkit.reasons import Reason
from toolkit.statistics.events.exposure import Watched
from toolkit.statistics.events.paths import CLUSTERS, clusters_of
from toolkit.statistics.numeric.arrays import Flags, Floats, Integers, product
from toolkit.statistics.numeric.life_curve import TWO_SIDED_95
from toolkit.statistics.numeric.long_run import Band
from toolkit.statistics.numeric.tails import (
    gamma_quantile,
    gamma_tails,
    share_interval,
    two_sided_95,
    two_sided_95_between,
)

AUTO, NONE = "auto", "none"
KINDS = (AUTO, NONE, "symbol", *CLUSTERS)
LIVES_IN = Parameter(
    "Which lives may depend on each other. auto: the choice that widens the intervals most.",
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
    """Return the number of each life's cluster, from 0, by kind: the one ``asked``, else all known.

    ``lives`` have t_open (Int64, s) and duration_s (Float64), with ``_symbol`` and ``_trajectory``
    (Int64) if known. A path is as long as 95 % of the lives. Raises `InputError` if a kind needs a
    missing column.
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
    auto chooses the largest design effect above 1 among kinds with 10 or more clusters, or a larger
    one of fewer, marked ``few``, with a p-value below 0.01. Else each event is a cluster.
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
    """Return the largest design effect of clusters on some estimates, 0 if nothing varies."""
    count = int(of.max(initial=0)) + 1
    squares = np.square(influence).sum(axis=0)
    sums = np.stack([np.bincount(of, weights=each, minlength=count) for each in influence.T])
    between = np.square(sums).sum(axis=1) * count / max(count - 1, 1)
    return float(np.divide(between, squares, out=np.zeros(squares.shape), where=squares > 0).max())


FEWEST_VALUES = 20
"""The fewest values with a band."""

_DRAWS = 999
_SEED = 20_261_123
_MOST_CLUSTERS = 400
_RANKS = 512


def cluster_band(clusters: Integers, values: Floats) -> Band | None:
    """Return the bands of values, or None for too few values or clusters.

    Whole clusters are drawn (Field and Welsh 2007), with Student's quantile for one degree of
    freedom less than clusters, as few draws alone are too narrow. ``clusters`` numbers each value's
    cluster, from 0. Above 400 clusters, neighbours are joined. Above 512 values, medians of draws
    lie between two of 512 quantiles. The seed is fixed.
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
    return Band(
        mean=_about(mean, means, reach),
        median=_about(float(np.median(values)), _medians(cluster, values, drawn), reach),
    )


def no_band_reason(values: int) -> Reason:
    """Return why so many values have no band: too few of them, or of their clusters."""
    return Reason.TOO_FEW if values < FEWEST_VALUES else Reason.FEW_CLUSTERS


def cluster_share_interval(clusters: Integers, inside: Flags) -> tuple[float, float]:
    """Return the 95 % interval of the share of clustered events that are inside.

    It is the exact one (Clopper and Pearson) of counts over the design effect, if above 1, with
    Student's quantile.
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
    drawn = np.random.default_rng(_SEED).multinomial(count, np.full(count, 1 / count), _DRAWS)
    return drawn.astype(np.float64)


RATE_CLUSTERS = (AUTO, NONE, "stretch", "day")
OPENINGS_IN = Parameter(
    "Which openings may be bursts. auto: where the counts show bursts.", choices=RATE_CLUSTERS
)

_STRETCHES, _DAY_S = 16, 86_400
_MOST_MEMORY = 0.5
"""Above this correlation of neighbouring stretches bursts last as long as they do: no interval."""
_LEAST_EVENTS = 2.0
"""With fewer bursts than this there is no interval."""


def dispersions(watched: Watched, opened: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Compute the Fano factor of each group's count of openings, by `Watched.openings`.

    The factor is the variance of counts over that of independent events (Poisson), above 1 if
    events come in bursts. The covered time is cut into 16 equal stretches, or with 16 days or more
    into stretches of whole days. From two days on, a daily sine and cosine are removed first. The
    variance of the counts over the mean is multiplied by 1 + 2 r, where r is their correlation with
    the next stretch if above 0. With cluster day the stretches are UTC days.

    One row per group: ``_number``, ``cluster`` (with auto none if the counts show no bursts),
    ``n_clusters`` (stretches, for none the openings), ``fano`` (1 if unknown), ``freedom`` (degrees
    of freedom, null for none), ``long_bursts`` (as long as stretches, or too few of these) and
    ``pooled``, the factor with r of either sign.

    Source: McCullagh, P. and Nelder, J. A. (1989), Generalized Linear Models, section 6.2: counts
    over their dispersion. Politis, D. N. and Romano, J. P. (1995), Journal of Time Series Analysis
    16: the correlation at one step in full.
    """
    found = []
    for (family,), groups in watched.groups.partition_by("family", as_dict=True).items():
        inside = watched.inside().filter(family=family)
        numbers = groups["_number"].to_numpy()
        own = opened.filter(pl.col("_number").is_between(numbers[0], numbers[-1]))
        place = own["_number"].to_numpy() - numbers[0]
        counts = np.bincount(place, minlength=numbers.size).astype(np.float64)
        figures = _apart(counts)
        if cluster != NONE and inside.height:
            figures = _by_stretch(inside, own["t_open"].to_numpy(), place, counts, cluster)
        found.append(pl.DataFrame({"_number": groups["_number"], **figures}))
    schema = {"_number": pl.UInt32, "cluster": pl.String, "n_clusters": pl.Int64}
    schema |= {"fano": pl.Float64, "freedom": pl.Float64}
    schema |= {"long_bursts": pl.Boolean, "pooled": pl.Float64}
    return pl.concat(
        [pl.DataFrame(schema=schema), *(each.cast(pl.Schema(schema)) for each in found)]
    )


def divisor_of(
    counts: Floats, fano: Floats, freedom: Floats, long_bursts: Flags
) -> tuple[Floats, Flags]:
    """Return the divisor that makes counts nearly Poisson, and where no interval holds.

    It is 1 if ``freedom`` is NaN, else the factor, at least 1, with Student's quantile in it. No
    interval holds for long bursts, or if fewer than 2 events are left after the division.
    """
    known = ~np.isnan(freedom)
    divisor = np.where(known, np.maximum(fano, 1.0) * _reach(freedom), 1.0)
    few = known & (long_bursts | ((counts > 0) & (counts / divisor < _LEAST_EVENTS)))
    return divisor, few


def _apart(counts: Floats) -> dict[str, npt.NDArray[np.generic]]:
    one = np.ones(counts.size)
    return {
        "cluster": np.full(counts.size, NONE),
        "n_clusters": counts.astype(np.int64),
        "fano": one,
        "freedom": np.full(counts.size, np.nan),
        "long_bursts": one == 0,
        "pooled": one,
    }


def _by_stretch(
    inside: pl.DataFrame, times: Integers, place: Integers, counts: Floats, cluster: str
) -> dict[str, npt.NDArray[np.generic]]:
    starts, ends = (inside[name].to_numpy() for name in ("start_ts", "end_ts"))
    edges = _days(starts, ends) if cluster == "day" else _even(starts, ends)
    held_s = np.diff(_held_until(starts, ends, edges))
    some = held_s > 0
    at = (np.cumsum(some) - 1)[np.searchsorted(edges, times, side="right") - 1]
    held_s, middles = held_s[some], ((edges[1:] + edges[:-1]) / 2)[some]
    number, groups = held_s.size, counts.size
    table = np.bincount(place * number + at, minlength=groups * number).reshape(groups, number)
    known = _season(held_s, middles, int(held_s.sum())) if cluster != "day" else held_s[:, None]
    freedom = number - known.shape[1]
    apart, one = _apart(counts), np.ones(groups)
    if freedom < 1:
        return apart if cluster == AUTO else apart | {"freedom": one, "long_bursts": one > 0}
    expected = counts[:, None] * (held_s / held_s.sum())
    root = np.sqrt(held_s)
    scaled = (table - expected) / root  # of one variance where the rate is one
    basis = np.linalg.qr(known / root[:, None])[0]
    rest = scaled - (scaled @ basis) @ basis.T
    squares = np.square(rest).sum(axis=1)
    bias = float(np.trace(basis @ basis.T, offset=1)) / freedom  # of what a fit leaves
    with np.errstate(divide="ignore", invalid="ignore"):
        fano = squares / freedom * held_s.sum() / counts
        next_one = (rest[:, 1:] * rest[:, :-1]).sum(axis=1) / squares + bias
    next_one = np.where((squares > 0) & (cluster != "day"), np.nan_to_num(next_one), 0.0)
    fano = np.where(counts > 0, np.nan_to_num(fano), 1.0)
    pooled = fano * (1 + 2 * next_one)
    fano = fano * (1 + 2 * np.maximum(next_one, 0))
    freedoms = np.where(next_one > 0, min(number / 2, freedom), float(freedom))
    used = _in_bursts(counts, fano, freedoms) | (cluster != AUTO)
    name = "day" if cluster == "day" else "stretch"
    return {
        "cluster": np.where(used, name, NONE),
        "n_clusters": np.where(used, number, counts).astype(np.int64),
        "fano": fano,
        "freedom": np.where(used, freedoms, np.nan),
        "long_bursts": (next_one > _MOST_MEMORY) | (number < FEWEST_CLUSTERS),
        "pooled": pooled,
    }


def _in_bursts(counts: Floats, fano: Floats, freedom: Floats) -> Flags:
    """Return which groups have bursts: for few events the factor must exceed its 95 % point."""
    few = counts < _LEAST_EVENTS * fano * _reach(freedom)
    shows = fano * freedom > 2 * gamma_quantile(freedom / 2, 0.95)
    found: Flags = (fano > 1) & (~few | shows)
    return found


def _reach(freedom: Floats) -> Floats:
    found: Floats = np.square(two_sided_95_between(freedom) / TWO_SIDED_95)
    return found


def _even(starts: Integers, ends: Integers) -> Floats:
    lengths = ends - starts
    held_s = int(lengths.sum())
    number = _STRETCHES
    if held_s >= _STRETCHES * _DAY_S:
        number = round(held_s / (held_s // (_STRETCHES * _DAY_S) * _DAY_S))
    before = np.concatenate([[0], np.cumsum(lengths)])
    wanted = held_s * np.arange(1, number) / number
    stretch = np.searchsorted(before, wanted, side="right") - 1
    inner = starts[stretch] + wanted - before[stretch]
    return np.concatenate([[float(starts[0])], inner, [float(ends[-1])]])


def _days(starts: Integers, ends: Integers) -> Floats:
    first, last = int(starts[0]) // _DAY_S, -(-int(ends[-1]) // _DAY_S)
    return _DAY_S * np.arange(first, last + 1, dtype=np.float64)


def _held_until(starts: Integers, ends: Integers, edges: Floats) -> Floats:
    """Return the coverage until each edge (s)."""
    before = np.concatenate([[0], np.cumsum(ends - starts)])
    stretch = np.searchsorted(starts, edges, side="right") - 1
    into = np.clip(edges - starts[stretch], 0, (ends - starts)[stretch])
    found: Floats = np.where(stretch >= 0, before[stretch] + into, 0.0)
    return found


def _season(held_s: Floats, middles: Floats, total_s: int) -> Floats:
    """Return the regressors of counts: the covered time, and a daily season if it can show."""
    if total_s < 2 * _DAY_S or held_s.max() >= _DAY_S * (1 - 1e-9):
        return held_s[:, None]
    angle = 2 * math.pi * middles / _DAY_S
    waves = np.column_stack([np.ones(angle.size), np.cos(angle), np.sin(angle)])
    found: Floats = held_s[:, None] * waves
    return found
