"""Accruals: the settlement that pays for each moment of a window on both legs, and their sums."""

from __future__ import annotations

import numpy as np
import polars as pl

from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import parse_length
from toolkit.statistics.core.contract import Question, collected
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR, LEG_KEY, TOLERANCE, before
from toolkit.statistics.funding.settlements import LEGS, LegSettlements

_COLUMNS = ("row", *LEG_KEY, "ts", "rate_per_hour", "accrues_from", "accrues_until")

STALE_INTERVALS = 2
"""How many of its intervals a rate is in force without another settlement."""


def accruals(found: LegSettlements, question: Question, *columns: str) -> pl.DataFrame:
    """List the part of the window that each settlement paid for, one row per settlement.

    It pays for the time since the previous one if that is its interval within a tenth, else for its
    own interval, at most since the previous one. Columns (or those named): row (its place in
    ``found.rows``), trajectory, leg, ts (s), rate_per_hour, accrues_from and accrues_until (s,
    within the window). Settlements that paid for nothing in the window, or with an unknown
    interval, have no row.
    """
    ts, interval_s = pl.col("ts"), 3600 * pl.col("interval_hours")
    follows = (ts - before("ts")) <= (1 + TOLERANCE) * interval_s
    since = pl.when(follows.fill_null(value=False)).then(before("ts").cast(pl.Float64))
    paid = _inside(found, question, pl.coalesce(since, ts - interval_s), ts)
    return collected(paid.select(*columns or _COLUMNS))


def in_force(found: LegSettlements, question: Question) -> pl.DataFrame:
    """List the part of the window in which each settled rate is in force: at most two intervals."""
    ts, interval_s = pl.col("ts"), 3600 * pl.col("interval_hours")
    number = pl.col("leg_number")
    following = pl.when(number == number.shift(-1)).then(ts.shift(-1)).cast(pl.Float64)
    until = pl.min_horizontal(following, ts + STALE_INTERVALS * interval_s)
    return collected(_inside(found, question, ts, until).select(_COLUMNS))


def _inside(
    found: LegSettlements, question: Question, begins: pl.Expr, ends: pl.Expr
) -> pl.LazyFrame:
    """Cut what each settlement of a known interval paid for to the window."""
    since, until = pl.col("accrues_from"), pl.col("accrues_until")
    return (
        found.rows.lazy()
        .with_row_index("row")
        .with_columns(
            accrues_from=begins.cast(pl.Float64).clip(lower_bound=question.start),
            accrues_until=ends.cast(pl.Float64).clip(upper_bound=question.end),
        )
        .filter(pl.col("interval_hours").is_not_null() & (since < until))
    )


def covered_stretches(found: LegSettlements, paid: pl.DataFrame) -> pl.DataFrame:
    """Cut the window into the stretches that both legs cover, by rows of `accruals` or `in_force`.

    Columns: trajectory, begins and ends (s), length_s, and for each leg ``LEG_row`` (in
    ``found.rows``) and ``LEG_rate_per_hour``. A spot leg covers all at 0 with a null row. Sorted by
    trajectory and time.
    """
    # one number per trajectory, the same on both legs
    numbered = paid.drop("ts").with_columns(number=pl.col("trajectory").rle_id())
    legs = {leg: numbered.filter(leg=leg).drop("leg") for leg in LEGS}
    of_buy, of_sell = _overlaps(legs["buy"], legs["sell"])
    buy = _of_leg(legs["buy"], "buy")[of_buy]
    sell = _of_leg(legs["sell"], "sell").drop("trajectory", "number")[of_sell]
    parts = [pl.concat([buy, sell], how="horizontal")]
    for leg, other in (LEGS, LEGS[::-1]):
        spot = found.trajectories.filter(f"{other}_spot")
        if spot.is_empty():
            continue
        alone = legs[leg].join(spot, on="trajectory", how="semi", maintain_order="left")
        at_nothing = pl.lit(0.0).alias(f"{other}_rate_per_hour")
        parts += [_of_leg(alone, leg).with_columns(at_nothing)] if alone.height else []
    stretches = pl.concat(parts, how="diagonal").with_columns(
        begins=pl.max_horizontal(f"{leg}_accrues_from" for leg in LEGS),
        ends=pl.min_horizontal(f"{leg}_accrues_until" for leg in LEGS),
    )
    if len(parts) > 1:
        stretches = stretches.sort("number", "begins")
    values = [f"{leg}_{name}" for leg in LEGS for name in ("row", "rate_per_hour")]
    length_s = (pl.col("ends") - pl.col("begins")).alias("length_s")
    return stretches.select(pl.col("trajectory").set_sorted(), "begins", "ends", length_s, *values)


def _of_leg(rows: pl.DataFrame, leg: str) -> pl.DataFrame:
    values = ("row", "rate_per_hour", "accrues_from", "accrues_until")
    named = (pl.col(name).alias(f"{leg}_{name}") for name in values)
    return rows.select("trajectory", "number", *named)


def _overlaps(a: pl.DataFrame, b: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the rows of two legs that accrue at one time, in order of time."""
    begins_a, begins_b = _moments(a, "accrues_from"), _moments(b, "accrues_from")
    # two sorted runs, which a stable sort merges: of moments that are the same, b's come first
    is_a = np.argsort(np.concatenate([begins_b, begins_a]), kind="stable") >= begins_b.size
    # the row of the other leg that began last: at the same moment or before, and before it
    last_b, last_a = np.cumsum(~is_a)[is_a] - 1, np.cumsum(is_a)[~is_a] - 1
    holds_b = (last_b >= 0) & _holds(b, last_b, begins_a)
    holds_a = (last_a >= 0) & _holds(a, last_a, begins_b)
    of_a = np.concatenate([np.flatnonzero(holds_b), last_a[holds_a]])
    of_b = np.concatenate([last_b[holds_b], np.flatnonzero(holds_a)])
    # from one overlap to the next, one place or both go up by one or more
    order = np.argsort(of_a + of_b, kind="stable")
    return of_a[order], of_b[order]


def _moments(rows: pl.DataFrame, name: str) -> np.ndarray:
    """Return trajectory and time as complex numbers, which numpy sorts by both without rounding."""
    moments = np.empty(rows.height, dtype=np.complex128)
    moments.real, moments.imag = rows["number"].to_numpy(), rows[name].to_numpy()
    return moments


def _holds(rows: pl.DataFrame, places: np.ndarray, moments: np.ndarray) -> np.ndarray:
    if not rows.height:
        return np.zeros(places.size, dtype=bool)
    ends = _moments(rows, "accrues_until")[places]
    held: np.ndarray = (ends.real == moments.real) & (moments.imag < ends.imag)
    return held


BUCKET_S = 28_800
"""8 hours, the longest usual interval."""

WHOLE = 1 - 1e-9
"""The coverage of a full bucket, up to rounding."""

_PCT = 100


def bucket_sums(stretches: pl.DataFrame, bucket_s: int = BUCKET_S) -> pl.DataFrame:
    """Sum what accrued over each bucket, sorted by trajectory and time.

    Buckets of `covered_stretches` begin at multiples of ``bucket_s`` since 1970, and settlements
    count by their time in each. Columns: trajectory, ts (s, the beginning), covered_s (s, by both
    legs), accrued (fraction, sell less buy). Buckets without covered time have no row.
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
    """Return the beginnings ``ts`` (s) of the buckets within the window."""
    first, last = -(-window.start // bucket_s), window.end // bucket_s
    return pl.Series("ts", range(bucket_s * first, bucket_s * last, bucket_s), dtype=pl.Int64)


def bucket_length(bucket: str | int) -> int:
    """Return the length of a bucket (s), a divisor of a day or a whole number of days."""
    length = parse_length(bucket, parameter="bucket")
    if 86_400 % length and length % 86_400:
        raise InputError("bucket", bucket, "a length that divides a day, or a number of days")
    return length
