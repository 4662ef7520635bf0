"""Hysteresis: when a series of values is an event, with an age limit and a series that stops.

At each row, in this order:

1. The row before it is more than ``lost_after_s`` ago: an open life was closed at that row's
   moment + ``lost_after_s`` (``leg_lost``), and nothing is muted any more.
2. A life is open. Below ``close`` it closes (``converged``). At an age of ``max_age_s`` or more it
   closes (``expired``), and the series is muted: what stays wide is reported once.
3. The series is muted. Below ``close``, or if the last value of ``open`` or more is longer than
   ``max_age_s`` ago, it is not any more.
4. No life is open, nothing is muted, the value is ``open`` or more: a life opens.

An open life has an update where the running peak exceeds the last one reported by ``step`` or more,
``every_s`` or more after that report.

``Rule.memory_s`` = 2 max_age_s + 2 lost_after_s of rows before a moment decide its state. Let x be
max_age_s + lost_after_s before it. If no row from the start to x is ``open`` or more, any earlier
life has expired before x and nothing is muted at the next such row. If one is, any life open there
has expired by the moment: the series is muted, or the next such row came longer than max_age_s
after the last one and opened a life either way. (For rows further apart see step 1.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import InputError
from toolkit.market import Leg
from toolkit.service.events.documents import Document
from toolkit.service.market.source import MarketSource

DAY_S = 86_400


@dataclass(frozen=True, slots=True, eq=False)
class LegRows:
    """Bars of one leg by ``ts``, the END of the bar (s, Unix UTC), ascending, none twice.

    ``price`` at that moment and ``volume`` (quote), None if the source has no volumes.
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

    If it flickers, the place with the most others on their right side counts, the first of several.
    If it is never reached, the last place.

    >>> crossing(np.array([False, True, True])), crossing(np.array([False, False]))
    (1, 1)
    >>> crossing(np.array([True, False, False, False, True, True]))
    4
    """
    places = np.flatnonzero(reached)
    if not len(places):
        return len(reached) - 1
    return int(places[np.argmax(places - 2 * np.arange(len(places)))])


CloseReason = Literal["converged", "expired", "leg_lost"]


@dataclass(frozen=True, slots=True)
class Rule:
    """The value from which on a series is an event (``open``), and below which not (``close``).

    ``step``: how much a peak grows to make an update (None: no updates). ``every_s``: the least
    time between two documents. ``max_age_s``: the longest life. ``lost_after_s``: how long a series
    may pause.
    """

    open: float
    close: float
    step: float | None
    every_s: int
    max_age_s: int
    lost_after_s: int

    def __post_init__(self) -> None:
        for name, is_right, allowed in (
            ("close", 0.0 < self.close < self.open, f"above 0 and below open, {self.open}"),
            ("step", self.step is None or self.step > 0.0, "above 0, or None"),
            ("every_s", self.every_s >= 0, "0 or more"),
            ("max_age_s", self.max_age_s >= 1, "1 or more"),
            ("lost_after_s", self.lost_after_s >= 1, "1 or more"),
        ):
            if not is_right:
                raise InputError(name, getattr(self, name), allowed)

    @property
    def memory_s(self) -> int:
        """How long before a moment rows matter to what is open there (s)."""
        return 2 * self.max_age_s + 2 * self.lost_after_s

    def for_bars_of(self, interval_s: int) -> Rule:
        """Return the rule with ``lost_after_s`` of at least three bars."""
        return replace(self, lost_after_s=max(self.lost_after_s, 3 * interval_s))


class PeakUpdate(NamedTuple):
    """An update: its row, and the largest value of the life so far."""

    row: int
    peak: float


@dataclass(frozen=True, slots=True)
class Span:
    """A life by rows: where it opened, its updates, and the row that its end shows.

    While open, ``closed_at`` (s) and ``reason`` are None, and ``last`` is the newest row.
    """

    first: int
    updates: tuple[PeakUpdate, ...]
    last: int
    peak: float
    closed_at: int | None
    reason: CloseReason | None


@dataclass(frozen=True, slots=True)
class Life:
    """An event in one day: when it opened and closed (s), and the day's documents, by time.

    ``key`` names the series: SYMBOL:BUY:SELL, for a splash SYMBOL:LEG:pump or SYMBOL:LEG:dump.
    ``closed_at`` is None if it is open at the day's end.
    """

    key: str
    opened_at: int
    closed_at: int | None
    documents: tuple[Document, ...]


def spans(
    ts: NDArray[np.int64], value: NDArray[np.float64], rule: Rule, start: int, end: int
) -> Iterator[Span]:
    """Yield the lives that touch ``[start, end)``, by time, from ascending rows before ``end``.

    Exact if rows begin ``rule.memory_s`` before ``start``.
    """
    high = np.flatnonzero(value >= rule.open)
    low = np.flatnonzero(value < rule.close)
    resumed = np.flatnonzero(np.diff(ts) > rule.lost_after_s) + 1
    fresh = high[1:][np.diff(ts[high]) > rule.max_age_s]
    rows, armed = len(ts), 0
    while (first := _next(high, armed, rows)) < rows:
        gap, converged = _next(resumed, first + 1, rows), _next(low, first, rows)
        expired = int(np.searchsorted(ts, ts[first] + rule.max_age_s))
        row = min(gap, converged, expired)
        last, closed_at = row, None
        reason: CloseReason | None = None
        if row == gap:  # also where no row is left
            last, armed = row - 1, row
            lost_at = int(ts[last]) + rule.lost_after_s
            if gap < rows or lost_at < end:
                closed_at, reason = lost_at, "leg_lost"
        elif row == converged:
            closed_at, reason, armed = int(ts[row]), "converged", row
        else:
            closed_at, reason = int(ts[row]), "expired"
            armed = min(_next(each, row, rows) for each in (low, resumed, fresh))
        if closed_at is None or closed_at >= start:
            peak = float(value[first : last + 1].max())
            updates = tuple(_updates(ts, value, rule, first, row))
            yield Span(first, updates, last, peak, closed_at, reason)


def lives_of(
    found: Iterable[Span], life: Callable[[Span, tuple[int, int], int | None], Life], start: int
) -> Iterator[Life]:
    """Yield the lives that touch the day from ``start`` on, from spans by time.

    ``life`` makes one from a span, a day and the close of the life before it (s). The moment within
    its bar may lie outside the day.
    """
    end = start + DAY_S
    closed_at: int | None = None
    for span in found:
        made = life(span, (start, end), closed_at)
        closed_at = made.closed_at
        if made.opened_at < end and (closed_at is None or closed_at >= start):
            yield made


def _next(rows: NDArray[np.int64], row: int, none: int) -> int:
    place = int(np.searchsorted(rows, row))
    return int(rows[place]) if place < len(rows) else none


def _updates(
    ts: NDArray[np.int64], value: NDArray[np.float64], rule: Rule, first: int, end: int
) -> Iterator[PeakUpdate]:
    """Yield the updates of a life that opened at row ``first`` and is open before row ``end``."""
    if rule.step is None:
        return
    peaks = np.maximum.accumulate(value[first:end])
    told = 0
    while True:
        grown = np.searchsorted(peaks, peaks[told] + rule.step)
        due = np.searchsorted(ts[first:end], ts[first + told] + rule.every_s)
        told = max(int(grown), int(due), told + 1)
        if told >= len(peaks):
            return
        yield PeakUpdate(first + told, float(peaks[told]))


_SPREAD = Rule(1.0, 0.5, step=0.25, every_s=300, max_age_s=7_200, lost_after_s=600)
_SPLASH = Rule(2.0, 1.0, step=None, every_s=0, max_age_s=7_200, lost_after_s=7_200)
_FUNDING = Rule(0.1, 0.05, step=0.02, every_s=300, max_age_s=3 * DAY_S, lost_after_s=2 * DAY_S)


@dataclass(frozen=True, slots=True)
class DetectorSettings:
    """The rule of each family, and the window of a splash (s).

    ``spread`` is in percent of the buy price, ``splash`` in percent of the price that the move
    began at, ``funding`` in percent per 8 h.
    """

    spread: Rule = _SPREAD
    splash: Rule = _SPLASH
    splash_window_s: int = 300
    funding: Rule = _FUNDING

    def __post_init__(self) -> None:
        if self.splash_window_s < 1:
            raise InputError("splash_window_s", self.splash_window_s, "1 or more")


DEFAULT = DetectorSettings()
"""The settings of the local service."""
