"""Correlation of the returns of two legs at every lag, and the lag of the closest one."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import polars as pl

from toolkit.errors import InputError
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import whole_number
from toolkit.statistics.numeric.lags import (
    MIN_PAIRS,
    Floats,
    Integers,
    Observations,
    centred,
    joined,
    parts,
    sums,
)

SELL = "sell_log_price"

MOST_LAG_STEPS = 720
"""The longest lag that may be asked for."""


def checked_lag(max_lag_steps: int) -> int:
    """Return the longest lag asked for, or raise `InputError`.

    >>> checked_lag(721)
    Traceback (most recent call last):
    toolkit.errors.InputError: max_lag_steps: 721 is not allowed; allowed: at most 720
    """
    most = whole_number("max_lag_steps", max_lag_steps, 1)
    if most > MOST_LAG_STEPS:
        raise InputError("max_lag_steps", most, f"at most {MOST_LAG_STEPS}")
    return most


class _Related(NamedTuple):
    """Of each trajectory, by lag: NaN where nothing varies, infinite for too few pairs."""

    pairs: Integers
    correlation: Floats
    error: Floats
    """The standard error without any relation, whatever the volatility and the bounce do."""


def related(rows: pl.DataFrame, most: int) -> tuple[Integers, _Related]:
    """Correlate the returns of both legs at all lags: one row per lag, one column per trajectory.

    The first is the number of each trajectory.
    """
    moved = [_returns(part) for part in parts(rows)]
    related = [_of_returns(returns, other, most) for returns, other in moved]
    return np.concatenate([each.numbers for each, _ in moved]), joined(_Related, related)


def _returns(rows: pl.DataFrame) -> tuple[Observations, Floats]:
    """Return the change of both legs over each step, at its end: that of the buy leg as value."""
    held = Observations.of(rows)
    later = held.later(1)
    first = np.flatnonzero(later >= 0)
    at = later[first]
    sell = rows[SELL].to_numpy()
    return held.some(at, held.value[at] - held.value[first]), sell[at] - sell[first]


def _of_returns(returns: Observations, other: Floats, most: int) -> _Related:
    own = returns.value
    every = np.arange(own.size)
    found = {0: _at_lag(own, other, np.diff(returns.begins), _next_pairs(returns, every))}
    for lag in range(1, most + 1):
        later = returns.later(lag)
        paired = np.flatnonzero(later >= 0)
        at, counts = later[paired], returns.counts(paired)
        next_pairs = _next_pairs(returns, paired)
        found[lag] = _at_lag(own[paired], other[at], counts, next_pairs)
        found[-lag] = _at_lag(other[paired], own[at], counts, next_pairs)
    in_order = [found[lag] for lag in range(-most, most + 1)]
    return _Related(*(np.array(each) for each in zip(*in_order, strict=True)))


def _next_pairs(returns: Observations, paired: Integers) -> Integers:
    """Return the place among pairs of that one step after each, or -1."""
    place = np.full(returns.value.size + 1, -1)  # the last is that of no return
    place[paired] = np.arange(paired.size)
    found: Integers = place[returns.later(1)[paired]]
    return found


def _at_lag(
    before: Floats, after: Floats, counts: Integers, next_pairs: Integers
) -> tuple[Integers, Floats, Floats]:
    x, y = centred(before, counts), centred(after, counts)
    product = x * y
    with np.errstate(all="ignore"):
        scale = np.sqrt(sums(x * x, counts) * sums(y * y, counts))
        correlation = sums(product, counts) / scale
        alone = sums(product * product, counts)
        # bounce of both legs makes products of neighbours alike
        both = sums(np.where(next_pairs >= 0, product * product[next_pairs], 0.0), counts)
        error = np.sqrt(alone + 2 * np.maximum(both, 0)) / scale
    few = counts < MIN_PAIRS
    correlation = np.where(scale > 0, correlation, math.nan)
    return counts, np.where(few, math.inf, correlation), np.where(few, math.inf, error)


def numbers_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the numbers of the trajectories of rows, in their order."""
    return rows.select(pl.col("number").unique(maintain_order=True))


def peaks(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """Find the lag at which the returns of each trajectory agree most, and how closely.

    ``rows`` are observations of the buy leg's log price as ``value`` with ``number``, ``ts`` and
    ``step_s``, and the sell leg's as ``sell_log_price``. There is a row for each number.

    >>> rows = {"number": [0], "ts": [0], "step_s": [60], "value": [1.0], "sell_log_price": [1.0]}
    >>> peaks(pl.DataFrame(rows), 1).select("number", "returns").row(0)
    (0, None)
    """
    numbers, found = related(rows, most)
    near_first = np.array(sorted(range(-most, most + 1), key=abs))
    size = np.where(np.isfinite(found.correlation), found.correlation, -math.inf)
    peak = near_first[size[near_first + most].argmax(axis=0)] + most
    column = np.arange(len(numbers))
    every = 1 - (1 - 0.95 ** (1 / (2 * most + 1))) / 2
    squares = np.square(found.correlation)
    with np.errstate(all="ignore"):
        # lag by lag, as numpy adds up one trajectory in another order than several
        ratio = sum(squares[most + 1 :]) / sum(squares[:most])
    own = pl.DataFrame(
        {
            "number": numbers,
            "returns": found.pairs[most],
            "peak_lag": peak - most,
            "peak": found.correlation[peak, column],
            "band": NormalDist().inv_cdf(every) * found.error[peak, column],
            "at_zero": found.correlation[most],
            "ratio": np.where(np.isfinite(ratio), ratio, math.nan),
        },
        schema_overrides={"number": pl.UInt32, "peak_lag": pl.Int64},
    )
    return numbers_of(rows).join(own, on="number", how="left", maintain_order="left")


def why(correlation: pl.Expr) -> dict[Reason, pl.Expr]:
    """Build the reasons for a correlation that is infinite for too few pairs, NaN for no change.

    >>> from toolkit.statistics.core.contract import first_reason
    >>> found = pl.DataFrame({"n": [0, 1, 1], "at_zero": [None, math.inf, 0.5]})
    >>> found.select(first_reason(why(pl.col("at_zero")))).to_series().to_list()
    ['empty', 'too_few', None]
    """
    return {
        Reason.EMPTY: pl.col("n") == 0,
        Reason.TOO_FEW: correlation.is_null() | correlation.is_infinite(),
        Reason.DEGENERATE: correlation.is_nan(),
    }
