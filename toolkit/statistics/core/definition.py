"""The definition of a spread: two forms, from the prices of both legs or the service's figure."""

from __future__ import annotations

from typing import TypeVar

import polars as pl

from toolkit.columns import described
from toolkit.statistics.core.contract import Frame, checked_columns, checked_frame

SameFrame = TypeVar("SameFrame", pl.DataFrame, pl.LazyFrame)

SPREADS = ("spread_log_bps", "spread_bps")
"""The two forms of a spread."""

BASES = pl.Enum(["legs", "service"])
"""What a row's spread rests on."""

_PRICES = ("buy_price", "sell_price")


@described("spread.with_spread")
def with_spread(frame: SameFrame) -> SameFrame:
    """Add or replace both spreads and what they rest on, row by row. A LazyFrame stays lazy.

    {columns}

    If a price is null, or the frame has no prices, the service's own figure is used, in percent:
    the log spread is then 1e4 ln(1 + spread_pct / 100).

    All three are null if a price is NaN, infinite, zero or negative, if the ratio of the prices is
    beyond the range of a float, or if a price is null and ``spread_pct`` is absent, null, NaN,
    infinite, or -100 or less.

    Raises `InputError`: The frame has neither both prices nor ``spread_pct``, or one of them is not
    Float64.

    >>> frame = pl.DataFrame({"buy_price": [100.0, 101.0, 0.0], "sell_price": [101.0, 100.0, 1.0]})
    >>> with_spread(frame).select(pl.col("spread_log_bps", "spread_bps").round(3)).rows()
    [(99.503, 100.0), (-99.503, -99.01), (None, None)]
    >>> with_spread(pl.DataFrame({"spread_pct": [1.0]})).row(0)
    (1.0, 99.50330853168083, 100.0, 'service')
    """
    checked_frame(frame)
    return frame.with_columns(*_spreads(frame, *SPREADS))


def turned(frame: SameFrame, trajectory: str | None = None) -> SameFrame:
    """Return the rows of a pair with its legs swapped, named ``trajectory``.

    The columns of the buy and the sell leg are exchanged, ``differential_pct_8h`` changes its sign,
    and ``spread_pct`` is that of the swapped prices: -100 spread_pct / (100 + spread_pct).

    >>> rows = pl.DataFrame({"ts": [0], "buy_rate": [0.25], "sell_rate": [0.5],
    ...     "buy_interval_hours": [1.0], "sell_interval_hours": [8.0]})
    >>> turned(rows).row(0)
    (0, 0.5, 0.25, 8.0, 1.0)
    >>> turned(pl.DataFrame({"spread_pct": [25.0]})).item()
    -20.0
    """
    checked_frame(frame)
    names = frame.collect_schema().names()
    sides = {"buy_": "sell_", "sell_": "buy_"}
    turns = [
        pl.col(name).alias(sides[side] + name.removeprefix(side))
        for side in sides
        for name in names
        if name.startswith(side)
    ]
    other_way = {
        "differential_pct_8h": -pl.col("differential_pct_8h"),
        "spread_pct": -100 * pl.col("spread_pct") / (100 + pl.col("spread_pct")),
        "trajectory": pl.lit(trajectory) if trajectory else pl.col("trajectory"),
    }
    return frame.with_columns(
        *turns, *(found.alias(name) for name, found in other_way.items() if name in names)
    )


def _spreads(frame: Frame, *wanted: str) -> list[pl.Expr]:
    names = frame.collect_schema()
    sent = "spread_pct" in names
    priced = not sent or all(name in names for name in _PRICES)
    used = (_PRICES if priced else ()) + (("spread_pct",) if sent else ())
    checked_columns(frame, *used, keyed=False)
    nothing = pl.lit(None, pl.Float64)
    buy, sell = (pl.col(name) if priced else nothing for name in _PRICES)
    pct = pl.col("spread_pct") if sent else nothing
    low, high = pl.min_horizontal(buy, sell), pl.max_horizontal(buy, sell)
    # one exact difference over the lower price: antisymmetric to the bit, and no digits cancel
    excess = (high - low) / low
    legs = buy.is_finite() & sell.is_finite() & (buy > 0) & (sell > 0) & (excess * 1e4).is_finite()
    service = (buy.is_null() | sell.is_null()) & pct.is_finite() & (pct > -100)
    forms = {
        "spread_log_bps": (1e4 * excess.log1p() * (sell - buy).sign(), 1e4 * (pct / 100).log1p()),
        "spread_bps": (1e4 * ((sell - buy) / buy), 100 * pct),
        "spread_basis": tuple(pl.lit(basis, BASES) for basis in BASES.categories),
    }
    return [
        pl.when(legs).then(of_legs).when(service).then(of_service).alias(name)
        for name, (of_legs, of_service) in forms.items()
        if name in (*wanted, "spread_basis")
    ]


def holding(frame: Frame, column: str) -> Frame:
    """Add ``column`` and its basis, as `with_spread`, if it is a spread that the frame lacks."""
    checked_frame(frame)
    if not isinstance(column, str) or column not in SPREADS or column in frame.collect_schema():
        return frame
    checked_columns(frame)
    return frame.with_columns(*_spreads(frame, column))
