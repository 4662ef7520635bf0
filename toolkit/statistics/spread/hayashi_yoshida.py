"""Lead and lag of two prices on clocks of their own, without a common grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from toolkit.columns import described
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_times,
    checked_types,
    first_reason,
    whole_number,
)
from toolkit.statistics.core.windows import documents_extent, window_of
from toolkit.statistics.numeric.lags import Floats, Integers

LAGS_S = (-60, -10, -5, -2, -1, 0, 1, 2, 5, 10, 60)
"""The lags, in seconds, where none are asked for."""
_LEAST = 100


@described("spread.hayashi_yoshida")
def hayashi_yoshida(
    buy: Frame,
    sell: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    lags_s: Sequence[int] = LAGS_S,
) -> pl.DataFrame:
    """Correlate the returns of two prices that were seen at times of their own.

    Each frame has the columns ``ts`` (Int64, Unix seconds UTC) and ``price`` (Float64) of one leg,
    in any order. Rows without a price that is finite and above 0 are left out. The covariance sums
    the product of each return of one leg with each return of the other whose time overlaps: no
    price is carried forward, so that neither is found to lag because it is seen less often. At a
    lag the times of the sell leg are moved back by it: a peak at a positive lag means that the buy
    leg leads. The window is ``[start, end)``, by default that of all rows of the buy leg.

    One row per lag, sorted by it:

    {columns}

    Raises
    ------
    InputError
        A column is missing or of another type. Two rows of one leg share a time. ``lags_s`` has no
        lag, or one that is not a whole number.

    References
    ----------
    Hayashi, T. and Yoshida, N. (2005), On covariance estimation of non-synchronously observed
    diffusion processes, Bernoulli 11.

    Examples
    --------
    >>> buy = pl.DataFrame({"ts": [0, 2, 5], "price": [1.0, math.e, 1.0]})
    >>> sell = pl.DataFrame({"ts": [0, 3, 5], "price": [1.0, math.e, 1.0]})
    >>> hayashi_yoshida(buy, sell, lags_s=[0]).select("buy_n", "covariance").row(0)
    (3, 1.0)
    """
    for name, each in (("buy", buy), ("sell", sell)):
        checked_types(each, {"ts": "Int64", "price": "Float64"}, parameter=name)
    if not len(lags_s):
        raise InputError("lags_s", lags_s, "one or more whole numbers of seconds")
    lags = sorted({whole_number("lags_s", lag, -(2**40), "seconds") for lag in lags_s})
    window = window_of(buy, start, end, documents_extent)
    options = tuple((f"lag_{place}", float(lag)) for place, lag in enumerate(lags))
    question = Question("spread.hayashi_yoshida/1", *window, options=options)
    (buy_ts, buy_log), (sell_ts, sell_log) = (
        _prices(each, name, window) for name, each in (("buy", buy), ("sell", sell))
    )
    scale = math.sqrt(float(np.square(np.diff(buy_log)).sum() * np.square(np.diff(sell_log)).sum()))
    found = pl.DataFrame(
        {
            "lag_s": lags,
            "covariance": [_covariance(buy_ts, buy_log, sell_ts - lag, sell_log) for lag in lags],
        },
        schema={"lag_s": pl.Int64, "covariance": pl.Float64},
    )
    counts = pl.lit(len(buy_ts), pl.Int64), pl.lit(len(sell_ts), pl.Int64)
    least = pl.min_horizontal(*counts)
    reason = first_reason(
        {
            Reason.EMPTY: least == 0,
            Reason.TOO_FEW: least < _LEAST,
            Reason.DEGENERATE: pl.lit(scale) == 0,
        }
    )
    return found.select(
        "lag_s",
        counts[0].alias("buy_n"),
        counts[1].alias("sell_n"),
        "covariance",
        pl.when(reason.is_null()).then(pl.col("covariance") / (scale or 1)).alias("correlation"),
        reason.alias("correlation_reason"),
        *question.columns,
    )


def _prices(frame: Frame, name: str, window: Interval) -> tuple[Integers, Floats]:
    """Return the times and log prices of one leg in the window, in order."""
    price, inside = pl.col("price"), pl.col("ts").is_between(*window, closed="left")
    held = frame.lazy().filter(inside, price.is_finite(), price > 0).sort("ts").collect()
    checked_times(held)
    if held["ts"].n_unique() < held.height:
        raise InputError(name, "two rows of the same ts", "one price per time")
    return held["ts"].to_numpy(), np.log(held["price"].to_numpy())


def _covariance(ts: Integers, x: Floats, other_ts: Integers, y: Floats) -> float:
    """Sum the products of returns whose times ``(from, to]`` overlap."""
    if min(len(ts), len(other_ts)) < 2:
        return 0.0
    # the returns of the other that overlap one of ours reach from the last price at or before our
    # beginning to the first at or after our end
    low = np.maximum(np.searchsorted(other_ts, ts[:-1], side="right") - 1, 0)
    high = np.minimum(np.searchsorted(other_ts, ts[1:], side="left"), len(y) - 1)
    return float(np.diff(x) @ np.where(high > low, y[high] - y[low], 0.0))
