"""Splash events: a leg's price moves far in a short window (a pump, a dump), and calms again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from toolkit.market import EventFamily, Leg, Market
from toolkit.service.events.detectors.lives import Life, Span, spans
from toolkit.service.events.detectors.rows import DAY_S, LegRows, rows_over
from toolkit.service.events.detectors.settings import DEFAULT, DetectorSettings
from toolkit.service.events.documents import (
    SplashDocument,
    event_id,
    instrument,
    milliseconds,
)
from toolkit.service.market.source import MarketSource

Kind = Literal["pump", "dump"]


def splash_lives(
    source: MarketSource, day: int, settings: DetectorSettings = DEFAULT
) -> list[Life]:
    """Return the splash events that touch a UTC day (``ts // 86400``), by leg, kind and time.

    The value of a row is how far its price lies above the lowest (a dump: below the highest) of
    the last ``splash_window_s``, in percent of that one. An event fades where this value falls
    below ``close`` (the price has turned back, or stopped), at the latest at ``max_age_s``.

    Examples
    --------
    >>> from toolkit.service.market.simulated import Simulated
    >>> lives = splash_lives(Simulated(7), 20_776)
    >>> {document.window_s <= 300 for life in lives for document in life.documents}
    {True}
    """
    found: list[Life] = []
    for symbol, legs in source.listing.items():
        for leg in legs:
            found += _lives(source, symbol, leg, day, settings)
    return found


def _lives(
    source: MarketSource, symbol: str, leg: Leg, day: int, settings: DetectorSettings
) -> Iterator[Life]:
    rule = settings.splash.for_bars_of(source.bars(symbol, leg).interval_s)
    start, end = day * DAY_S, (day + 1) * DAY_S
    before_s = max(rule.memory_s + settings.splash_window_s, DAY_S)  # a day for volume_24h
    rows = rows_over(source, symbol, leg, start - before_s, end)
    if not len(rows.ts):
        return
    origins = _origins(rows, settings.splash_window_s)
    kinds: tuple[tuple[Kind, NDArray[np.int64]], ...] = (("pump", origins[0]), ("dump", origins[1]))
    for kind, origin in kinds:
        value = 100.0 * np.abs(rows.price / rows.price[origin] - 1.0)
        if (value >= rule.open).any():
            series = _LegMoves(source, symbol, leg, kind, rows, origin)
            for span in spans(rows.ts, value, rule, start, end):
                yield series.life(span, start)


def _origins(rows: LegRows, window_s: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find for each row the rows of the lowest and highest price in the window up to it.

    Of equal prices it is the latest.
    """
    own = np.arange(len(rows.ts))
    first = np.searchsorted(rows.ts, rows.ts - window_s)
    lowest, highest = own.copy(), own.copy()
    for back in range(1, int((own - first).max()) + 1):
        earlier = np.maximum(own - back, first)
        lowest = np.where(rows.price[earlier] < rows.price[lowest], earlier, lowest)
        highest = np.where(rows.price[earlier] > rows.price[highest], earlier, highest)
    return lowest, highest


@dataclass(frozen=True, slots=True, eq=False)
class _LegMoves:
    """The rows of one leg, and for each the row that its move began at."""

    source: MarketSource
    symbol: str
    leg: Leg
    kind: Kind
    rows: LegRows
    origin: NDArray[np.int64]

    def life(self, span: Span, start: int) -> Life:
        key, opened_at = f"{self.symbol}:{self.leg}", int(self.rows.ts[span.first])
        documents = []
        if opened_at >= start:
            documents.append(self._document(span, span.first, opened_at, faded=False))
        if span.closed_at is not None:
            documents.append(self._document(span, span.last, span.closed_at, faded=True))
        return Life(f"{key}:{self.kind}", opened_at, span.closed_at, tuple(documents))

    def _document(self, span: Span, row: int, ts: int, *, faded: bool) -> SplashDocument:
        opened_at, origin = int(self.rows.ts[span.first]), int(self.origin[span.first])
        start_price, price = float(self.rows.price[origin]), float(self.rows.price[row])
        identity = event_id(
            EventFamily.SPLASH, self.source.id, self.symbol, self.leg, self.kind, opened_at
        )
        moved: Literal["splash.pump", "splash.dump"]
        moved = "splash.pump" if self.kind == "pump" else "splash.dump"
        event_type: Literal["splash.pump", "splash.dump", "splash.faded"]
        event_type = "splash.faded" if faded else moved
        lifecycle: Literal["open", "closed"] = "closed" if faded else "open"
        return SplashDocument(
            schema="svc.splash.v1",
            event_type=event_type,
            event_id=identity,
            lifecycle=lifecycle,
            ts=ts,
            ts_ms=milliseconds(identity, lifecycle, ts),
            instrument=instrument(self.symbol),
            exchange=self.leg.exchange,
            market=self.leg.market.value,
            kind=self.kind,
            pct=100.0 * (price / start_price - 1.0),
            window_s=opened_at - int(self.rows.ts[origin]),
            start_price=start_price,
            spot_price=self._price_on(Market.SPOT, row),
            futures_price=self._price_on(Market.FUTURES, row),
            volume_24h=self._volume_24h(ts),
        )

    def _price_on(self, market: Market, row: int) -> float | None:
        """Return a row's price on a market of the leg's exchange, None where it has none."""
        leg, ts = Leg(self.leg.exchange, market), int(self.rows.ts[row])
        if leg == self.leg:
            return float(self.rows.price[row])
        if leg not in self.source.listing[self.symbol]:
            return None
        price = rows_over(self.source, self.symbol, leg, ts, ts + 1).price
        return float(price[0]) if len(price) else None

    def _volume_24h(self, ts: int) -> float | None:
        """Sum the volume of the bars that were over in the 24 h up to ``ts``."""
        if self.rows.volume is None:
            return None
        day = slice(*np.searchsorted(self.rows.ts, [ts - DAY_S + 1, ts + 1]))
        return round(float(self.rows.volume[day].sum()), 2)
