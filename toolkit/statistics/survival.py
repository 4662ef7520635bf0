"""How long events live, with those whose end was not seen."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from toolkit.errors import InputError
from toolkit.statistics.contract import Reason, checked_types, first_reason

__all__ = ["median_life"]


def __dir__() -> list[str]:
    return __all__


_HALF = 0.5 + 1e-12  # a product of fractions misses one half by a few bits


def median_life(lives: pl.DataFrame, by: Sequence[str] = ()) -> pl.DataFrame:
    """Compute the time by which half of the events are over, by Kaplan and Meier.

    ``lives`` are rows of `toolkit.statistics.events.lifecycles`, of which ``duration_s`` (Float64)
    and ``observed`` (Int64) are used: an event that was still open counts as alive until its
    duration, and its end is not known. Rows without a duration are left out. At each time at which
    events end, the share that lives on is multiplied by 1 - ended / still watched. The median is
    the first time at which the share is one half or less.

    There is one row per group of the columns ``by``, sorted by them, or one row:

    ==================  =======  =====  ==========================================================
    column              type     unit   meaning
    ==================  =======  =====  ==========================================================
    n_lives             Int64    count  events with a duration
    n_ended             Int64    count  those whose end was seen
    median_life_s       Float64  s      the median
    median_life_reason  String   none   empty, or censored where the share never falls to one half
    ==================  =======  =====  ==========================================================

    References
    ----------
    Kaplan, E. L. and Meier, P. (1958), Nonparametric estimation from incomplete observations,
    Journal of the American Statistical Association 53.

    Examples
    --------
    >>> lives = pl.DataFrame(
    ...     {"duration_s": [10.0, 20.0, 30.0, 40.0, 50.0], "observed": [1, 0, 1, 1, 0]}
    ... )
    >>> median_life(lives).row(0)
    (5, 3, 40.0, None)
    """
    checked_types(lives, {"duration_s": "Float64", "observed": "Int64"})
    if isinstance(by, str):
        by = [by]
    for name in by:
        if name not in lives.columns:
            raise InputError("by", name, lives.columns)
    if not by:
        return median_life(lives.with_columns(_all=pl.lit(0)), ["_all"]).drop("_all")
    groups = lives.select(by).unique().sort(by)
    watched = lives.filter(pl.col("duration_s").is_not_null())
    times = (
        watched.group_by(*by, "duration_s")
        .agg(ended=pl.col("observed").sum(), leaving=pl.len().cast(pl.Int64))
        .sort(*by, "duration_s")
        .with_columns(at_risk=pl.col("leaving").cum_sum(reverse=True).over(by))
        .with_columns(share=(1 - pl.col("ended") / pl.col("at_risk")).cum_prod().over(by))
    )
    found = times.group_by(by).agg(
        n_lives=pl.col("leaving").sum(),
        n_ended=pl.col("ended").sum(),
        median_life_s=pl.col("duration_s").filter(pl.col("share") <= _HALF).min(),
    )
    none = pl.col("n_lives") == 0
    missing = {Reason.EMPTY: none, Reason.CENSORED: pl.col("median_life_s").is_null()}
    return (
        groups.join(found, on=by, how="left", maintain_order="left")
        .with_columns(pl.col("n_lives", "n_ended").fill_null(0))
        .with_columns(first_reason(missing).alias("median_life_reason"))
    )
