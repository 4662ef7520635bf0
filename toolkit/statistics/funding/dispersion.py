"""Dispersion of one symbol's funding between venues, and persistence of ranks of funding."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.columns import schema_of
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import When, format_ts
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, checked_types, collected, first_reason
from toolkit.statistics.core.observations import observed
from toolkit.statistics.core.windows import settlements_extent, window_of
from toolkit.statistics.funding.accruals import WHOLE, bucket_length, mean_rates, whole_buckets
from toolkit.statistics.funding.receipts import MIN_COVERAGE, checked_coverage
from toolkit.statistics.funding.settlements import SETTLED_TYPES, settlements
from toolkit.statistics.numeric.arrays import Floats


def lowest_leg(leg: pl.Expr, value: pl.Expr) -> pl.Expr:
    """Build the leg with the lowest value of a group, to be long (ties: the first by name)."""
    return leg.sort_by(value, leg).first()


def highest_leg(leg: pl.Expr, value: pl.Expr) -> pl.Expr:
    """Build the leg with the highest value, to be short: never `lowest_leg` unless it is alone."""
    falling = leg.sort_by(value, leg, descending=[True, False])
    second = falling.get(1, null_on_oob=True)
    return (
        pl.when(falling.first() != lowest_leg(leg, value))
        .then(falling.first())
        .otherwise(pl.coalesce(second, falling.first()))
    )


_PREFIX = "funding/"
TYPES = SETTLED_TYPES | {"trajectory": "String"}
"""The columns that `legs` reads, with their types."""
_FIGURES = ("mean_apr_pct", "range_apr_pct", "iqr_apr_pct", "std_apr_pct", "highest", "lowest")


def legs(frame: Frame) -> pl.DataFrame:
    """Return the settlements of each leg once, as of a position that is short that leg alone.

    Rows are as in `toolkit.statistics.funding`: ``trajectory`` is
    ``funding/SYMBOL:EXCHANGE.market``, the buy leg is spot, and times are whole minutes. Legs that
    settle nothing, such as spot, are left out. A leg of several pairs comes once.

    Raises `InputError` for a key without a symbol and legs, and if two pairs have different rates
    of one leg at one time.

    >>> rows = {"trajectory": ["funding/A:X.futures:Y.futures"], "ts": [28800]}
    >>> rates = {"buy_rate": [1e-4], "sell_rate": [2e-4]}
    >>> hours = {"buy_interval_hours": [8.0], "sell_interval_hours": [8.0]}
    >>> legs(pl.DataFrame(rows | rates | hours)).select("trajectory", "sell_rate").rows()
    [('funding/A:X.futures', 0.0001), ('funding/A:Y.futures', 0.0002)]
    """
    checked_types(frame, TYPES)
    rows = collected(frame.lazy().select(list(TYPES)))
    names = rows.select(pl.col("trajectory").unique().sort())
    parts = pl.col("trajectory").str.strip_prefix(_PREFIX).str.split(":")
    count = parts.list.len()
    wrong = names.filter(~count.is_between(2, 3).fill_null(value=False))["trajectory"]
    if wrong.len():
        raise InputError("trajectory", wrong[0], "funding/SYMBOL:BUY.market:SELL.market")
    # the only leg of a key of one is the one sold
    named = {"buy": pl.when(count == 3).then(parts.list.get(1)), "sell": parts.list.last()}
    keys = names.select(
        "trajectory",
        *(
            pl.concat_str(pl.lit(_PREFIX), parts.list.first(), pl.lit(":"), leg).alias(side)
            for side, leg in named.items()
        ),
    )
    # as numbers in the order of the names, which rows are sorted and joined by faster
    every = pl.Enum(pl.concat([keys["buy"], keys["sell"]]).drop_nulls().unique().sort())
    found = []
    for side in named:
        of_side = keys.select("trajectory", pl.col(side).cast(every).alias("key")).drop_nulls()
        found.append(
            rows.join(of_side, on="trajectory", maintain_order="left").select(
                pl.col("key").alias("trajectory"),
                ((pl.col("ts") + 30) // 60 * 60).alias("ts"),
                observed(f"{side}_rate").alias("sell_rate"),
                pl.col(f"{side}_interval_hours").cast(pl.Float64).alias("sell_interval_hours"),
            )
        )
    return _once(pl.concat(found))


def _once(rows: pl.DataFrame) -> pl.DataFrame:
    rate, hours = pl.col("sell_rate"), pl.col("sell_interval_hours")
    settles = hours.is_not_null().any() | (rate.fill_null(0) != 0).any()
    kinds = rows.group_by("trajectory").agg(settles.alias("settles")).filter("settles")
    found = (
        rows.filter(rate.is_not_null() | hours.is_not_null())
        .join(kinds, on="trajectory", how="semi", maintain_order="left")
        .group_by("trajectory", "ts")
        .agg(rate.min(), (rate.min() != rate.max()).alias("differ"), hours.drop_nulls().first())
        .sort("trajectory", "ts")
    )
    if found["differ"].any():
        key, ts = found.filter("differ").select("trajectory", "ts").row(0)
        found_two = f"two rates of {key} at {format_ts(ts)}"
        raise InputError("frame", found_two, "one rate per leg and time")
    return found.select(
        pl.col("trajectory").cast(pl.String),
        "ts",
        pl.lit(0.0).alias("buy_rate"),
        "sell_rate",
        pl.lit(None, pl.Float64).alias("buy_interval_hours"),
        "sell_interval_hours",
    )


_LEAST = Parameter("The share of the buckets, 0 to 1, that a venue needs to be compared.")
_SAME_VENUES = """
    The range is the highest less the lowest mean rate of a bucket, in percent a year. As it grows
    with the number of venues, it always compares the same ones: those with nearly all buckets."""


def _titled(*, bucket: str | int, **_: object) -> str:
    return f"Funding of the venues of a symbol, highest less lowest, per {bucket}"


@analysis(
    "funding.dispersion",
    """
        ts range_apr_pct highest lowest mean_apr_pct std_apr_pct iqr_apr_pct n n_venues""",
    key=("symbol",),
    title=_titled,
    about=_SAME_VENUES,
    command="dispersion-over-time",
    example="BTC_USDT:*",
    across=legs,
    min_coverage=_LEAST,
)
def dispersion(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    bucket: str | int = "8h",
    min_coverage: float = MIN_COVERAGE,
) -> pl.DataFrame:
    """Measure how far the venues of each symbol are apart, in buckets of time.

    One row per symbol and bucket within the window, sorted. A venue is an exchange and its market,
    and its rate the mean of its settled rates, by `legs` of the frame. The venues of a symbol are
    those with at least ``min_coverage`` of the buckets: as the range grows with their number, a
    bucket without one of them has no figures.

    {columns}

    Raises as `legs`, and for a bucket that neither divides a day nor is a number of days.

    >>> frame = pl.DataFrame({"trajectory": "funding/A:X.futures:Y.futures", "ts": [28800, 57600],
    ...     "buy_rate": [1e-4, 1e-4], "sell_rate": [2e-4, -1e-4], "buy_interval_hours": [8] * 2,
    ...     "sell_interval_hours": [8] * 2})
    >>> found = dispersion(frame, 0, 57600)
    >>> found.select("ts", "n", pl.col("range_apr_pct").round(6), "highest").rows()
    [(0, 2, 10.95, 'Y.futures'), (28800, 2, 21.9, 'X.futures')]
    """
    window = window_of(frame, start, end, settlements_extent)
    question, bucket_s = _question("funding.dispersion/2", window, bucket, min_coverage)
    venues, rates = _of_venues(frame, question, bucket_s, min_coverage)
    return _by_bucket(venues, rates, question, bucket_s).with_columns(*question.columns)


@analysis(
    "funding.dispersion_summary",
    """
        range_mean_apr_pct std_mean_apr_pct n_venues coverage iqr_mean_apr_pct range_median_apr_pct
        range_q95_apr_pct n""",
    key=("symbol",),
    order="-range_mean_apr_pct",
    title=_titled,
    about=f"{_SAME_VENUES} The widest comes first.",
    command="dispersion",
    across=legs,
    min_coverage=_LEAST,
)
def dispersion_summary(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    bucket: str | int = "8h",
    min_coverage: float = MIN_COVERAGE,
) -> pl.DataFrame:
    """Measure how far the funding rates of a symbol's venues are apart, one row per symbol.

    It sums up `dispersion` over the window. Sorted by symbol.

    {columns}

    >>> frame = pl.DataFrame({"trajectory": "funding/A:X.futures:Y.futures", "ts": [28800, 57600],
    ...     "buy_rate": [1e-4, 1e-4], "sell_rate": [2e-4, -1e-4], "buy_interval_hours": [8] * 2,
    ...     "sell_interval_hours": [8] * 2})
    >>> found = dispersion_summary(frame, 0, 57600)
    >>> found.select("symbol", "n", "n_venues", pl.col("range_mean_apr_pct").round(6)).row(0)
    ('A', 2, 2, 16.425)
    """
    window = window_of(frame, start, end, settlements_extent)
    question, bucket_s = _question("funding.dispersion_summary/2", window, bucket, min_coverage)
    venues, rates = _of_venues(frame, question, bucket_s, min_coverage)
    rows = _by_bucket(venues, rates, question, bucket_s)
    expected = whole_buckets(Interval(question.start, question.end), bucket_s).len()
    widest = pl.col("range_apr_pct")
    found = rows.group_by("symbol", maintain_order=True).agg(
        widest.is_not_null().sum().cast(pl.Int64).alias("n"),
        range_mean_apr_pct=widest.mean(),
        range_median_apr_pct=widest.median(),
        range_q95_apr_pct=widest.quantile(0.95, "linear"),
        iqr_mean_apr_pct=pl.col("iqr_apr_pct").mean(),
        std_mean_apr_pct=pl.col("std_apr_pct").mean(),
    )
    n = pl.col("n").fill_null(0)
    reasons = {Reason.TOO_FEW: pl.col("n_venues") < 2, Reason.EMPTY: n == 0}
    # a column, as polars divides one by a single number through its rounded reciprocal
    coverage = pl.when(expected > 0).then(n / (n * 0 + expected)).otherwise(0.0)
    return (
        _sets(venues)
        .join(found, on="symbol", how="left", maintain_order="left")
        .with_columns(*question.columns, coverage=coverage, dispersion_reason=first_reason(reasons))
        .with_columns(n)
        .select(schema_of("funding.dispersion_summary").names())
    )


def _question(
    method: str, window: Interval, bucket: str | int, min_coverage: float
) -> tuple[Question, int]:
    bucket_s = bucket_length(bucket)
    options = (("bucket_s", bucket_s), ("min_coverage", checked_coverage(min_coverage)))
    return Question(method, *window, options=options), bucket_s


def _of_venues(
    frame: Frame, question: Question, bucket_s: int, min_coverage: float
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return all venues with ``in_set``, and the full buckets of those in it."""
    singles = legs(frame)
    buckets = whole_buckets(Interval(question.start, question.end), bucket_s)
    parts = pl.col("trajectory").str.strip_prefix(_PREFIX).str.split(":")
    names = [parts.list.first().alias("symbol"), parts.list.last().alias("venue")]
    rates = mean_rates(settlements(singles), question, bucket_s).filter(
        pl.col("coverage") >= WHOLE, pl.col("ts").is_in(buckets.implode())
    )
    counts = rates.group_by("trajectory").agg(pl.len().alias("buckets"))
    enough = pl.col("buckets").fill_null(0) >= max(min_coverage * buckets.len(), 1)
    venues = (
        singles.select(pl.col("trajectory").unique().sort())
        .join(counts, on="trajectory", how="left", maintain_order="left")
        .select("trajectory", *names, enough.alias("in_set"))
    )
    in_set = venues.filter("in_set").select("trajectory", "symbol", "venue")
    return venues, rates.join(in_set, on="trajectory", maintain_order="left")


def _sets(venues: pl.DataFrame) -> pl.DataFrame:
    named = pl.col("venue").filter(pl.col("in_set"))
    return (
        venues.group_by("symbol")
        .agg(named.len().cast(pl.Int64).alias("n_venues"), named.str.join(" ").alias("venues"))
        .sort("symbol")
    )


def _by_bucket(
    venues: pl.DataFrame, rates: pl.DataFrame, question: Question, bucket_s: int
) -> pl.DataFrame:
    apr, venue = pl.col("apr_pct"), pl.col("venue")
    buckets = whole_buckets(Interval(question.start, question.end), bucket_s).to_frame()
    found = (
        rates.sort("symbol", "ts", "venue")
        .group_by("symbol", "ts", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            apr.mean().alias("mean_apr_pct"),
            (apr.max() - apr.min()).alias("range_apr_pct"),
            (apr.quantile(0.75, "linear") - apr.quantile(0.25, "linear")).alias("iqr_apr_pct"),
            apr.std().alias("std_apr_pct"),
            highest_leg(venue, apr).alias("highest"),
            lowest_leg(venue, apr).alias("lowest"),
        )
    )
    n, all_there = pl.col("n").fill_null(0), pl.col("n") == pl.col("n_venues")
    reasons = {Reason.TOO_FEW: pl.col("n_venues") < 2, Reason.LOW_COVERAGE: n < pl.col("n_venues")}
    known = all_there & (pl.col("n_venues") > 1)
    return (
        _sets(venues)
        .join(buckets, how="cross", maintain_order="left_right")
        .join(found, on=["symbol", "ts"], how="left", maintain_order="left")
        .select(
            "symbol",
            "ts",
            n,
            "n_venues",
            *(pl.when(known).then(name) for name in _FIGURES),
            first_reason(reasons).alias("dispersion_reason"),
        )
    )


_DAY_S, _WEEK_S = 86_400, 604_800
_MONDAY_S = 4 * _DAY_S  # 1970-01-05 was the first Monday
_FEWEST, _ALL_ORDERS = 3, 7
_DRAWS, _SEED = 1_999, 20_261_123
_ROUNDING = 1e-12


def compared(frame: Frame) -> pl.DataFrame:
    """Return the columns that `rank_persistence` needs, of all trajectories together."""
    return collected(frame.lazy().select(list(TYPES)))


@analysis(
    "funding.rank_persistence",
    ("ts", "rank_correlation", "p_value", "n"),
    key=("symbol",),
    title=lambda *, of, **_: f"Ranks of the funding of {of} in a week and in the next",
    about="""
        Near 1, what paid most in a week also paid most in the next. The p-value is that of
        one row.""",
    across=compared,
    min_coverage=Parameter(
        "The share of both weeks, 0 to 1, that a leg or pair must cover to be ranked."
    ),
)
def rank_persistence(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    of: Literal["venues", "pairs"] = "venues",
    min_coverage: float = MIN_COVERAGE,
) -> pl.DataFrame:
    """Correlate the ranks of mean funding rates in a week with those in the next week.

    One row per symbol and week, sorted. Both weeks begin on Monday 00:00 UTC and are within the
    window. ``of`` venues ranks the legs of each symbol (`toolkit.statistics.funding.legs`), ``of``
    pairs the trajectories of all symbols. At least ``min_coverage`` of both weeks must be covered.

    The correlation is Spearman's, with mean ranks for ties. The p-value is the share of orders of
    the second week that correlate as much or more, in either direction: of all orders of up to 7,
    else of 1,999 random ones with a fixed seed and the real one.

    {columns}

    >>> day = 86400
    >>> rates = pl.DataFrame({"trajectory": [f"funding/A:{name}.f" for name in "XYZ"],
    ...     "sell_rate": [1e-4, 2e-4, 3e-4]})
    >>> frame = rates.join(pl.DataFrame({"ts": [day * (5 + k) for k in range(14)]}), how="cross")
    >>> frame = frame.with_columns(buy_rate=0.0, buy_interval_hours=None, sell_interval_hours=24)
    >>> rank_persistence(frame, 4 * day, 18 * day).row(0)[:5]
    ('A', 345600, 3, 1.0, 0.3333333333333333)
    """
    if of not in ("venues", "pairs"):
        raise InputError("of", of, ["venues", "pairs"])
    share = checked_coverage(min_coverage)
    window = window_of(frame, start, end, settlements_extent)
    asked = (("of", of), ("min_coverage", share))
    question = Question("funding.rank_persistence/2", *window, options=asked)
    weeks = _weekly(legs(frame) if of == "venues" else frame, question, share)
    symbol = pl.col("trajectory").cast(pl.String).str.strip_prefix("funding/").str.split(":")
    grouped = symbol.list.first() if of == "venues" else pl.lit(None, pl.String)
    weeks = weeks.with_columns(grouped.alias("symbol"))
    following = weeks.select("symbol", "trajectory", pl.col("ts") - _WEEK_S, later="apr_pct")
    both = weeks.join(following, on=["symbol", "trajectory", "ts"], nulls_equal=True)
    pairs = both.sort("symbol", "ts", "trajectory").partition_by("symbol", "ts")
    types = {"n": pl.Int64, "rank_correlation": pl.Float64, "p_value": pl.Float64}
    figures = [_correlated(part) for part in pairs]
    keys = both.select("symbol", "ts").unique().sort("symbol", "ts")
    found = pl.concat([keys, pl.DataFrame(figures, schema=types, orient="row")], how="horizontal")
    reasons = {
        Reason.TOO_FEW: pl.col("n") < _FEWEST,
        Reason.DEGENERATE: pl.col("rank_correlation").is_null(),
    }
    return found.with_columns(first_reason(reasons).alias("rank_reason"), *question.columns)


def _weekly(frame: Frame, question: Question, min_coverage: float) -> pl.DataFrame:
    """Average each trajectory over the full weeks that it covers."""
    days = mean_rates(settlements(frame), question, _DAY_S)
    week = (pl.col("ts") - _MONDAY_S) // _WEEK_S * _WEEK_S + _MONDAY_S
    coverage = pl.col("coverage")
    return (
        days.filter(week >= question.start, week + _WEEK_S <= question.end)
        .group_by("trajectory", week.alias("ts"), maintain_order=True)
        .agg(
            ((coverage * pl.col("apr_pct")).sum() / coverage.sum()).alias("apr_pct"),
            (coverage.sum() / (_WEEK_S // _DAY_S)).alias("coverage"),
        )
        .filter(coverage >= min_coverage - _ROUNDING)
    )


def _correlated(part: pl.DataFrame) -> tuple[int, float | None, float | None]:
    ranks = [part[name].rank("average").to_numpy() for name in ("apr_pct", "later")]
    first, second = (each - each.mean() for each in ranks)
    scale = float(np.sqrt((first @ first) * (second @ second)))
    if part.height < _FEWEST or scale == 0:
        return part.height, None, None
    correlation = float(first @ second) / scale
    others = _orders(second) @ first / scale
    as_much = np.abs(others) >= abs(correlation) - _ROUNDING
    return part.height, correlation, float(as_much.mean())


def _orders(values: Floats) -> Floats:
    if values.size <= _ALL_ORDERS:
        return np.array(list(itertools.permutations(values)))
    rng = np.random.default_rng(_SEED)
    drawn = rng.permuted(np.tile(values, (_DRAWS, 1)), axis=1)
    return np.vstack([values, drawn])
