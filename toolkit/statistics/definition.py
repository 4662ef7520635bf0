"""What a spread is: its two forms, from the prices of both legs."""

from __future__ import annotations

from typing import TypeVar

import polars as pl

from toolkit.statistics.contract import Frame, checked_columns

__all__ = ["holding", "with_spread"]

SameFrame = TypeVar("SameFrame", pl.DataFrame, pl.LazyFrame)

_SPREADS = ("spread_log_bps", "spread_bps")


def with_spread(frame: SameFrame) -> SameFrame:
    """Add or replace both spreads, row by row. A LazyFrame stays lazy.

    ==============  =======  ====  ============================================================
    column          type     unit  meaning
    ==============  =======  ====  ============================================================
    spread_log_bps  Float64  bps   1e4 ln(sell_price / buy_price): for every time-series
                                   statistic. Swapping the legs flips its sign and nothing else
    spread_bps      Float64  bps   1e4 (sell_price / buy_price - 1): for money
    ==============  =======  ====  ============================================================

    Both are null where either price is null, NaN, infinite, zero or negative, or where their ratio
    is beyond the range of a float. They are never 0 for want of a price.

    Raises
    ------
    InputError
        ``buy_price`` or ``sell_price`` is missing or not Float64.

    Examples
    --------
    >>> frame = pl.DataFrame({"buy_price": [100.0, 101.0, 0.0], "sell_price": [101.0, 100.0, 1.0]})
    >>> with_spread(frame).select(pl.col("spread_log_bps", "spread_bps").round(3)).rows()
    [(99.503, 100.0), (-99.503, -99.01), (None, None)]
    """
    checked_columns(frame, "buy_price", "sell_price", keyed=False)
    return frame.with_columns(*_spreads())


def _spreads() -> list[pl.Expr]:
    buy, sell = pl.col("buy_price"), pl.col("sell_price")
    low, high = pl.min_horizontal(buy, sell), pl.max_horizontal(buy, sell)
    # one exact difference over the lower price: antisymmetric to the bit, and no digits cancel
    excess = (high - low) / low
    valid = buy.is_finite() & sell.is_finite() & (buy > 0) & (sell > 0) & (excess * 1e4).is_finite()
    log = 1e4 * excess.log1p() * (sell - buy).sign()
    simple = 1e4 * ((sell - buy) / buy)
    return [
        pl.when(valid).then(log).alias("spread_log_bps"),
        pl.when(valid).then(simple).alias("spread_bps"),
    ]


def holding(frame: Frame, column: str) -> Frame:
    """Add ``column``, computed from the prices, where it is a spread that the frame lacks.

    Examples
    --------
    >>> frame = pl.DataFrame(
    ...     {"trajectory": ["a"], "ts": [0], "buy_price": [100.0], "sell_price": [101.0]}
    ... )
    >>> holding(frame, "spread_bps").collect_schema()["spread_bps"]
    Float64
    """
    if column not in _SPREADS or column in frame.collect_schema():
        return frame
    checked_columns(frame, "buy_price", "sell_price")
    return frame.with_columns(*_spreads())
