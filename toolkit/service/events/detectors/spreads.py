"""Spread events: one leg's price is above another's by so many percent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from toolkit.market import EventFamily, Leg, Trajectory
from toolkit.service.events.detectors.lives import Life, Rule, Span, spans
from toolkit.service.events.detectors.rows import DAY_S, rows_over
from toolkit.service.events.detectors.settings import DEFAULT, DetectorSettings
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

    A trajectory is a symbol and two of its legs with bars of one length, in either order. Its rows
    are the moments at which both have a bar, its value is 100 (sell / buy - 1). A document's
    moment is the end of its bar. One that closes as ``leg_lost`` shows the last prices.

    Examples
    --------
    >>> from toolkit.service.market.simulated import Simulated
    >>> lives = spread_lives(Simulated(7), 20_776)
    >>> min(d.spread.pct for life in lives for d in life.documents if d.lifecycle == "open") >= 0.5
    True
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
    """Yield the lives between any two of the legs."""
    start, end = day * DAY_S, (day + 1) * DAY_S
    rows = [rows_over(source, symbol, leg, start - rule.memory_s, end) for leg in legs]
    ts = np.unique(np.concatenate([each.ts for each in rows]))
    prices = np.full((len(legs), len(ts)), np.nan)
    for place, each in enumerate(rows):
        prices[place, np.searchsorted(ts, each.ts)] = each.price
    for buy, buy_price in zip(legs, prices, strict=True):
        pct = 100.0 * (prices / buy_price - 1.0)
        for place in np.flatnonzero((pct >= rule.open).any(axis=1)).tolist():
            both = np.flatnonzero(np.isfinite(pct[place]))
            columns = (each[both] for each in (ts, buy_price, prices[place], pct[place]))
            series = _SpreadRows(Trajectory.spread(symbol, buy, legs[place]), *columns)
            for span in spans(series.ts, series.pct, rule, start, end):
                yield series.life(source.id, span, start)


@dataclass(frozen=True, slots=True, eq=False)
class _SpreadRows:
    """The rows of one trajectory."""

    trajectory: Trajectory
    ts: NDArray[np.int64]
    buy_price: NDArray[np.float64]
    sell_price: NDArray[np.float64]
    pct: NDArray[np.float64]

    def life(self, source_id: str, span: Span, start: int) -> Life:
        key, opened_at = self.trajectory.key, int(self.ts[span.first])
        identity = event_id(EventFamily.SPREAD, source_id, key, opened_at)
        document = partial(self._document, identity, span)
        told = [(span.first, float(self.pct[span.first])), *span.updates]
        documents = [
            document("spread.updated" if place else "spread.opened", row, peak_pct=peak)
            for place, (row, peak) in enumerate(told)
            if self.ts[row] >= start
        ]
        if span.closed_at is not None:
            closing = document(
                "spread.closed", span.last, peak_pct=span.peak, closed_at=span.closed_at
            )
            documents.append(closing)
        return Life(key, opened_at, span.closed_at, tuple(documents))

    def _document(
        self,
        identity: str,
        span: Span,
        event_type: Literal["spread.opened", "spread.updated", "spread.closed"],
        row: int,
        *,
        peak_pct: float,
        closed_at: int | None = None,
    ) -> SpreadDocument:
        ts = int(self.ts[row]) if closed_at is None else closed_at
        lifecycle: Literal["open", "closed"] = "open" if closed_at is None else "closed"
        return SpreadDocument(
            schema="svc.spread.v1",
            event_type=event_type,
            event_id=identity,
            lifecycle=lifecycle,
            ts=ts,
            ts_ms=milliseconds(identity, lifecycle, ts),
            instrument=instrument(str(self.trajectory.symbol)),
            spread_type=self.trajectory.spread_type,
            buy=priced(self.trajectory.buy, self.buy_price[row]),
            sell=priced(self.trajectory.sell, self.sell_price[row]),
            spread=SpreadSize(float(self.pct[row]), peak_pct),
            opened_at=int(self.ts[span.first]),
            closed_at=closed_at,
            close_reason=None if closed_at is None else span.reason,
        )
