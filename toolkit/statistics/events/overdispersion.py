"""Overdispersion of counts of events, and the divisor that makes them nearly Poisson.

The Fano factor is the variance of counts over that of independent events (Poisson), and above 1 if
events come in bursts. It is measured on stretches of the covered time.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import polars as pl

from toolkit.analyses import Parameter
from toolkit.statistics.events.clusters import AUTO, FEWEST_CLUSTERS, NONE
from toolkit.statistics.events.exposure import Watched
from toolkit.statistics.numeric.life_curve import TWO_SIDED_95
from toolkit.statistics.numeric.student import two_sided_95_between
from toolkit.statistics.numeric.tails import gamma_quantile

RATE_CLUSTERS = (AUTO, NONE, "stretch", "day")
OPENINGS_IN = Parameter(
    "What may hold bursts of openings. auto: where they show.", choices=RATE_CLUSTERS
)

_STRETCHES, _DAY_S = 16, 86_400
_MOST_MEMORY = 0.5
"""Above this correlation of neighbouring stretches bursts last as long as they do: no interval."""
_LEAST_EVENTS = 2.0
"""With fewer bursts than this there is no interval."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def dispersions(watched: Watched, opened: pl.DataFrame, cluster: str) -> pl.DataFrame:
    """Compute the Fano factor of each group's count of openings, by `Watched.openings`.

    The covered time is cut into 16 equal stretches, or with 16 days or more into stretches of whole
    days. From two days on, a daily sine and cosine are removed first. The factor is the variance of
    the counts over the mean, times 1 + 2 r, where r is their correlation with the next stretch if
    above 0. With cluster day the stretches are UTC days.

    One row per group: ``_number``, ``cluster`` (with auto none if the counts show no bursts),
    ``n_clusters`` (stretches, for none the openings), ``fano`` (1 if unknown), ``freedom`` (degrees
    of freedom, null for none), ``long_bursts`` (as long as stretches, or too few of these) and
    ``pooled``, the factor with r of either sign.

    References
    ----------
    McCullagh, P. and Nelder, J. A. (1989), Generalized Linear Models, section 6.2: counts over
    their dispersion. Politis, D. N. and Romano, J. P. (1995), Bias-corrected nonparametric spectral
    estimation, Journal of Time Series Analysis 16: the correlation at one step in full.
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
    parts = (
        each.select(pl.col(name).cast(kind) for name, kind in schema.items()) for each in found
    )
    return pl.concat([pl.DataFrame(schema=schema), *parts])


def divisor_of(
    counts: Floats, fano: Floats, freedom: Floats, long_bursts: Flags
) -> tuple[Floats, Flags]:
    """Return the divisor that makes counts nearly Poisson, and where no interval holds.

    It is 1 if ``freedom`` is NaN, else the factor, at least 1, with Student's quantile in it. No
    interval holds for long bursts, or if fewer than 2 events are left after the division.

    >>> given = np.array([50.0]), np.array([4.0]), np.array([8.0]), np.array([False])
    >>> divisor_of(*given)[0].round(2).tolist()
    [5.54]
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
