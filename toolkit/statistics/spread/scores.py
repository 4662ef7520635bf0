"""Scores of each value of a spread against its recent mean, row by row."""

from __future__ import annotations

import math
from dataclasses import replace

import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.columns import described
from toolkit.market import Step, When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_column,
    checked_columns,
    collected,
    first_reason,
    real_number,
    whole_number,
)
from toolkit.statistics.core.definition import holding
from toolkit.statistics.core.kernel import asked_columns
from toolkit.statistics.core.observations import checked_keys, observed, observed_chunks
from toolkit.statistics.core.windows import window_of


@described("spread.rolling_z")
def rolling_z(
    frame: Frame,
    *,
    window_s: int = 86_400,
    step_s: int = 60,
    min_samples: int | None = None,
    column: str = "spread_log_bps",
) -> pl.DataFrame:
    """Add to every row, in the order given, its distance from the window before it.

    The window of a row at t is ``[t - window_s, t)`` of its trajectory: neither the row itself nor
    a later one is in it, so that the figure could have been known at t, and rows that come later
    change nothing. ``min_samples`` None asks for half of the observations that the window holds
    at one every ``step_s``. A LazyFrame is collected.

    {columns}

    Raises
    ------
    InputError
        As `coverage`. ``window_s`` or ``step_s`` is not a whole number from 1, or ``min_samples``
        none from 2.

    Examples
    --------
    >>> frame = pl.DataFrame(
    ...     {
    ...         "trajectory": ["a"] * 4,
    ...         "ts": [0, 60, 120, 180],
    ...         "spread_log_bps": [1.0, 3.0, 4.0, None],
    ...     }
    ... )
    >>> scored = rolling_z(frame, window_s=120, min_samples=2)
    >>> scored.select("rolling_n", pl.col("rolling_z").round(3), "rolling_z_reason").rows()
    [(0, None, 'too_few'), (1, None, 'too_few'), (2, 1.414, None), (2, None, 'empty')]
    """
    window_s, least_n = _checked(window_s, step_s, min_samples)
    frame = holding(frame, column)
    checked_column(frame, column)
    checked_columns(frame, column)
    rows = collected(frame)
    checked_keys(rows)
    value = observed(column)
    scored = rows.select(value.alias("value"), *_of_windows(value, "trajectory", window_s))
    return pl.concat(
        [rows, scored.select(pl.col("n").alias("rolling_n"), *_scores(least_n))], how="horizontal"
    )


@analysis(
    "spread.rolling_z_summary",
    (
        "rolling_z_last",
        "rolling_z_last_ts",
        "beyond_share",
        "n_beyond",
        "rolling_z_extreme",
        "rolling_z_extreme_ts",
        "n_scored",
        "n",
    ),
    title="Spreads against their own recent mean,",
    order="-rolling_z_last",
    command="rolling-z",
    example="--window 12h --beyond 2.5",
    window_s=Parameter("The length of time whose mean and deviation a score is by.", "s"),
    min_samples=Parameter("The least observations of a score. Default: half of the window."),
    beyond=Parameter("The size from which a score counts as beyond."),
)
def rolling_z_summary(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    window_s: int = 86_400,
    step_s: Step = None,
    min_samples: int | None = None,
    beyond: float = 3.0,
    column: str = "spread_log_bps",
) -> pl.DataFrame:
    """Measure how far a spread is from its own recent mean, in standard deviations.

    The scores are those of `rolling_z`, of the observations in ``[start, end)``. Rows of the
    ``window_s`` before ``start`` are history and not scored: give these too. A LazyFrame is read
    chunk by chunk, so that memory does not grow with the number of trajectories. A trajectory
    without an observation keeps its row, with n = 0. ``step_s`` is as in `coverage`.

    {columns}

    Raises
    ------
    InputError
        As `coverage`. ``window_s`` is not a whole number from 1, ``min_samples`` none from 2, or
        ``beyond`` not a number above 0.

    Examples
    --------
    >>> frame = pl.DataFrame(
    ...     {
    ...         "trajectory": ["a"] * 4,
    ...         "ts": [0, 60, 120, 180],
    ...         "spread_log_bps": [1.0, 3.0, 4.0, 3.5],
    ...     }
    ... )
    >>> found = rolling_z_summary(frame, 120, 240, window_s=120, min_samples=2, beyond=1)
    >>> found.select("n", "n_beyond", pl.col("rolling_z_extreme").round(3), "rolling_z_last").row(0)
    (2, 1, 1.414, 0.0)
    """
    window_s = whole_number("window_s", window_s, 1)
    if min_samples is not None:
        min_samples = whole_number("min_samples", min_samples, 2)
    limit = real_number("beyond", beyond, "a number above 0", above=0)
    options = {"window_s": window_s, "min_samples": min_samples, "beyond": limit}
    question = Question(
        "spread.rolling_z_summary/2",
        *window_of(frame, start, end),
        column,
        step_s,
        options=tuple(options.items()),
    )
    half = (window_s / pl.col("step_s") / 2).ceil().clip(2).fill_null(2)
    least_n = half if min_samples is None else min_samples
    read = replace(question, start=question.start - window_s)

    def scored(rows: pl.LazyFrame) -> pl.LazyFrame:
        known = rows.with_columns(_of_windows(pl.col("value"), "number", window_s))
        return known.select("number", "ts", *_scores(least_n))

    return (
        pl.concat(
            part.join(_summed_up(scored(rows), question.start, limit), on="number", how="left")
            for part, rows in observed_chunks(frame, read)
        )
        .select(
            "trajectory",
            *(pl.col(name).fill_null(0) for name in ("n", "n_scored", "n_beyond")),
            (pl.col("n_beyond") / pl.col("n_scored")).fill_nan(None).alias("beyond_share"),
            pl.col("^rolling_z_(last|extreme).*$"),
            first_reason({Reason.EMPTY: pl.col("n").fill_null(0) == 0})
            .fill_null(pl.when(pl.col("n_scored") == 0).then("reason"))
            .alias("rolling_z_reason"),
            *asked_columns(question),
        )
        .sort("trajectory")
    )


def _summed_up(scores: pl.LazyFrame, start: int, limit: float) -> pl.DataFrame:
    """Sum up the scores of a chunk of observations from a time on, by number."""
    z, ts = pl.col("rolling_z"), pl.col("ts")
    scored = z.is_not_null()
    return collected(
        scores.filter(ts >= start)
        .group_by("number", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            scored.sum().cast(pl.Int64).alias("n_scored"),
            (z.abs() >= limit).sum().cast(pl.Int64).alias("n_beyond"),
            z.drop_nulls().last().alias("rolling_z_last"),
            ts.filter(scored).last().alias("rolling_z_last_ts"),
            z.get(z.abs().arg_max()).alias("rolling_z_extreme"),
            ts.get(z.abs().arg_max()).alias("rolling_z_extreme_ts"),
            pl.col("rolling_z_reason").last().alias("reason"),
        )
    )


def _checked(window_s: int, step_s: int, min_samples: int | None) -> tuple[int, int]:
    """Return the length of the window and the observations that it needs."""
    window_s, step_s = whole_number("window_s", window_s, 1), whole_number("step_s", step_s, 1)
    if min_samples is None:
        return window_s, max(2, math.ceil(window_s / step_s / 2))
    return window_s, whole_number("min_samples", min_samples, 2)


def _of_windows(value: pl.Expr, key: str, window_s: int) -> list[pl.Expr]:
    """Build n, mean and std of the window before each row of a key."""
    size = f"{window_s}i"
    figures = {
        "n": value.is_not_null()
        .cast(pl.Int64)
        .rolling_sum_by("ts", size, min_samples=0, closed="left"),
        "mean": value.rolling_mean_by("ts", size, closed="left"),
        "std": value.rolling_std_by("ts", size, min_samples=2, closed="left"),
    }
    return [figure.over(key).alias(name) for name, figure in figures.items()]


def _scores(least_n: int | pl.Expr) -> list[pl.Expr]:
    """Build the score and its reason, from value, n, mean and std."""
    reason = first_reason(
        {
            Reason.EMPTY: pl.col("value").is_null(),
            Reason.TOO_FEW: pl.col("n") < least_n,
            Reason.DEGENERATE: pl.col("std") == 0,
        }
    )
    z = (pl.col("value") - pl.col("mean")) / pl.col("std")
    return [pl.when(reason.is_null()).then(z).alias("rolling_z"), reason.alias("rolling_z_reason")]
