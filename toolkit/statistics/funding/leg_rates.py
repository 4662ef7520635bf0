"""Rates in force of single legs, from snapshots."""

from __future__ import annotations

import polars as pl

from toolkit.analyses import analysis
from toolkit.market import Step, When
from toolkit.statistics import spread
from toolkit.statistics.core.contract import Frame


@analysis(
    "rates.summary",
    (
        *("funding_apr_mean_pct", "funding_apr_std_pct", "coverage", "n", "funding_apr_median_pct"),
        *("funding_apr_q05_pct", "funding_apr_q95_pct", "longest_gap_s"),
    ),
    figures=(
        *("n", "coverage", "observed_share", "step_s", "n_segments", "longest_gap_s"),
        *("implausible", "funding_apr_mean_pct", "funding_apr_time_weighted_mean_pct"),
        *("funding_apr_std_pct", "funding_apr_median_pct", "funding_apr_q05_pct"),
        *("funding_apr_q95_pct", "half_life_s"),
    ),
    order="-funding_apr_mean_pct",
    title="Funding rate in force, percent a year,",
    command="",
)
def summary(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Compute level, dispersion and tails of a leg's funding rate in force, in percent a year.

    It is `toolkit.statistics.spread.summary` of ``funding_apr_pct``, with its columns and errors.
    `toolkit.statistics.funding.rates_in_force.with_apr` adds that column to rows of snapshots.

    >>> rows = {"trajectory": ["snapshot-funding/A:X.futures"] * 3, "ts": [0, 60, 120]}
    >>> frame = pl.DataFrame(rows | {"funding_apr_pct": [10.0, 11.0, 12.0]})
    >>> summary(frame, 0, 180)["funding_apr_mean_pct"].item()
    11.0
    """
    return spread.summary(
        frame, start, end, column="funding_apr_pct", step_s=step_s, max_stale_s=max_stale_s
    )
