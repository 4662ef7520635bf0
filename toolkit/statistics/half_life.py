"""The half-life of a spread: by the decay of its correlation, beside an AR(1), with their fit."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import polars as pl

from toolkit.statistics.contract import Reason, first_reason
from toolkit.statistics.kernel import Statistic
from toolkit.statistics.lags import Decay, Floats, Integers, Observations, Pairs, joined, parts
from toolkit.statistics.reversion import reversion

MIN_PAIRS = 100
"""Fewer pairs or triples than this, and nothing is fitted."""

_SHORT, _LONG = 1, 9
"""The lags, in steps beyond the first, over which a decay is measured."""
_LEFT = 0.5
"""The long lag is used where this much of the correlation is left over it."""
_ACF_LAGS = (1, 10, 30)
"""Where the fits are compared with the autocorrelation, in steps."""
_TWO_SIDED_95 = 1.96
_HALF_LIFE, _AR1, _ACF = "half_life", "half_life_ar1", "acf"
_EMPTY = pl.col("n") == 0


def _summed(rows: pl.DataFrame) -> tuple[Integers, Pairs, Pairs, Pairs, Decay]:
    """Sum over the pairs of the lags `_ACF_LAGS`, and over the triples of the long lag."""
    held = Observations.of(rows)
    next_one, far = held.later(1), held.later(1 + _LONG)
    pairs = (held.pairs(next_one), held.pairs(far), held.pairs(held.later(30)))
    return (held.numbers, *pairs, held.decay(next_one, far, _LONG))


def _short(rows: pl.DataFrame) -> Decay:
    """Sum over the triples of the short lag."""
    held = Observations.of(rows)
    return held.decay(held.later(1), held.later(1 + _SHORT), _SHORT)


def _measured(rows: pl.DataFrame) -> pl.DataFrame:
    """Fit each trajectory of a chunk: half-lives in steps, 0 for below one, infinite for none."""
    found, *of_pairs, triples = zip(*map(_summed, parts(rows)), strict=True)
    numbers = np.concatenate(found)
    apart = {lag: joined(Pairs, each) for lag, each in zip(_ACF_LAGS, of_pairs, strict=True)}
    near, decay = apart[1], joined(Decay, triples)
    fast = ~((decay.triples >= MIN_PAIRS) & (decay.a >= _LEFT * decay.b))
    fast_rows = rows.filter(pl.col("number").is_in(numbers[fast]))
    for long, short in zip(decay, joined(Decay, map(_short, parts(fast_rows))), strict=True):
        long[fast] = short
    with np.errstate(all="ignore"):
        correlation = {lag: pairs.correlation for lag, pairs in apart.items()}
        share = 1 - correlation[1] / (decay.a / decay.b) ** (1 / decay.lag)
        steps, lower, upper = reversion(decay, share)
        ar1_phi = near.products / near.earlier_squares
        memory = correlation[1] > _TWO_SIDED_95 / np.sqrt(near.pairs)
    ar1_steps = _steps(ar1_phi)
    phi = np.exp2(-1 / np.where(steps > 0, steps, np.nan))
    return pl.DataFrame(
        {
            "number": numbers,
            "pairs": near.pairs,
            "triples": decay.triples,
            "lag": decay.lag,
            "still": near.constant | (near.earlier_squares == 0),
            "memory": memory,
            "share": share,
            "phi": phi,
            "steps": steps,
            "lower": lower,
            "upper": upper,
            "slope": ar1_phi,
            "ar1_steps": ar1_steps,
            "fit": _misfit(apart, correlation, phi, correlation[1] / phi),
            "ar1_fit": _misfit(apart, correlation, ar1_phi, np.ones(len(phi))),
            "outside": (ar1_steps < lower) | (ar1_steps > upper),
        }
    )


def _steps(phi: Floats) -> Floats:
    """Turn a decay per step into a half-life in steps, 0 below one and infinite for none."""
    inside = np.where((phi >= 0.5) & (phi < 1), phi, 0.5)
    return np.where(
        np.abs(phi) >= 1, np.inf, np.where(phi >= 0.5, -math.log(2) / np.log(inside), 0.0)
    )


def _misfit(
    apart: dict[int, Pairs], correlation: dict[int, Floats], phi: Floats, scale: Floats
) -> Floats:
    """Find the largest distance of scale phi^lag from the autocorrelation; NaN without lag 10."""
    worst = np.where(apart[10].pairs >= MIN_PAIRS, 0.0, np.nan)
    for lag in _ACF_LAGS:
        off = np.abs(correlation[lag] - scale * phi**lag)
        worst = np.maximum(worst, np.where(apart[lag].pairs >= MIN_PAIRS, off, 0.0))
    return worst


@cache
def _results(_column: str) -> list[pl.Expr]:
    pairs, triples = pl.col("pairs").fill_null(0), pl.col("triples").fill_null(0)
    still = {Reason.DEGENERATE: pl.col("still")}
    reason = first_reason(
        {
            Reason.EMPTY: _EMPTY,
            Reason.TOO_FEW: triples < MIN_PAIRS,
            **still,
            Reason.NO_REVERSION: pl.col("slope") <= -1,
            Reason.BELOW_STEP: ~pl.col("memory"),
        }
    )
    ar1_reason = first_reason({Reason.EMPTY: _EMPTY, Reason.TOO_FEW: pairs < MIN_PAIRS, **still})
    fitted = pl.coalesce(reason, _outside("steps"))
    misfit = [
        pl.when(other.is_null()).then(pl.col(fit).fill_nan(None)).alias(f"{name}_acf_error")
        for name, fit, other in ((_HALF_LIFE, "fit", fitted), (_AR1, "ar1_fit", ar1_reason))
    ]
    compared = reason.is_null() & ar1_reason.is_null()
    return [
        triples.alias("half_life_triples"),
        pl.when(triples > 0).then("lag").otherwise(_SHORT).alias("half_life_lag_steps"),
        *(
            pl.when(fitted.is_null()).then(pl.col(column).fill_nan(None)).alias(name)
            for name, column in (("half_life_phi", "phi"), ("noise_share", "share"))
        ),
        *_seconds(_HALF_LIFE, "steps", reason),
        *_seconds(f"{_HALF_LIFE}_lower", "lower", reason),
        *_seconds(f"{_HALF_LIFE}_upper", "upper", reason),
        pairs.alias("ar1_pairs"),
        pl.when(ar1_reason.is_null()).then("slope").alias("ar1_phi"),
        ar1_reason.alias("ar1_reason"),
        *_seconds(_AR1, "ar1_steps", ar1_reason),
        (compared & pl.col("outside")).fill_null(value=False).alias("half_lives_differ"),
        *misfit,
        pl.coalesce(
            fitted, ar1_reason, first_reason({Reason.TOO_FEW: pl.col("fit").is_nan()})
        ).alias(f"{_ACF}_reason"),
    ]


def _outside(steps: str) -> pl.Expr:
    """Name the reason for which a number of steps is none."""
    found = pl.col(steps)
    return first_reason(
        {
            Reason.TOO_FEW: found.is_nan(),
            Reason.NO_REVERSION: found.is_infinite(),
            Reason.BELOW_STEP: found == 0,
        }
    )


def _seconds(name: str, steps: str, reason: pl.Expr) -> list[pl.Expr]:
    """Turn steps into seconds, null with its reason where they are none."""
    missing = pl.coalesce(reason, _outside(steps))
    return [
        pl.when(missing.is_null()).then(pl.col(steps) * pl.col("step_s")).alias(f"{name}_s"),
        missing.alias(f"{name}_reason"),
    ]


HALF_LIFE = Statistic(lambda _column: [], _results, _measured)
"""The half-life of the autocorrelation with its interval, and that of an AR(1)."""
