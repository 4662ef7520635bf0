"""Spread events: one leg's price is above another's by so many percent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from toolkit.market import EventFamily, Leg, Trajectory
from toolkit.service.events.detectors.lives import (
    DAY_S,
    DEFAULT,
    CloseReason,
    DetectorSettings,
    Life,
    Rule,
    Span,
    crossing,
    lives_of,
    rows_over,
    rows_within,
    spans,
)
from toolkit.service.events.documents import (
    SpreadDocument,
    SpreadSize,
    event_id,
    instrument,
    milliseconds,
    priced,
)
from toolkit.service.market.source import MarketSource


def spread_lives(
    source: MarketSource, day: int, settings: DetectorSettings = DEFAULT
) -> list[Life]:
    """Return the spread events that touch a UTC day (``ts // 86400``), by trajectory and time.

    A trajectory is a symbol and two of its legs with bars of one length, in either order. Its rows,
    the moments at which both have a bar, decide which events there are; its value is 100 (sell /
    buy - 1). A document's moment is the first one within its bar at which the value is far enough,
    where the source has seconds, else the end of the bar. ``leg_lost`` shows the last prices.
    """
    found: list[Life] = []
    for symbol, legs in source.listing.items():
        lengths = {leg: source.bars(symbol, leg).interval_s for leg in legs}
        for interval_s in sorted(set(lengths.values())):
            group = [leg for leg in legs if lengths[leg] == interval_s]
            rule = settings.spread.for_bars_of(interval_s)
            found += _lives(source, symbol, group, rule, day)
    return found


def _lives(
    source: MarketSource, symbol: str, legs: Sequence[Leg], rule: Rule, day: int
) -> Iterator[Life]:
    start, interval_s = day * DAY_S, source.bars(symbol, legs[0]).interval_s
    until = start + DAY_S + interval_s  # the day's last bar ends after the day
    rows = [rows_over(source, symbol, leg, start - rule.memory_s, until) for leg in legs]
    ts = np.unique(np.concatenate([each.ts for each in rows]))
    prices = np.full((len(legs), len(ts)), np.nan)
    for place, each in enumerate(rows):
        prices[place, np.searchsorted(ts, each.ts)] = each.price
    for buy, buy_price in zip(legs, prices, strict=True):
        pct = 100.0 * (prices / buy_price - 1.0)
        for place in np.flatnonzero((pct >= rule.open).any(axis=1)).tolist():
            both = np.flatnonzero(np.isfinite(pct[place]))
            trajectory = Trajectory.spread(symbol, buy, legs[place])
            known = _SpreadRows(ts[both], buy_price[both], prices[place][both], pct[place][both])
            series = _PairSeries(source, trajectory, rule, known)
            found = spans(known.ts, known.pct, rule, start, until)
            yield from lives_of(found, series.life, start)


@dataclass(frozen=True, slots=True, eq=False)
class _SpreadRows:
    """Moments (s), both prices then, and the value in percent."""

    ts: NDArray[np.int64]
    buy_price: NDArray[np.float64]
    sell_price: NDArray[np.float64]
    pct: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Moment:
    """A moment (s), both prices then, the value, and the largest of the life so far."""

    ts: int
    buy_price: float
    sell_price: float
    pct: float
    peak_pct: float


@dataclass(frozen=True, slots=True, eq=False)
class _PairSeries:
    source: MarketSource
    trajectory: Trajectory
    rule: Rule
    rows: _SpreadRows

    def life(self, span: Span, day: tuple[int, int], after: int | None) -> Life:
        """Return a life with its documents in ``day``. The one before it closed at ``after``."""
        (start, end), key = day, self.trajectory.key
        told = [self._opening(span, after)]
        for update in span.updates:
            told += self._update(span, update.row, told[-1])
        closing = self._closing(span, told[0].ts)
        identity = event_id(EventFamily.SPREAD, self.source.id, key, told[0].ts)
        document = partial(self._document, identity, told[0].ts)
        documents = [
            document("spread.updated" if place else "spread.opened", moment)
            for place, moment in enumerate(told)
            if start <= moment.ts < end
        ]
        closed_at = None if closing is None or closing.ts >= end else closing.ts
        if closing is not None and closed_at is not None:
            peak_pct = max(span.peak, told[-1].peak_pct, closing.pct)
            closing = replace(closing, peak_pct=peak_pct)
            documents.append(document("spread.closed", closing, reason=span.reason))
        return Life(key, told[0].ts, closed_at, tuple(documents))

    def _opening(self, span: Span, after: int | None) -> _Moment:
        within = self._within(span.first)
        place = crossing((within.pct >= self.rule.open) & (within.ts >= (after or 0)))
        return _moment(within, place, float(within.pct[place]))

    def _update(self, span: Span, row: int, before: _Moment) -> list[_Moment]:
        """Return the update, none where the document before it has already shown such a peak."""
        assert self.rule.step is not None
        within = self._within(row)
        peak = max(float(self.rows.pct[span.first : row].max()), before.peak_pct)
        peaks = np.maximum(peak, np.maximum.accumulate(within.pct))
        grown = peaks >= before.peak_pct + self.rule.step
        reached = grown & (within.ts >= before.ts + self.rule.every_s)
        place = crossing(reached)
        return [_moment(within, place, float(peaks[place]))] if reached.any() else []

    def _closing(self, span: Span, opened_at: int) -> _Moment | None:
        if span.closed_at is None:
            return None
        if span.reason == "leg_lost":
            return replace(_moment(self.rows, span.last, span.peak), ts=span.closed_at)
        within = self._within(span.last)
        if span.reason == "expired":
            reached = within.ts >= opened_at + self.rule.max_age_s
        else:
            reached = within.pct < self.rule.close
        return _moment(within, crossing(reached), span.peak)

    def _within(self, row: int) -> _SpreadRows:
        symbol, ts = str(self.trajectory.symbol), int(self.rows.ts[row])
        buy, sell = (rows_within(self.source, symbol, leg, ts) for leg in self.trajectory.legs)
        if np.array_equal(buy.ts, sell.ts):
            pct = 100.0 * (sell.price / buy.price - 1.0)
            return _SpreadRows(buy.ts, buy.price, sell.price, pct)
        both, of_buy, of_sell = np.intersect1d(buy.ts, sell.ts, return_indices=True)
        paid, earned = buy.price[of_buy], sell.price[of_sell]
        return _SpreadRows(both, paid, earned, 100.0 * (earned / paid - 1.0))

    def _document(
        self,
        identity: str,
        opened_at: int,
        event_type: Literal["spread.opened", "spread.updated", "spread.closed"],
        moment: _Moment,
        reason: CloseReason | None = None,
    ) -> SpreadDocument:
        closed = event_type == "spread.closed"
        lifecycle: Literal["open", "closed"] = "closed" if closed else "open"
        return SpreadDocument(
            schema="svc.spread.v1",
            event_type=event_type,
            event_id=identity,
            lifecycle=lifecycle,
            ts=moment.ts,
            ts_ms=milliseconds(identity, lifecycle, moment.ts),
            instrument=instrument(str(self.trajectory.symbol)),
            spread_type=self.trajectory.spread_type,
            buy=priced(self.trajectory.buy, moment.buy_price),
            sell=priced(self.trajectory.sell, moment.sell_price),
            spread=SpreadSize(moment.pct, moment.peak_pct),
            opened_at=opened_at,
            closed_at=moment.ts if closed else None,
            close_reason=reason,
        )


def _moment(rows: _SpreadRows, place: int, peak_pct: float) -> _Moment:
    buy, sell, pct = (float(each[place]) for each in (rows.buy_price, rows.sell_price, rows.pct))
    return _Moment(int(rows.ts[place]), buy, sell, pct, peak_pct)
