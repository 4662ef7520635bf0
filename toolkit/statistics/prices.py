"""How a price moved over a window: first and last, extremes, change and realized volatility."""

from __future__ import annotations

import polars as pl

from toolkit.market import When
from toolkit.statistics.contract import Frame, Question, Reason, checked_columns, first_reason
from toolkit.statistics.kernel import Statistic, measure
from toolkit.statistics.plausibility import plausibility
from toolkit.statistics.windows import window_of

__all__ = ["summary"]


def __dir__() -> list[str]:
    return __all__


_YEAR_S = 365 * 86_400
_VALUE = pl.col("value")


def summary(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    step_s: int | None = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Compute first, last, lowest and highest price, change and realized volatility.

    One row per trajectory, sorted. The columns of `toolkit.statistics.quality.coverage` come first,
    for ``price``. A price that is zero or negative is no observation. Then follow:

    =======================  =======  =======  ===================================================
    column                   type     unit     meaning
    =======================  =======  =======  ===================================================
    price_first              Float64  quote    first observation of the window
    price_last               Float64  quote    last one
    price_low                Float64  quote    lowest one
    price_high               Float64  quote    highest one
    change_pct               Float64  percent  100 (last / first - 1)
    price_reason             String   none     empty
    n_returns                Int64    count    pairs of observations exactly one step apart
    realized_volatility_pct  Float64  percent  100 sqrt(mean(r^2) 365 d / step), r = ln(p2 / p1)
                                               of those pairs: a year's standard deviation, the
                                               mean return taken as 0
    volatility_reason        String   none     empty, too_few (no such pair)
    implausible              String   none     names of what cannot be so, "" for nothing:
                                               level_break, sentinel_price, more_than_expected
    implausible_n            Int64    count    observations that are a sentinel, or that change
                                               tenfold since the one before
    =======================  =======  =======  ===================================================

    The window, the method and its hash are last. ``implausible`` is that of
    `toolkit.statistics.plausibility`, and nothing is left out for it: a price that falls by 60 %
    has no name there, one that falls to a tenth or a thousandth from one row to the next has. Noise
    in the prices of short steps makes the volatility larger than that of longer ones: compare it at
    equal steps. Source of the formula: Andersen and Bollerslev, "Answering the Skeptics",
    International Economic Review 39 (1998).

    Raises
    ------
    InputError
        As `toolkit.statistics.quality.coverage`, for ``price``.

    Examples
    --------
    >>> ts = [0, 60, 120]
    >>> frame = pl.DataFrame({"trajectory": ["a"] * 3, "ts": ts, "price": [100.0, 101.0, 99.0]})
    >>> row = summary(frame).row(0, named=True)
    >>> row["price_high"], round(row["change_pct"], 6), row["n_returns"]
    (101.0, -1.0, 2)
    """
    question = Question(
        "prices.summary/2", *window_of(frame, start, end), "price", step_s, max_stale_s
    )
    checked_columns(frame, "price")
    positive = frame.with_columns(pl.when(pl.col("price") > 0).then("price").alias("price"))
    return measure(positive, question, _MOVES, plausibility("price"))


def _aggregate(_column: str) -> list[pl.Expr]:
    pairs = pl.col("until_next_s") == pl.col("step_s")
    returns = (_VALUE.shift(-1) / _VALUE).log().filter(pairs)
    return [
        _VALUE.first().alias("price_first"),
        _VALUE.last().alias("price_last"),
        _VALUE.min().alias("price_low"),
        _VALUE.max().alias("price_high"),
        pairs.sum().cast(pl.Int64).alias("n_returns"),
        returns.pow(2).mean().alias("mean_square"),
    ]


def _finish(_column: str) -> list[pl.Expr]:
    empty = pl.col("n") == 0
    few = pl.col("mean_square").is_null()
    per_year = _YEAR_S / pl.col("step_s")
    return [
        *map(pl.col, ("price_first", "price_last", "price_low", "price_high")),
        (100 * (pl.col("price_last") / pl.col("price_first") - 1)).alias("change_pct"),
        first_reason({Reason.EMPTY: empty}).alias("price_reason"),
        pl.col("n_returns").fill_null(0),
        (100 * (pl.col("mean_square") * per_year).sqrt()).alias("realized_volatility_pct"),
        first_reason({Reason.EMPTY: empty, Reason.TOO_FEW: few}).alias("volatility_reason"),
    ]


_MOVES = Statistic(_aggregate, _finish)
