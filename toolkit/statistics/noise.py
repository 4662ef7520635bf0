"""The half-life of a spread between quotes that carry noise of their own."""

from __future__ import annotations

import polars as pl

from toolkit.statistics.contract import Reason, first_reason
from toolkit.statistics.estimators import MIN_PAIRS, time_to_half
from toolkit.statistics.kernel import Statistic

__all__ = ["LAG", "NOISE_ROBUST"]

LAG = 10
"""How many observations apart the further of the two kinds of pairs are."""


def _autocovariance(lag: int) -> tuple[pl.Expr, pl.Expr]:
    """Count the pairs ``lag`` observations apart inside segments, and compute their covariance."""
    value, segment = pl.col("value"), pl.col("gap").shift(1).fill_null(value=False).cum_sum()
    paired = segment == segment.shift(lag)
    earlier = pl.when(paired).then(value.shift(lag))
    later = pl.when(paired).then(value)
    product = (earlier - earlier.mean()) * (later - later.mean())
    return earlier.count().cast(pl.Int64), product.mean()


def _noise(_column: str) -> list[pl.Expr]:
    value = pl.col("value")
    pairs, far = _autocovariance(LAG)
    _, near = _autocovariance(1)
    return [
        pairs.alias("noise_pairs"),
        far.alias("covariance_far"),
        near.alias("covariance_near"),
        (value - value.mean()).pow(2).mean().alias("variance"),
        (value.min() == value.max()).alias("still"),
    ]


def _noise_results(_column: str) -> list[pl.Expr]:
    pairs = pl.col("noise_pairs").fill_null(0)
    near, far = pl.col("covariance_near"), pl.col("covariance_far")
    reason = first_reason(
        {
            Reason.EMPTY: pl.col("n") == 0,
            Reason.TOO_FEW: pairs < MIN_PAIRS,
            Reason.DEGENERATE: pl.col("still") | (pl.col("variance") == 0),
            Reason.NO_MEMORY: (near <= 0) | (far <= 0),
        }
    )
    phi = pl.when(reason.is_null()).then((far / near).pow(1 / (LAG - 1)))
    return [
        pairs.alias("noise_robust_pairs"),
        phi.alias("noise_robust_phi"),
        (1 - near / (phi * pl.col("variance"))).alias("noise_share"),
        reason.alias("noise_robust_reason"),
        *time_to_half("half_life_noise_robust", phi, reason),
    ]


NOISE_ROBUST = Statistic(_noise, _noise_results)
"""An AR(1) from its autocovariances at lags 1 and 10, and the share of the variance above it."""
