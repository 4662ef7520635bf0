"""Detectors: pure functions from a market to the events of a day.

Spread: one leg's price is above another's by so many percent. Splash: a leg's price moves far in a
short window (a pump, a dump). Funding: the rates in force of two futures legs are far apart. A
detector runs from some hours before the day: `lives` shows why its findings do not depend on where
it began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from toolkit.market import EventFamily, Leg, Market, Trajectory
from toolkit.service.events.documents import (
    Differential,
    FundingChange,
    FundingDocument,
    FundingLeg,
    Lifecycle,
    NetOfFees,
    SplashChange,
    SplashDocument,
    SpreadChange,
    SpreadDocument,
    SpreadSize,
    event_id,
    head_of,
    priced,
)
from toolkit.service.events.lives import (
    DAY_S,
    DEFAULT,
    CloseReason,
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
from toolkit.service.market.source import (
    RATE_LOOK_BACK_S,
    MarketSource,
    Pump,
    RecordsPumps,
    SettledRates,
    SettlementSeries,
    in_force,
)


def funding_lives(
    source: MarketSource, day: int, settings: DetectorSettings = DEFAULT
) -> list[Life]:
    """Return the funding events that touch a UTC day (``ts // 86400``), by trajectory and time.

    A trajectory is a symbol and two of its futures legs, in either order. It has a row per
    settlement of either leg at which both have a rate in force. Its value is the sell rate less the
    buy rate, in percent per 8 h. If the rows stop, an event closes with the last rates.
    """
    start, end = day * DAY_S, (day + 1) * DAY_S
    found: list[Life] = []
    for symbol, legs in source.listing.items():
        futures = []
        for leg in legs:
            series = source.funding(symbol, leg) if leg.market is Market.FUTURES else None
            if series is not None:
                since = start - settings.funding.memory_s - RATE_LOOK_BACK_S
                futures.append(_SettledLeg(leg, series, series.between(since, end)))
        for buy, sell in permutations(futures, 2):
            trajectory = _trajectory(symbol, buy, sell)
            found += [
                trajectory.life(source.id, span, start)
                for span in spans(trajectory.ts, trajectory.pct_8h, settings.funding, start, end)
            ]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _SettledLeg:
    leg: Leg
    series: SettlementSeries
    settled: SettledRates

    def document(self, row_ts: int, ts: int) -> FundingLeg:
        """Return the leg with the rate in force at ``row_ts``, as a document of ``ts`` shows it."""
        place = int(np.searchsorted(self.settled.ts, row_ts, side="right")) - 1
        following = self.series.next_after(ts)
        assert following is not None  # a rate is in force, so the leg has settled
        return FundingLeg(
            exchange=self.leg.exchange,
            market="futures",
            rate=float(self.settled.rate[place]),
            interval_hours=int(self.settled.interval_hours[place]),
            next_funding_time=following,
        )


def _trajectory(symbol: str, buy: _SettledLeg, sell: _SettledLeg) -> _FundingRows:
    ts = np.union1d(buy.settled.ts, sell.settled.ts)
    paid, earned = (in_force(leg.settled, ts).per_8h for leg in (buy, sell))
    pct_8h = 100.0 * (earned - paid)
    known = np.isfinite(pct_8h)
    return _FundingRows(symbol, buy, sell, ts[known], pct_8h[known])


@dataclass(frozen=True, slots=True, eq=False)
class _FundingRows:
    symbol: str
    buy: _SettledLeg
    sell: _SettledLeg
    ts: NDArray[np.int64]
    pct_8h: NDArray[np.float64]

    def life(self, source_id: str, span: Span, start: int) -> Life:
        key, opened_at = f"{self.symbol}:{self.buy.leg}:{self.sell.leg}", int(self.ts[span.first])
        document = partial(self._document, event_id(EventFamily.FUNDING, source_id, key, opened_at))
        documents = [
            document("funding.updated" if place else "funding.opened", row, int(self.ts[row]))
            for place, row in enumerate([span.first, *(told.row for told in span.updates)])
            if self.ts[row] >= start
        ]
        if span.closed_at is not None:
            documents.append(document("funding.closed", span.last, span.closed_at))
        return Life(key, opened_at, span.closed_at, tuple(documents))

    def _document(
        self, identity: str, event_type: FundingChange, row: int, ts: int
    ) -> FundingDocument:
        lifecycle: Lifecycle = "closed" if event_type == "funding.closed" else "open"
        pct_8h = float(self.pct_8h[row])
        return FundingDocument(
            schema="svc.funding.v1",
            event_type=event_type,
            **head_of(identity, lifecycle, ts, self.symbol),
            buy=self.buy.document(int(self.ts[row]), ts),
            sell=self.sell.document(int(self.ts[row]), ts),
            differential=Differential(pct_8h, pct_8h * 3 * 365),
            net_of_fees=NetOfFees(),
        )


def spread_lives(
    source: MarketSource, day: int, settings: DetectorSettings = DEFAULT
) -> list[Life]:
    """Return the spread events that touch a UTC day (``ts // 86400``), by trajectory and time.

    A trajectory is a symbol and two of its legs with bars of one length, in either order. It has a
    row where both have a bar, its value is 100 (sell / buy - 1). Where the source has seconds, a
    document's moment is the first one in its bar at which the value is far enough, else the bar's
    end. ``leg_lost`` shows the last prices.
    """
    found: list[Life] = []
    for symbol, legs in source.listing.items():
        lengths = {leg: source.bars(symbol, leg).interval_s for leg in legs}
        for interval_s in sorted(set(lengths.values())):
            group = [leg for leg in legs if lengths[leg] == interval_s]
            rule = settings.spread.for_bars_of(interval_s)
            found += _spreads_of(source, symbol, group, rule, day)
    return found


def _spreads_of(
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
        """Return the update, none if the document before it already showed such a peak."""
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
        event_type: SpreadChange,
        moment: _Moment,
        reason: CloseReason | None = None,
    ) -> SpreadDocument:
        closed = event_type == "spread.closed"
        symbol = str(self.trajectory.symbol)
        return SpreadDocument(
            schema="svc.spread.v1",
            event_type=event_type,
            **head_of(identity, "closed" if closed else "open", moment.ts, symbol),
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


Kind = Literal["pump", "dump"]


def splash_lives(
    source: MarketSource, day: int, settings: DetectorSettings = DEFAULT
) -> list[Life]:
    """Return the splash events that touch a UTC day (``ts // 86400``), by leg, kind and time.

    A row's value is how far its price lies above the lowest (a dump: below the highest) of the last
    ``splash_window_s``, in percent of that one. An event fades where the value falls below
    ``close``, at the latest at ``max_age_s``. Moments are found within bars as those of a spread. A
    source's recorded pumps replace all this: each is one ``splash.pump`` of unknown size, over at
    once.
    """
    if isinstance(source, RecordsPumps):
        recorded = source.pumps(day * DAY_S, (day + 1) * DAY_S)
        if recorded is not None:
            return [_recorded(source, pump) for pump in recorded]
    found: list[Life] = []
    for symbol, legs in source.listing.items():
        for leg in legs:
            found += _splashes_of(source, symbol, leg, day, settings)
    return found


def _recorded(source: MarketSource, pump: Pump) -> Life:
    ts, symbol, leg = pump
    identity = event_id(EventFamily.SPLASH, source.id, symbol, leg, "pump", ts)
    document = SplashDocument(
        schema="svc.splash.v1",
        event_type="splash.pump",
        **head_of(identity, "open", ts, symbol),
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


def _splashes_of(
    source: MarketSource, symbol: str, leg: Leg, day: int, settings: DetectorSettings
) -> Iterator[Life]:
    interval_s = source.bars(symbol, leg).interval_s
    rule, start = settings.splash.for_bars_of(interval_s), day * DAY_S
    before_s = max(rule.memory_s + settings.splash_window_s, DAY_S)  # a day for volume_24h
    until = start + DAY_S + interval_s  # the day's last bar ends after the day
    rows = rows_over(source, symbol, leg, start - before_s, until)
    if not len(rows.ts):
        return
    kinds: tuple[Kind, ...] = get_args(Kind)
    for kind, origin in zip(kinds, _origins(rows, settings.splash_window_s), strict=True):
        value = 100.0 * np.abs(rows.price / rows.price[origin] - 1.0)
        if not (value >= rule.open).any():
            continue
        series = _LegMoves(source, symbol, leg, kind, rows, rule, settings.splash_window_s)
        yield from lives_of(spans(rows.ts, value, rule, start, until), series.life, start)


def _origins(rows: LegRows, window_s: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find for each row the latest rows of the lowest and highest price in the window up to it."""
    own = np.arange(len(rows.ts))
    first = np.searchsorted(rows.ts, rows.ts - window_s)
    lowest, highest = own.copy(), own.copy()
    for back in range(1, int((own - first).max()) + 1):
        earlier = np.maximum(own - back, first)
        lowest = np.where(rows.price[earlier] < rows.price[lowest], earlier, lowest)
        highest = np.where(rows.price[earlier] > rows.price[highest], earlier, highest)
    return lowest, highest


class _Move(NamedTuple):
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
        began: SplashChange = "splash.pump" if self.kind == "pump" else "splash.dump"
        return SplashDocument(
            schema="svc.splash.v1",
            event_type="splash.faded" if faded else began,
            **head_of(identity, "closed" if faded else "open", now.ts, self.symbol),
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
        """Return the price at a moment on a market of the leg's exchange, None without one."""
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
