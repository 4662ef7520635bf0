"""Splash events: a leg's price moves far in a short window (a pump, a dump), and calms again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolkit.market import EventFamily, Leg, Market
from toolkit.service.events.detectors.lives import (
    DAY_S,
    DEFAULT,
    DetectorSettings,
    LegRows,
    Life,
    Rule,
    Span,
    crossing,
    lives_of,
    rows_over,
    rows_within,
    spans,
)
from toolkit.service.events.documents import SplashDocument, event_id, instrument, milliseconds
from toolkit.service.market.source import MarketSource, Pump, RecordsPumps

Kind = Literal["pump", "dump"]


def splash_lives(
    source: MarketSource, day: int, settings: DetectorSettings = DEFAULT
) -> list[Life]:
    """Return the splash events that touch a UTC day (``ts // 86400``), by leg, kind and time.

    The value of a row is how far its price lies above the lowest (a dump: below the highest) of the
    last ``splash_window_s``, in percent of that one. An event fades where it falls below ``close``
    (the price has turned back, or stopped), at the latest at ``max_age_s``. The moments of
    documents are found within their bars as those of a spread. Recorded pumps of a source take the
    place of all this: each is one ``splash.pump`` of unknown size, over at once, since nothing
    records its end.
    """
    if isinstance(source, RecordsPumps):
        recorded = source.pumps(day * DAY_S, (day + 1) * DAY_S)
        if recorded is not None:
            return [_recorded(source, pump) for pump in recorded]
    found: list[Life] = []
    for symbol, legs in source.listing.items():
        for leg in legs:
            found += _lives(source, symbol, leg, day, settings)
    return found


def _recorded(source: MarketSource, pump: Pump) -> Life:
    ts, symbol, leg = pump
    identity = event_id(EventFamily.SPLASH, source.id, symbol, leg, "pump", ts)
    document = SplashDocument(
        schema="svc.splash.v1",
        event_type="splash.pump",
        event_id=identity,
        lifecycle="open",
        ts=ts,
        ts_ms=milliseconds(identity, "open", ts),
        instrument=instrument(symbol),
        exchange=leg.exchange,
        market=leg.market.value,
        kind="pump",
        pct=None,
        window_s=None,
        start_price=None,
        spot_price=None,
        futures_price=None,
        volume_24h=None,
    )
    return Life(f"{symbol}:{leg}:pump", ts, ts, (document,))


def _lives(
    source: MarketSource, symbol: str, leg: Leg, day: int, settings: DetectorSettings
) -> Iterator[Life]:
    interval_s = source.bars(symbol, leg).interval_s
    rule, start = settings.splash.for_bars_of(interval_s), day * DAY_S
    before_s = max(rule.memory_s + settings.splash_window_s, DAY_S)  # a day for volume_24h
    until = start + DAY_S + interval_s  # the day's last bar ends after the day
    rows = rows_over(source, symbol, leg, start - before_s, until)
    if not len(rows.ts):
        return
    origins = _origins(rows, settings.splash_window_s)
    kinds: tuple[tuple[Kind, NDArray[np.int64]], ...] = (("pump", origins[0]), ("dump", origins[1]))
    for kind, origin in kinds:
        value = 100.0 * np.abs(rows.price / rows.price[origin] - 1.0)
        if not (value >= rule.open).any():
            continue
        series = _LegMoves(source, symbol, leg, kind, rows, rule, settings.splash_window_s)
        yield from lives_of(spans(rows.ts, value, rule, start, until), series.life, start)


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


class _Move(NamedTuple):
    """A moment (s) and the price then, and when and at which price the move to it began."""

    ts: int
    price: float
    began_at: int
    start_price: float

    @property
    def pct(self) -> float:
        return 100.0 * abs(self.price / self.start_price - 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class _LegMoves:
    source: MarketSource
    symbol: str
    leg: Leg
    kind: Kind
    rows: LegRows
    rule: Rule
    window_s: int

    def life(self, span: Span, day: tuple[int, int], after: int | None) -> Life:
        """Return a life with its documents in ``day``. The one before it closed at ``after``."""
        (start, end), key = day, f"{self.symbol}:{self.leg}"
        moves = self._within(span.first)
        opening = _first(moves, lambda each: each.pct >= self.rule.open and each.ts >= (after or 0))
        identity = event_id(
            EventFamily.SPLASH, self.source.id, self.symbol, self.leg, self.kind, opening.ts
        )
        document = partial(self._document, identity, opening)
        documents, closed_at = [], None
        if start <= opening.ts < end:
            documents.append(document(opening, faded=False))
        closing = self._closing(span, opening.ts)
        if closing is not None and closing.ts < end:
            closed_at = closing.ts
            documents.append(document(closing, faded=True))
        return Life(f"{key}:{self.kind}", opening.ts, closed_at, tuple(documents))

    def _closing(self, span: Span, opened_at: int) -> _Move | None:
        if span.closed_at is None:
            return None
        moves = self._within(span.last)
        if span.reason == "leg_lost":
            return moves[-1]._replace(ts=span.closed_at)
        if span.reason == "expired":
            return _first(moves, lambda each: each.ts >= opened_at + self.rule.max_age_s)
        return _first(moves, lambda each: each.pct < self.rule.close)

    def _within(self, row: int) -> list[_Move]:
        """Return the move up to each moment of a row's bar."""
        first = int(np.searchsorted(self.rows.ts, self.rows.ts[row] - self.window_s))
        bars = [
            rows_within(self.source, self.symbol, self.leg, over_at)
            for over_at in self.rows.ts[first : row + 1].tolist()
        ]
        ts = np.concatenate([bar.ts for bar in bars])
        price = np.concatenate([bar.price for bar in bars])
        extreme = np.argmin if self.kind == "pump" else np.argmax
        moves = []
        over = len(ts) - len(bars[-1].ts)
        window_starts = np.searchsorted(ts, ts[over:] - self.window_s).tolist()
        for now, since in enumerate(window_starts, over):
            began = now - int(extreme(price[since : now + 1][::-1]))  # of equal prices the latest
            columns = (int(ts[now]), float(price[now]), int(ts[began]), float(price[began]))
            moves.append(_Move(*columns))
        return moves

    def _document(
        self, identity: str, opening: _Move, now: _Move, *, faded: bool
    ) -> SplashDocument:
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
            ts=now.ts,
            ts_ms=milliseconds(identity, lifecycle, now.ts),
            instrument=instrument(self.symbol),
            exchange=self.leg.exchange,
            market=self.leg.market.value,
            kind=self.kind,
            pct=100.0 * (now.price / opening.start_price - 1.0),
            window_s=opening.ts - opening.began_at,
            start_price=opening.start_price,
            spot_price=self._price_on(Market.SPOT, now),
            futures_price=self._price_on(Market.FUTURES, now),
            volume_24h=self._volume_24h(now.ts),
        )

    def _price_on(self, market: Market, now: _Move) -> float | None:
        """Return the price of a moment on a market of the leg's exchange, None without one."""
        leg = Leg(self.leg.exchange, market)
        if leg == self.leg:
            return now.price
        if leg not in self.source.listing[self.symbol]:
            return None
        interval_s = self.source.bars(self.symbol, leg).interval_s
        over = rows_over(self.source, self.symbol, leg, now.ts, now.ts + max(interval_s, 1)).ts
        for over_at in over[:1].tolist():
            rows = rows_within(self.source, self.symbol, leg, over_at)
            return next(iter(rows.price[rows.ts == now.ts].tolist()), None)
        return None

    def _volume_24h(self, ts: int) -> float | None:
        if self.rows.volume is None:
            return None
        day = slice(*np.searchsorted(self.rows.ts, [ts - DAY_S + 1, ts + 1]))
        return round(float(self.rows.volume[day].sum()), 2)


def _first(moves: Sequence[_Move], reached: Callable[[_Move], bool]) -> _Move:
    return moves[crossing(np.array([reached(each) for each in moves]))]
