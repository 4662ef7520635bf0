"""Rows of a trajectory, computed for a stretch of time from its legs' own series."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from toolkit.market import Family, Market, Trajectory
from toolkit.service.market.source import (
    LONGEST_INTERVAL_HOURS,
    Bars,
    MarketSource,
    SettledRates,
)

RATE_VALID_INTERVALS = 2
"""A settled rate is in force for so many of its intervals, unless the leg settles again before."""

RATE_LOOK_BACK_S = RATE_VALID_INTERVALS * LONGEST_INTERVAL_HOURS * 3_600
"""No older settlement is in force (s)."""

Column = NDArray[np.float64] | pl.Series | None
"""Values by row, None where they are null in every row."""


@dataclass(frozen=True, slots=True, eq=False)
class SeriesRows:
    """Rows by time: ``ts`` (s), and a record's other fields in its order. NaN and null are null."""

    ts: NDArray[np.int64]
    columns: Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class ServedSeries:
    """A trajectory: its span, the length of a row (s), and its rows between two moments.

    A row may be seen at ``ts + interval_s``. ``block_s`` is the best length to read at once.
    """

    span: tuple[int, int]
    interval_s: int
    block_s: int
    between: Callable[[int, int], SeriesRows]


def series(source: MarketSource, trajectory: Trajectory) -> ServedSeries:
    """Return the series of a trajectory of listed legs.

    Price: a row per bar. Spread: a row where both legs have a bar (the caller checks that they have
    one length), ``spread_pct`` is 100 (sell / buy - 1). Funding: a row per settlement of either
    leg, with the rates settled then, the intervals of the rates in force (see `in_force`) and the
    differential of those.
    """
    if trajectory.family is Family.FUNDING:
        return _funding(source, trajectory)
    symbol = str(trajectory.symbol)
    legs = [source.bars(symbol, leg) for leg in trajectory.legs]

    def between(start: int, end: int) -> SeriesRows:
        bars = [leg.between(start, end) for leg in legs]
        if len(bars) == 2:
            return _spread(*bars)
        one = bars[0]
        columns = {"price": one.price, "mark_price": one.mark_price, "volume": one.volume}
        return SeriesRows(one.ts, columns)

    starts, ends = zip(*(leg.span for leg in legs), strict=True)
    block_s = min(leg.block_s for leg in legs)
    return ServedSeries((max(starts), min(ends)), legs[0].interval_s, block_s, between)


def _spread(buy: Bars, sell: Bars) -> SeriesRows:
    ts, of_buy, of_sell = np.intersect1d(buy.ts, sell.ts, assume_unique=True, return_indices=True)
    buy_price, sell_price = buy.price[of_buy], sell.price[of_sell]
    spread_pct = 100.0 * (sell_price / buy_price - 1.0)
    return SeriesRows(
        ts, {"buy_price": buy_price, "sell_price": sell_price, "spread_pct": spread_pct}
    )


def _funding(source: MarketSource, trajectory: Trajectory) -> ServedSeries:
    symbol = str(trajectory.symbol)
    legs = [
        (source.funding(symbol, leg) or Unfunded.UNKNOWN)
        if leg.market is Market.FUTURES
        else Unfunded.NEVER
        for leg in trajectory.legs
    ]
    known = [leg for leg in legs if not isinstance(leg, Unfunded)]

    def between(start: int, end: int) -> SeriesRows:
        stretches = [
            leg if isinstance(leg, Unfunded) else leg.between(start - RATE_LOOK_BACK_S, end)
            for leg in legs
        ]
        settled = [each.ts for each in stretches if isinstance(each, SettledRates)]
        ts = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *settled]))
        ts = ts[np.searchsorted(ts, start) :]
        buy, sell = (in_force(each, ts) for each in stretches)
        return SeriesRows(
            ts,
            {
                "buy_rate": buy.settled_rate,
                "sell_rate": sell.settled_rate,
                "buy_interval_hours": _whole(buy.interval_hours),
                "sell_interval_hours": _whole(sell.interval_hours),
                "differential_pct_8h": 100.0 * (sell.per_8h - buy.per_8h),
            },
        )

    starts, ends = zip(*(leg.span for leg in known), strict=True) if known else ((0,), (0,))
    block_s = min((leg.block_s for leg in known), default=1)
    return ServedSeries((min(starts), max(ends)), 0, block_s, between)


class Unfunded(Enum):
    """Why a leg has no settlements: it never settles, or none are known."""

    NEVER = auto()
    UNKNOWN = auto()


class InForce(NamedTuple):
    """A leg's funding at some moments, NaN where there is none.

    ``settled_rate``: settled at that moment (fraction per interval). ``interval_hours`` (h) and
    ``per_8h`` (fraction per 8 h) are those of the rate in force.
    """

    settled_rate: NDArray[np.float64]
    interval_hours: NDArray[np.float64]
    per_8h: NDArray[np.float64]


def in_force(leg: SettledRates | Unfunded, ts: NDArray[np.int64]) -> InForce:
    """Return a leg's funding at each moment. No later settlement changes it.

    The rate in force is the one settled last, at ``ts`` or before, unless it is older than twice
    its interval. A leg that never settles has a rate of 0.
    """
    nothing = np.full(len(ts), np.nan)
    if leg is Unfunded.NEVER:
        return InForce(np.zeros(len(ts)), nothing, np.zeros(len(ts)))
    if isinstance(leg, Unfunded) or not len(leg.ts):
        return InForce(nothing, nothing, nothing)
    last = np.searchsorted(leg.ts, ts, side="right") - 1
    age_s = np.where(last >= 0, ts - leg.ts[last], np.iinfo(np.int64).max)
    hours, rate = leg.interval_hours[last], leg.rate[last]
    valid = age_s <= RATE_VALID_INTERVALS * 3_600 * hours
    return InForce(
        np.where(age_s == 0, rate, np.nan),
        np.where(valid, hours, np.nan),
        np.where(valid, rate * 8.0 / hours, np.nan),
    )


def _whole(hours: NDArray[np.float64]) -> pl.Series:
    return pl.Series(hours).fill_nan(None).cast(pl.Int64)
