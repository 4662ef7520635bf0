"""The one pass behind all statistics: chunks of trajectories, time conventions, aggregation.

Conventions, per trajectory and inside the window ``[start, end)``:

- An *observation* is a row with a finite value (below 1e150, so that its square is finite). Other
  rows are counted in ``n_null`` and otherwise ignored.
- The *step* is given or known, else the mode of the differences between neighbouring rows (ties:
  the smallest). A *gap* is a difference between observations above 1.5 steps. A *segment* is a run
  of observations without a gap. Pairs for lag statistics are observations exactly so many steps
  apart.
- *Bars* begin a step apart, at the commonest remainder of the observations' times by the step. An
  observation counts for the bar that it falls in, and several in one bar count once. *Coverage* is
  the bars with an observation over all that begin in the window. It is unknown if there are more
  observations than bars: the step is wrong or rows are doubled.
- An observation is valid until the next one, the last until the end of the window, at most
  ``max_stale_s``. The sum of these weights over the length of the window is the *observed share*.

Chunks go through the in-memory engine in a fixed order, as the streaming engine's sums differ from
run to run. Sums of squares and products are taken about the mean, as polars' own ``std`` and
``cov`` lose digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import polars as pl

from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_frame,
    collected,
    column_for,
    first_reason,
)
from toolkit.statistics.core.observations import observed_chunks


@dataclass(frozen=True, slots=True)
class Statistic:
    """A group of result columns: how rows are aggregated, and how results are made from that.

    ``aggregate`` gets the name of the value column and may use, of each observation, ``value``,
    ``weight_s`` and ``gap`` (whether one follows). ``finish`` sees one row per trajectory. ``fit``
    returns one row per ``number`` of a chunk, with columns for ``finish``. ``prepare`` adds columns
    to the observations of a chunk, and also gets one row per trajectory. Observations have the
    columns ``carried``, and those of ``carried_where_held`` in the frame.
    """

    aggregate: Callable[[str], list[pl.Expr]]
    finish: Callable[[str], list[pl.Expr]]
    fit: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    prepare: Callable[[pl.LazyFrame, pl.DataFrame], pl.LazyFrame] | None = None
    carried: tuple[str, ...] = ()
    carried_where_held: tuple[str, ...] = ()


def measure(frame: Frame, question: Question, *statistics: Statistic) -> pl.DataFrame:
    """Compute one row per trajectory, sorted: the data it rests on, then some statistics.

    A trajectory without an observation in the window has a row with n = 0. A LazyFrame is read once
    for its trajectories and then in chunks of half a million rows (or one longer trajectory).

    Raises `InputError`: The frame lacks a column or has it in another type. A key is null. Two rows
    of the window share a trajectory and a time.
    """
    carried = dict.fromkeys(name for each in statistics for name in each.carried)
    if asked := [name for each in statistics for name in each.carried_where_held]:
        checked_frame(frame)
        held = frame.collect_schema()
        carried |= dict.fromkeys(name for name in asked if name in held)
    results = [
        _measured(part, observations, question, statistics)
        for part, observations in observed_chunks(frame, question, *carried)
    ]
    return pl.concat(results).sort("trajectory")


def asked_columns(question: Question) -> list[pl.Expr]:
    """Build the last columns of a result, with each trajectory's own hash."""
    return [*question.columns[:-1], pl.col("params_hash")]


def presence(question: Question) -> list[pl.Expr]:
    """Build the sums over a trajectory's observations that `shares` divides.

    They are ``n_rows``, ``n_present`` and ``n_expected`` (bars), ``observed_s`` and ``window_s``.
    """
    bar, phase = pl.col("bar"), pl.col("phase_s").first() + question.start
    first = (bar.first() >= 0).fill_null(value=False)
    return [
        pl.len().cast(pl.Int64).alias("n_rows"),
        # the observations are sorted by time, so those of one bar are neighbours
        ((bar.diff() != 0).sum() + first).cast(pl.Int64).alias("n_present"),
        (-((phase - question.end) // pl.col("step_s").first())).alias("n_expected"),
        pl.col("weight_s").sum().alias("observed_s"),
        # a column, as polars divides one by a single number through its rounded reciprocal
        (pl.len().cast(pl.Int64) * 0 + (question.end - question.start)).alias("window_s"),
    ]


def shares() -> list[pl.Expr]:
    """Build ``coverage`` and ``observed_share`` from `presence`, null without a step or above 1."""
    held = pl.col("max_stale_s").is_not_null()
    return [
        pl.when(pl.col("n_rows") <= pl.col("n_expected"))
        .then(pl.col("n_present") / pl.col("n_expected"))
        .alias("coverage"),
        pl.when(held).then(pl.col("observed_s") / pl.col("window_s")).alias("observed_share"),
    ]


def why_uncovered() -> dict[Reason, pl.Expr]:
    """Build the reasons for which `shares` are null."""
    return {
        Reason.TOO_FEW: pl.col("step_s").is_null(),
        Reason.MORE_THAN_EXPECTED: pl.col("n_rows") > pl.col("n_expected"),
    }


def _measured(
    part: pl.DataFrame,
    observations: pl.LazyFrame,
    question: Question,
    statistics: tuple[Statistic, ...],
) -> pl.DataFrame:
    column = question.column or ""
    for prepare in [each.prepare for each in statistics if each.prepare]:
        observations = prepare(observations, part)
    fits = [each.fit for each in statistics if each.fit]
    held = collected(observations).lazy() if fits else observations
    aggregated = collected(
        held.group_by("number", maintain_order=True).agg(
            pl.len().cast(pl.Int64).alias("n"),
            *presence(question),
            pl.col("step_s", "max_stale_s").first(),
            pl.col("ts").first().alias("t_first"),
            pl.col("ts").last().alias("t_last"),
            pl.col("gap").sum().cast(pl.Int64).alias("gaps"),
            pl.col("until_next_s").filter(pl.col("gap")).max().alias("longest_gap_s"),
            *(expression for each in statistics for expression in each.aggregate(column)),
        )
    )
    for fit in fits:
        aggregated = aggregated.join(fit(held.collect()), on="number", maintain_order="left")
    return (
        part.join(aggregated, on="number", how="left", maintain_order="left")
        .with_columns(pl.col("n").fill_null(0))
        .select(
            "trajectory",
            *_contract()[:-1],
            pl.col("^spread_basis$"),
            _contract()[-1],
            *(expression for each in statistics for expression in each.finish(column)),
            *asked_columns(question),
        )
    )


def _contract() -> list[pl.Expr]:
    n, some = pl.col("n"), pl.col("n") > 0
    return [
        n,
        (pl.col("rows") - n).alias("n_null"),
        pl.col("n_expected"),
        *(pl.when(some).then(share).otherwise(0.0) for share in shares()),
        pl.col("step_s", "max_stale_s", "t_first", "t_last"),
        pl.when(some).then(pl.col("gaps") + 1).otherwise(0).cast(pl.Int64).alias("n_segments"),
        pl.when(some).then(pl.col("longest_gap_s").fill_null(0)).alias("longest_gap_s"),
        first_reason({Reason.EMPTY: ~some} | why_uncovered()).alias("coverage_reason"),
    ]


_NORMAL_SCALE = 1.482602218505602  # 1 / the 75 % point of the standard normal
_PERCENTS = (1, 5, 25, 50, 75, 95, 99)
_EMPTY = pl.col("n") == 0
_VALUE, _WEIGHT = pl.col("value"), pl.col("weight_s")


def _of_column(values: dict[str, pl.Expr], reason_column: str) -> Statistic:
    """Make a statistic of named values, with one reason: `EMPTY`, else `TOO_FEW`."""

    @cache
    def aggregate(column: str) -> list[pl.Expr]:
        return [value.alias(column_for(column, name)) for name, value in values.items()]

    @cache
    def finish(column: str) -> list[pl.Expr]:
        found = [pl.col(column_for(column, name)) for name in values]
        missing = pl.any_horizontal(each.is_null() for each in found)
        reason = first_reason({Reason.EMPTY: _EMPTY, Reason.TOO_FEW: missing})
        return [*found, reason.alias(reason_column)]

    return Statistic(aggregate, finish)


def deviation(values: pl.Expr) -> pl.Expr:
    """Build the standard deviation (ddof 1), exactly 0 if all are equal, null for one value."""
    squares = (values - values.mean()).pow(2).sum() / (pl.len() - 1)
    same = values.min() == values.max()
    return pl.when(pl.len() > 1).then(pl.when(same).then(0.0).otherwise(squares.sqrt()))


MOMENTS = _of_column(
    {
        "mean": _VALUE.mean(),
        # a mean rounded by one bit must not give a frozen quote a deviation
        "std": deviation(_VALUE),
        "time_weighted_mean": pl.when(_WEIGHT.sum() > 0).then(
            (_VALUE * _WEIGHT).sum() / _WEIGHT.sum()
        ),
    },
    "moments_reason",
)
"""Mean, standard deviation (ddof 1), time-weighted mean."""


ROBUST = _of_column(
    {"median": _VALUE.median(), "mad": (_VALUE - _VALUE.median()).abs().median() * _NORMAL_SCALE},
    "robust_reason",
)
"""Median, and median absolute deviation on the scale of a normal's standard deviation."""

QUANTILES = _of_column(
    {f"q{percent:02}": _VALUE.quantile(percent / 100, "linear") for percent in _PERCENTS}
    | {"expected_shortfall_95": _VALUE.filter(_VALUE.quantile(0.95, "linear") <= _VALUE).mean()},
    "quantiles_reason",
)
"""Quantiles, linearly interpolated, and the mean of what reaches the upper 5 %."""
