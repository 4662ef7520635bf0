"""The bodies of the dashboards and of event activity."""

from __future__ import annotations

from collections import Counter

import msgspec

from toolkit.market import EventFamily, Market
from toolkit.service.api.calls import Call
from toolkit.service.api.queries import NoQuery
from toolkit.service.api.snapshots import rate_in_force, tracked_spreads
from toolkit.service.events.archive import EventArchive
from toolkit.service.events.detectors.rows import DAY_S

_WINDOWS_S = (3_600, DAY_S, 7 * DAY_S)
_TOP_SYMBOLS = 10


def spread_dashboard(call: Call[NoQuery]) -> bytes:
    """Return the tracked spreads as the plan sees them, the widest first."""
    service = call.service
    spreads = tracked_spreads(
        service.source,
        call.now,
        service.archive.open_at(EventFamily.SPREAD, call.now),
        service.archive.detectors.spread.close,
    )
    items = [
        {
            "symbol": each.symbol,
            "spread_type": f"{each.buy.market}/{each.sell.market}",
            "buy_exchange": each.buy.exchange,
            "buy_market": each.buy.market,
            "buy_price": each.buy_price,
            "sell_exchange": each.sell.exchange,
            "sell_market": each.sell.market,
            "sell_price": each.sell_price,
            "spread_pct": each.pct,
            "opened_at": each.opened_at,
        }
        for each in sorted(spreads, key=lambda spread: -spread.pct)
    ]
    return msgspec.json.encode({"type": "spread_dashboard", "ts": call.now, "items": items})


def funding_overview(call: Call[NoQuery]) -> bytes:
    """Return the rate in force of each futures leg, by symbol and leg."""
    source = call.service.source
    items = [
        {"symbol": symbol, "exchange": leg.exchange, "market": leg.market, **rate._asdict()}
        for symbol, legs in source.listing.items()
        for leg in legs
        if leg.market is Market.FUTURES
        and (rate := rate_in_force(source, symbol, leg, call.now)) is not None
    ]
    return msgspec.json.encode({"type": "funding_overview", "ts": call.now, "items": items})


def _counts(archive: EventArchive, start: int, end: int) -> dict[EventFamily, Counter[str]]:
    """Count the documents of each log by symbol, day by day: a day's logs need the same bars."""
    found = {family: Counter[str]() for family in EventFamily}
    for midnight in range(start // DAY_S * DAY_S, end, DAY_S):
        part = max(start, midnight), min(end, midnight + DAY_S)
        for family, counted in found.items():
            counted.update(archive.counts(family, *part))
    return found


def event_activity(call: Call[NoQuery]) -> bytes:
    """Count the documents of each log in the last hour, day and week, and by symbol.

    The symbols are the ten with the most documents of the last day over all families.
    """
    archive, now = call.service.archive, call.now
    counts = {window_s: _counts(archive, now - window_s, now) for window_s in _WINDOWS_S}
    windows = [
        {"window_s": window_s, **{family: sum(of.values()) for family, of in counted.items()}}
        for window_s, counted in counts.items()
    ]
    day = counts[DAY_S]
    total = Counter[str]()
    for of_family in day.values():
        total.update(of_family)
    busiest = sorted(total, key=lambda symbol: (-total[symbol], symbol))[:_TOP_SYMBOLS]
    top = [
        {"symbol": symbol, **{family: day[family].get(symbol, 0) for family in EventFamily}}
        for symbol in busiest
    ]
    return msgspec.json.encode(
        {"type": "event_activity", "ts": now, "windows": windows, "top_symbols": top}
    )
