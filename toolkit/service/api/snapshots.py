"""The market at one time: last prices, rates in force and tracked spreads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from toolkit.market import Leg, Market
from toolkit.service.market.series import RATE_VALID_INTERVALS
from toolkit.service.market.source import LONGEST_INTERVAL_HOURS, MarketSource

_STALE_S, _STALE_BARS = 600, 3
_RATE_VALID_S = RATE_VALID_INTERVALS * LONGEST_INTERVAL_HOURS * 3_600


class Rate(NamedTuple):
    """A leg's last settled rate (fraction per interval), interval (h) and next settlement (s)."""

    rate: float
    interval_hours: int
    next_funding_time: int


class Spread(NamedTuple):
    """A tracked spread. ``opened_at`` (s) is None without an open event."""

    symbol: str
    buy: Leg
    buy_price: float
    sell: Leg
    sell_price: float
    opened_at: int | None

    @property
    def pct(self) -> float:
        """100 (sell price / buy price - 1)."""
        return 100.0 * (self.sell_price / self.buy_price - 1.0)


def last_prices(source: MarketSource, symbol: str, now: int) -> dict[Leg, float]:
    """Return each leg's price (quote) at the end of its last bar that is over at ``now``.

    A leg is left out if its last bar ended more than 10 minutes and more than three bars ago.
    """
    found = {}
    for leg in source.listing[symbol]:
        series = source.bars(symbol, leg)
        last = now - series.interval_s
        stale_s = max(_STALE_S, _STALE_BARS * series.interval_s)
        price = series.between(last - stale_s, last + 1).price
        if len(price):
            found[leg] = float(price[-1])
    return found


def rate_in_force(source: MarketSource, symbol: str, leg: Leg, now: int) -> Rate | None:
    """Return a leg's last settled rate, None if there is none within twice its interval.

    >>> from toolkit.service.market.simulated import Simulated
    >>> rate_in_force(Simulated(7), "BTC_USDT", Leg.parse("DRACO.futures"), 1_795_046_400)
    Rate(rate=0.0001, interval_hours=8, next_funding_time=1795060800)
    """
    funding = source.funding(symbol, leg) if leg.market is Market.FUTURES else None
    if funding is None:
        return None
    settled = funding.between(now - _RATE_VALID_S, now + 1)
    following = funding.next_after(now)
    if not len(settled.ts) or following is None:
        return None
    interval_hours = int(settled.interval_hours[-1])
    if now - int(settled.ts[-1]) > RATE_VALID_INTERVALS * 3_600 * interval_hours:
        return None
    return Rate(float(settled.rate[-1]), interval_hours, following)


def tracked_spreads(
    source: MarketSource, now: int, opened: Mapping[str, int], at_least_pct: float
) -> Iterator[Spread]:
    """Yield the spreads with an open event or at least ``at_least_pct``, by symbol and legs.

    ``opened`` has the time at which an event opened (s), by SYMBOL:BUY:SELL. Without an open event
    the leg with the lower price is bought. Legs without a recent price are left out.
    """
    for symbol in source.listing:
        prices = last_prices(source, symbol, now)
        for pair in combinations(prices, 2):
            ways = [pair, pair[::-1]]
            since = {way: opened.get(f"{symbol}:{way[0]}:{way[1]}") for way in ways}
            buy, sell = next(
                (way for way in ways if since[way] is not None),
                min(ways, key=lambda way: prices[way[0]]),
            )
            spread = Spread(symbol, buy, prices[buy], sell, prices[sell], since[buy, sell])
            if spread.opened_at is not None or spread.pct >= at_least_pct:
                yield spread
