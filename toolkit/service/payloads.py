"""The wire's names: query parameters of each route, fields of each record, bodies of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from toolkit.market import Leg, Trajectory

__all__ = [
    "PRICE_RECORD",
    "SPREAD_RECORD",
    "SYMBOL_RECORD",
    "Field",
    "NoQuery",
    "PriceQuery",
    "Query",
    "Record",
    "SearchQuery",
    "SpreadQuery",
    "price_head",
    "spread_head",
    "venue",
]

_Symbol = Annotated[str, Meta(description="BASE_QUOTE, e.g. BTC_USDT")]
_Exchange = Annotated[str, Meta(description="an UPPERCASE name; a DEX is DEX-{CHAIN}")]
_Market = Annotated[Literal["spot", "futures", "dex"], Meta(description="spot, futures or dex")]
_EndTime = Annotated[
    int,
    Meta(
        ge=0,
        le=253_402_300_799,  # the end of year 9999: milliseconds do not fit
        description="Unix seconds; rows before it, itself excluded (default: now)",
    ),
]
_Limit = Annotated[int, Meta(ge=1, description="a whole number of items, 1 or more")]


class Query(msgspec.Struct, frozen=True):
    """What every route with a page takes; an optional parameter is UNSET, never None."""

    limit: _Limit | UnsetType = UNSET


class NoQuery(msgspec.Struct, frozen=True):
    """A route without parameters."""


class SearchQuery(Query, frozen=True, kw_only=True):
    """Symbols whose name, or one of whose exchanges, contains q in any case."""

    q: Annotated[str, Meta(description="part of a name; empty lists all")] | UnsetType = UNSET


class PriceQuery(Query, frozen=True, kw_only=True):
    """The price trajectory of one symbol on one leg."""

    symbol: _Symbol
    exchange: _Exchange
    market: _Market
    end_time: _EndTime | UnsetType = UNSET


class SpreadQuery(Query, frozen=True, kw_only=True):
    """The spread trajectory that buys on one leg and sells on the other."""

    symbol: _Symbol
    buy_exchange: _Exchange
    buy_market: _Market
    sell_exchange: _Exchange
    sell_market: _Market
    end_time: _EndTime | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record: JSON type, unit (None where it has none), and its sign where it has one.

    Examples
    --------
    >>> Field("integer", "s").document
    {'type': 'integer', 'unit': 's', 'nullable': False}
    """

    type: str
    unit: str | None = None
    nullable: bool = False
    sign: str = ""
    positive_means: str = ""

    @property
    def document(self) -> dict[str, object]:
        """The field as ``/schemas`` shows it."""
        shown: dict[str, object] = {
            "type": self.type,
            "unit": self.unit,
            "nullable": self.nullable,
        }
        if self.sign:
            shown |= {"sign": self.sign, "positive_means": self.positive_means}
        return shown


@dataclass(frozen=True, slots=True)
class Record:
    """What the items of a page are: the fields that no two of them share, and all fields.

    Examples
    --------
    >>> list(PRICE_RECORD.document["fields"])
    ['ts', 'price', 'mark_price', 'volume']
    """

    key: tuple[str, ...]
    fields: Mapping[str, Field]

    @property
    def document(self) -> dict[str, object]:
        """The record as ``/schemas`` shows it."""
        return {
            "key": self.key,
            "fields": {name: field.document for name, field in self.fields.items()},
        }


PRICE_RECORD = Record(
    key=("ts",),
    fields={
        "ts": Field("integer", "s"),
        "price": Field("number", "quote"),
        "mark_price": Field("number", "quote", nullable=True),
        "volume": Field("number", "quote", nullable=True),
    },
)
"""An item of history/price."""

SPREAD_RECORD = Record(
    key=("ts",),
    fields={
        "ts": Field("integer", "s"),
        "buy_price": Field("number", "quote"),
        "sell_price": Field("number", "quote"),
        "spread_pct": Field(
            "number",
            "percent",
            sign="Positive where the sell leg's price is above the buy leg's: "
            "100 * (sell_price / buy_price - 1).",
            positive_means="what a position that is long the buy leg and short the sell leg earns",
        ),
    },
)
"""An item of history/spread."""

SYMBOL_RECORD = Record(
    key=("symbol",),
    fields={
        "symbol": Field("string"),
        "base": Field("string"),
        "quote": Field("string"),
        "venues": Field("array"),
        "updated_at": Field("integer", "s"),
    },
)
"""An item of symbols/search."""


def price_head(trajectory: Trajectory) -> dict[str, object]:
    """A price page's own fields.

    Examples
    --------
    >>> price_head(Trajectory.parse("BTC_USD:KRAKEN.spot"))["exchange"]
    'KRAKEN'
    """
    leg = trajectory.buy
    return {
        "type": "price_history_page",
        "symbol": str(trajectory.symbol),
        "exchange": leg.exchange,
        "market": leg.market,
    }


def spread_head(trajectory: Trajectory) -> dict[str, object]:
    """A spread page's own fields.

    Examples
    --------
    >>> head = spread_head(Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.spot"))
    >>> head["buy_exchange"], head["sell_exchange"]
    ('COINBASE', 'KRAKEN')
    """
    buy, sell = trajectory.legs
    return {
        "type": "spread_history_page",
        "symbol": str(trajectory.symbol),
        "buy_exchange": buy.exchange,
        "buy_market": buy.market,
        "sell_exchange": sell.exchange,
        "sell_market": sell.market,
    }


def venue(leg: Leg) -> dict[str, object]:
    """A leg as symbols/search lists it; the chain's name is read off ``DEX-{CHAIN}``.

    Examples
    --------
    >>> venue(Leg.parse("DEX-ETHEREUM.dex"))["dex_network"]
    'ETHEREUM'
    """
    chain = leg.exchange.removeprefix("DEX-")
    return {
        "exchange": leg.exchange,
        "market": leg.market,
        "funding_interval_hours": None,
        "dex_network": None if chain == leg.exchange else chain,
    }
