"""The table of all routes, from which REST, ``/schemas``, MCP and OpenAPI are made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from toolkit.market import EventFamily, Plan
from toolkit.service.accounts.owners import Owner
from toolkit.service.accounts.policy import Limit
from toolkit.service.accounts.problems import tier_required
from toolkit.service.api.answers import (
    funding_history,
    price_history,
    search_symbols,
    spread_history,
)
from toolkit.service.api.calls import Call, Service
from toolkit.service.api.dashboards import event_activity, funding_overview, spread_dashboard
from toolkit.service.api.event_logs import event_page
from toolkit.service.api.queries import (
    LONGEST_WINDOW_S,
    FundingEventQuery,
    NoQuery,
    PriceQuery,
    SearchQuery,
    SplashEventQuery,
    SpreadEventQuery,
    SpreadQuery,
)
from toolkit.service.api.records import (
    ACTIVITY_RECORD,
    FUNDING_OVERVIEW_RECORD,
    FUNDING_RECORD,
    PRICE_RECORD,
    SPREAD_DASHBOARD_RECORD,
    SPREAD_RECORD,
    SYMBOL_RECORD,
)
from toolkit.service.api.tools import Tool

VERSION = "2026-11-01"
"""The version of the documents that this service sends."""

Q = TypeVar("Q", bound=msgspec.Struct)

_BACKWARDS = {
    "kind": "end_time",
    "order": "desc",
    "end_time": "exclusive",
    "next": "next_end_time",
}
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
    >>> from toolkit.service.accounts.owners import DEMO_OWNERS
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
    """Describe the tools as the caller's plan is served."""
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
        record=SYMBOL_RECORD,
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
        record=PRICE_RECORD,
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
        record=SPREAD_RECORD,
        pagination=_BACKWARDS,
    ),
    Tool(
        name="data.get_funding_history",
        path="history/funding",
        summary="Settled funding rates of two legs, and their differential.",
        minimum_plan=Plan.BUILDER,
        query=SpreadQuery,
        answer=funding_history,
        limit=lambda terms: terms.page,
        reach=lambda terms: terms.history,
        record=FUNDING_RECORD,
        pagination=_BACKWARDS,
    ),
    Tool(
        name="data.get_spread_events",
        path="history/spread-events",
        summary="Log of spreads that opened, widened and closed.",
        minimum_plan=Plan.FREE,
        query=SpreadEventQuery,
        answer=partial(event_page, EventFamily.SPREAD),
        limit=lambda _: _EVENTS,
        reach=lambda terms: terms.spread_events,
        pagination=_CURSOR,
        documents=EventFamily.SPREAD,
        slow=True,
    ),
    Tool(
        name="data.get_splash_events",
        path="history/splash-events",
        summary="Log of pumps and dumps.",
        minimum_plan=Plan.BUILDER,
        query=SplashEventQuery,
        answer=partial(event_page, EventFamily.SPLASH),
        limit=lambda _: _EVENTS,
        reach=lambda terms: terms.events,
        pagination=_CURSOR,
        documents=EventFamily.SPLASH,
        slow=True,
    ),
    Tool(
        name="data.get_funding_events",
        path="history/funding-events",
        summary="Log of funding dislocations.",
        minimum_plan=Plan.BUILDER,
        query=FundingEventQuery,
        answer=partial(event_page, EventFamily.FUNDING),
        limit=lambda _: _EVENTS,
        reach=lambda terms: terms.events,
        pagination=_CURSOR,
        documents=EventFamily.FUNDING,
        slow=True,
    ),
    Tool(
        name="data.get_event_activity",
        path="event-activity",
        summary="Counts of recent event documents, and the symbols with the most.",
        minimum_plan=Plan.BUILDER,
        query=NoQuery,
        answer=event_activity,
        record=ACTIVITY_RECORD,
        slow=True,
    ),
    Tool(
        name="data.get_spread_dashboard",
        path="dashboards/spread",
        summary="The spreads that are wide now or have an open event.",
        minimum_plan=Plan.BUILDER,
        query=NoQuery,
        answer=spread_dashboard,
        reach=lambda terms: terms.dashboard,
        record=SPREAD_DASHBOARD_RECORD,
        slow=True,
    ),
    Tool(
        name="data.get_funding_overview",
        path="dashboards/funding-overview",
        summary="The funding rate in force of each futures leg.",
        minimum_plan=Plan.BUILDER,
        query=NoQuery,
        answer=funding_overview,
        record=FUNDING_OVERVIEW_RECORD,
    ),
)
"""Every tool, in the order that ``/schemas`` lists them."""
