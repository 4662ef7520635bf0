"""Accruals: the settlement that pays for each moment of a window, on both legs."""

from __future__ import annotations

import numpy as np
import polars as pl

from toolkit.statistics.core.contract import Question, collected
from toolkit.statistics.funding.rates_in_force import LEG_KEY, TOLERANCE, before
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

    >>> from toolkit.statistics.funding.settlements import settlements
    >>> rows = {"trajectory": ["a"], "ts": [28800], "buy_rate": [0.0], "sell_rate": [8e-4]}
    >>> hours = {"buy_interval_hours": [None], "sell_interval_hours": [8]}
    >>> found = settlements(pl.DataFrame(rows | hours))
    >>> accruals(found, Question("rows/1", 3600, 90000)).rows()
    [(0, 'a', 'sell', 28800, 0.0001, 3600.0, 28800.0)]
    """
    ts, interval_s = pl.col("ts"), 3600 * pl.col("interval_hours")
    follows = (ts - before("ts")) <= (1 + TOLERANCE) * interval_s
    since = pl.when(follows.fill_null(value=False)).then(before("ts").cast(pl.Float64))
    return collected(
        found.rows.lazy()
        .with_row_index("row")
        .with_columns(
            pl.coalesce(since, ts - interval_s)
            .clip(lower_bound=question.start)
            .alias("accrues_from"),
            ts.cast(pl.Float64).clip(upper_bound=question.end).alias("accrues_until"),
        )
        .filter(interval_s.is_not_null() & (pl.col("accrues_from") < pl.col("accrues_until")))
        .select(*columns or _COLUMNS)
    )


def in_force(found: LegSettlements, question: Question) -> pl.DataFrame:
    """List the part of the window in which each settled rate is in force, as `accruals` does.

    A rate is in force until the leg's next settlement, at most two of its intervals.
    """
    ts, interval_s = pl.col("ts"), 3600 * pl.col("interval_hours")
    number = pl.col("leg_number")
    following = pl.when(number == number.shift(-1)).then(ts.shift(-1)).cast(pl.Float64)
    return collected(
        found.rows.lazy()
        .with_row_index("row")
        .with_columns(
            ts.cast(pl.Float64).clip(lower_bound=question.start).alias("accrues_from"),
            pl.min_horizontal(following, ts + STALE_INTERVALS * interval_s)
            .clip(upper_bound=question.end)
            .alias("accrues_until"),
        )
        .filter(interval_s.is_not_null() & (pl.col("accrues_from") < pl.col("accrues_until")))
        .select(_COLUMNS)
    )


def covered_stretches(found: LegSettlements, paid: pl.DataFrame) -> pl.DataFrame:
    """Cut the window into the stretches that both legs cover, by rows of `accruals` or `in_force`.

    Columns: trajectory, begins and ends (s), length_s, and for each leg ``LEG_row`` (the
    settlement's row in ``found.rows``) and ``LEG_rate_per_hour``. A spot leg covers all at 0 with a
    null row. Sorted by trajectory and time.

    >>> from toolkit.statistics.funding.settlements import settlements
    >>> rows = {"trajectory": ["a"] * 2, "ts": [0, 28800], "buy_rate": [None, 8e-4],
    ...         "sell_rate": [1e-5, 3e-5], "buy_interval_hours": [8, 8],
    ...         "sell_interval_hours": [1, 1]}
    >>> found = settlements(pl.DataFrame(rows))
    >>> covered_stretches(found, accruals(found, Question("rows/1", 0, 28800))).rows()
    [('a', 25200.0, 28800.0, 3600.0, 0, 0.0001, 2, 3e-05)]
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
    """Return the places of the rows of two legs that accrue at one time, in order of time.

    Rows of a leg do not overlap, so each overlap begins where one of them does.
    """
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
    """Return whether rows at some places, begun before, still accrue at some moments."""
    if not rows.height:
        return np.zeros(places.size, dtype=bool)
    ends = _moments(rows, "accrues_until")[places]
    held: np.ndarray = (ends.real == moments.real) & (moments.imag < ends.imag)
    return held
