"""The table of all routes, from which REST, ``/schemas``, MCP and OpenAPI are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from toolkit.errors import InputError
from toolkit.market import EventFamily, Market, Plan
from toolkit.service.accounts import Limit, Owner, Reach, Terms
from toolkit.service.api.bodies import (
    funding_history,
    price_history,
    rate_in_force,
    search_symbols,
    spread_history,
    tracked_spreads,
)
from toolkit.service.api.calls import Call, Service
from toolkit.service.api.tools import (
    LONGEST_WINDOW_S,
    EventQuery,
    FundingEventQuery,
    NoQuery,
    PriceQuery,
    Record,
    RecordField,
    SearchQuery,
    SplashEventQuery,
    SpreadEventQuery,
    SpreadQuery,
    Tool,
)
from toolkit.service.events.archive import (
    EventArchive,
    EventFilters,
    Position,
    open_,
    seal,
    secret_of,
)
from toolkit.service.events.lives import DAY_S
from toolkit.service.market.source import before_all
from toolkit.service.problems import bad_request, tier_required


def event_page(family: EventFamily, call: Call[EventQuery]) -> bytes:
    """Return the newest documents of a window that the plan shows, up to the limit.

    A document is shown when its second is over. An empty or too long window, and a cursor that is
    invalid or of another query, are a 400.
    """
    query = call.query
    _check_window(query)
    given = {field.name: getattr(query, field.name, UNSET) for field in fields(EventFilters)}
    filters = {name: value for name, value in given.items() if value is not UNSET}
    bound = msgspec.json.encode(
        [family, query.start_time, query.end_time, filters, call.limit], order="sorted"
    )
    secret = secret_of(call.service.source.id)
    start = query.start_time if call.since is None else max(query.start_time, call.since)
    items, following = call.service.archive.page(
        family,
        start,
        query.end_time,
        filters=EventFilters(**filters),
        limit=call.limit,
        after=_after(query, bound, secret),
        visible_until=call.now,
    )
    page = {
        "type": f"{family}_events_page",
        "items": [msgspec.Raw(item) for item in items],
        "has_more": following is not None,
    }
    if lost := before_all(call.service.source, start, query.end_time):
        page["lost"] = [each._asdict() for each in lost]
    if following is not None:
        page["next_cursor"] = seal(following, bound, secret)
    return msgspec.json.encode(page)


def _check_window(query: EventQuery) -> None:
    length_s = query.end_time - query.start_time
    if length_s <= 0:
        raise bad_request([("start_time", "is not before end_time")])
    if length_s > LONGEST_WINDOW_S:
        detail = f"the window is {length_s} s long; at most {LONGEST_WINDOW_S} s (7 days)"
        raise bad_request([("end_time", detail)])


def _after(query: EventQuery, bound: bytes, secret: bytes) -> Position | None:
    if query.cursor is UNSET:
        return None
    try:
        return open_(query.cursor, bound, secret)
    except InputError as error:
        refused = f"{error.value!r} is not allowed; allowed: {error.allowed}"
        raise bad_request([("cursor", refused)]) from None


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
    """Count the documents of each log by symbol."""
    found = {family: Counter[str]() for family in EventFamily}
    for midnight in range(start // DAY_S * DAY_S, end, DAY_S):
        part = max(start, midnight), min(end, midnight + DAY_S)
        for family, counted in found.items():
            counted.update(archive.counts(family, *part))
    return found


def event_activity(call: Call[NoQuery]) -> bytes:
    """Count the documents of each log in the last hour, day and week, and by symbol.

    The symbols are the ten with the most documents of the last day.
    """
    archive, now = call.service.archive, call.now
    counts = {window_s: _counts(archive, now - window_s, now) for window_s in _WINDOWS_S}
    windows = [
        {"window_s": window_s, **{family: of.total() for family, of in counted.items()}}
        for window_s, counted in counts.items()
    ]
    day = counts[DAY_S]
    total = sum(day.values(), Counter[str]())
    busiest = sorted(total, key=lambda symbol: (-total[symbol], symbol))[:_TOP_SYMBOLS]
    top = [
        {"symbol": symbol, **{family: day[family][symbol] for family in EventFamily}}
        for symbol in busiest
    ]
    return msgspec.json.encode(
        {"type": "event_activity", "ts": now, "windows": windows, "top_symbols": top}
    )


VERSION = "2026-11-01"
"""The version of the documents that this service sends."""

Q = TypeVar("Q", bound=msgspec.Struct)

_BACKWARDS = {"kind": "end_time", "order": "desc", "end_time": "exclusive", "next": "next_end_time"}
_SEARCH = Limit(100, 1_000)
_EVENTS = Limit(200, 500)
_CURSOR = {
    "kind": "cursor",
    "parameter": "cursor",
    "next": "next_cursor",
    "more": "has_more",
    "max_window_s": LONGEST_WINDOW_S,
    "max_limit": _EVENTS.maximum,
}


def answer(
    service: Service, tool: Tool[Q], owner: Owner, given: Sequence[tuple[str, str]]
) -> bytes:
    """Return the body of one call, after checking the plan (403) and the parameters (400).

    >>> from toolkit.service import Simulated
    >>> from toolkit.service.accounts import DEMO_OWNERS
    >>> service = Service(Simulated(7))
    >>> answer(service, TOOLS[1], DEMO_OWNERS[0], [("q", "nothing")])
    b'{"type":"symbols_page","items":[],"truncated":false}'
    """
    if not tool.open_to(owner.plan):
        raise tier_required(tool.name, tool.minimum_plan, owner.plan)
    terms = service.policy.terms(owner.plan)
    query, limit = tool.read(given, owner.plan, terms)
    reach, now = tool.reach(terms), service.clock.now()
    since = None if reach.retention_s is None else now - reach.retention_s
    return tool.answer(Call(service, owner, query, limit, now - reach.delay_s, since))


def _schemas(call: Call[NoQuery]) -> bytes:
    source, plan = call.service.source, call.owner.plan
    exchanges = getattr(source, "exchanges", None)
    named = {"exchanges": exchanges} if exchanges else {}
    terms = call.service.policy.terms(plan)
    return msgspec.json.encode(
        {
            "type": "schemas",
            "version": VERSION,
            "source": {"kind": source.kind, "id": source.id, **named},
            "tools": {tool.name: tool.describe(plan, terms) for tool in TOOLS},
        }
    )


_TEXT, _SECONDS = RecordField("string"), RecordField("integer", "s")
_HOURS, _COUNT = RecordField("integer", "hours"), RecordField("integer", "count")
_QUOTE = RecordField("number", "quote")
_MAYBE_QUOTE = replace(_QUOTE, nullable=True)
_EARNS = "what a position that is long the buy leg and short the sell leg earns"
_SPREAD_PCT = RecordField(
    "number",
    "percent",
    sign="Positive where the sell leg's price is above the buy leg's: "
    "100 * (sell_price / buy_price - 1).",
    positive_means=_EARNS,
)
_RATE = RecordField(
    "number",
    "fraction_per_interval",
    sign="Positive where longs pay shorts.",
    positive_means="what a short position receives, for the interval that ended",
)


def _record(key: str, **fields: RecordField) -> Record:
    return Record(tuple(key.split()), fields)


def _event_log(
    family: EventFamily,
    query: type[EventQuery],
    summary: str,
    minimum_plan: Plan = Plan.BUILDER,
    reach: Callable[[Terms], Reach] = lambda terms: terms.events,
) -> Tool[EventQuery]:
    return Tool(
        name=f"data.get_{family}_events",
        path=f"history/{family}-events",
        summary=summary,
        minimum_plan=minimum_plan,
        query=query,
        answer=partial(event_page, family),
        limit=lambda _: _EVENTS,
        reach=reach,
        pagination=_CURSOR,
        documents=family,
        slow=True,
    )


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="data.get_schemas",
        path="schemas",
        summary="Units, signs, keys and pagination of every tool.",
        minimum_plan=Plan.FREE,
        query=NoQuery,
        answer=_schemas,
    ),
    Tool(
        name="data.search_symbols",
        path="symbols/search",
        summary="Symbols and the venues that list them.",
        minimum_plan=Plan.FREE,
        query=SearchQuery,
        answer=search_symbols,
        limit=lambda _: _SEARCH,
        reach=lambda terms: terms.metadata,
        record=_record(
            "symbol",
            symbol=_TEXT,
            base=_TEXT,
            quote=_TEXT,
            venues=RecordField("array"),
            updated_at=_SECONDS,
        ),
    ),
    Tool(
        name="data.get_price_history",
        path="history/price",
        summary="Price history of one symbol on one leg.",
        minimum_plan=Plan.FREE,
        query=PriceQuery,
        answer=price_history,
        limit=lambda terms: terms.page,
        reach=lambda terms: terms.history,
        record=_record(
            "ts", ts=_SECONDS, price=_QUOTE, mark_price=_MAYBE_QUOTE, volume=_MAYBE_QUOTE
        ),
        pagination=_BACKWARDS,
    ),
    Tool(
        name="data.get_spread_history",
        path="history/spread",
        summary="Spread history of one symbol between two legs.",
        minimum_plan=Plan.FREE,
        query=SpreadQuery,
        answer=spread_history,
        limit=lambda terms: terms.page,
        reach=lambda terms: terms.spread_history,
        record=_record(
            "ts", ts=_SECONDS, buy_price=_QUOTE, sell_price=_QUOTE, spread_pct=_SPREAD_PCT
        ),
        pagination=_BACKWARDS,
    ),
    Tool(
        name="data.get_funding_history",
        path="history/funding",
        summary="Settled funding rates of two legs, and their differential.",
        query=SpreadQuery,
        answer=funding_history,
        limit=lambda terms: terms.page,
        reach=lambda terms: terms.history,
        record=_record(
            "ts",
            ts=_SECONDS,
            buy_rate=replace(_RATE, nullable=True),
            sell_rate=replace(_RATE, nullable=True),
            buy_interval_hours=replace(_HOURS, nullable=True),
            sell_interval_hours=replace(_HOURS, nullable=True),
            differential_pct_8h=RecordField(
                "number",
                "percent_per_8h",
                nullable=True,
                sign="Positive where the sell leg's rate in force is above the buy leg's, "
                "each brought to 8 h.",
                positive_means=_EARNS,
            ),
        ),
        pagination=_BACKWARDS,
    ),
    _event_log(
        EventFamily.SPREAD,
        SpreadEventQuery,
        "Log of spreads that opened, widened and closed.",
        minimum_plan=Plan.FREE,
        reach=lambda terms: terms.spread_events,
    ),
    _event_log(EventFamily.SPLASH, SplashEventQuery, "Log of pumps and dumps."),
    _event_log(EventFamily.FUNDING, FundingEventQuery, "Log of funding dislocations."),
    Tool(
        name="data.get_event_activity",
        path="event-activity",
        summary="Counts of recent event documents, and the symbols with the most.",
        query=NoQuery,
        answer=event_activity,
        record=_record("window_s", window_s=_SECONDS, spread=_COUNT, splash=_COUNT, funding=_COUNT),
        slow=True,
    ),
    Tool(
        name="data.get_spread_dashboard",
        path="dashboards/spread",
        summary="The spreads that are wide now or have an open event.",
        query=NoQuery,
        answer=spread_dashboard,
        reach=lambda terms: terms.dashboard,
        record=_record(
            "symbol buy_exchange buy_market sell_exchange sell_market",
            symbol=_TEXT,
            spread_type=_TEXT,
            buy_exchange=_TEXT,
            buy_market=_TEXT,
            buy_price=_QUOTE,
            sell_exchange=_TEXT,
            sell_market=_TEXT,
            sell_price=_QUOTE,
            spread_pct=_SPREAD_PCT,
            opened_at=replace(_SECONDS, nullable=True),
        ),
        slow=True,
    ),
    Tool(
        name="data.get_funding_overview",
        path="dashboards/funding-overview",
        summary="The funding rate in force of each futures leg.",
        query=NoQuery,
        answer=funding_overview,
        record=_record(
            "symbol exchange market",
            symbol=_TEXT,
            exchange=_TEXT,
            market=_TEXT,
            rate=_RATE,
            interval_hours=_HOURS,
            next_funding_time=_SECONDS,
        ),
    ),
)
"""Every tool, in the order that ``/schemas`` lists them."""
