"""Funding events: the rates in force of two futures legs lie far apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from toolkit.market import EventFamily, Leg, Market
from toolkit.service.events.detectors.lives import (
    DAY_S,
    DEFAULT,
    DetectorSettings,
    Life,
    Span,
    spans,
)
from toolkit.service.events.documents import (
    FundingDocument,
    FundingLeg,
    NetOfFees,
    differential,
    event_id,
    instrument,
    milliseconds,
)
from toolkit.service.market.series import RATE_VALID_INTERVALS, in_force
from toolkit.service.market.source import (
    LONGEST_INTERVAL_HOURS,
    MarketSource,
    SettledRates,
    SettlementSeries,
)

_IN_FORCE_S = RATE_VALID_INTERVALS * LONGEST_INTERVAL_HOURS * 3_600


def funding_lives(
    source: MarketSource, day: int, settings: DetectorSettings = DEFAULT
) -> list[Life]:
    """Return the funding events that touch a UTC day (``ts // 86400``), by trajectory and time.

    A trajectory is a symbol and two of its futures legs, in either order. Its rows are the
    settlements of either leg at which both have a rate in force, its value the sell rate less the
    buy rate, each per 8 h, in percent. If the rows stop, an event closes with the last rates.
    """
    start, end = day * DAY_S, (day + 1) * DAY_S
    found: list[Life] = []
    for symbol, legs in source.listing.items():
        futures = []
        for leg in legs:
            series = source.funding(symbol, leg) if leg.market is Market.FUTURES else None
            if series is not None:
                since = start - settings.funding.memory_s - _IN_FORCE_S
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
    """A leg and its settlements of the days that matter."""

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
        self,
        identity: str,
        event_type: Literal["funding.opened", "funding.updated", "funding.closed"],
        row: int,
        ts: int,
    ) -> FundingDocument:
        lifecycle: Literal["open", "closed"]
        lifecycle = "closed" if event_type == "funding.closed" else "open"
        return FundingDocument(
            schema="svc.funding.v1",
            event_type=event_type,
            event_id=identity,
            lifecycle=lifecycle,
            ts=ts,
            ts_ms=milliseconds(identity, lifecycle, ts),
            instrument=instrument(self.symbol),
            buy=self.buy.document(int(self.ts[row]), ts),
            sell=self.sell.document(int(self.ts[row]), ts),
            differential=differential(float(self.pct_8h[row])),
            net_of_fees=NetOfFees(),
        )
