"""The profile of a spread over the hours of the week, with errors from week to week."""

from __future__ import annotations

import numpy as np
import polars as pl

from toolkit.analyses import analysis
from toolkit.market import Step, When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    collected,
    column_for,
    first_reason,
    unfolded,
)
from toolkit.statistics.core.kernel import Statistic, deviation, measure
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.numeric.arrays import Integers
from toolkit.statistics.numeric.long_run import (
    FEWEST_VALUES,
    evenly,
    memories,
    moments_of,
    with_ends,
)

MIN_WEEKS = FEWEST_VALUES
"""Fewer weeks with an hour than this, and it has no interval."""

_HOURS = 168
_MONDAY = 72  # 1970-01-01 was a Thursday: its first hour is the 73rd of the week
_MEMORY = "memory_reason"
_CELL = (
    *("weeks", "hour_n", "mean", "median", "std", "mean_error", "mean_second", "mean_third"),
    *("deviation", "deviation_error", "deviation_second", "deviation_third"),
)


@analysis(
    "spread.hour_of_week",
    """
        weekday hour spread_mean_log_bps spread_mean_lower_log_bps spread_mean_upper_log_bps weeks
        spread_deviation_log_bps differs""",
    chart="spread_hours_chart",
    title="By hour of the week,",
    about="""
        Hours are UTC, and errors are from week to week. Without a season one hour in twenty
        differs. Intervals need four weeks. The mean of a spread that remembers more than
        the window has none.""",
    example="LTC_USDT:AURORA.spot:BOREAS.spot",
    report=2,
)
def hour_of_week(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    column: str = "spread_log_bps",
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Compute the mean of a spread for each hour of the week in UTC, with 95 % intervals.

    The observations of an hour of one week count as one number, their mean, as nearly equal minutes
    are dependent. As weeks also resemble their neighbours, the standard error is that of the slow
    part of these numbers: the mean square of their sums with cosines of 1 to B half waves over the
    weeks (Lazarus and others). B is the whole number nearest to weeks^(2/3), and the interval is
    Student's with B degrees of freedom, moved by the skewness of the numbers (Hall).

    If the chance is 0.3 or more that the spread remembers more than the window, the interval of the
    mean is null for ``long_memory``: see `toolkit.statistics.funding.holdings`.

    The deviation is the number less the mean over the hours of its own week. Without a season one
    hour in twenty ``differs``: eight of all 168.

    168 rows per trajectory, sorted by trajectory and hour, each with the columns of `coverage`, and
    these before ``window_start``, named with the unit of ``column``:

    {columns}

    Raises `InputError`: As `coverage`.

    Source: Lazarus, E., Lewis, D. J., Stock, J. H. and Watson, M. W. (2018), Journal of Business
    and Economic Statistics 36. Hall, P. (1992), Journal of the Royal Statistical Society B 54.

    Five weeks of hours, of which noon on Monday is 10 bps higher.

    >>> noon = 4 * 86_400 + 12 * 3_600  # Monday, 1970-01-05
    >>> ts = [4 * 86_400 + 3_600 * k for k in range(5 * 168)]
    >>> values = [10.0 * ((at - noon) % 604_800 == 0) + at // 3_600 % 7 / 10 for at in ts]
    >>> frame = pl.DataFrame({"trajectory": ["a"] * 840, "ts": ts, "spread_log_bps": values})
    >>> profile = hour_of_week(frame)
    >>> profile.height, profile["weeks"].unique().to_list()
    (168, [5])
    >>> row = profile.filter(weekday=1, hour=12).row(0, named=True)
    >>> round(row["spread_deviation_log_bps"], 1), row["spread_mean_error_log_bps"] is None
    (9.9, True)
    """
    window = window_of(frame, start, end)
    question = Question("spread.hour_of_week/3", *window, column, step_s, max_stale_s)
    lists = Statistic(lambda _column: [], lambda _column: [pl.col(*_CELL, _MEMORY)], _cells)
    measured = measure(frame, question, lists)
    contract = [name for name in measured.columns if name not in {*_CELL, _MEMORY}]
    before = contract.index("window_start")
    return (
        unfolded(measured, _CELL, _HOURS, "cell")
        .with_columns(pl.col("weeks", "hour_n").fill_null(0))
        .pipe(with_ends, "trajectory", "weeks", "mean", "deviation")
        .select(*contract[:before], *_results(column), *contract[before:])
    )


def _cells(rows: pl.DataFrame) -> pl.DataFrame:
    """Compute the figures of each trajectory's 168 hours as lists, in order from Monday 00 UTC."""
    value, hour, own = pl.col("value"), pl.col("at"), pl.col("own")
    week = (pl.col("ts") // 3_600 + _MONDAY) // _HOURS
    most = (rows.select(week.max() - week.min()).item() or 0) + 1
    hours = collected(
        rows.lazy()
        .group_by("number", at=pl.col("ts") // 3_600 + _MONDAY, maintain_order=True)
        .agg(value.mean(), hour_n=pl.len().cast(pl.Int64))
        .with_columns(cell=hour % _HOURS, week=hour // _HOURS)
    ).lazy()
    weeks = hours.group_by("number", "week", maintain_order=True).agg(of_week=value.mean())
    found = (
        hours.join(weeks, on=["number", "week"], maintain_order="left")
        .with_columns(own=value - pl.col("of_week"))
        .group_by("number", "cell", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("weeks"),
            pl.col("hour_n").sum(),
            value.mean().alias("mean"),
            value.median().alias("median"),
            deviation(value).alias("std"),
            own.mean().alias("deviation"),
            *moments_of("mean", value, most),
            *moments_of("deviation", own, most),
        )
    )
    numbers = rows.lazy().select(pl.col("number").unique(maintain_order=True))
    grid = numbers.join(
        pl.LazyFrame({"cell": range(_HOURS)}, schema={"cell": pl.Int64}),
        how="cross",
        maintain_order="left_right",
    )
    return collected(
        grid.join(found, on=["number", "cell"], how="left", maintain_order="left")
        .group_by("number", maintain_order=True)
        .agg(_CELL)
        .join(_memory(hours.collect()).lazy(), on="number", how="left", maintain_order="left")
    )


def _memory(hours: pl.DataFrame) -> pl.DataFrame:
    """Judge how long each trajectory remembers, without its hours of the week: the reasons."""
    rest = pl.col("value") - pl.col("value").mean().over("number", "cell")
    parts = hours.select("number", "at", rest).partition_by("number", maintain_order=True)
    series = [
        evenly(at := part["at"].to_numpy(), part["value"].to_numpy(), _usual_step(at))
        for part in parts
    ]
    return pl.DataFrame(
        {
            "number": [part["number"][0] for part in parts],
            _MEMORY: [memory.reason for memory in memories(series)],
        },
        schema={"number": hours.schema["number"], _MEMORY: pl.String},
    )


def _usual_step(hours: Integers) -> int:
    """Return the commonest distance of rising hours, 1 for a single one."""
    apart = np.diff(hours)
    return int(np.bincount(apart).argmax()) if apart.size else 1


def _results(column: str) -> list[pl.Expr]:
    weeks, empty = pl.col("weeks"), {Reason.EMPTY: pl.col("weeks") == 0}
    figures = [
        (pl.col("cell") // 24 + 1).alias("weekday"),
        (pl.col("cell") % 24).alias("hour"),
        pl.col("hour_n"),
        weeks,
        *(pl.col(name).alias(column_for(column, name)) for name in ("mean", "median", "std")),
        first_reason({**empty, Reason.TOO_FEW: weeks < 2}).alias("hour_reason"),
    ]
    for name in ("mean", "deviation"):
        middle, found, own = pl.col(name), pl.col(f"{name}_error"), name == "deviation"
        # weeks that agree to the last digits say nothing about the next
        flat = found <= 1e-12 * (pl.col("mean").abs() + middle.abs())
        few, of_long = weeks < MIN_WEEKS, pl.lit(value=False)
        if name == "mean":
            few |= pl.col(_MEMORY) == Reason.TOO_FEW.value
            of_long = pl.col(_MEMORY) == Reason.LONG_MEMORY.value
        cases = {Reason.TOO_FEW: few, Reason.DEGENERATE: flat, Reason.LONG_MEMORY: of_long}
        reason = first_reason(empty | cases)
        error, lower, upper = (
            pl.when(reason.is_null()).then(each)
            for each in (found, pl.col(f"{name}_lower"), pl.col(f"{name}_upper"))
        )
        if own:
            figures.append(middle.alias(column_for(column, name)))
        figures += [
            error.alias(column_for(column, f"{name}_error")),
            (middle + lower).alias(column_for(column, f"{name}_lower")),
            (middle + upper).alias(column_for(column, f"{name}_upper")),
        ]
        if own:
            figures.append(((middle + lower > 0) | (middle + upper < 0)).alias("differs"))
        figures.append(reason.alias(f"{name}_reason"))
    return figures
