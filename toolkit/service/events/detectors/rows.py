"""Bars as a detector reads them: one by one, each at the moment it is over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.market import Leg
from toolkit.service.market.source import MarketSource

DAY_S = 86_400


@dataclass(frozen=True, slots=True, eq=False)
class LegRows:
    """Bars of one leg by ``ts``, the END of the bar (s, Unix UTC), ascending, none twice.

    ``price`` then (quote). ``volume``: what it traded (quote), None where the source has none.
    """

    ts: NDArray[np.int64]
    price: NDArray[np.float64]
    volume: NDArray[np.float64] | None


def rows_over(source: MarketSource, symbol: str, leg: Leg, start: int, end: int) -> LegRows:
    """Return a listed leg's bars that are over at a moment in ``[start, end)``."""
    series = source.bars(symbol, leg)
    bars = series.between(start - series.interval_s, end - series.interval_s)
    return LegRows(bars.ts + series.interval_s, bars.price, bars.volume)


def rows_within(source: MarketSource, symbol: str, leg: Leg, ts: int) -> LegRows:
    """Return the bar of a listed leg that is over at ``ts``, by its seconds where known."""
    series = source.bars(symbol, leg)
    bars = series.parts(ts - series.interval_s)
    return LegRows(bars.ts + bars.interval_s, bars.price, bars.volume)


def crossing(reached: NDArray[np.bool_]) -> int:
    """Return the place from which on something is reached, and before which it is not.

    What flickers crosses more than once. Of the places where it is reached, the one that has the
    most others on their right side counts, the first of several, else the last place of all.

    >>> crossing(np.array([False, True, True])), crossing(np.array([False, False]))
    (1, 1)
    >>> crossing(np.array([True, False, False, False, True, True]))
    4
    """
    places = np.flatnonzero(reached)
    if not len(places):
        return len(reached) - 1
    return int(places[np.argmax(places - 2 * np.arange(len(places)))])
