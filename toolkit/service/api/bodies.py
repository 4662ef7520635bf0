"""Bodies of the data routes, one function per route, and the market at one time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from toolkit.market import Family, Leg, Market, Symbol, Trajectory
from toolkit.service.api.calls import Call
from toolkit.service.api.tools import PriceQuery, SearchQuery, SpreadQuery
from toolkit.service.market.source import (
    RATE_LOOK_BACK_S,
    RATE_VALID_INTERVALS,
    LostRows,
    MarketSource,
    RowKind,
    before_all,
)
from toolkit.service.problems import bad_request

_STALE_S, _STALE_BARS = 600, 3


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

    A leg whose last bar ended more than 10 minutes and more than three bars ago is left out.
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
    """Return a leg's last settled rate, None if there is none within twice its interval."""
    funding = source.funding(symbol, leg) if leg.market is Market.FUTURES else None
    if funding is None:
        return None
    settled = funding.between(now - RATE_LOOK_BACK_S, now + 1)
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

    ``opened``: when each open event opened (s), by SYMBOL:BUY:SELL. Without an open event the leg
    with the lower price is bought. Legs without a recent price are left out.
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


_SEARCH = "search symbols/search"


def search_symbols(call: Call[SearchQuery]) -> bytes:
    """Return a page of symbols in alphabetical order. ``truncated``: more symbols match."""
    wanted = "" if call.query.q is UNSET else call.query.q.upper()
    found = [
        (symbol, legs)
        for symbol, legs in call.service.source.listing.items()
        if wanted in symbol.upper() or any(wanted in leg.exchange for leg in legs)
    ]
    items = [
        {
            "symbol": symbol,
            "base": Symbol.parse(symbol).base,
            "quote": Symbol.parse(symbol).quote,
            "venues": [_venue(call, symbol, leg) for leg in legs],
            "updated_at": call.now,
        }
        for symbol, legs in found[: call.limit]
    ]
    page = {"type": "symbols_page", "items": items, "truncated": len(found) > call.limit}
    return msgspec.json.encode(page)


def _venue(call: Call[SearchQuery], symbol: str, leg: Leg) -> dict[str, object]:
    """Return a leg as symbols/search lists it, with the chain of a ``DEX-{CHAIN}``."""
    rate = rate_in_force(call.service.source, symbol, leg, call.now)
    chain = leg.exchange.removeprefix("DEX-")
    return {
        "exchange": leg.exchange,
        "market": leg.market,
        "funding_interval_hours": None if rate is None else rate.interval_hours,
        "dex_network": None if chain == leg.exchange else chain,
    }


def price_history(call: Call[PriceQuery]) -> bytes:
    """Return a page of one leg's prices. An unlisted leg is a 400 naming the parameter."""
    query = call.query
    legs = _listed(call, {"": (query.exchange, query.market)})
    return _page(call, Trajectory(Family.PRICE, Symbol.parse(query.symbol), legs))


def spread_history(call: Call[SpreadQuery]) -> bytes:
    """Return a page of one spread, with a row at each time that both legs have.

    Legs with bars of different lengths are a 400.
    """
    trajectory = _pair(call, Family.SPREAD)
    bars = [call.service.source.bars(call.query.symbol, leg) for leg in trajectory.legs]
    (buy_s, sell_s), spans = (each.interval_s for each in bars), [each.span for each in bars]
    if buy_s != sell_s and all(start < end for start, end in spans):
        detail = f"its bars are {sell_s} s long, the buy leg's {buy_s} s; no common times"
        raise bad_request([("sell_exchange", detail)])
    return _page(call, trajectory)


def funding_history(call: Call[SpreadQuery]) -> bytes:
    """Return a page of a funding differential, with a row at each settlement of either leg.

    Two legs without a futures leg are a 400.
    """
    trajectory = _pair(call, Family.FUNDING)
    if Market.FUTURES not in {leg.market for leg in trajectory.legs}:
        raise bad_request([("sell_market", "neither leg is futures; only futures settle funding")])
    return _page(call, trajectory)


def _pair(call: Call[SpreadQuery], family: Family) -> Trajectory:
    query = call.query
    buy, sell = (query.buy_exchange, query.buy_market), (query.sell_exchange, query.sell_market)
    legs = _listed(call, {"buy_": buy, "sell_": sell})
    if legs[0] == legs[1]:
        raise bad_request([("sell_exchange", "the sell leg equals the buy leg")])
    return Trajectory(family, Symbol.parse(query.symbol), legs)


def _listed(
    call: Call[PriceQuery] | Call[SpreadQuery], asked: Mapping[str, tuple[str, str]]
) -> tuple[Leg, ...]:
    """Return the legs of a query. A 400 names each parameter that is not listed."""
    symbol = call.query.symbol
    listed = call.service.source.listing.get(symbol)
    if listed is None:
        raise bad_request([("symbol", f"{symbol!r} is not listed; {_SEARCH}")])
    errors = []
    for prefix, (exchange, market) in asked.items():
        markets = [leg.market for leg in listed if leg.exchange == exchange]
        if not markets:
            detail = f"{exchange!r} does not list {symbol}; {_SEARCH}"
            errors.append((f"{prefix}exchange", detail))
        elif market not in markets:
            detail = f"{exchange} lists {symbol} on {', '.join(markets)} only; {_SEARCH}"
            errors.append((f"{prefix}market", detail))
    if errors:
        raise bad_request(errors)
    return tuple(Leg(exchange, Market(market)) for exchange, market in asked.values())


def _page(call: Call[PriceQuery] | Call[SpreadQuery], trajectory: Trajectory) -> bytes:
    end_time = call.query.end_time
    before, since = call.now if end_time is UNSET else end_time, call.since
    # Lost rows are read first: rows found meanwhile are then in both, never in neither.
    lost = _lost(call.service.source, trajectory, since or 0, min(before, call.now))
    page = call.service.pages.page(
        trajectory, before=before, limit=call.limit, now=call.now, since=since
    )
    oldest = page.next_end_time or 0
    cut = [each._replace(start=max(each.start, oldest)) for each in lost if each.end > oldest]
    said = {"lost": [each._asdict() for each in cut]} if cut else {}
    head = {"type": f"{trajectory.family}_history_page", "symbol": str(trajectory.symbol)}
    sides = ("buy_", "sell_") if len(trajectory.legs) == 2 else ("",)
    for side, leg in zip(sides, trajectory.legs, strict=True):
        head |= {f"{side}exchange": leg.exchange, f"{side}market": leg.market}
    opening = msgspec.json.encode(head).removesuffix(b"}")
    paging = {"next_end_time": page.next_end_time, **said}
    return b'%b,"items":[%b],%b' % (opening, page.items, msgspec.json.encode(paging)[1:])


def _lost(source: MarketSource, trajectory: Trajectory, start: int, end: int) -> list[LostRows]:
    """Return the lost rows of any leg in ``[start, end)``, cut to it, newest first."""
    unread = before_all(source, start, end)
    kind: RowKind = "funding" if trajectory.family is Family.FUNDING else "bars"
    found = {
        LostRows(max(each.start, start), min(each.end, end), each.why)
        for leg in trajectory.legs
        for each in source.lost(str(trajectory.symbol), leg, start, end, kind)
    }
    return sorted((each for each in {*found, *unread} if each.start < each.end), reverse=True)
