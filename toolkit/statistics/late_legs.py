"""How far apart the legs of one price are where one of them is known later than the other."""

from __future__ import annotations

import polars as pl

from toolkit.reasons import Reason
from toolkit.statistics.stale_legs import LEGS

APART = "apart_s"
"""The column of the difference of the ages of both prices (s), null where they have none."""

LATE = [pl.col(name) for name in ("late_s", "stale_sd_log_bps", "within_stale_sd_share")]
"""The figures of `late_legs`."""

UNKNOWN = {Reason.TOO_FEW: pl.col("stale_sd_log_bps").is_null()}
"""Why there are none."""

_DEVIATIONS = 2
"""A spread of fewer standard deviations of what a late leg makes may be that alone."""


def late_legs(rows: pl.DataFrame) -> pl.DataFrame:
    """Compute the deviation that a late leg alone gives the spread, and how many lie within it.

    ``rows`` are observations with ``number``, ``step_s``, ``a_step_later`` (than the one before),
    both prices, ``value`` (the log spread, bps) and `APART`, sorted by number and time. One row per
    number, with the columns of `toolkit.statistics.flags.flags`.

    >>> rows = {"number": [0] * 2, "step_s": [60] * 2, "a_step_later": [False, True],
    ...         "buy_price": [1.0, 1.01], "sell_price": [1.0, 1.01], "apart_s": [15.0] * 2,
    ...         "value": [0.0, 0.0]}
    >>> late_legs(pl.DataFrame(rows)).select("late_s", pl.col("stale_sd_log_bps").round(3)).row(0)
    (15.0, 50.0)
    """
    squares = [
        pl.when("a_step_later").then((price / price.shift(1) - 1).pow(2)).alias(f"{leg}_square")
        for leg in LEGS
        for price in [pl.col(f"{leg}_price")]
    ]
    step_s = pl.col("step_s").first().cast(pl.Float64)
    late_s = pl.coalesce(pl.col(APART).mean(), step_s)
    variance = sum(pl.col(f"{leg}_square").mean() for leg in LEGS) / len(LEGS)
    deviation = 1e4 * (variance * late_s / step_s).sqrt()
    return (
        rows.select("number", "step_s", APART, "value", *squares)
        .group_by("number", maintain_order=True)
        .agg(
            late_s.alias("late_s"),
            deviation.alias("stale_sd_log_bps"),
            (pl.col("value").abs() < _DEVIATIONS * deviation).mean().alias("within_stale_sd_share"),
        )
    )
