"""Which settlement pays for each moment of a window, on both legs."""

from __future__ import annotations

import polars as pl

from toolkit.statistics.contract import Question
from toolkit.statistics.rates_in_force import TOLERANCE
from toolkit.statistics.settlements import LEGS, LegSettlements


def accruals(found: LegSettlements, question: Question) -> pl.DataFrame:
    """List the part of the window that each settlement paid for, one row per settlement.

    A settlement pays for the time since the one before it, where that is its interval give or take
    a tenth. Otherwise it pays for its own interval, at most since the one before. Columns:
    trajectory, leg, ts (s, the settlement), rate_per_hour, accrues_from and accrues_until (s,
    within the window). A settlement that paid for nothing in the window, or whose interval is not
    known, has no row.

    >>> from toolkit.statistics.settlements import settlements
    >>> rows = {"trajectory": ["a"], "ts": [28800], "buy_rate": [0.0], "sell_rate": [8e-4]}
    >>> hours = {"buy_interval_hours": [None], "sell_interval_hours": [8]}
    >>> found = settlements(pl.DataFrame(rows | hours))
    >>> accruals(found, Question("rows/1", 3600, 90000)).rows()
    [('a', 'sell', 28800, 0.0001, 3600.0, 28800.0)]
    """
    ts, interval_s = pl.col("ts"), 3600 * pl.col("interval_hours")
    before = ts.shift(1).over("trajectory", "leg")
    follows = (ts - before) <= (1 + TOLERANCE) * interval_s
    since = pl.when(follows.fill_null(value=False)).then(before.cast(pl.Float64))
    return (
        found.rows.lazy()
        .with_columns(
            pl.coalesce(since, ts - interval_s)
            .clip(lower_bound=question.start)
            .alias("accrues_from"),
            ts.cast(pl.Float64).clip(upper_bound=question.end).alias("accrues_until"),
        )
        .filter(interval_s.is_not_null() & (pl.col("accrues_from") < pl.col("accrues_until")))
        .select("trajectory", "leg", "ts", "rate_per_hour", "accrues_from", "accrues_until")
        .collect(engine="in-memory")
    )


def covered_stretches(found: LegSettlements, paid: pl.DataFrame) -> pl.DataFrame:
    """Cut the window into the stretches that both legs cover, by what `accruals` listed.

    Columns: trajectory, length_s, and of each leg ``LEG_ts`` (the settlement that paid for the
    stretch) and ``LEG_rate_per_hour``. A spot leg covers all of it at 0, and its ts is null.

    >>> from toolkit.statistics.settlements import settlements
    >>> rows = {"trajectory": ["a"] * 2, "ts": [0, 28800], "buy_rate": [None, 8e-4],
    ...         "sell_rate": [1e-5, 3e-5], "buy_interval_hours": [8, 8],
    ...         "sell_interval_hours": [1, 1]}
    >>> found = settlements(pl.DataFrame(rows))
    >>> covered_stretches(found, accruals(found, Question("rows/1", 0, 28800))).rows()
    [('a', 3600.0, 28800, 0.0001, 28800, 3e-05)]
    """
    bounds = (
        pl.concat(
            paid.select("trajectory", pl.col(name).alias("at"))
            for name in ("accrues_from", "accrues_until")
        )
        .unique()
        .sort("trajectory", "at")
        .with_columns(until=pl.col("at").shift(-1).over("trajectory"))
        .drop_nulls("until")
        .join(found.trajectories, on="trajectory")
        .sort("at")
    )
    for leg in LEGS:
        of_leg = paid.filter(leg=leg).sort("accrues_from")
        columns = of_leg.select(
            "trajectory",
            pl.col("accrues_from").alias("at"),
            pl.col("accrues_until").alias(f"{leg}_until"),
            pl.col("ts").alias(f"{leg}_ts"),
            pl.col("rate_per_hour").alias(f"{leg}_rate_per_hour"),
        )
        bounds = bounds.join_asof(columns, on="at", by="trajectory", check_sortedness=False)
        covers = (pl.col("at") < pl.col(f"{leg}_until")).fill_null(value=False)
        bounds = bounds.filter(covers | pl.col(f"{leg}_spot"))
    return bounds.sort("trajectory", "at").select(
        "trajectory",
        (pl.col("until") - pl.col("at")).alias("length_s"),
        *(
            column
            for leg in LEGS
            for column in (
                f"{leg}_ts",
                pl.when(f"{leg}_spot")
                .then(0.0)
                .otherwise(f"{leg}_rate_per_hour")
                .alias(f"{leg}_rate_per_hour"),
            )
        ),
    )
