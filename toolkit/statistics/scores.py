"""How far each value of a spread is from what it usually is, row by row."""

from __future__ import annotations

import math

import polars as pl

from toolkit.statistics.contract import (
    Frame,
    Reason,
    checked_column,
    checked_columns,
    first_reason,
    whole_number,
)
from toolkit.statistics.definition import holding
from toolkit.statistics.kernel import checked_keys, observed


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

    ================  =======  =====  ============================================================
    column            type     unit   meaning
    ================  =======  =====  ============================================================
    rolling_n         Int64    count  observations in the window
    rolling_z         Float64  none   (x - mean) / standard deviation (ddof 1) of the window
    rolling_z_reason  String   none   empty (no value in the row), too_few (below min_samples),
                                      degenerate (the window does not vary)
    ================  =======  =====  ============================================================

    Raises
    ------
    InputError
        As `coverage`. ``window_s`` or ``step_s`` is no whole number from 1, or ``min_samples`` none
        from 2.

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
    window_s, step_s = whole_number("window_s", window_s, 1), whole_number("step_s", step_s, 1)
    if min_samples is None:
        least_n = max(2, math.ceil(window_s / step_s / 2))
    else:
        least_n = whole_number("min_samples", min_samples, 2)
    frame = holding(frame, column)
    checked_column(frame, column)
    checked_columns(frame, column)
    rows = frame.lazy().collect(engine="in-memory")
    checked_keys(rows)
    value = observed(column)
    size = f"{window_s}i"
    figures = {
        "n": value.is_not_null()
        .cast(pl.Int64)
        .rolling_sum_by("ts", size, min_samples=0, closed="left"),
        "mean": value.rolling_mean_by("ts", size, closed="left"),
        "std": value.rolling_std_by("ts", size, min_samples=2, closed="left"),
    }
    scored = rows.select(
        value.alias("value"),
        *(figure.over("trajectory").alias(name) for name, figure in figures.items()),
    )
    reason = first_reason(
        {
            Reason.EMPTY: pl.col("value").is_null(),
            Reason.TOO_FEW: pl.col("n") < least_n,
            Reason.DEGENERATE: pl.col("std") == 0,
        }
    )
    z = (pl.col("value") - pl.col("mean")) / pl.col("std")
    return pl.concat(
        [
            rows,
            scored.select(
                pl.col("n").alias("rolling_n"),
                pl.when(reason.is_null()).then(z).alias("rolling_z"),
                reason.alias("rolling_z_reason"),
            ),
        ],
        how="horizontal",
    )
