"""Event documents: fields, identity and the JSON Schema that ``/schemas`` shows.

One document is one transition of one event. Source: docs/interface.md, "Event documents".
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from toolkit.market import EventFamily, Leg, Symbol


def _unit(unit: str, description: str = "") -> Meta:
    return Meta(description=description or None, extra_json_schema={"unit": unit})


_Seconds = Annotated[int, _unit("s", "Unix seconds, UTC")]
_Price = Annotated[float, _unit("quote")]
_Exchange = Annotated[str, Meta(description="UPPERCASE; a DEX is DEX-{CHAIN}")]
_Market = Literal["spot", "futures", "dex"]
Lifecycle = Literal["open", "closed"]
SpreadChange = Literal["spread.opened", "spread.updated", "spread.closed"]
SplashChange = Literal["splash.pump", "splash.dump", "splash.faded"]
FundingChange = Literal["funding.opened", "funding.updated", "funding.closed"]


class Instrument(msgspec.Struct, frozen=True):
    """A symbol, whole and in its two parts."""

    symbol: Annotated[str, Meta(description="BASE_QUOTE")]
    base: str
    quote: str


class PricedLeg(msgspec.Struct, frozen=True):
    """A leg of a spread and its last price (quote)."""

    exchange: _Exchange
    market: _Market
    price: _Price


class SpreadSize(msgspec.Struct, frozen=True):
    """A spread in percent, 100 (sell / buy - 1), now and at most since the event opened."""

    pct: Annotated[float, _unit("percent", "100 * (sell price / buy price - 1)")]
    peak_pct: Annotated[float, _unit("percent", "the largest pct since opened_at")]


class FundingLeg(msgspec.Struct, frozen=True):
    """A leg with the rate in force (the one settled last)."""

    exchange: _Exchange
    market: _Market
    rate: Annotated[float, _unit("fraction_per_interval", "positive: longs pay shorts")]
    interval_hours: Annotated[int, _unit("hours")]
    next_funding_time: _Seconds


class Differential(msgspec.Struct, frozen=True):
    """Sell rate less buy rate."""

    pct_8h: Annotated[float, _unit("percent_per_8h", "sell rate - buy rate, each per 8 h")]
    apr_pct: Annotated[float, _unit("percent", "pct_8h * 3 * 365, not compounded")]


class NetOfFees(msgspec.Struct, frozen=True):
    """Declared and always null: fees are the reader's own."""

    pct_8h: None = None
    apr_pct: None = None


class _Document(msgspec.Struct, frozen=True, kw_only=True):
    """What every document has. Identified by schema, event_id, event_type and ts_ms together."""

    schema: str
    event_type: str
    event_id: Annotated[str, Meta(description="the same in all documents of one event")]
    lifecycle: Lifecycle
    ts: _Seconds
    ts_ms: Annotated[int, _unit("ms", "Unix milliseconds, UTC; ts is its whole seconds")]
    instrument: Instrument


class SpreadDocument(_Document, frozen=True, kw_only=True):
    """A spread that opened, widened or closed; bought is the leg with the lower price."""

    schema: Literal["svc.spread.v1"]
    event_type: SpreadChange
    spread_type: Annotated[str, Meta(description="the legs' markets, buy first: spot/futures")]
    buy: PricedLeg
    sell: PricedLeg
    spread: SpreadSize
    opened_at: _Seconds
    closed_at: _Seconds | None
    close_reason: Literal["converged", "expired", "leg_lost"] | None

    @property
    def exchanges(self) -> tuple[str, ...]:
        """Those of both legs."""
        return self.buy.exchange, self.sell.exchange

    @property
    def magnitude_pct(self) -> float:
        """The spread without its sign, which ``min_pct`` is compared with."""
        return abs(self.spread.pct)


class SplashDocument(_Document, frozen=True, kw_only=True):
    """A pump or a dump on one leg, or that it faded. Of a recorded one only the time is known."""

    schema: Literal["svc.splash.v1"]
    event_type: SplashChange
    exchange: _Exchange
    market: _Market
    kind: Literal["pump", "dump"]
    pct: Annotated[float | None, _unit("percent", "from start_price to now: below 0 for a dump")]
    window_s: Annotated[int | None, _unit("s", "from start_price to the detection")]
    start_price: Annotated[float | None, _unit("quote", "null of a pump that was recorded")]
    spot_price: Annotated[float | None, _unit("quote", "now, on the exchange's spot market")]
    futures_price: Annotated[float | None, _unit("quote", "now, on its futures market")]
    volume_24h: Annotated[float | None, _unit("quote", "null where the source has no volumes")]

    @property
    def exchanges(self) -> tuple[str, ...]:
        """That of the leg."""
        return (self.exchange,)

    @property
    def magnitude_pct(self) -> float | None:
        """The move without its sign, None where unknown."""
        return None if self.pct is None else abs(self.pct)


class FundingDocument(_Document, frozen=True, kw_only=True):
    """A funding differential between two futures legs that opened, widened or closed."""

    schema: Literal["svc.funding.v1"]
    event_type: FundingChange
    buy: FundingLeg
    sell: FundingLeg
    differential: Differential
    net_of_fees: NetOfFees

    @property
    def exchanges(self) -> tuple[str, ...]:
        """Those of both legs."""
        return self.buy.exchange, self.sell.exchange

    @property
    def magnitude_pct(self) -> float:
        """The differential per 8 h without its sign."""
        return abs(self.differential.pct_8h)


Document = SpreadDocument | SplashDocument | FundingDocument
"""A document of any family."""

_DOCUMENTS: Mapping[EventFamily, type[Document]] = {
    EventFamily.SPREAD: SpreadDocument,
    EventFamily.SPLASH: SplashDocument,
    EventFamily.FUNDING: FundingDocument,
}


@cache
def _schema(family: EventFamily) -> bytes:
    (root,), definitions = msgspec.json.schema_components([_DOCUMENTS[family]])

    def inlined(node: Any) -> Any:
        if isinstance(node, list):
            return [inlined(each) for each in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return inlined(definitions[node["$ref"].rpartition("/")[2]])
        return {name: inlined(each) for name, each in node.items()}

    return msgspec.json.encode(inlined(root))


def document_schema(family: EventFamily) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a family's documents, without references.

    Every field is required. ``unit`` beside ``type`` is one of the units of ``/schemas``.
    """
    found: dict[str, Any] = msgspec.json.decode(_schema(family))
    return found


def event_id(family: EventFamily, *parts: object) -> str:
    """Return the identity of an event: its family and 16 hexadecimal digits from its parts.

    >>> event_id(EventFamily.SPREAD, "seed-7", "BTC_USDT:AURORA.spot:BOREAS.spot", 1_795_046_400)
    'spread-65d8721acc52d90a'
    """
    content = "\n".join(map(str, (family, *parts))).encode()
    return f"{family}-{hashlib.blake2b(content, digest_size=8).hexdigest()}"


def milliseconds(identity: str, lifecycle: Lifecycle, ts: int) -> int:
    """Return a document's moment (ms) in its second ``ts``, from its identity and lifecycle.

    Closes come in the first half of a second: one row may close one event and open the next.
    """
    content = f"{identity} {lifecycle} {ts}".encode()
    digest = hashlib.blake2b(content, digest_size=4).digest()
    half = 0 if lifecycle == "closed" else 500
    return 1000 * ts + half + int.from_bytes(digest, "little") % 500


def head_of(identity: str, lifecycle: Lifecycle, ts: int, symbol: str) -> dict[str, Any]:
    """Return the fields that a document of any family has, without schema and event type."""
    parts = Symbol.parse(symbol)
    return {
        "event_id": identity,
        "lifecycle": lifecycle,
        "ts": ts,
        "ts_ms": milliseconds(identity, lifecycle, ts),
        "instrument": Instrument(symbol, parts.base, parts.quote),
    }


def priced(leg: Leg, price: float) -> PricedLeg:
    """Return a leg at a price."""
    return PricedLeg(leg.exchange, leg.market.value, float(price))
