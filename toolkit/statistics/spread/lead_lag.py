"""Lead and lag of two legs: correlations of their returns, and the share of price discovery.

A lag k is that of the sell leg: the correlation of the buy leg's return over a step with the sell
leg's return k steps later. A peak at a positive lag means that the buy leg leads. A late clock at
one venue looks just like a lead of the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import Step, When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_columns,
    collected,
    first_reason,
    unfolded,
    whole_number,
)
from toolkit.statistics.core.kernel import Statistic, measure
from toolkit.statistics.core.observations import checked_keys
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.numeric.arrays import Floats, Integers
from toolkit.statistics.numeric.lags import SELL, checked_lag, numbers_of, peaks, related, why

MOST_STEP_S = 2
"""The longest step for which shares are computed."""
SHARES = ("gonzalo_granger_share", "hasbrouck_lower_share", "hasbrouck_upper_share")
"""The columns of the shares, all of the buy leg."""

_LAGS = 10
_LEAST_ROWS = 300


def discovery_shares(rows: pl.DataFrame, sell: str) -> pl.DataFrame:
    """Compute the shares of the buy leg over each trajectory's longest run one step apart.

    ``rows`` are observations of the buy leg's log price as ``value`` with ``number``, ``ts`` and
    ``step_s``, and the sell leg's in the column ``sell``. A run has at least 300 of them. The
    columns are number and `SHARES` (null for a short run, NaN without a correction).

    Source: Gonzalo, J. and Granger, C. (1995), Journal of Business and Economic Statistics 13.
    Hasbrouck, J. (1995), Journal of Finance 50.
    """
    found = []
    fine = rows.filter(pl.col("step_s") <= MOST_STEP_S)
    for part in fine.partition_by("number", maintain_order=True):
        apart = np.diff(part["ts"].to_numpy()) != part["step_s"][0]
        edges = np.concatenate([[0], np.flatnonzero(apart) + 1, [part.height]])
        longest = int(np.diff(edges).argmax())
        run = part[int(edges[longest]) : int(edges[longest + 1])]
        if run.height >= _LEAST_ROWS:
            legs = np.column_stack([run["value"].to_numpy(), run[sell].to_numpy()])
            found.append((part["number"][0], *_shares(legs)))
    schema = {"number": pl.UInt32, **dict.fromkeys(SHARES, pl.Float64)}
    return pl.DataFrame(found, schema=schema, orient="row")


def _shares(legs: Floats) -> tuple[float, float, float]:
    """Fit the error correction to log prices, one column per leg, and compute the three shares."""
    legs = legs - legs[0]
    change = np.diff(legs, axis=0)
    count = len(change) - _LAGS
    gap = (legs[:, 0] - legs[:, 1])[_LAGS:-1]
    lagged = [change[_LAGS - lag : _LAGS - lag + count] for lag in range(1, _LAGS + 1)]
    known = np.column_stack([np.ones(count), gap, *lagged])
    fit, _, rank, _ = np.linalg.lstsq(known, change[_LAGS:], rcond=None)
    none = (math.nan, math.nan, math.nan)
    if rank < known.shape[1]:
        return none
    error = change[_LAGS:] - known @ fit
    covariance = error.T @ error / (count - known.shape[1])
    to_buy, to_sell = fit[1]
    if to_sell == to_buy:
        return none
    weight = np.array([to_sell, -to_buy])
    total = float(weight @ covariance @ weight)
    if total <= 0:
        return none
    # what the shocks of one leg make, with those at the same time counted as its own
    first = (weight @ covariance) ** 2 / np.diag(covariance) / total
    bounds = sorted((float(first[0]), float(1 - first[1])))
    return float(to_sell / (to_sell - to_buy)), bounds[0], bounds[1]


_BUY = "buy_log_price"
_LISTS = ("pairs", "correlation", "null_band")
_TWO_SIDED_95 = 1.959963984540054


@analysis(
    "spread.lead_lag",
    """
        peak_lag_s peak_correlation null_band beyond_band correlation_at_0 lead_lag_ratio returns_n
        gonzalo_granger_share""",
    title="Which leg of spreads moves first,",
    order="-peak_lag_s",
    about="""
        A positive lag means that the buy leg leads. A lead of less than a step cannot be
        seen, and a late clock looks like one. Shares of discovery need steps of 2 s or
        less.""",
    example='--where "beyond_band and peak_lag_s != 0"',
)
def lead_lag(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    max_lag_steps: int = 10,
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Find the lag at which the returns of two legs agree most, and which leg finds the price.

    Reads ``buy_price`` and ``sell_price``. Returns are differences of log prices exactly one step
    apart, so none spans a gap. The correlation at a lag of k steps is that of the buy leg's return
    at t and the sell leg's at t + k (Pearson, over at least 100 pairs). The peak is the largest
    from -L to L steps, of equal ones the nearest to 0. Without any relation the largest of the 2 L
    + 1, of either sign, is within the null band in 95 %.

    A lead of less than a step cannot be seen: at minutes nearly all venues peak at 0. The ratio is
    the sum of squared correlations at k = 1 to L over that at k = -1 to -L: above 1 the buy leg
    leads (Huth and Abergel).

    The shares of discovery are those of the buy leg (see `toolkit.statistics.spread.lead_lag`).
    They need steps of 2 s or less: at minutes their bounds are nearly 0 and 1.

    One row per trajectory, with the columns of `coverage` before these. An observation is a row in
    which both prices are finite and above 0:

    {columns}

    Raises `InputError`: As `coverage`. ``max_lag_steps`` is not a whole number from 1 to 720.

    Source: Huth, N. and Abergel, F. (2014), Journal of Empirical Finance 26.

    A sell leg that repeats the buy leg's price a minute later.

    >>> import random
    >>> draw, level, prices = random.Random(1), 100.0, []
    >>> for _ in range(500):
    ...     level *= 1 + draw.gauss(0, 1e-3)
    ...     prices.append(level)
    >>> frame = pl.DataFrame({"trajectory": ["a"] * 500,
    ...     "ts": [60 * minute for minute in range(500)], "buy_price": prices,
    ...     "sell_price": prices[:1] + prices[:-1]})
    >>> row = lead_lag(frame).row(0, named=True)
    >>> row["peak_lag_s"], round(row["peak_correlation"], 3), row["discovery_reason"]
    (60, 1.0, 'step_too_coarse')
    """
    most = checked_lag(max_lag_steps)
    window = window_of(frame, start, end)
    asked = (("max_lag_steps", most),)
    question = Question("spread.lead_lag/3", *window, _BUY, step_s, max_stale_s, asked)
    legs = Statistic(_none, _results, lambda rows: _fitted(rows, most), carried=(SELL,))
    return measure(_prices(frame), question, legs)


@analysis(
    "spread.cross_correlation",
    ("lag_s", "correlation", "null_band", "pairs"),
    title="Correlation of the legs' returns by lag,",
    about="""
        A positive lag means that the buy leg leads. A correlation within the null band may
        be chance.""",
    example="LTC_USDT:AURORA.spot:BOREAS.spot",
)
def cross_correlation(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    max_lag_steps: int = 10,
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Compute the correlation of the returns of two legs at each lag.

    There are 2 L + 1 rows per trajectory, sorted by trajectory and lag, each with the columns of
    `coverage` before these:

    {columns}

    Raises `InputError`: As `lead_lag`.

    >>> row = {"trajectory": "a", "ts": 0, "buy_price": 1.0, "sell_price": 1.0}
    >>> frame = pl.DataFrame([row])
    >>> cross_correlation(frame, 0, 60, max_lag_steps=1)["correlation_reason"].to_list()
    ['too_few', 'too_few', 'too_few']
    """
    most = checked_lag(max_lag_steps)
    window = window_of(frame, start, end)
    asked = (("max_lag_steps", most),)
    question = Question("spread.cross_correlation/2", *window, _BUY, step_s, max_stale_s, asked)
    legs = Statistic(
        _none, lambda _column: [pl.col(*_LISTS)], lambda rows: _by_lag(rows, most), carried=(SELL,)
    )
    found = measure(_prices(frame), question, legs)
    contract = [name for name in found.columns if name not in _LISTS]
    before = contract.index("window_start")
    pairs, reason = pl.col("pairs"), first_reason(why(pl.col("correlation")))
    return unfolded(found, _LISTS, 2 * most + 1, "place").select(
        *contract[:before],
        ((pl.col("place") - most) * pl.col("step_s")).alias("lag_s"),
        pairs.fill_null(0),
        *(pl.when(reason.is_null()).then(name).alias(name) for name in _LISTS[1:]),
        reason.alias("correlation_reason"),
        *contract[before:],
    )


def _none(_column: str) -> list[pl.Expr]:
    return []


def _prices(frame: Frame) -> Frame:
    checked_columns(frame, "buy_price", "sell_price")
    buy, sell = pl.col("buy_price"), pl.col("sell_price")
    both = buy.is_finite() & sell.is_finite() & (buy > 0) & (sell > 0)
    return frame.with_columns(
        pl.when(both).then(buy.log()).alias(_BUY), pl.when(both).then(sell.log()).alias(SELL)
    )


def _by_lag(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    numbers, found = related(rows, most)
    bands = _TWO_SIDED_95 * found.error
    lists = zip(_LISTS, (found.pairs, found.correlation, bands), strict=True)
    types = {"number": pl.UInt32(), "pairs": pl.List(pl.Int64)}
    types |= dict.fromkeys(_LISTS[1:], pl.List(pl.Float64))
    own = pl.DataFrame(
        {"number": numbers, **{name: list(by_lag.T) for name, by_lag in lists}}, schema=types
    )
    return numbers_of(rows).join(own, on="number", how="left")


def _fitted(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """Find the peak of each trajectory of a chunk, and the shares of discovery."""
    shares = discovery_shares(rows, SELL)
    return peaks(rows, most).join(shares, on="number", how="left", maintain_order="left")


def _results(_column: str) -> list[pl.Expr]:
    reason, share = first_reason(why(pl.col("at_zero"))), pl.col(SHARES[0])
    found = {
        "peak_lag_s": pl.col("peak_lag") * pl.col("step_s"),
        "peak_correlation": pl.col("peak"),
        "null_band": pl.col("band"),
        "beyond_band": pl.col("peak") > pl.col("band"),
        "correlation_at_0": pl.col("at_zero"),
        "lead_lag_ratio": pl.col("ratio").fill_nan(None),
    }
    missing = {
        Reason.EMPTY: pl.col("n") == 0,
        Reason.STEP_TOO_COARSE: pl.col("step_s") > MOST_STEP_S,
        Reason.TOO_FEW: share.is_null(),
        Reason.DEGENERATE: share.is_nan(),
    }
    return [
        pl.col("returns").fill_null(0).alias("returns_n"),
        *(pl.when(reason.is_null()).then(each).alias(name) for name, each in found.items()),
        pl.coalesce(
            reason, first_reason({Reason.TOO_FEW: pl.col("ratio").fill_nan(None).is_null()})
        ).alias("lead_lag_reason"),
        *(pl.col(name).fill_nan(None) for name in SHARES),
        first_reason(missing).alias("discovery_reason"),
    ]


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
    example="--lag 0s --lag 1m",
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

    Reads ``buy_price`` and ``sell_price``: a price that is null or not finite and above 0 counts as
    none. The covariance sums the product of each return of one leg with each return of the other
    whose time overlaps, over gaps as well. At a lag the times of the sell leg are moved back by it:
    a peak at a positive lag means that the buy leg leads. Each of ``lags_s`` is tried either way,
    by default 0, 1, 2, 5 and 10 steps: the commonest difference of the times of a trajectory. The
    window is ``[start, end)``, by default that of all rows.

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
            _of_clocks(part, window, lags)
            for part in rows.sort("trajectory", "ts").partition_by("trajectory")
        ]
        or [_of_clocks(rows, window, [])]
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
        *figures.columns[:4],
        pl.when(~pl.col("between")).then("covariance").alias("covariance"),
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


def _of_clocks(rows: pl.DataFrame, window: Interval, lags: Sequence[int] | None) -> pl.DataFrame:
    """Return the covariance of one trajectory at each lag, and what it is divided by.

    A lag is ``between`` the times where it is not a multiple of what separates all of them: returns
    would then overlap two neighbours of the other leg.
    """
    inside = rows.filter(pl.col("ts").is_between(*window, closed="left"))
    (buy_ts, buy_log), (sell_ts, sell_log) = (_log_prices(inside, name) for name in _LEGS)
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


def _log_prices(rows: pl.DataFrame, name: str) -> tuple[Integers, Floats]:
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
