"""Differentials: the rates in force on both legs, and the one that a service sends."""

from __future__ import annotations

from typing import TypeVar

import polars as pl

from toolkit.analyses import analysis
from toolkit.columns import described
from toolkit.intervals import Interval
from toolkit.market import When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, first_reason
from toolkit.statistics.core.estimators import MOMENTS
from toolkit.statistics.core.kernel import measure
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.funding.accruals import STALE_INTERVALS
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR
from toolkit.statistics.funding.settlements import LEGS, settlements

_COLUMN = "differential_pct_8h"
_Rows = TypeVar("_Rows", pl.DataFrame, pl.LazyFrame)
_RATES = ("buy_rate", "sell_rate")


def without_rates(frame: _Rows) -> _Rows:
    """Return the rows of the trajectories that have a differential and no rate of a leg.

    >>> rows = {"trajectory": ["a", "b"], "buy_rate": [None, 1e-4], "sell_rate": [None, 1e-4]}
    >>> without_rates(pl.DataFrame(rows | {"differential_pct_8h": [0.5, 0.0]})).height
    1
    """
    rated = pl.any_horizontal(pl.col(rate).is_not_null() for rate in _RATES)
    sent = pl.col(_COLUMN).is_not_null()
    return frame.filter((~rated).all().over("trajectory") & sent.any().over("trajectory"))


def with_service_differential(found: pl.DataFrame, frame: Frame, window: Interval) -> pl.DataFrame:
    """Add the service's differential in ``[start, end)`` where there are no rates of legs."""
    unsettled = pl.col("trajectory").is_in(found.filter(n=0)["trajectory"].implode())
    rows = frame.lazy().filter(unsettled, pl.col("ts").is_between(*window, closed="left"))
    if _COLUMN not in frame.collect_schema():
        rows = rows.with_columns(pl.lit(None, pl.Float64).alias(_COLUMN))
    own = service_differential(without_rates(rows), *window).select(
        "trajectory",
        pl.col("n").alias("differential_n"),
        "differential_basis",
        pl.col("coverage", "step_s").name.prefix("differential_"),
        f"{_COLUMN}_time_weighted_mean",
        "differential_apr_pct",
        pl.col("moments_reason").alias("differential_reason"),
    )
    lacks = pl.col("differential_n").is_null()
    why = first_reason({Reason.LEG_RATES: lacks & (pl.col("n") > 0), Reason.EMPTY: lacks})
    return found.join(own, on="trajectory", how="left", maintain_order="left").with_columns(
        pl.coalesce("differential_reason", why).alias("differential_reason")
    )


@analysis(
    "funding.service_differential",
    (
        *("differential_apr_pct", "differential_pct_8h_time_weighted_mean"),
        *("differential_pct_8h_std", "coverage", "n"),
    ),
    order="-differential_apr_pct",
    title="The service's own differential in force",
    about="It is a rate in force, and not what a position received.",
    example="BTC_USDT:AURORA.futures:EQUINOX.futures",
)
def service_differential(
    frame: Frame, start: When | None = None, end: When | None = None
) -> pl.DataFrame:
    """Average the differential in force that the service sends, over time in ``[start, end)``.

    One row per trajectory, sorted. A value holds until the next one, at most three steps, as in
    `toolkit.statistics.spread.coverage`, whose columns come first:

    {columns}

    Positive: long the buy leg and short the sell leg earns it. What a position received is in
    `toolkit.statistics.funding.summary`, from settled rates.

    Raises
    ------
    InputError
        As `toolkit.statistics.spread.coverage`, for ``differential_pct_8h``.

    Examples
    --------
    >>> rows = {"trajectory": ["a"] * 3, "ts": [0, 3600, 7200]}
    >>> frame = pl.DataFrame(rows | {"differential_pct_8h": [0.01, 0.02, 0.03]})
    >>> service_differential(frame, 0, 10800)["differential_apr_pct"].round(6).item()
    21.9
    """
    question = Question("funding.service_differential/2", *window_of(frame, start, end), _COLUMN)
    found = measure(frame, question, MOMENTS)
    apr = pl.col(f"{_COLUMN}_time_weighted_mean") * (HOURS_A_YEAR / 8)
    cut = found.columns.index("moments_reason")
    return found.select(
        *found.columns[:cut],
        apr.alias("differential_apr_pct"),
        "moments_reason",
        pl.lit("service").alias("differential_basis"),
        *found.columns[cut + 1 :],
    )


@described("funding.differential")
def differential(frame: Frame) -> pl.DataFrame:
    """Return the rates in force on both legs and their difference, as steps.

    A row holds until the next one of its trajectory. A rate is in force until the leg's next
    settlement, at most two of its intervals. A row marks its end, so each trajectory ends in one
    without a rate.

    {columns}

    >>> frame = pl.DataFrame({"trajectory": "a", "ts": [0, 3600, 7200],
    ...     "buy_rate": [1e-5, 2e-5, None], "sell_rate": [8e-5, None, None],
    ...     "buy_interval_hours": [1, 1, 1], "sell_interval_hours": [8, 8, 8]})
    >>> steps = differential(frame).select("ts", "differential_per_hour", "differential_reason")
    >>> steps.rows()
    [(0, 0.0, None), (3600, -1e-05, None), (10800, None, 'missing_leg'),
     (57600, None, 'missing_leg')]
    """
    found = settlements(frame)
    steps = {leg: _steps(found.rows.filter(leg=leg)) for leg in LEGS}
    times = pl.concat(step.select("trajectory", "ts") for step in steps.values())
    rows = times.unique().sort("trajectory", "ts").join(found.trajectories, on="trajectory")
    rows = rows.sort("trajectory", "ts")
    for leg, step in steps.items():
        in_force = step.rename({"rate_per_hour": f"{leg}_rate_per_hour", "reason": f"{leg}_reason"})
        rows = rows.join_asof(in_force, on="ts", by="trajectory", check_sortedness=False)
        rows = rows.with_columns(
            pl.when(f"{leg}_spot")
            .then(0.0)
            .otherwise(f"{leg}_rate_per_hour")
            .alias(in_force.columns[2])
        )
    difference = pl.col("sell_rate_per_hour") - pl.col("buy_rate_per_hour")
    reasons = pl.coalesce("buy_reason", "sell_reason", pl.lit(Reason.MISSING_LEG.value))
    return rows.select(
        *("trajectory", "ts", "buy_rate_per_hour", "sell_rate_per_hour"),
        difference.alias("differential_per_hour"),
        (100 * HOURS_A_YEAR * difference).alias("differential_apr_pct"),
        pl.when(difference.is_null()).then(reasons).alias("differential_reason"),
    )


def _steps(rows: pl.DataFrame) -> pl.DataFrame:
    """List the changes of a leg's rate in force, and its end: trajectory, ts, rate."""
    stands_s = (STALE_INTERVALS * 3600 * pl.col("interval_hours")).round().cast(pl.Int64)
    until = pl.col("ts").shift(-1).over("trajectory")
    out = rows.select("trajectory", ts=pl.col("ts") + stands_s, until=until).filter(
        (pl.col("ts") < pl.col("until")) | pl.col("until").is_null(), pl.col("ts").is_not_null()
    )
    return pl.concat(
        [
            rows.select(
                "trajectory", "ts", "rate_per_hour", pl.col("interval_reason").alias("reason")
            ),
            out.select(
                "trajectory",
                "ts",
                pl.lit(None, pl.Float64).alias("rate_per_hour"),
                pl.lit(Reason.MISSING_LEG.value).alias("reason"),
            ),
        ]
    ).sort("ts")
