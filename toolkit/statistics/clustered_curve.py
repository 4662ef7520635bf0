"""The error of a curve of Kaplan and Meier whose lives come in clusters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from toolkit.statistics.clusters import (
    NONE,
    Clusters,
    Floats,
    Integers,
    chosen_clusters,
    clusters_of_lives,
    effective_freedom,
)
from toolkit.statistics.life_curve import MIN_ENDED, TWO_SIDED_95
from toolkit.statistics.student import two_sided_95_between

_AGES = 4_096
_SCHEMA = {
    "_number": pl.UInt32,
    "cluster": pl.String,
    "n_clusters": pl.Int64,
    "few_clusters": pl.Boolean,
}


def with_clusters(
    curve: pl.DataFrame, lives: pl.DataFrame, asked: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give a curve the errors of lives in clusters, and return which clusters each group has.

    ``curve`` is `toolkit.statistics.life_curve.life_curve` of ``lives`` by ``_number``, which also
    have t_open and what `toolkit.statistics.clusters.clusters_of_lives` reads. What a life adds to
    the logarithm of the share at an age is its martingale, weighted by one over those who live on.
    The variance is that of the jackknife: of what the lives of each cluster add, over one less its
    share of all lives (Williams 1995, Lin and Wei 1989). ``log_error`` is scaled so that 1.96 of it
    are Student's quantile, with the freedom of `toolkit.statistics.clusters.effective_freedom`.
    Groups of which less than 10 ended are taken as lives apart. The second frame has a row per
    group: _number, cluster, n_clusters and few_clusters.

    References
    ----------
    Williams, R. L. (1995), Product-limit survival functions with correlated survival times,
    Lifetime Data Analysis 1. Lin, D. Y. and Wei, L. J. (1989), Journal of the American
    Statistical Association 84.

    Examples
    --------
    >>> from toolkit.statistics.life_curve import life_curve
    >>> lives = pl.DataFrame({"_number": [0] * 40, "t_open": [86_400 * (k // 2) for k in range(40)],
    ...     "duration_s": [10.0 + k // 2 for k in range(40)], "entry_s": [0.0] * 40,
    ...     "observed": [1] * 40}, schema_overrides={"_number": pl.UInt32})
    >>> _, groups = with_clusters(life_curve(lives, ["_number"]), lives, "auto")
    >>> groups.row(0)
    (0, 'path', 20, False)
    """
    watched = lives.filter(
        pl.col("duration_s").is_not_null()
        & ((pl.col("entry_s") <= 0) | (pl.col("entry_s") < pl.col("duration_s")))
    ).sort("_number", "duration_s", "t_open", "entry_s", "observed")
    errors = curve["log_error"].to_numpy().copy()
    numbers, own = curve["_number"].to_numpy(), watched["_number"].to_numpy()
    rows = []
    for number in lives["_number"].unique().sort():
        part = watched[slice(*np.searchsorted(own, [number, number + 1]).tolist())]
        place = slice(*np.searchsorted(numbers, [number, number + 1]).tolist())
        clusters, found = _clustered(curve[place], part, asked)
        errors[place] = found
        rows.append((number, clusters.kind, clusters.count, clusters.few))
    groups = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return curve.with_columns(pl.Series("log_error", errors)), groups


def _clustered(curve: pl.DataFrame, lives: pl.DataFrame, asked: str) -> tuple[Clusters, Floats]:
    """Choose the clusters of one group, and return them with the error at each age of its curve."""
    errors = curve["log_error"].to_numpy()
    ended = curve["ended"].to_numpy()
    apart = Clusters(NONE, np.arange(lives.height), lives.height, few=False)
    if ended.sum() < MIN_ENDED or asked == NONE:
        return apart, errors
    at = np.flatnonzero(ended > 0)
    ages, watched = curve["duration_s"].to_numpy()[at], curve["at_risk"].to_numpy()[at]
    hazard, left = ended[at] / watched, watched - ended[at]
    weight = np.divide(1.0, left, out=np.zeros(left.size), where=left > 0)
    half = np.flatnonzero(curve["share"].to_numpy()[at] <= 0.5)
    until = int(half[0]) if half.size else ages.size - 1
    influence = _influence(lives, ages[: until + 1], hazard, weight)
    clusters = chosen_clusters(asked, clusters_of_lives(lives, asked), influence[:, None])
    if clusters.kind == NONE or clusters.few:
        return clusters, errors
    of, count = clusters.joined
    squares = np.zeros(ages.size)
    total, first = np.zeros(count), 0
    # as if the curve were that of the others, one cluster left out at a time
    others = 1 - np.bincount(of)[:, None] / of.size
    for at_risk, ends in risk_tables(lives, of, count, ages):
        some = slice(first, first + ends.shape[1])
        added = np.cumsum((ends - at_risk * hazard[some]) * weight[some], axis=1) + total[:, None]
        squares[some] = np.square(added / others).sum(axis=0) * (count - 1) / count
        total, first = added[:, -1], some.stop
    reach = two_sided_95_between(np.array([effective_freedom(of)]))[0] / TWO_SIDED_95
    place = np.searchsorted(ages, curve["duration_s"].to_numpy(), side="right")
    return clusters, np.concatenate([[0.0], np.sqrt(squares) * reach])[place]


def _influence(lives: pl.DataFrame, ages: Floats, hazard: Floats, weight: Floats) -> Floats:
    """Return what each life adds to the fall of the logarithm of the share at the last age."""
    durations, entries = lives["duration_s"].to_numpy(), lives["entry_s"].to_numpy()
    expected = np.concatenate([[0.0], np.cumsum((hazard * weight)[: ages.size])])
    over = np.searchsorted(ages, durations, side="right")
    begun = np.where(entries > 0, np.searchsorted(ages, entries, side="right"), 0)
    ended = (lives["observed"].to_numpy() == 1) & (durations <= ages[-1])
    own = np.where(ended, weight[np.maximum(over - 1, 0)], 0.0)
    found: Floats = own - (expected[over] - expected[np.minimum(begun, over)])
    return found


def risk_tables(
    lives: pl.DataFrame, group: Integers, count: int, ages: Floats
) -> Iterator[tuple[Integers, Integers]]:
    """Yield for some ages at a time how many lives of each group are watched, and how many end.

    ``lives`` are sorted by duration. ``ages`` are those at which any ends. The tables have a row
    per group and a column per age.
    """
    durations, entries = lives["duration_s"].to_numpy(), lives["entry_s"].to_numpy()
    ended = lives["observed"].to_numpy() == 1
    over = np.searchsorted(ages, durations, side="right")
    late = np.flatnonzero(entries > 0)
    late = late[np.argsort(entries[late], kind="stable")]
    begun = np.searchsorted(ages, entries[late], side="right")
    # one that opened in the window is watched from the beginning, also of a life of 0 s
    watched = np.bincount(group[entries <= 0], minlength=count)
    marks = (begun, group[late]), (over, group), (over[ended] - 1, group[ended])
    for low in range(0, ages.size, _AGES):
        size = min(_AGES, ages.size - low)
        entering, leaving, ends = (_table(at, of, low, size, count) for at, of in marks)
        at_risk = watched[:, None] + np.cumsum(entering - leaving, axis=1)
        watched = at_risk[:, -1]
        yield at_risk, ends


def _table(at: Integers, group: Integers, low: int, size: int, count: int) -> Integers:
    """Count the marks of each group at each of some ages, from those sorted by the age's number."""
    part = slice(*np.searchsorted(at, [low, low + size]))
    cells = np.bincount(group[part] * size + at[part] - low, minlength=count * size)
    return cells.reshape(count, size)
