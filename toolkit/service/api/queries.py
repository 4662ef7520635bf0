"""Query parameters of each route."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

LONGEST_WINDOW_S = 7 * 86_400
"""The longest window of one request to an event log (s)."""

_Symbol = Annotated[str, Meta(description="BASE_QUOTE, e.g. BTC_USDT")]
_Exchange = Annotated[str, Meta(description="an UPPERCASE name; a DEX is DEX-{CHAIN}")]
_Market = Annotated[Literal["spot", "futures", "dex"], Meta(description="spot, futures or dex")]
_LAST = 253_402_300_799  # the end of year 9999: milliseconds do not fit
_EndTime = Annotated[
    int, Meta(ge=0, le=_LAST, description="Unix seconds; only rows before this time (default: now)")
]
_WindowStart = Annotated[
    int, Meta(ge=0, le=_LAST, description="Unix seconds; the window's start, included")
]
_WindowEnd = Annotated[
    int,
    Meta(
        ge=0,
        le=_LAST,
        description="Unix seconds; the window's end, excluded, at most 7 days after its start",
    ),
]
_Limit = Annotated[int, Meta(ge=1, description="a whole number of items, 1 or more")]


class Query(msgspec.Struct, frozen=True):
    """The parameter of every route with a page. An optional one is UNSET, never None."""

    limit: _Limit | UnsetType = UNSET


class NoQuery(msgspec.Struct, frozen=True):
    """A route without parameters."""


class SearchQuery(Query, frozen=True, kw_only=True):
    """Symbols with q in their name or in the name of an exchange, in any case."""

    q: Annotated[str, Meta(description="part of a name; empty lists all")] | UnsetType = UNSET


class PriceQuery(Query, frozen=True, kw_only=True):
    """The price trajectory of one symbol on one leg."""

    symbol: _Symbol
    exchange: _Exchange
    market: _Market
    end_time: _EndTime | UnsetType = UNSET


class SpreadQuery(Query, frozen=True, kw_only=True):
    """The spread, or the funding differential, of buying on one leg and selling on the other."""

    symbol: _Symbol
    buy_exchange: _Exchange
    buy_market: _Market
    sell_exchange: _Exchange
    sell_market: _Market
    end_time: _EndTime | UnsetType = UNSET


class EventQuery(Query, frozen=True, kw_only=True):
    """A window of an event log, and filters of its documents."""

    start_time: _WindowStart
    end_time: _WindowEnd
    symbol: _Symbol | UnsetType = UNSET
    exchange: _Exchange | UnsetType = UNSET
    min_pct: (
        Annotated[
            float,
            Meta(ge=0, le=1_000_000, description="percent, 0 to 1000000; the least absolute size"),
        ]
        | UnsetType
    ) = UNSET
    lifecycle: (
        Annotated[Literal["open", "closed"], Meta(description="open or closed")] | UnsetType
    ) = UNSET
    cursor: (
        Annotated[str, Meta(description="the previous page's next_cursor, same query otherwise")]
        | UnsetType
    ) = UNSET


class SpreadEventQuery(EventQuery, frozen=True, kw_only=True):
    """A window of the log of spreads."""

    event_type: (
        Annotated[
            Literal["spread.opened", "spread.updated", "spread.closed"],
            Meta(description="spread.opened, spread.updated or spread.closed"),
        ]
        | UnsetType
    ) = UNSET


class SplashEventQuery(EventQuery, frozen=True, kw_only=True):
    """A window of the log of pumps and dumps."""

    event_type: (
        Annotated[
            Literal["splash.pump", "splash.dump", "splash.faded"],
            Meta(description="splash.pump, splash.dump or splash.faded"),
        ]
        | UnsetType
    ) = UNSET


class FundingEventQuery(EventQuery, frozen=True, kw_only=True):
    """A window of the log of funding dislocations."""

    event_type: (
        Annotated[
            Literal["funding.opened", "funding.updated", "funding.closed"],
            Meta(description="funding.opened, funding.updated or funding.closed"),
        ]
        | UnsetType
    ) = UNSET
