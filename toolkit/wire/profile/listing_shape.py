"""The listing's part of the wire profile: where its symbols are, and how it writes their legs."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from toolkit.errors import InputError
from toolkit.market import Leg, Market
from toolkit.wire.exchange import Answer
from toolkit.wire.profile.layers import BUILT_IN_DOCUMENT
from toolkit.wire.profile.places import flat_answer, value_at
from toolkit.wire.profile.spelling import Spelling
from toolkit.wire.profile.templates import placeholders, reading
from toolkit.wire.rows.conversion import name_of


@dataclass(frozen=True, slots=True)
class ListingShape:
    """Places in a listing. See `toolkit.wire.profile.places`.

    ``items`` is a list of objects. An item has its name under ``symbol`` and its legs under
    ``legs``: objects with ``exchange`` and ``market``, or texts that the template ``leg`` reads.
    Where ``symbol`` is "*", ``items`` is an object: the names in it are symbols, each with its
    legs. Legs may be an object too, of legs by name or of exchanges, each with its market or
    markets. Where ``legs`` is "" the item itself is one leg, and where it is text ``leg`` has its
    ``{symbol}`` as well. ``q`` and ``limit`` are parameters, ``truncated`` says whether there is
    more.
    """

    items: str
    symbol: str
    legs: str
    leg: str
    exchange: str
    market: str
    truncated: str
    q: str
    limit: str

    def __post_init__(self) -> None:
        leg_template("listing.leg", self.leg, pairs=False)

    def flat(self, answer: Answer) -> Answer:
        """Return an answer with its items at the top."""
        return flat_answer(answer, self.items, (self.truncated,), ())

    def listed(self, items: msgspec.Raw) -> list[msgspec.Raw]:
        """Return the items as a list of objects, each with its symbol and its legs.

        >>> from dataclasses import replace
        >>> shape = replace(BUILT_IN_LISTING, symbol="*", legs="")
        >>> [bytes(item) for item in shape.listed(msgspec.Raw(b'{"A_B": ["X.spot"]}'))]
        [b'{"*":"A_B","":["X.spot"]}']
        """
        if self.symbol != "*":
            return msgspec.json.decode(items, type=list[msgspec.Raw])
        named = msgspec.json.decode(items, type=dict[str, msgspec.Raw])
        encode = msgspec.json.encode
        return [msgspec.Raw(encode({"*": name, self.legs: legs})) for name, legs in named.items()]

    def read(self, raw: msgspec.Raw, spelling: Spelling) -> tuple[str, list[object] | None]:
        """Return the symbol of an item, as we spell it, and its legs as they came, None for none.

        Raises `msgspec.DecodeError` for an item without a symbol.
        """
        item = msgspec.json.decode(raw)
        symbol = self._parts(item).get("symbol") if isinstance(item, str) else None
        symbol = symbol or name_of(value_at(item, self.symbol))
        if not isinstance(symbol, str):
            raise msgspec.DecodeError(f"no text under {self.symbol!r}")
        legs = value_at(item, self.legs) if self.legs or self.symbol == "*" else [item]
        if isinstance(legs, dict):
            legs = [leg for name, said in legs.items() for leg in self._named_legs(name, said)]
        return spelling.our_symbol(symbol), legs if isinstance(legs, list) else None

    def _named_legs(self, name: str, said: object) -> list[object]:
        """Return the legs of an entry: one by its name, or an exchange with what it has."""
        if self._parts(name):
            return [name]
        markets = said if isinstance(said, list) else [said]
        return [{self.exchange: name, self.market: market} for market in markets]

    def _parts(self, text: str) -> dict[str, object]:
        pattern = reading(self.leg)
        match = pattern.fullmatch(text) if pattern else None
        return dict(match.groupdict()) if match else {}

    def read_leg(self, said: object, spelling: Spelling) -> Leg:
        """Return a leg of a listing. Raises `InputError` for what is none.

        >>> from dataclasses import replace
        >>> shape = replace(BUILT_IN_LISTING, leg="{exchange}:{market}")
        >>> shape.read_leg("kraken:SPOT", Spelling({"spot": "SPOT"}, exchange_case="lower"))
        Leg(exchange='KRAKEN', market=<Market.SPOT: 'spot'>)
        """
        if isinstance(said, str):
            parts = self._parts(said)
        else:
            parts = {
                "exchange": name_of(value_at(said, self.exchange)),
                "market": name_of(value_at(said, self.market)),
            }
        exchange, market = parts.get("exchange"), parts.get("market")
        if not isinstance(exchange, str) or not isinstance(market, str):
            raise InputError("leg", str(said)[:80], f"an exchange and a market, e.g. {self.leg}")
        return Leg(spelling.our_exchange(exchange), Market(spelling.our_market(market)))


def leg_template(where: str, template: str, *, pairs: bool = True) -> str:
    """Return a template that reads a leg, or both legs of a pair. Raises `InputError` for others.

    >>> leg_template("leg", "{exchange}:{market}")
    '{exchange}:{market}'
    """
    parts = {*placeholders(template)} - {"symbol"}
    if parts not in (_LEG, _PAIR)[: 1 + pairs] or not reading(template):
        allowed = "{exchange} and {market} with a text between them, e.g. {exchange}:{market}"
        both = ", or all of {buy_exchange}, {buy_market}, {sell_exchange} and {sell_market}"
        raise InputError(where, template, allowed + both * pairs)
    return template


_LEG = {"exchange", "market"}
_PAIR = {f"{side}_{part}" for side in ("buy", "sell") for part in _LEG}


BUILT_IN_LISTING = ListingShape(**BUILT_IN_DOCUMENT["listing"])
"""The listing of docs/interface.md."""
