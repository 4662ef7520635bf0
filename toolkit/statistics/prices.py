"""Summary of a price over a window: first and last, extremes, change and realized volatility."""

from __future__ import annotations

import polars as pl

from toolkit.analyses import analysis
from toolkit.market import Step, When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, checked_columns, first_reason
from toolkit.statistics.core.kernel import Statistic, measure
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.quality.plausibility import plausibility

__all__ = ["summary"]


def __dir__() -> list[str]:
    return __all__


_YEAR_S = 365 * 86_400
_VALUE = pl.col("value")


@analysis(
    "prices.summary",
    """
        price_last change_pct realized_volatility_pct price_low price_high price_first
        coverage n""",
    figures="""
        n coverage observed_share step_s n_segments longest_gap_s implausible price_first price_last
        price_low price_high change_pct n_returns realized_volatility_pct""",
    family="price",
    order="-realized_volatility_pct",
    title="Prices",
    command="price",
    example="BTC_USDT:AURORA.spot",
)
def summary(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Compute first, last, lowest and highest price, change and realized volatility.

    One row per trajectory, sorted. The columns of `toolkit.statistics.quality.coverage` for
    ``price`` come first. A price of zero or below is not an observation. Then follow:

    {columns}

    The window, the method and its hash are last. ``implausible`` is that of
    `toolkit.statistics.quality.plausibility`, and leaves nothing out. Compare the volatility at
    equal steps, as noise makes that of short ones larger.

    Raises `InputError`: As `toolkit.statistics.quality.coverage`, for ``price``.

    Source: Andersen, T. G. and Bollerslev, T. (1998), International Economic Review 39.

    >>> ts = [0, 60, 120]
    >>> frame = pl.DataFrame({"trajectory": ["a"] * 3, "ts": ts, "price": [100.0, 101.0, 99.0]})
    >>> row = summary(frame).row(0, named=True)
    >>> row["price_high"], round(row["change_pct"], 6), row["n_returns"]
    (101.0, -1.0, 2)
    """
    window = window_of(frame, start, end)
    question = Question("prices.summary/2", *window, "price", step_s, max_stale_s)
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
