"""Lead and lag of two prices on clocks of their own, without a common grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_columns,
    collected,
    first_reason,
    whole_number,
)
from toolkit.statistics.core.observations import checked_keys
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.numeric.lags import Floats, Integers

_LEAST = 100
_STEPS = (0, 1, 2, 5, 10)
_LEGS = ("buy_price", "sell_price")
_FIGURES = {
    **dict.fromkeys(("lag_s", "buy_n", "sell_n"), pl.Int64),
    **dict.fromkeys(("covariance", "scale"), pl.Float64),
    "between": pl.Boolean,
}


@analysis(
    "spread.hayashi_yoshida",
    ("lag_s", "correlation", "covariance", "buy_n", "sell_n"),
    title="Correlation of the legs' returns by overlap and lag,",
    about="""
        A positive lag means that the buy leg leads. No price is carried forward, so that a leg that
        is seen less often is not found to lag for it.""",
    example="LTC_USDT:AURORA.spot:BOREAS.spot --lag 0s --lag 1m",
    lags_s=Parameter(
        "A lag to try, either way: 0s, 1m. Default: 0, 1, 2, 5 and 10 steps.", "s", option="--lag"
    ),
)
def hayashi_yoshida(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    lags_s: Sequence[int] | None = None,
) -> pl.DataFrame:
    """Correlate the returns of two legs, each at the times at which it has a price.

    Reads ``buy_price`` and ``sell_price``, each null where that leg has no price of that time: a
    price that is not finite and above 0 counts as none. The covariance sums the product of each
    return of one leg with each return of the other whose time overlaps, over gaps as well. At a lag
    the times of the sell leg are moved back by it: a peak at a positive lag means that the buy leg
    leads. Each of ``lags_s`` is tried either way, by default 0, 1, 2, 5 and 10 steps: the commonest
    difference of the times of a trajectory. The window is ``[start, end)``, by default that of all
    rows.

    One row per trajectory and lag, sorted by both:

    {columns}

    Raises
    ------
    InputError
        As `coverage`. ``lags_s`` has no lag, or one that is not a whole number from 0.

    References
    ----------
    Hayashi, T. and Yoshida, N. (2005), On covariance estimation of non-synchronously observed
    diffusion processes, Bernoulli 11.

    Examples
    --------
    >>> frame = pl.DataFrame(
    ...     {
    ...         "trajectory": ["a"] * 4,
    ...         "ts": [0, 2, 3, 5],
    ...         "buy_price": [1.0, math.e, None, 1.0],
    ...         "sell_price": [1.0, None, math.e, 1.0],
    ...     }
    ... )
    >>> hayashi_yoshida(frame, lags_s=[0]).select("buy_n", "covariance").row(0)
    (3, 1.0)
    """
    lags = None if lags_s is None else _lags(lags_s)
    checked_columns(frame, *_LEGS)
    window = window_of(frame, start, end)
    options = tuple((f"lag_{place}", float(lag)) for place, lag in enumerate(lags or ()))
    question = Question("spread.hayashi_yoshida/2", *window, options=options)
    rows = collected(frame.lazy().select("trajectory", "ts", *_LEGS))
    checked_keys(rows)
    figures = pl.concat(
        [
            _by_lag(part, window, lags)
            for part in rows.sort("trajectory", "ts").partition_by(
                "trajectory", maintain_order=True
            )
        ]
        or [_by_lag(rows, window, [])]
    )
    least = pl.min_horizontal("buy_n", "sell_n")
    reason = first_reason(
        {
            Reason.EMPTY: least == 0,
            Reason.TOO_FEW: least < _LEAST,
            Reason.DEGENERATE: pl.col("scale") == 0,
            Reason.STEP_TOO_COARSE: pl.col("between"),
        }
    )
    correlation = pl.when(reason.is_null()).then(pl.col("covariance") / pl.col("scale"))
    return figures.select(
        *figures.columns[:5],
        correlation.alias("correlation"),
        reason.alias("correlation_reason"),
        *question.columns,
    )


def _lags(given: Sequence[int]) -> list[int]:
    """Return the lags in order, each either way."""
    if isinstance(given, str | int) or not len(given):
        raise InputError("lags_s", given, "one or more whole numbers of seconds, such as [0, 60]")
    lags = [whole_number("lags_s", lag, 0) for lag in given]
    return sorted({*lags, *(-lag for lag in lags)})


def _by_lag(rows: pl.DataFrame, window: Interval, lags: Sequence[int] | None) -> pl.DataFrame:
    """Return the covariance of one trajectory at each lag, and what it is divided by.

    A lag is ``between`` the times where it is not a multiple of what separates all of them: returns
    would then overlap two neighbours of the other leg.
    """
    inside = rows.filter(pl.col("ts").is_between(*window, closed="left"))
    (buy_ts, buy_log), (sell_ts, sell_log) = (_prices(inside, name) for name in _LEGS)
    apart_s, times = np.unique(np.diff(inside["ts"].to_numpy()), return_counts=True)
    if lags is None:
        step_s = int(apart_s[times.argmax()]) if len(apart_s) else 0
        lags = _lags([step_s * steps for steps in _STEPS])
    scale = math.sqrt(float(np.square(np.diff(buy_log)).sum() * np.square(np.diff(sell_log)).sum()))
    grid_s = max(1, int(np.gcd.reduce(apart_s)))
    figures = {
        "lag_s": lags,
        "buy_n": [len(buy_ts)] * len(lags),
        "sell_n": [len(sell_ts)] * len(lags),
        "covariance": [_covariance(buy_ts, buy_log, sell_ts - lag, sell_log) for lag in lags],
        "scale": [scale] * len(lags),
        "between": [lag % grid_s > 0 for lag in lags],
    }
    return (
        rows.select("trajectory").head(1).join(pl.DataFrame(figures, schema=_FIGURES), how="cross")
    )


def _prices(rows: pl.DataFrame, name: str) -> tuple[Integers, Floats]:
    """Return the times and log prices of one leg, in order."""
    price = pl.col(name)
    known = rows.filter(price.is_finite(), price > 0)
    return known["ts"].to_numpy(), np.log(known[name].to_numpy())


def _covariance(ts: Integers, x: Floats, other_ts: Integers, y: Floats) -> float:
    """Sum the products of returns whose times ``(from, to]`` overlap."""
    if min(len(ts), len(other_ts)) < 2:
        return 0.0
    # the returns of the other that overlap one of ours reach from the last price at or before our
    # beginning to the first at or after our end
    low = np.maximum(np.searchsorted(other_ts, ts[:-1], side="right") - 1, 0)
    high = np.minimum(np.searchsorted(other_ts, ts[1:], side="left"), len(y) - 1)
    return float(np.diff(x) @ np.where(high > low, y[high] - y[low], 0.0))
