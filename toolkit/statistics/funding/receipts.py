"""Receipts of a position over a window, from the settlements of its two legs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from toolkit.errors import InputError
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Question, first_reason, real_number
from toolkit.statistics.funding.accruals import accruals, covered_stretches
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR, LEG_KEY, TOLERANCE
from toolkit.statistics.funding.settlements import LEGS, LegSettlements
from toolkit.statistics.quality.plausibility import HIGH_RATE, high_rate, named

BPS = 1e4

MIN_COVERAGE = 0.9
"""The least coverage by both legs with figures."""

_PCT = 100
_SIGNS = {"buy": -BPS, "sell": BPS}
_COUNTED = (
    *("ts", "elapsed_hours", "interval_hours", "missed", "changed"),
    *("interval_flag", "interval_reason"),
)
_COUNTS = {
    "missed": "n_missed",
    "early": "n_early",
    "changed": "n_changed",
    "differs": "n_declared_differs",
}


@dataclass(frozen=True, slots=True)
class LegReceipts:
    """The payment of each settlement in the window, and the figures of each trajectory."""

    payments: pl.DataFrame
    figures: pl.DataFrame


def checked_coverage(min_coverage: float) -> float:
    """Return a share of the window, 0 to 1, or raise `InputError`."""
    allowed = "a part of the window, 0 to 1"
    share = real_number("min_coverage", min_coverage, allowed)
    if not 0 <= share <= 1:
        raise InputError("min_coverage", min_coverage, allowed)
    return share


def inside(question: Question) -> pl.Expr:
    """Build whether a position held over ``(start, end]`` receives a settlement."""
    return pl.col("ts").is_between(question.start, question.end, closed="right")


def receipts(
    found: LegSettlements, question: Question, *, min_coverage: float = MIN_COVERAGE
) -> LegReceipts:
    """Compute what the legs paid over the time that both cover."""
    paid = accruals(found, question)
    common = covered_stretches(found, paid)
    payments = _payments(found, question, paid, common)
    rows = found.trajectories
    for part in (
        _times(found, question),
        _implausible(found, question, paid),
        _in_common(common),
        *_legs(found, question, paid),
    ):
        rows = rows.join(part, on="trajectory", how="left")
    for leg in LEGS:
        received = payments.filter(leg=leg).group_by("trajectory", maintain_order=True)
        total = received.agg(pl.col("payment_bps").sum().alias(f"{leg}_bps"))
        rows = rows.join(total, on="trajectory", how="left")
    # a column, as polars divides one by a single number through its rounded reciprocal
    window_s = pl.Series("window_s", [question.end - question.start] * rows.height, dtype=pl.Int64)
    kept = {*found.trajectories.columns, "t_first", "t_last"}
    figures = (
        rows.sort("trajectory")
        .with_columns(pl.col(name).fill_null(0) for name in rows.columns if name not in kept)
        .with_columns(window_s)
        .with_columns(_coverage(leg) for leg in LEGS)
        .with_columns((pl.col("common_s") / pl.col("window_s")).alias("coverage"))
        .with_columns(_whole_where_spot())
        .with_columns(_reasons(min_coverage))
        .select(*_figures())
    )
    return LegReceipts(payments, figures)


def _payments(
    found: LegSettlements, question: Question, paid: pl.DataFrame, common: pl.DataFrame
) -> pl.DataFrame:
    """Give each settlement in the window its whole rate, or the part that both legs cover."""
    part = np.zeros(found.rows.height)
    covered = np.zeros(found.rows.height)
    for leg in LEGS:
        shared = common.select(f"{leg}_row", "length_s").drop_nulls()
        covered += np.bincount(
            shared[f"{leg}_row"], weights=shared["length_s"], minlength=covered.size
        )
    accrued_s = paid["accrues_until"] - paid["accrues_from"]
    part[paid["row"]] = covered[paid["row"]] / accrued_s
    sign = pl.col("leg").replace_strict(_SIGNS, return_dtype=pl.Float64)
    payment = sign * pl.Series(part) * pl.col("rate")
    return found.rows.select(*LEG_KEY, "ts", payment.alias("payment_bps")).filter(inside(question))


def _times(found: LegSettlements, question: Question) -> pl.DataFrame:
    ts = pl.col("ts")
    settled = found.rows.select("trajectory", "ts").filter(inside(question)).group_by("trajectory")
    times = settled.agg(
        ts.n_unique().cast(pl.Int64).alias("n"), ts.min().alias("t_first"), ts.max().alias("t_last")
    )
    for name, rows in (("n_in_force", found.in_force), ("n_duplicates", found.duplicates)):
        of_rows = rows.filter(inside(question)).group_by("trajectory")
        count = of_rows.agg(pl.len().cast(pl.Int64).alias(name))
        times = times.join(count, on="trajectory", how="full", coalesce=True)
    return times


def _implausible(found: LegSettlements, question: Question, paid: pl.DataFrame) -> pl.DataFrame:
    counted = inside(question) | pl.col("row").is_in(paid["row"].implode())
    odd = found.rows.with_row_index("row").filter(high_rate() & counted)
    return odd.group_by("trajectory").agg(pl.len().cast(pl.Int64).alias("implausible_n"))


def _in_common(common: pl.DataFrame) -> pl.DataFrame:
    hourly = pl.col("sell_rate_per_hour") - pl.col("buy_rate_per_hour")
    return common.group_by("trajectory", maintain_order=True).agg(
        pl.col("length_s").sum().alias("common_s"),
        (hourly * pl.col("length_s")).sum().alias("accrued"),
    )


def _legs(found: LegSettlements, question: Question, paid: pl.DataFrame) -> list[pl.DataFrame]:
    length_s = pl.col("accrues_until") - pl.col("accrues_from")
    parts = []
    rows = found.rows.select(*LEG_KEY, *_COUNTED)
    for leg in LEGS:
        covered = paid.filter(leg=leg).group_by("trajectory", maintain_order=True)
        counted = rows.filter(leg=leg).group_by("trajectory", maintain_order=True)
        parts.append(covered.agg(length_s.sum().alias(f"{leg}_covered_s")))
        parts.append(counted.agg(_counts(leg, question)))
    return parts


def _counts(leg: str, question: Question) -> list[pl.Expr]:
    ts, interval_s = pl.col("ts"), 3600 * pl.col("interval_hours")
    within = inside(question)
    least_hours = (1 - TOLERANCE) * pl.col("interval_hours")
    # of the settlements missing before this one, those that fall into the window, counted back
    first = ((ts - question.end) / interval_s).ceil().clip(lower_bound=1)
    last = pl.min_horizontal("missed", ((ts - question.start) / interval_s).ceil() - 1)
    counts = {
        "n": within.sum(),
        "missed": pl.when(pl.col("missed") > 0).then((last - first + 1).clip(0)).sum(),
        "early": (within & (pl.col("elapsed_hours") < least_hours)).sum(),
        "changed": (within & pl.col("changed")).sum(),
        "differs": (within & (pl.col("interval_flag") == "declared_differs")).sum(),
        "unclear": (within & (pl.col("interval_reason") == Reason.DENSE_ROWS.value)).sum(),
    }
    return [count.cast(pl.Int64).alias(f"{leg}_{name}") for name, count in counts.items()]


def _coverage(leg: str) -> pl.Expr:
    part = pl.col(f"{leg}_covered_s") / pl.col("window_s")
    return pl.when(f"{leg}_spot").then(1.0).otherwise(part).alias(f"{leg}_coverage")


def _whole_where_spot() -> pl.Expr:
    both = pl.col("buy_spot") & pl.col("sell_spot")
    return pl.when(both).then(1.0).otherwise("coverage").alias("coverage")


def _reasons(min_coverage: float) -> list[pl.Expr]:
    known = {leg: pl.col(f"{leg}_coverage") > 0 for leg in LEGS}
    none = ~(known["buy"] | known["sell"])
    low = (pl.col("coverage") < min_coverage) | (pl.col("coverage") <= 0)
    unclear = (pl.col("buy_unclear") + pl.col("sell_unclear")) > 0
    carry = {
        Reason.DENSE_ROWS: low & unclear,
        Reason.EMPTY: none & (pl.col("n") == 0),
        Reason.MISSING_LEG: low & (known["buy"] != known["sell"]),
        Reason.LOW_COVERAGE: low,
    }
    return [
        first_reason(carry).alias("funding_reason"),
        first_reason(carry | {Reason.EMPTY: pl.col("n") == 0}).alias("funding_apr_reason"),
    ]


def _figures() -> list[pl.Expr]:
    received = {
        leg: pl.when(pl.col("funding_reason").is_null()).then(pl.col(f"{leg}_bps") + 0.0)
        for leg in LEGS
    }
    hourly = pl.col("accrued") / pl.col("common_s")
    return [
        pl.col("trajectory", "n"),
        *(pl.col(f"{leg}_n").alias(f"n_{leg}") for leg in LEGS),
        *(
            (pl.col(f"buy_{count}") + pl.col(f"sell_{count}")).alias(name)
            for count, name in _COUNTS.items()
        ),
        pl.col("n_in_force", "n_duplicates"),
        *(pl.col(f"{leg}_coverage") for leg in LEGS),
        pl.col("coverage", "t_first", "t_last"),
        first_reason({Reason.EMPTY: pl.col("n") == 0}).alias("settlements_reason"),
        named({HIGH_RATE: pl.col("implausible_n") > 0}).alias("implausible"),
        pl.col("implausible_n"),
        *(received[leg].alias(f"{leg}_funding_bps") for leg in LEGS),
        (received["buy"] + received["sell"]).alias("funding_bps"),
        pl.col("funding_reason"),
        pl.when(pl.col("funding_apr_reason").is_null())
        .then(_PCT * HOURS_A_YEAR * hourly)
        .alias("funding_apr_pct"),
        pl.col("funding_apr_reason"),
    ]
