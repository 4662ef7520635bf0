"""The curve of Kaplan and Meier: the surviving share, and ages read off it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from toolkit.columns import described
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import first_reason

MIN_ENDED = 10
"""Fewer lives that ended than this, and the median has no interval."""

TWO_SIDED_95 = 1.959963984540054
"""The 97.5 % point of the normal distribution."""

_SOME_ROWS = 100_000
_BITS = 1e-12  # a product of fractions misses one half by a few bits


@described("life_curve.life_curve")
def life_curve(lives: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Compute the share that survives to each age, by Kaplan and Meier, for each group.

    ``lives`` and ``by`` are as in `toolkit.statistics.survival.median_life`. One row per group and
    age at which an event ends, is last seen or comes under watch, sorted by both.

    An event with an ``entry_s`` above 0 is watched after that age, not at it: one that ends at its
    own ``entry_s`` is never watched.

    {columns}

    The second event is 20 s old when the watch begins, just when the first ends.

    >>> lives = pl.DataFrame({"group": ["a"] * 3, "duration_s": [20.0, 50.0, 60.0],
    ...                       "entry_s": [0.0, 20.0, 0.0], "observed": [1, 1, 1]})
    >>> life_curve(lives, ["group"]).select("duration_s", "at_risk", "share").rows()
    [(20.0, 2, 0.5), (50.0, 2, 0.25), (60.0, 1, 0.0)]
    """
    groups, numbers = numbered(lives, by)
    times = [name for name in ("duration_s", "entry_s", "observed") if name in lives.columns]
    ended, at_risk, age = pl.col("ended"), pl.col("at_risk"), pl.col("duration_s")
    left = at_risk - ended
    watched = pl.col("leaving") - pl.col("entering")
    hazard = pl.when(ended > 0).then(ended / at_risk).otherwise(0.0)
    variance = pl.when(ended > 0).then(ended / (at_risk * left)).otherwise(0.0)
    gone = (at_risk == 0) | ((left == 0) & (age != age.last().over("_group")))
    found = (
        _summed(_marks(lives.select(*times, numbers.alias("_group"))))
        .with_columns(at_risk=watched.cum_sum(reverse=True).over("_group"))
        .with_columns(
            share=(1 - hazard).cum_prod().over("_group"),
            log_error=variance.cum_sum().over("_group").sqrt(),
            broken=gone.cum_max().over("_group"),
        )
    )
    return groups[found["_group"]].select(by).hstack(found.drop("_group"))


def numbered(rows: pl.DataFrame, by: Sequence[str]) -> tuple[pl.DataFrame, pl.Series]:
    """Return the sorted groups of rows with their number ``_group``, and the number of each row."""
    parts = some_rows(rows.select(by))
    groups = pl.concat(part.unique() for part in parts).unique().sort(by).with_row_index("_group")
    numbers = [
        part.join(groups, on=by, nulls_equal=True, maintain_order="left")["_group"]
        for part in parts
    ]
    return groups, pl.concat(numbers, rechunk=True)


def some_rows(frame: pl.DataFrame) -> list[pl.DataFrame]:
    """Cut a frame into slices of 100,000 rows, so that intermediate results take little memory."""
    return list(frame.iter_slices(_SOME_ROWS)) or [frame]


def _marks(lives: pl.DataFrame) -> pl.DataFrame:
    """Return a row for the end of each life, and one for each late entry."""
    known = lives.filter(pl.col("duration_s").is_not_null())
    one, none = pl.lit(1, pl.Int8), pl.lit(0, pl.Int8)
    exits = {"ended": pl.col("observed").fill_null(0).cast(pl.Int8), "leaving": one}
    if "entry_s" not in lives.columns:
        return known.select("_group", "duration_s", **exits, entering=none)
    late = pl.col("entry_s").fill_null(0.0) > 0
    known = known.filter(~late | (pl.col("entry_s") < pl.col("duration_s")))
    came = known.filter(late).select(
        "_group", pl.col("entry_s").alias("duration_s"), ended=none, leaving=none, entering=one
    )
    return pl.concat([known.select("_group", "duration_s", **exits, entering=none), came])


def _summed(marks: pl.DataFrame) -> pl.DataFrame:
    """Sum the marks of each age of a group, sorted. Sorting takes less memory than grouping."""
    order = np.lexsort((marks["duration_s"].to_numpy(), marks["_group"].to_numpy()))
    ages = marks.select("_group", "duration_s")[order]
    another = pl.any_horizontal(pl.all().ne_missing(pl.all().shift(1)))
    begins = ages.select(another).to_series().arg_true()
    sums = {
        name: np.add.reduceat(marks[name].to_numpy()[order], begins.to_numpy(), dtype=np.int64)
        for name in ("ended", "leaving", "entering")
    }
    return ages[begins].with_columns(pl.Series(name, each) for name, each in sums.items())


def life_interval(share: float) -> tuple[pl.Expr, pl.Expr]:
    """Build the bounds of the age to which a share of a curve survives.

    They are the ages at which the log-log 95 % interval of the share contains it (Brookmeyer and
    Crowley), null if the curve does not get so far.
    """
    beyond = _errors_below(share)
    return _reached(beyond >= -TWO_SIDED_95), _reached(beyond > TWO_SIDED_95)


def _errors_below(level: float) -> pl.Expr:
    """Build by how many errors the share is below a level, on the scale of log(-log)."""
    share, fall = pl.col("share"), -pl.col("share").log()
    above = (fall.log() - math.log(-math.log(level))) * fall / pl.col("log_error")
    return (
        pl.when(pl.col("at_risk") == pl.col("ended"))
        .then(math.inf)
        .when(share >= 1)
        .then(-math.inf)
        .otherwise(above)
    )


def _reached(condition: pl.Expr) -> pl.Expr:
    return pl.col("duration_s").filter(condition & ~pl.col("broken")).min()


def life_until(share: float) -> pl.Expr:
    """Build the first age of a curve to which no more than a share survives."""
    return _reached(pl.col("share") <= share + _BITS)


def times_of_groups(
    lives: pl.DataFrame,
    by: Sequence[str],
    wanted: Sequence[pl.Expr],
    bounds: Sequence[str],
    curve: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Compute ages of each group from its curve, each with its reason.

    ``wanted`` are expressions such as `life_until`, named with ``_s`` at the end. Those in
    ``bounds`` need `MIN_ENDED` ends. Before them are the columns ``by``, ``n_lives`` and
    ``n_ended``. Groups without a duration have a row, with the reason made_id if that is the
    ``lifecycle_reason``.
    """
    found = (
        (life_curve(lives, by) if curve is None else curve)
        .group_by(by)
        .agg(
            pl.col("leaving").sum().alias("n_lives"),
            pl.col("ended").sum().alias("n_ended"),
            pl.col("broken").any(),
            *wanted,
        )
    )
    counts, ended = ["n_lives", "n_ended"], pl.col("n_ended")
    none = {
        Reason.MADE_ID: (pl.col("n_lives") == 0) & pl.col("made"),
        Reason.EMPTY: pl.col("n_lives") == 0,
    }
    times = []
    for name in (each.meta.output_name() for each in wanted):
        missing = pl.col(name).is_null()
        few = missing & pl.col("broken")
        if name in bounds:
            few |= ended < MIN_ENDED
        reason = first_reason({**none, Reason.TOO_FEW: few, Reason.CENSORED: missing})
        times += [
            pl.when(reason.is_null()).then(name).alias(name),
            reason.alias(f"{name.removesuffix('_s')}_reason"),
        ]
    named = "lifecycle_reason" in lives.columns
    made = pl.col("lifecycle_reason") == Reason.MADE_ID if named else pl.lit(value=False)
    return (
        lives.group_by(by)
        .agg(made.any().alias("made"))
        .sort(by)
        .join(found, on=by, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(pl.col(counts).fill_null(0))
        .select(*by, *counts, *times)
    )
