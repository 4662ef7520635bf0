"""Rates in force, distinguished from settlements in rows more frequent than settlements.

The declared interval, the calendar (multiples of the interval from 00:00 UTC, 8 h if none is
declared) and rate changes between calendar times decide.
"""

from __future__ import annotations

from functools import cache

import polars as pl

from toolkit.market.venues import venue_of
from toolkit.statistics.core.contract import Frame, checked_columns, collected

HOURS_A_YEAR = 8760
"""365 days: a simple annual rate."""

LEG_KEY = ["trajectory", "leg"]

TOLERANCE = 0.1
"""How far a time may be from an interval, as a part of the interval."""

_SHORTEST_HOURS = 1
_FEWEST_OFF = 2
_CHANCE = 0.01


def with_apr(frame: Frame) -> pl.DataFrame:
    """Add the rate per 8 h and per year, simple with 8760 h.

    ``frame`` has rate (fraction per its interval, positive if longs pay shorts) and interval_hours
    (h). Added are rate_pct_8h (percent per 8 h) and funding_apr_pct (percent a year), null if the
    rate is null or the interval not above 0.
    """
    checked_columns(frame, "rate", "interval_hours", keyed=False)
    hours = pl.col("interval_hours")
    per_hour = pl.when(hours > 0).then(pl.col("rate") / hours)
    added = {"rate_pct_8h": 100 * 8 * per_hour, "funding_apr_pct": 100 * HOURS_A_YEAR * per_hour}
    return frame.lazy().with_columns(**added).collect()


def settled(rows: pl.DataFrame) -> pl.DataFrame:
    """Mark each row of a leg that is a rate in force, and each that could be one.

    ``rows`` are leg_number (one per leg of a trajectory), ts (s), rate and declared_hours (h or
    null), sorted by leg_number and ts. Added are the Booleans ``in_force`` (the row is not a
    settlement) and ``undecided`` (it may be one).

    A run is rows sooner after each other than the declared interval. It is judged if two or more of
    its rows are off the calendar:

    - Sooner than hourly: rates in force.
    - The rate changes between two calendar times: settlements if the leg kept the longer interval
      before, or has none declared. Otherwise undecided.
    - The rate changes only at calendar times, more often than by chance: rates in force.
    - The rate hardly changes: settlements if the leg kept the longer interval before, else rates in
      force.

    Without a declared interval rates in force are undecided instead. Among rates in force, the
    first row within a tenth of an interval after a calendar time is the settlement. A leg's first
    row is one only if the next row is further away than the calendar time.
    """
    declared, interval_s = pl.col("declared_hours"), 3600 * pl.col("hours")
    marked = collected(
        rows.lazy()
        .with_columns(declared.cast(pl.Float64))
        .with_columns(_known(rows).alias("known_hours"))
        .with_columns(
            pl.col("known_hours").fill_null(venue_of("").interval_hours).alias("hours"),
            ((pl.col("ts") - before("ts")) / 3600).alias("elapsed"),
        )
        .with_columns(
            _sooner().alias("sooner"),
            (pl.col("ts") / interval_s).floor().mul(interval_s).alias("due"),
        )
        .with_columns(
            # the first row of a leg follows none, so that no two legs share a run
            (~pl.col("sooner")).cum_sum().alias("run"),
            (~pl.col("sooner") | (pl.col("due") != pl.col("due").shift(1))).alias("after_due"),
            (pl.col("sooner") & (pl.col("rate") != pl.col("rate").shift(1))).alias("changes"),
        )
        .with_columns(_off_calendar().alias("off"))
    )
    # most rows follow at their interval: each is a run of its own, which is not judged
    dense = marked.filter("sooner").select(pl.col("run").unique())
    if dense.is_empty():
        return rows.with_columns(in_force=pl.lit(value=False), undecided=pl.lit(value=False))
    marked = marked.with_columns(_kept_before().alias("shortened"))
    runs = marked.join(dense, on="run", how="semi", maintain_order="left").group_by("run")
    return marked.join(runs.agg(*_judged()), on="run", how="left", maintain_order="left").select(
        *rows.columns,
        (pl.col("paid_later").fill_null(value=False) & pl.col("off")).alias("in_force"),
        pl.col("unclear").fill_null(value=False).alias("undecided"),
    )


@cache
def before(name: str) -> pl.Expr:
    """Build a column's value in the row before, null in the first row of a `leg_number`."""
    number = pl.col("leg_number")
    return pl.when(number == number.shift(1)).then(pl.col(name).shift(1)).alias(name)


def _known(rows: pl.DataFrame) -> pl.Expr:
    """Build the declared interval, filled from the leg's last, else next row."""
    declared = pl.col("declared_hours")
    if not rows["declared_hours"].null_count():
        return declared
    known = pl.coalesce(declared, declared.forward_fill(), declared.backward_fill())
    return known.over("leg_number")


def _near(hours: pl.Expr) -> pl.Expr:
    return (pl.col("elapsed") - hours).abs() <= TOLERANCE * hours


@cache
def _sooner() -> pl.Expr:
    """Build whether a row comes sooner than declared by it and by the row before."""
    hours = pl.col("hours")
    as_before = _near(before("hours")).fill_null(value=False)
    early = pl.col("elapsed") < (1 - TOLERANCE) * hours
    return early.fill_null(value=False) & ~as_before


def _kept_before() -> pl.Expr:
    """Build whether the leg kept its interval twice in a row, here or before."""
    kept = _near(pl.col("hours")).fill_null(value=False)
    twice = kept & kept.shift(1, fill_value=False)
    return twice.cast(pl.Int8).cum_max().cast(pl.Boolean).over("leg_number")


@cache
def _off_calendar() -> pl.Expr:
    """Build whether a row is not the first one after a calendar time."""
    since_due_s = pl.col("ts") - pl.col("due")
    near = since_due_s <= TOLERANCE * 3600 * pl.col("hours")
    # of the first row of a leg only the next one shows whether one more would precede it
    follows = since_due_s >= pl.col("elapsed").shift(-1) * 3600
    cut = pl.col("elapsed").is_null() & follows.fill_null(value=False)
    return ~(pl.col("after_due") & near) | cut


def _judged() -> list[pl.Expr]:
    """Judge each run: ``paid_later`` (rates in force) and ``unclear``."""
    declared = pl.col("known_hours").is_not_null().all()
    shortened, judged = pl.col("shortened").first(), pl.col("off").sum() >= _FEWEST_OFF
    changes, after_due = pl.col("changes"), pl.col("after_due")
    gap = pl.col("elapsed").filter("sooner")
    by_minutes = gap.min() < (1 - TOLERANCE) * _SHORTEST_HOURS
    moves = (changes & ~after_due).any()
    chance = (gap.median() / pl.col("hours").first()).pow((changes & after_due).sum())
    settles = ~by_minutes & (
        (moves & (shortened | ~declared)) | (~moves & shortened & (chance >= _CHANCE))
    )
    in_force = ~settles & declared & (by_minutes | ~moves)
    return [
        (judged & in_force).alias("paid_later"),
        (judged & ~settles & ~in_force).alias("unclear"),
    ]
