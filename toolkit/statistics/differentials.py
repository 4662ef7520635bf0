"""The service's own funding differential, for where it sends no rates of the legs."""

from __future__ import annotations

from typing import TypeVar

import polars as pl

from toolkit.market import When
from toolkit.statistics.contract import Frame, Question
from toolkit.statistics.estimators import MOMENTS
from toolkit.statistics.kernel import measure
from toolkit.statistics.rates_in_force import HOURS_A_YEAR
from toolkit.statistics.windows import window_of

_COLUMN = "differential_pct_8h"
_Rows = TypeVar("_Rows", pl.DataFrame, pl.LazyFrame)
_RATES = ("buy_rate", "sell_rate")


def without_rates(frame: _Rows) -> _Rows:
    """Return the rows of the trajectories that have a differential and not one rate of a leg.

    >>> rows = {"trajectory": ["a", "b"], "buy_rate": [None, 1e-4], "sell_rate": [None, 1e-4]}
    >>> without_rates(pl.DataFrame(rows | {"differential_pct_8h": [0.5, 0.0]})).height
    1
    """
    rated = pl.any_horizontal(pl.col(rate).is_not_null() for rate in _RATES)
    sent = pl.col(_COLUMN).is_not_null()
    return frame.filter((~rated).all().over("trajectory") & sent.any().over("trajectory"))


def service_differential(
    frame: Frame, start: When | None = None, end: When | None = None
) -> pl.DataFrame:
    """Average the differential in force that the service sends, over time in ``[start, end)``.

    One row per trajectory, sorted. A value holds until the next one, at most three steps, as in
    `toolkit.statistics.spread.coverage`, whose columns come first. Then follow:

    =======================================  =======  ==============  ==============================
    column                                   type     unit            meaning
    =======================================  =======  ==============  ==============================
    differential_pct_8h_mean                 Float64  percent per 8h  mean of the rows
    differential_pct_8h_std                  Float64  percent per 8h  standard deviation (ddof 1)
    differential_pct_8h_time_weighted_mean   Float64  percent per 8h  mean over the time observed
    differential_apr_pct                     Float64  percent         a year of 8760 h at that mean
    moments_reason                           String   none            empty, too_few
    differential_basis                       String   none            service, always
    =======================================  =======  ==============  ==============================

    Positive: long the buy leg and short the sell leg earns it. It is a rate in force and not what a
    position received: that takes settled rates, and is `toolkit.statistics.funding.summary`.

    Raises
    ------
    InputError
        As `toolkit.statistics.spread.coverage`, for ``differential_pct_8h``.

    Examples
    --------
    >>> rows = {"trajectory": ["a"] * 3, "ts": [0, 3600, 7200]}
    >>> frame = pl.DataFrame(rows | {"differential_pct_8h": [0.01, 0.02, 0.03]})
    >>> service_differential(frame, 0, 10800)["differential_apr_pct"].round(6).item()
    21.9
    """
    question = Question("funding.service_differential/2", *window_of(frame, start, end), _COLUMN)
    found = measure(frame, question, MOMENTS)
    apr = pl.col(f"{_COLUMN}_time_weighted_mean") * (HOURS_A_YEAR / 8)
    cut = found.columns.index("moments_reason")
    return found.select(
        *found.columns[:cut],
        apr.alias("differential_apr_pct"),
        "moments_reason",
        pl.lit("service").alias("differential_basis"),
        *found.columns[cut + 1 :],
    )
