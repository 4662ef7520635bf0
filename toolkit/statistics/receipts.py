"""What a position received over a window, from the settlements of its two legs."""

from __future__ import annotations

import polars as pl

from toolkit.statistics.contract import Question, Reason, first_reason
from toolkit.statistics.settlements import HOURS_A_YEAR, LEGS, LegSettlements

__all__ = ["BPS", "inside", "receipts"]

BPS = 1e4
"""Basis points in one."""

_PCT = 100
_COUNTS = {"missed": "n_missed", "changed": "n_changed", "differs": "n_declared_differs"}


def inside(question: Question) -> pl.Expr:
    """Build the condition that a position held over ``(start, end]`` receives a settlement.

    Examples
    --------
    >>> times = pl.DataFrame({"ts": [0, 1, 60, 61]})
    >>> times.filter(inside(Question("rows/1", 0, 60)))["ts"].to_list()
    [1, 60]
    """
    return pl.col("ts").is_between(question.start, question.end, closed="right")


def receipts(found: LegSettlements, question: Question) -> pl.DataFrame:
    """Compute the figures of `toolkit.statistics.funding.summary`, one row per trajectory.

    Examples
    --------
    >>> from toolkit.statistics.settlements import settlements
    >>> rows = {"trajectory": ["a"], "ts": [28800], "buy_rate": [0.0], "sell_rate": [1e-4]}
    >>> hours = {"buy_interval_hours": [None], "sell_interval_hours": [8]}
    >>> found = settlements(pl.DataFrame(rows | hours))
    >>> receipts(found, Question("rows/1", 0, 28800)).select("n", "coverage", "carry_bps").row(0)
    (1, 1.0, 1.0)
    """
    times = (
        found.rows.filter(inside(question))
        .group_by("trajectory")
        .agg(
            pl.col("ts").n_unique().cast(pl.Int64).alias("n"),
            pl.col("ts").min().alias("t_first"),
            pl.col("ts").max().alias("t_last"),
        )
    )
    rows = found.trajectories.join(times, on="trajectory", how="left")
    for leg in LEGS:
        rows = rows.join(_of_leg(found, leg, question), on="trajectory", how="left")
    counts = ("n", *(f"{leg}_{count}" for leg in LEGS for count in ("n", *_COUNTS)))
    return (
        rows.sort("trajectory")
        .with_columns(
            pl.col(counts).fill_null(0),
            # a column, as polars divides one by a single number through its rounded reciprocal
            pl.Series("window_s", [question.end - question.start] * rows.height, dtype=pl.Int64),
        )
        .with_columns(_covered(leg) for leg in LEGS)
        .select(*_figures())
    )


def _of_leg(found: LegSettlements, leg: str, question: Question) -> pl.DataFrame:
    """Compute one row per trajectory with settlements on a leg, in the window or about it."""
    ts, interval_s = pl.col("ts"), 3600 * pl.col("interval_hours")
    within = inside(question)
    accrues_from = pl.max_horizontal(
        ts - interval_s, ts.shift(1).over("trajectory"), pl.lit(question.start)
    )
    # of the settlements missing before this one, those that fall into the window, counted back
    first = ((ts - question.end) / interval_s).ceil().clip(lower_bound=1)
    last = pl.min_horizontal("missed", ((ts - question.start) / interval_s).ceil() - 1)
    covered_s = pl.min_horizontal(ts, pl.lit(question.end)) - accrues_from
    figures = {
        "n": within.sum(),
        "missed": pl.col("missed_inside").sum(),
        "changed": (within & pl.col("changed")).sum(),
        "differs": (within & (pl.col("interval_flag") == "declared_differs")).sum(),
    }
    return (
        found.rows.lazy()
        .filter(leg=leg)
        .with_columns(
            # max_horizontal passes over a null, which here means that the interval is not known
            pl.when(interval_s.is_not_null()).then(covered_s.clip(0.0)).alias("covered_s"),
            pl.when(pl.col("missed") > 0).then((last - first + 1).clip(0)).alias("missed_inside"),
        )
        .group_by("trajectory", maintain_order=True)
        .agg(
            *(figure.cast(pl.Int64).alias(f"{leg}_{name}") for name, figure in figures.items()),
            pl.col("covered_s").sum().alias(f"{leg}_covered_s"),
            pl.col("rate").filter(within).sum().alias(f"{leg}_total"),
        )
        .collect(engine="in-memory")
    )


def _covered(leg: str) -> pl.Expr:
    part = pl.col(f"{leg}_covered_s").fill_null(0.0) / pl.col("window_s")
    return pl.when(f"{leg}_spot").then(1.0).otherwise(part).alias(f"{leg}_coverage")


def _figures() -> list[pl.Expr]:
    known = {leg: (pl.col(f"{leg}_n") > 0) | (pl.col(f"{leg}_coverage") > 0) for leg in LEGS}
    signs = {"buy": -1, "sell": 1}
    received = {
        leg: pl.when(known[leg]).then(
            signs[leg] * BPS * pl.col(f"{leg}_total").fill_null(0.0) + 0.0
        )
        for leg in LEGS
    }
    both = received["buy"] + received["sell"]
    return [
        pl.col("trajectory", "n"),
        *(pl.col(f"{leg}_n").alias(f"n_{leg}") for leg in LEGS),
        *(
            (pl.col(f"buy_{count}") + pl.col(f"sell_{count}")).alias(name)
            for count, name in _COUNTS.items()
        ),
        *(pl.col(f"{leg}_coverage") for leg in LEGS),
        pl.min_horizontal("buy_coverage", "sell_coverage").alias("coverage"),
        pl.col("t_first", "t_last"),
        first_reason({Reason.EMPTY: pl.col("n") == 0}).alias("settlements_reason"),
        *(received[leg].alias(f"{leg}_carry_bps") for leg in LEGS),
        both.alias("carry_bps"),
        (both * (_PCT / BPS * HOURS_A_YEAR * 3600) / pl.col("window_s")).alias("funding_apr_pct"),
        first_reason(
            {
                Reason.EMPTY: ~(known["buy"] | known["sell"]),
                Reason.MISSING_LEG: ~(known["buy"] & known["sell"]),
            }
        ).alias("carry_reason"),
    ]
