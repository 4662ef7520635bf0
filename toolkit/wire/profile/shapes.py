"""Shapes of the listing, of snapshots, and of the sockets' messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from toolkit.errors import InputError
from toolkit.market import Leg, Market
from toolkit.wire.exchange import UNREADABLE, Response
from toolkit.wire.profile.history_route import FieldRule, field_rules
from toolkit.wire.profile.layers import BUILT_IN_DOCUMENT, Document
from toolkit.wire.profile.places import WHOLE, flat_answer, leaves, value_at
from toolkit.wire.profile.spelling import AS_OURS, Spelling, placeholders, reading
from toolkit.wire.rows.conversion import converted, name_of
from toolkit.wire.rows.snapshot_rows import NULLABLE


@dataclass(frozen=True, slots=True)
class ListingShape:
    """Places in a listing. See `toolkit.wire.profile.places`.

    ``items`` is a list of objects with a name under ``symbol`` and legs under ``legs``: objects
    with ``exchange`` and ``market``, or texts that ``leg`` reads. With ``symbol`` "*" it is an
    object of symbols with their legs. Legs may be an object of legs by name, or of exchanges with
    their markets. With ``legs`` "" the item is one leg, as text read with ``{symbol}`` in ``leg``.
    ``q`` and ``limit`` are parameters, ``truncated`` states whether there is more.
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

    def flat(self, answer: Response) -> Response:
        """Return an answer with its items at the top."""
        return flat_answer(answer, self.items, (self.truncated,), ())

    def listed(self, items: msgspec.Raw) -> list[msgspec.Raw]:
        """Return the items as a list of objects, each with its symbol and its legs.

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
        """Return an item's symbol in our spelling, and its legs as sent, None for none.

        Raises `msgspec.DecodeError` without a symbol.
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
        """Return an entry's legs: one by its name, or an exchange with its markets."""
        if self._parts(name):
            return [name]
        markets = said if isinstance(said, list) else [said]
        return [{self.exchange: name, self.market: market} for market in markets]

    def _parts(self, text: str) -> dict[str, object]:
        pattern = reading(self.leg)
        match = pattern.fullmatch(text) if pattern else None
        return dict(match.groupdict()) if match else {}

    def read_leg(self, said: object, spelling: Spelling) -> Leg:
        """Return a leg of a listing. Raises `InputError` for anything else.

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
    """Return a template that reads a leg, or both of a pair. `InputError` for others.

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


@dataclass(frozen=True, slots=True)
class StreamNames:
    """Paths of the sockets, and words of the market socket's messages.

    ``events`` and ``channels`` are by family. ``fields`` names the parts of a message: action, id,
    channel, type, item. ``words`` has values: the actions subscribe and unsubscribe, the type
    error, and the actions for a page of a history or an event log.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> BUILT_IN.streams.events["splash"], BUILT_IN.streams.channels["spread"]
    ('/api/v1/xbot/ws', 'spread')
    """

    market: str
    events: Mapping[str, str]
    channels: Mapping[str, str]
    fields: Mapping[str, str]
    words: Mapping[str, str]


_DAY = {"window_s": 86_400}


@dataclass(frozen=True, slots=True)
class SnapshotShape:
    """Places in a snapshot. See `toolkit.wire.profile.places`.

    ``items`` is a list, or an object by name, ``*1`` of each item. With ``.*`` behind it each value
    is again a list, or an object whose names are ``*2``. A field with the place "" is absent.
    ``leg`` reads an exchange and its market from one text. Fields of the activity are a day's
    counts, at places in the whole answer.
    """

    kind: str
    fields: tuple[FieldRule, ...]
    items: str = "items"
    leg: str = ""
    spelling: Spelling = AS_OURS

    @classmethod
    def of(cls, kind: str, said: Document, spelling: Spelling = AS_OURS) -> SnapshotShape:
        """Make the shape of a document. `InputError` names an invalid entry.

        >>> SnapshotShape.of("activity", BUILT_IN_DOCUMENT["snapshots"]["activity"]).fields[0].unit
        'count'
        """
        where = f"snapshots.{kind}"
        built_in = BUILT_IN_DOCUMENT["snapshots"][kind]["fields"]
        wanted = {column: field["unit"] for column, field in built_in.items()}
        leg = said.get("leg", "")
        fields = field_rules(where, said, wanted, absent=NULLABLE)
        if leg:
            leg_template(f"{where}.leg", leg)
        return cls(kind, fields, said.get("items", ""), leg, spelling)

    def ours(self, answer: Response) -> Response:
        """Return an answer in our shape, unchanged if its items are not found.

        A value that cannot be converted is unchanged, an absent field left out.

        >>> rule = FieldRule("rate", "r.now", "percent_per_interval", "fraction_per_interval")
        >>> shape = SnapshotShape("funding", (rule, FieldRule("symbol", "*1", "", "")), "rates.*")
        >>> sent = Response(200, {}, b'{"rates": {"A_B": [{"r": {"now": 50}, "mood": 1}]},"ts": 7}')
        >>> shape.ours(sent).body
        b'{"items":[{"rate":0.5,"symbol":"A_B","rest":{"mood":1}}],"rest":{"ts":7}}'
        """
        of_day = self.kind == "activity"
        place = WHOLE if of_day else self.items.rstrip(".*")
        try:
            flat = answer if place == WHOLE else flat_answer(answer, place, (), ())
            top = msgspec.json.decode(flat.body)
        except UNREADABLE:
            return answer
        if place == WHOLE:
            held, top = top, {}
        else:
            held = top.pop(place, None) if isinstance(top, dict) else None
        if not isinstance(held, dict | list):
            return answer
        if of_day:
            said: dict[str, object] = {"windows": [_DAY | self._item({}, held)]}
        else:
            items = _opened(held, self.items.count(".*"))
            said = {"items": [self._item(names, item) for names, item in items]}
        if absent := [r.column for r in self.fields if not r.wire and r.constant is None]:
            said["not_said"] = absent
        return replace(answer, body=msgspec.json.encode(said | ({"rest": top} if top else {})))

    def _item(self, names: Mapping[str, object], item: object) -> dict[str, object]:
        there = {**names, **leaves(item)}
        found: dict[str, object] = {}
        taken = set()
        for rule in sorted(self.fields, key=lambda rule: rule.hours is not None):
            if not rule.wire:
                found[rule.column] = rule.constant
            elif rule.wire in there:
                value = self._value(rule, there[rule.wire])
                if value is None and there[rule.wire] is not None:
                    continue  # a text that is not a leg
                if rule.hours and value and isinstance(value, float):
                    hours = found.get(rule.hours)
                    if not isinstance(hours, int | float):
                        continue  # a rate of no interval that is known
                    value *= hours
                found[rule.column] = value
                taken.add(rule.wire)
        rest = {place: value for place, value in there.items() if place not in taken}
        return found | ({"rest": rest} if rest else {})

    def _value(self, rule: FieldRule, value: object) -> object:
        if rule.wanted:
            return converted(rule, value)
        value = name_of(value)
        if not isinstance(value, str):
            return value
        return self.spelling.our_part(rule.column, value, self.leg)


def _opened(
    held: Mapping[str, Any] | list[Any], deeper: int, names: Mapping[str, object] | None = None
) -> Iterator[tuple[Mapping[str, object], object]]:
    """Yield the items, and those in them, with the names above each."""
    above, level = names or {}, len(names or {}) + 1
    each = held.items() if isinstance(held, Mapping) else ((None, value) for value in held)
    for name, value in each:
        named = above if name is None else {**above, f"*{level}": name}
        if deeper and isinstance(value, dict | list):
            yield from _opened(value, deeper - 1, named)
        else:
            yield named, value
