"""How often events open: rates with exact intervals, and league tables with chance taken out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from toolkit.errors import InputError
from toolkit.statistics.contract import Frame, Reason, checked_types, first_reason
from toolkit.statistics.event_exposure import Watched
from toolkit.statistics.tails import gamma_quantile, poisson_interval

MIN_GROUPS = 10
"""Fewer groups of a family than this, and their rates are not shrunk."""

_UNITS = {"per_h": 3_600, "per_day": 86_400}
_QUANTILES = {"between_q25_s": 0.25, "between_median_s": 0.5, "between_q75_s": 0.75}
_ENDS = ("rate", "rate_lower", "rate_upper")
_SHRUNK = tuple(f"rate_shrunk{end}_per_day" for end in ("", "_lower", "_upper"))

Numbers = npt.NDArray[np.float64]


def rates(
    lives: Frame, by: Sequence[str] = (), *, held: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Compute how often events open, per hour and per day of time in which their log is held.

    ``lives``, ``by`` and ``held`` are those of `survival`. An event counts where it opened in the
    window and in a held stretch of its log. Time that is not held counts neither for events nor for
    hours: a gap of the log is no quiet time.

    The interval is exact for events that open apart from each other (Poisson). Events that come in
    bursts (`clustering`) vary more than it shows. Times between openings are those of neighbours in
    one held stretch. There is one row per family and group that has an event, also one that opened
    before the window, sorted:

    ======================  =======  =====  ====================================================
    column                  type     unit   meaning
    ======================  =======  =====  ====================================================
    family                  String   none   of the events, then the columns ``by``
    n                       Int64    count  events that opened
    n_not_held              Int64    count  those that opened where the log is not held
    held_s                  Int64    s      time of the window in which the log is held
    coverage                Float64  none   that time over the window, fraction
    rate_per_h              Float64  1/h    openings per hour
    rate_lower_per_h        Float64  1/h    95 %, lower bound
    rate_upper_per_h        Float64  1/h    95 %, upper bound
    rate_per_day            Float64  1/d    openings per 24 hours
    rate_lower_per_day      Float64  1/d    95 %, lower bound
    rate_upper_per_day      Float64  1/d    95 %, upper bound
    rate_reason             String   none   empty (nothing is held)
    n_between               Int64    count  times between neighbouring openings
    between_q25_s           Float64  s      a quarter of them are shorter
    between_median_s        Float64  s      half of them are shorter
    between_q75_s           Float64  s      three quarters are shorter
    between_reason          String   none   too_few (no two openings in one stretch)
    window_start            Int64    s      as asked of the lifecycles, Unix UTC
    window_end              Int64    s      itself outside
    method                  String   none   what computed the row, with its version
    params_hash             String   none   the same where the same was asked of any window
    ======================  =======  =====  ====================================================

    Raises
    ------
    InputError
        As `survival`.

    References
    ----------
    Garwood, F. (1936), Fiducial limits for the Poisson distribution, Biometrika 28.

    Examples
    --------
    Five openings in six hours, of which the log is held for four.

    >>> lives = pl.DataFrame({"family": ["spread"] * 5, "t_open": [0, 600, 1200, 16_000, 20_000],
    ...     "duration_s": [30.0] * 5, "entry_s": [0.0] * 5, "observed": [1] * 5,
    ...     "kind": ["closed"] * 5, "known_until": [21_600] * 5, "window_start": [0] * 5,
    ...     "window_end": [21_600] * 5})
    >>> held = pl.DataFrame({"family": ["spread"] * 2, "start_ts": [0, 14_400],
    ...                      "end_ts": [7_200, 21_600]})
    >>> rates(lives, held=held).select("n", "rate_per_h", "between_median_s").row(0)
    (5, 1.25, 600.0)
    """
    watched = Watched.of(lives, by, held)
    found = rates_of_groups(watched, watched.groups)
    return found.with_columns(watched.question("events.rates/1").columns)


def rates_of_groups(watched: Watched, groups: pl.DataFrame) -> pl.DataFrame:
    """Compute the columns of `rates` of the groups given, without those of the question."""
    names, opened = watched.names, watched.openings()
    start, end = watched.window
    between = pl.col("t_open").diff().over("_number", "stretch").cast(pl.Float64)
    found = (
        opened.select("_number", between.alias("between"))
        .group_by("_number")
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            pl.col("between").count().cast(pl.Int64).alias("n_between"),
            *(
                pl.col("between").quantile(share, "linear").alias(name)
                for name, share in _QUANTILES.items()
            ),
        )
    )
    inside = pl.col("t_open").is_between(start, end, closed="left")
    counted = watched.lives.group_by("_number").agg(inside.sum().cast(pl.Int64).alias("opened"))
    figures = (
        watched.groups.join(counted, on="_number")
        .join(found, on="_number", how="left")
        .drop("_number")
    )
    rows = (
        groups.select(names)
        .sort(names)
        .join(figures, on=names, how="left", nulls_equal=True, maintain_order="left")
        .join(watched.held_s(), on="family", how="left", maintain_order="left")
        .with_columns(pl.col("n", "n_between", "opened", "held_s").fill_null(0))
        .with_columns(n_not_held=pl.col("opened") - pl.col("n"))
    )
    counts = rows["n"].to_numpy().astype(np.float64)
    lower, upper = poisson_interval(counts)
    ends = zip(_ENDS, (counts, lower, upper), strict=True)
    some = pl.col("held_s") > 0
    bounds = {name: pl.Series(name, values) for name, values in ends}
    per_unit = [
        pl.when(some).then(pl.col(name) / (pl.col("held_s") / unit_s)).alias(f"{name}_{unit}")
        for unit, unit_s in _UNITS.items()
        for name in _ENDS
    ]
    return rows.with_columns(**bounds).select(
        *names,
        *("n", "n_not_held", "held_s", "coverage"),
        *per_unit,
        first_reason({Reason.EMPTY: ~some}).alias("rate_reason"),
        "n_between",
        *_QUANTILES,
        first_reason({Reason.TOO_FEW: pl.col("n_between") == 0}).alias("between_reason"),
    )


def league(
    lives: Frame,
    by: Sequence[str],
    *,
    held: pl.DataFrame | None = None,
    all_groups: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Rank the groups of each family by how often their events open, with chance taken out.

    The parameters and the columns are those of `rates`, with the columns below before
    ``window_start``. Of many groups with few events the first are mostly those with luck. So each
    rate is shrunk toward the mean of its family, the more the fewer events it has (empirical
    Bayes): the rates of groups are taken to be gamma distributed, and the distribution that makes
    the counts most likely is the prior. The bounds take it for known, and are a little too narrow.

    ``all_groups`` has the family and the columns ``by`` of all groups that could have had an
    event, so that those without one are ranked as well. Without it the prior is that of the groups
    that have one. Rows are sorted by family and rank:

    ============================  =======  =====  ==============================================
    column                        type     unit   meaning
    ============================  =======  =====  ==============================================
    rank                          Int64    count  1 for the largest shrunk rate, else rate, of
                                                  a family
    share                         Float64  none   part of the family's openings, fraction
    share_reason                  String   none   empty (no opening in the family)
    rate_shrunk_per_day           Float64  1/d    mean of the rate, given its count and the prior
    rate_shrunk_lower_per_day     Float64  1/d    95 %, lower bound
    rate_shrunk_upper_per_day     Float64  1/d    95 %, upper bound
    shrunk_reason                 String   none   empty, too_few (less than 10 groups),
                                                  degenerate (the counts vary no more than by
                                                  chance: no group is known to differ)
    ============================  =======  =====  ==============================================

    Raises
    ------
    InputError
        As `survival`. ``by`` names no column. ``all_groups`` lacks a column, or has one of another
        type than the lifecycles.

    References
    ----------
    Robbins, H. (1956), An empirical Bayes approach to statistics. Greenwood, M. and Yule, G. U.
    (1920), Journal of the Royal Statistical Society 83: counts of gamma distributed rates.

    Examples
    --------
    >>> opened = [100 * k for k in range(60)]
    >>> names = [f"S{k % 12}" if k < 30 else "S3" for k in range(60)]
    >>> lives = pl.DataFrame({"family": ["spread"] * 60, "t_open": opened, "symbol": names,
    ...     "duration_s": [30.0] * 60, "entry_s": [0.0] * 60, "observed": [1] * 60,
    ...     "kind": ["closed"] * 60, "known_until": [86_400] * 60, "window_start": [0] * 60,
    ...     "window_end": [86_400] * 60})
    >>> first = league(lives, ["symbol"]).row(0, named=True)
    >>> first["symbol"], first["rate_per_day"], round(first["rate_shrunk_per_day"], 1)
    ('S3', 33.0, 27.7)
    """
    watched = Watched.of(lives, by, held)
    names = watched.names
    if names == ["family"]:
        raise InputError("by", by, "the columns that tell groups apart, e.g. symbol")
    groups = watched.groups.select(names)
    if all_groups is not None:
        checked_types(
            all_groups, {name: str(groups.schema[name]) for name in names}, parameter="all_groups"
        )
        groups = pl.concat([groups, all_groups.select(names)]).unique()
    found = rates_of_groups(watched, groups)
    parts = [_shrunk(part) for part in found.partition_by("family", maintain_order=True)]
    order = pl.coalesce(_SHRUNK[0], "rate_per_day")
    share = pl.col("n") / pl.col("n").sum().over("family")
    return (
        pl.concat(parts or [_shrunk(found)])
        .with_columns(
            order.rank("min", descending=True).over("family").cast(pl.Int64).alias("rank")
        )
        .with_columns(pl.when(share.is_finite()).then(share).alias("share"))
        .sort("family", "rank", *names[1:], nulls_last=True)
        .select(
            *found.columns,
            "rank",
            "share",
            first_reason({Reason.EMPTY: pl.col("share").is_null()}).alias("share_reason"),
            *_SHRUNK,
            "shrunk_reason",
            *watched.question("events.league/1").columns,
        )
    )


def _shrunk(found: pl.DataFrame) -> pl.DataFrame:
    """Add the shrunk rates of the groups of one family, which share the time that is held."""
    counts = found["n"].to_numpy().astype(np.float64)
    days = float(found["held_s"][0]) / 86_400 if found.height else 0.0
    reason = None
    if days == 0 or counts.sum() == 0:
        reason = Reason.EMPTY
    elif counts.size < MIN_GROUPS:
        reason = Reason.TOO_FEW
    elif counts.var() <= counts.mean():  # the likelihood then rises to the end (Levin, Reeds 1977)
        reason = Reason.DEGENERATE
    if reason is not None:
        none = [pl.lit(None, pl.Float64).alias(name) for name in _SHRUNK]
        return found.with_columns(*none, pl.lit(reason.value).alias("shrunk_reason"))
    shape = _gamma_shape(counts)
    scale = days + shape * days / counts.mean()
    ends = (counts + shape, *(gamma_quantile(counts + shape, at) for at in (0.025, 0.975)))
    return found.with_columns(
        *(pl.Series(name, end / scale) for name, end in zip(_SHRUNK, ends, strict=True)),
        pl.lit(None, pl.String).alias("shrunk_reason"),
    )


def _gamma_shape(counts: Numbers) -> float:
    """Find the shape of the gamma distributed means that makes counts most likely."""
    steps = np.arange(int(counts.max()), dtype=np.float64)
    above = counts.size - np.searchsorted(np.sort(counts), steps, side="right")
    total, mean = float(counts.sum()), float(counts.mean())

    def likelihood(log_shape: float) -> float:
        shape = math.exp(log_shape)
        # what does not depend on the counts is left out
        rises = float((above * np.log1p(steps / shape)).sum()) + total * log_shape
        return (
            rises - total * math.log(shape + mean) - counts.size * shape * math.log1p(mean / shape)
        )

    low, high, golden = math.log(1e-6), math.log(1e9), (math.sqrt(5) - 1) / 2
    for _ in range(100):
        first, second = high - golden * (high - low), low + golden * (high - low)
        if likelihood(first) >= likelihood(second):
            high = second
        else:
            low = first
    return math.exp((low + high) / 2)
