"""Survival with censoring: the curve of Kaplan and Meier."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from toolkit.columns import described
from toolkit.statistics.core.contract import checked_names, checked_types
from toolkit.statistics.numeric.life_curve import (
    MIN_ENDED,
    life_interval,
    life_until,
    times_of_groups,
)

__all__ = ["MIN_ENDED", "life_quantiles", "median_life"]


def __dir__() -> list[str]:
    return __all__


_BOUND_NAMES = ("life_lower_s", "life_upper_s")


@described("survival.median_life")
def median_life(lives: pl.DataFrame, by: Sequence[str] = ()) -> pl.DataFrame:
    """Compute the time by which half of the events are over, by Kaplan and Meier.

    ``lives`` are rows of `toolkit.statistics.events.lifecycles`, of which ``duration_s`` (Float64)
    and ``observed`` (Int64) are used. Rows without a duration are left out. At each time at which
    events end, the surviving share is multiplied by 1 - ended / watched. The median is the first
    time at which it is one half or less.

    With ``entry_s`` (Float64) in ``lives``, an event is watched from that age on: see
    `toolkit.statistics.numeric.life_curve.life_curve`. One row per group of the columns ``by``,
    sorted, or one row:

    {columns}

    Source: Kaplan, E. L. and Meier, P. (1958), Journal of the American Statistical Association 53.

    >>> lives = pl.DataFrame(
    ...     {"duration_s": [10.0, 20.0, 30.0, 40.0, 50.0], "observed": [1, 0, 1, 1, 0]}
    ... )
    >>> median_life(lives).row(0)
    (5, 3, 40.0, None)
    """
    return _by_group(lives, by, _MEDIAN)


@described("survival.life_quantiles")
def life_quantiles(lives: pl.DataFrame, by: Sequence[str] = ()) -> pl.DataFrame:
    """Compute the times by which 25, 50, 75 and 90 % are over, with the interval of the median.

    ``lives`` and ``by`` are as in `median_life`. The 95 % interval assumes independent lives: it
    has the times at which the log-log interval of the share (by Greenwood's variance) contains one
    half.

    {columns}

    Source: Brookmeyer, R. and Crowley, J. (1982), Biometrics 38.

    >>> lives = pl.DataFrame({"duration_s": [1.0 * k for k in range(1, 31)], "observed": [1] * 30})
    >>> life_quantiles(lives).select("median_life_s", "life_lower_s", "life_upper_s").row(0)
    (15.0, 10.0, 21.0)
    """
    return _by_group(lives, by, _MEDIAN + _QUANTILES + _BOUNDS)


_MEDIAN = (life_until(0.5).alias("median_life_s"),)
_QUANTILES = tuple(
    life_until(1 - percent / 100).alias(f"life_q{percent}_s") for percent in (25, 75, 90)
)
_BOUNDS = tuple(
    bound.alias(name) for name, bound in zip(_BOUND_NAMES, life_interval(0.5), strict=True)
)


def _by_group(lives: pl.DataFrame, by: Sequence[str], wanted: Sequence[pl.Expr]) -> pl.DataFrame:
    checked_types(lives, {"duration_s": "Float64", "observed": "Int64"})
    by = checked_names("by", by, lives.columns)
    if not by:
        return _by_group(lives.with_columns(_all=pl.lit(0)), ["_all"], wanted).drop("_all")
    return times_of_groups(lives, by, wanted, _BOUND_NAMES)
