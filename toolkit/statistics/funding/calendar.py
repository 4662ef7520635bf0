"""Calendar of funding: by bucket of time, hour of the day and day of the week."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from toolkit.analyses import analysis
from toolkit.intervals import Interval
from toolkit.market import When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, first_reason
from toolkit.statistics.core.windows import settlements_extent, window_of
from toolkit.statistics.funding.accruals import bucket_length, mean_rates, whole_buckets
from toolkit.statistics.funding.persistence import funding_memories
from toolkit.statistics.funding.settlements import settlements
from toolkit.statistics.numeric.long_run import FEWEST_VALUES, moments_of, with_ends

MIN_WEEKS = FEWEST_VALUES
"""The fewest weeks for the interval of a mean."""

_HOUR_S, _DAY_S, _WEEK_S = 3_600, 86_400, 604_800
_MONDAY_S = 4 * _DAY_S  # 1970-01-05 was the first Monday
_SAME = 1e-12


@analysis(
    "funding.heatmap",
    ("funding_apr_pct", "coverage"),
    title="Funding in buckets of time,",
    key=("trajectory", "ts"),
    chart="funding_heatmap",
    about="Only buckets that are entirely within the window have a row.",
    example="BTC_USDT:AURORA.futures:EQUINOX.futures --bucket 1d",
)
def heatmap(
    frame: Frame, start: When | None = None, end: When | None = None, *, bucket: str | int = "8h"
) -> pl.DataFrame:
    """Average the funding of each trajectory in buckets of time, as a yearly rate.

    One row per trajectory and bucket within the window, sorted, also without data. The mean is over
    the time that both legs cover, of the share ``coverage``. For single legs use
    ``heatmap(legs(frame))``.

    {columns}

    Raises `InputError` as `toolkit.statistics.funding.summary`, and for a bucket that neither
    divides a day nor is a number of days.

    >>> rows = {"trajectory": ["a"], "ts": [28800], "buy_rate": [0.0], "sell_rate": [0.5]}
    >>> hours = {"buy_interval_hours": [None], "sell_interval_hours": [8]}
    >>> found = heatmap(pl.DataFrame(rows | hours), 0, 57600)
    >>> found.select("ts", "coverage", "funding_apr_pct").rows()
    [(0, 1.0, 54750.0), (28800, 0.0, None)]
    """
    bucket_s = bucket_length(bucket)
    window, asked = window_of(frame, start, end, settlements_extent), (("bucket_s", bucket_s),)
    question = Question("funding.heatmap/2", *window, options=asked)
    buckets = whole_buckets(Interval(question.start, question.end), bucket_s).to_frame()
    rates = mean_rates(settlements(frame), question, bucket_s)
    return (
        _keys(frame)
        .join(buckets, how="cross", maintain_order="left_right")
        .join(rates, on=["trajectory", "ts"], how="left", maintain_order="left")
        .select(
            "trajectory",
            "ts",
            pl.col("coverage").fill_null(0.0),
            pl.col("apr_pct").alias("funding_apr_pct"),
            first_reason({Reason.EMPTY: pl.col("apr_pct").is_null()}).alias("heatmap_reason"),
            *question.columns,
        )
    )


_MEANS = ("funding_apr_pct", "lower_apr_pct", "upper_apr_pct", "n", "coverage")
_WEEKS = """
    Errors are from week to week. The interval of a mean needs four weeks, and is missing if funding
    remembers more than the window."""


@analysis(
    "funding.by_hour",
    ("hour", *_MEANS),
    title="Funding by hour of the day,",
    about=_WEEKS,
    example="BTC_USDT:AURORA.futures:EQUINOX.futures",
)
def by_hour(frame: Frame, start: When | None = None, end: When | None = None) -> pl.DataFrame:
    """Average the funding of each trajectory by hour of the day in UTC, with 95 % intervals.

    One row per trajectory and hour, sorted. A settlement counts in the hours it accrued over. Each
    week, from Monday 00:00 UTC, gives one mean per hour. The interval is that of these means, as in
    `toolkit.statistics.spread.hour_of_week`, moved by the skewness of all hours, and null for
    ``long_memory`` if funding remembers more than the window: see `holdings`.

    {columns}

    >>> ts = [28800 * k for k in range(1, 106)]
    >>> frame = pl.DataFrame({"trajectory": "a", "ts": ts}).with_columns(buy_rate=0.0,
    ...     sell_rate=(pl.col("ts") % 86400 == 28800) * 1e-4, buy_interval_hours=None,
    ...     sell_interval_hours=8)
    >>> found = by_hour(frame, 0, 35 * 86400)
    >>> found["funding_apr_pct"].round(2).to_list()[6:10], found["n"][0]
    ([10.95, 10.95, 0.0, 0.0], 6)
    """
    return _profile(frame, start, end, _Cells("hour", _HOUR_S, 24, 0))


@analysis(
    "funding.by_weekday",
    ("weekday", *_MEANS),
    title="Funding by day of the week,",
    about=_WEEKS,
    example="BTC_USDT:AURORA.futures:EQUINOX.futures",
)
def by_weekday(frame: Frame, start: When | None = None, end: When | None = None) -> pl.DataFrame:
    """Average the funding of each trajectory by day of the week in UTC, with 95 % intervals.

    As `by_hour`, with ``weekday`` (1 Monday to 7 Sunday) for ``hour``:

    {columns}

    >>> ts = [28800 * k for k in range(1, 106)]
    >>> frame = pl.DataFrame({"trajectory": "a", "ts": ts}).with_columns(buy_rate=0.0,
    ...     sell_rate=1e-4, buy_interval_hours=None, sell_interval_hours=8)
    >>> found = by_weekday(frame, 0, 35 * 86400)
    >>> found["funding_apr_pct"].round(2).to_list()[:2], found["n"].unique().to_list()
    ([10.95, 10.95], [5])
    """
    return _profile(frame, start, end, _Cells("weekday", _DAY_S, 7, 1))


class _Cells(NamedTuple):
    """The recurring parts of a day or a week."""

    name: str
    length_s: int
    per_round: int
    first: int


def _profile(frame: Frame, start: When | None, end: When | None, cells: _Cells) -> pl.DataFrame:
    window = window_of(frame, start, end, settlements_extent)
    question = Question(f"funding.by_{cells.name}/2", *window)
    ts, apr, covered = pl.col("ts") - _MONDAY_S, pl.col("apr_pct"), pl.col("coverage")
    cell = (ts // cells.length_s % cells.per_round + cells.first).alias(cells.name)
    found = settlements(frame)
    weekly = (
        mean_rates(found, question, cells.length_s)
        .group_by("trajectory", (ts // _WEEK_S).alias("week"), cell, maintain_order=True)
        .agg((apr * covered).sum() / covered.sum(), covered.sum())
    )
    flat = apr.max() - apr.min() <= _SAME * apr.abs().max()
    memory = funding_memories(found, question)
    reasons = {"trajectory": list(memory), "memory": [each.reason for each in memory.values()]}
    means = weekly.group_by("trajectory", cells.name, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("n"),
        covered.sum(),
        apr.mean().alias("funding_apr_pct"),
        *moments_of("mean", apr, weekly["week"].n_unique()),
        flat.alias("flat"),
    )
    key = means.schema["trajectory"]
    of_memory = pl.DataFrame(reasons, schema={"trajectory": key, "memory": pl.String})
    ends = with_ends(means, "trajectory", "n", "mean")
    numbers = range(cells.first, cells.first + cells.per_round)
    grid = pl.DataFrame({cells.name: numbers}, schema={cells.name: pl.Int64})
    return (
        _keys(frame)
        .join(grid, how="cross", maintain_order="left_right")
        .join(_due(question, cells), on=cells.name, how="left", maintain_order="left")
        .join(ends, on=["trajectory", cells.name], how="left", maintain_order="left")
        .join(of_memory, on="trajectory", how="left", maintain_order="left")
        .select("trajectory", cells.name, *_figures())
        .with_columns(*question.columns)
    )


def _figures() -> list[pl.Expr]:
    n, mean, memory = pl.col("n").fill_null(0), pl.col("funding_apr_pct"), pl.col("memory")
    reason = first_reason(
        {
            Reason.TOO_FEW: (n < MIN_WEEKS) | (memory == Reason.TOO_FEW.value),
            Reason.DEGENERATE: pl.col("flat").fill_null(value=False),
            Reason.LONG_MEMORY: memory == Reason.LONG_MEMORY.value,
        }
    )
    error, lower, upper = (
        pl.when(reason.is_null()).then(f"mean_{name}") for name in ("error", "lower", "upper")
    )
    return [
        n,
        (pl.col("coverage").fill_null(0.0) / pl.col("due")).fill_null(0.0).alias("coverage"),
        mean,
        first_reason({Reason.EMPTY: n == 0}).alias("mean_reason"),
        error.alias("error_apr_pct"),
        (mean + lower).alias("lower_apr_pct"),
        (mean + upper).alias("upper_apr_pct"),
        reason.alias("error_reason"),
    ]


def _due(question: Question, cells: _Cells) -> pl.DataFrame:
    length_s = cells.length_s
    first, last = question.start // length_s, -(-question.end // length_s)
    begins, ends = pl.col("at") * length_s, (pl.col("at") + 1) * length_s
    inside_s = pl.min_horizontal(ends, question.end) - pl.max_horizontal(begins, question.start)
    cell = (begins - _MONDAY_S) // length_s % cells.per_round + cells.first
    times = pl.DataFrame({"at": range(first, last)}, schema={"at": pl.Int64})
    return times.group_by(cell.alias(cells.name)).agg((inside_s.sum() / length_s).alias("due"))


def _keys(frame: Frame) -> pl.DataFrame:
    return frame.lazy().select(pl.col("trajectory").unique().sort()).collect()
