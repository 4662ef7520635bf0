"""Computation of each number: aggregates over observations, then results with their reasons.

Sums of squares and products are taken about the mean of what is summed: polars' own ``std`` and
``cov`` lose six digits where the values vary by 1e-8 of their size.
"""

from __future__ import annotations

from functools import cache

import polars as pl

from toolkit.reasons import Reason
from toolkit.statistics.core.contract import column_for, first_reason
from toolkit.statistics.core.kernel import Statistic

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


MOMENTS = _of_column(
    {
        "mean": _VALUE.mean(),
        # a mean rounded by one bit must not give a frozen quote a deviation
        "std": pl.when(pl.len() > 1).then(
            pl.when(_VALUE.min() == _VALUE.max())
            .then(0.0)
            .otherwise(((_VALUE - _VALUE.mean()).pow(2).sum() / (pl.len() - 1)).sqrt())
        ),
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
