"""Funding in buckets of time, such as 8 hours."""

from __future__ import annotations

import numpy as np
import polars as pl

from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import parse_length
from toolkit.statistics.core.contract import Question
from toolkit.statistics.funding.accruals import accruals, covered_stretches
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR
from toolkit.statistics.funding.settlements import LegSettlements

BUCKET_S = 28_800
"""8 hours, the longest usual interval."""

WHOLE = 1 - 1e-9
"""The coverage of a full bucket, up to rounding."""

_PCT = 100


def bucket_sums(stretches: pl.DataFrame, bucket_s: int = BUCKET_S) -> pl.DataFrame:
    """Sum what accrued over each bucket, sorted by trajectory and time.

    ``stretches`` are those of `toolkit.statistics.funding.accruals.covered_stretches`. Buckets
    begin at multiples of ``bucket_s`` since 1970, and settlements count by their time in each, so
    that legs of 1, 4, 8 and 24 h are comparable. Columns: trajectory, ts (s, the beginning),
    covered_s (s, by both legs), accrued (fraction, sell less buy). Buckets without covered time
    have no row.

    >>> stretches = pl.DataFrame({"trajectory": ["a"], "begins": [25200.0], "ends": [32400.0],
    ...     "buy_rate_per_hour": [0.0], "sell_rate_per_hour": [0.5]})
    >>> bucket_sums(stretches).rows()
    [('a', 0, 3600.0, 0.5), ('a', 28800, 3600.0, 0.5)]
    """
    if stretches.is_empty():
        types = {"ts": pl.Int64, "covered_s": pl.Float64, "accrued": pl.Float64}
        return stretches.select("trajectory").with_columns(
            pl.lit(None, dtype).alias(name) for name, dtype in types.items()
        )
    begins, ends = (stretches[name].to_numpy() for name in ("begins", "ends"))
    hourly = (stretches["sell_rate_per_hour"] - stretches["buy_rate_per_hour"]).to_numpy()
    first = np.floor(begins / bucket_s).astype(np.int64)
    count = np.ceil(ends / bucket_s).astype(np.int64) - first
    bucket, number = first, stretches["trajectory"].rle_id().to_numpy()
    place = np.arange(count.size)
    if (count > 1).any():
        place = np.repeat(place, count)
        # of each stretch the buckets from its first on
        bucket = first[place] + np.arange(place.size) - np.repeat(np.cumsum(count) - count, count)
        begins, ends, hourly, number = (each[place] for each in (begins, ends, hourly, number))
    ts = bucket_s * bucket
    length_s = np.minimum(ends, ts + bucket_s) - np.maximum(begins, ts)
    starts = np.flatnonzero(np.diff(number, prepend=-1) | np.diff(bucket, prepend=bucket[0]))
    return pl.DataFrame(
        {
            "trajectory": stretches["trajectory"][place[starts]],
            "ts": ts[starts],
            "covered_s": np.add.reduceat(length_s, starts),
            "accrued": np.add.reduceat(hourly * length_s / 3600, starts),
        }
    )


def mean_rates(found: LegSettlements, question: Question, bucket_s: int) -> pl.DataFrame:
    """Average the differential of each trajectory over buckets: trajectory, ts, coverage, apr_pct.

    Only time that both legs cover counts, and a bucket without any has no row. The yearly rate is
    simple, in percent.

    >>> rows = {"trajectory": ["a"], "ts": [28800], "buy_rate": [0.0], "sell_rate": [0.5]}
    >>> hours = {"buy_interval_hours": [None], "sell_interval_hours": [8]}
    >>> from toolkit.statistics.funding.settlements import settlements
    >>> found = settlements(pl.DataFrame(rows | hours))
    >>> mean_rates(found, Question("rows/1", 0, 86400), 28800).rows()
    [('a', 0, 1.0, 54750.0)]
    """
    sums = bucket_sums(covered_stretches(found, accruals(found, question)), bucket_s)
    hours = pl.col("covered_s") / 3600
    return sums.select(
        "trajectory",
        "ts",
        (pl.col("covered_s") / bucket_s).clip(upper_bound=1.0).alias("coverage"),
        (_PCT * HOURS_A_YEAR * pl.col("accrued") / hours).alias("apr_pct"),
    )


def whole_buckets(window: Interval, bucket_s: int) -> pl.Series:
    """Return the beginnings ``ts`` (s) of the buckets that lie in the window.

    >>> whole_buckets(Interval(10, 90), 30).to_list()
    [30, 60]
    """
    first, last = -(-window.start // bucket_s), window.end // bucket_s
    return pl.Series("ts", range(bucket_s * first, bucket_s * last, bucket_s), dtype=pl.Int64)


def bucket_length(bucket: str | int) -> int:
    """Return the length of a bucket (s), which divides a day or is a whole number of days.

    >>> bucket_length("8h"), bucket_length("7d")
    (28800, 604800)
    """
    length = parse_length(bucket, parameter="bucket")
    if 86_400 % length and length % 86_400:
        raise InputError("bucket", bucket, "a length that divides a day, or a number of days")
    return length
