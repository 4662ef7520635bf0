"""The snapshots' part of the wire profile: where an answer has its items, and an item its fields.

An answer of another shape is put into ours before it is kept: its items under ``items``, of the
activity its day under ``windows``. What no place takes stays, under ``rest``. So the store and the
pages read one shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from toolkit.wire.conversion import converted, name_of
from toolkit.wire.exchange import UNREADABLE, Answer
from toolkit.wire.history_route import FieldRule, field_rules
from toolkit.wire.layers import BUILT_IN_DOCUMENT, Document
from toolkit.wire.listing_shape import leg_template
from toolkit.wire.places import WHOLE, flat_answer, leaves
from toolkit.wire.snapshots import NULLABLE
from toolkit.wire.spelling import AS_OURS, Spelling

_DAY = {"window_s": 86_400}


@dataclass(frozen=True, slots=True)
class SnapshotShape:
    """Places in a snapshot of another shape. See `toolkit.wire.places`.

    ``items`` is a list, or an object whose names are ``*1`` of each item. With ``.*`` behind it
    each value there is again a list, or an object whose names are ``*2``. A field with the place ""
    is one that the service does not have. ``leg`` reads an exchange and its market from one text.
    Of the activity the fields are the counts of a day, at places in the whole answer.
    """

    kind: str
    fields: tuple[FieldRule, ...]
    items: str = "items"
    leg: str = ""
    spelling: Spelling = AS_OURS

    @classmethod
    def of(cls, kind: str, said: Document, spelling: Spelling = AS_OURS) -> SnapshotShape:
        """Make the shape of a document. `InputError` names the entry that cannot be meant.

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

    def ours(self, answer: Answer) -> Answer:
        """Return an answer in our shape, as it is where its items are not found.

        A value that cannot be converted stays as it is, and a field that is not there is left out:
        who reads the items says so.

        >>> rule = FieldRule("rate", "r.now", "percent_per_interval", "fraction_per_interval")
        >>> shape = SnapshotShape("funding", (rule, FieldRule("symbol", "*1", "", "")), "rates.*")
        >>> sent = Answer(200, {}, b'{"rates": {"A_B": [{"r": {"now": 50}, "mood": 1}]}, "ts": 7}')
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
                    continue  # a text that is no leg
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
    """Yield the items of a list or an object, and of those in it, each with the names above it."""
    above, level = names or {}, len(names or {}) + 1
    each = held.items() if isinstance(held, Mapping) else ((None, value) for value in held)
    for name, value in each:
        named = above if name is None else {**above, f"*{level}": name}
        if deeper and isinstance(value, dict | list):
            yield from _opened(value, deeper - 1, named)
        else:
            yield named, value
