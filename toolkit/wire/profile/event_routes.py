"""The event logs in the wire profile: routes, parameters, and places in a document."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any
from urllib.parse import parse_qsl

from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import UNIT_FACTORS, EventFamily, unit_factor
from toolkit.tables import EVENT
from toolkit.wire.exchange import UNREADABLE, Response
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.layers import BUILT_IN_DOCUMENT, Document
from toolkit.wire.profile.places import WHOLE, flat_answer
from toolkit.wire.profile.shapes import leg_template
from toolkit.wire.profile.spelling import (
    AS_OURS,
    Spelling,
    check_templates,
    clock_value,
    filled_query,
    iso_ms,
    placeholders,
)
from toolkit.wire.rows.conversion import converted_text, plain_number

PAGING = ("start_time", "end_time", "limit", "cursor")
UNITS = {c.name: c.unit for c in EVENT.columns if c.unit and c.name != "committed_at"}
"""The units of the columns that hold numbers."""
_WORDED = ("event_type", "lifecycle")
_FILTERS = ("symbol", "exchange", "event_type", "min_pct", "lifecycle")


@dataclass(frozen=True, slots=True)
class EventRoute:
    """One event log: its address, parameters, and places in its documents.

    ``paths`` has the places per column, the first present one counting. ``volatile`` fields differ
    between deliveries of a document. ``retention_s`` is None for all of time. ``filters``, by our
    names, are in each request.

    ``ask`` has the service's parameters as templates, in place of ``parameters``; ``times`` is the
    unit of requested times. ``units`` and ``words`` have what differs from ours. ``leg`` reads an
    exchange and its market, or both legs, from one text.
    """

    family: EventFamily
    tool: str
    path: str
    items: str
    rows: str
    next: str
    more: str
    lost: str
    limit: int
    window_s: int
    retention_s: int | None
    delay_s: int
    minimum_plan: str
    times: str
    numbers: str
    leg: str
    volatile: tuple[str, ...]
    words: Mapping[str, str]
    ask: Mapping[str, str]
    parameters: Mapping[str, str]
    units: Mapping[str, str]
    paths: Mapping[str, tuple[str, ...]]
    spelling: Spelling = AS_OURS
    limits: Limits = field(default=LIMITS, repr=False)
    filters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, family: EventFamily, said: Document, spelling: Spelling, limits: Limits
    ) -> EventRoute:
        """Make the route of a document. `InputError` names an invalid entry."""
        where = f"events.{family}"
        parts: dict[str, Any] = {
            **said,
            "items": WHOLE if said["rows"] == "lines" else said["items"],
            "retention_s": None if said["retention_s"] == math.inf else said["retention_s"],
            "volatile": tuple(said["volatile"]),
            "paths": {column: tuple(places) for column, places in said["paths"].items()},
        }
        tool = BUILT_IN_DOCUMENT["tools"][f"{family}_events"]
        route = cls(family=family, tool=tool, spelling=spelling, limits=limits, **parts)
        check_templates(f"{where}.ask", route.ask, tuple(route.parameters))
        if route.rows in ("columns", "table"):
            raise InputError(f"{where}.rows", route.rows, "list, keyed, lines: a document is whole")
        for column, unit in route.units.items():
            try:
                unit_factor(unit, UNITS[column])
            except InputError as error:
                raise InputError(f"{where}.units.{column}", unit, error.allowed) from None
        if route.leg:
            leg_template(f"{where}.leg", route.leg)
        return route

    def query(self, window: Interval, cursor: str | None) -> dict[str, object]:
        """Return the query of one page, the window's first without a cursor.

        >>> BUILT_IN_EVENTS[EventFamily.SPLASH].query(Interval(0, 60), None)
        {'start_time': 0, 'end_time': 60, 'limit': 500, 'cursor': None}
        """
        ends = (clock_value(ts, self.times) for ts in (window.start, window.end))
        values: dict[str, object] = dict(zip(PAGING, (*ends, self.limit, cursor), strict=True))
        filters = {role: self.words.get(word, word) for role, word in self.filters.items()}
        if self.ask:
            asked = {place for template in self.ask.values() for place in placeholders(template)}
            others = {role: word for role, word in filters.items() if role not in asked}
            return filled_query(self.ask, dict.fromkeys(_FILTERS) | values | filters) | others
        named = values | filters
        return {self.parameters.get(role, role): value for role, value in named.items()}

    def cursor_in(self, said: str) -> str:
        """Return a page's cursor: of the next page's address, its parameter.

        >>> BUILT_IN_EVENTS[EventFamily.SPLASH].cursor_in("https://h/log?limit=5&cursor=c%2F7")
        'c/7'
        """
        name = next((n for n, t in self.ask.items() if "{cursor}" in t), self.parameters["cursor"])
        return dict(parse_qsl(said.partition("?")[2])).get(name, said)

    def filtered(self, lifecycle: str | None) -> EventRoute:
        """Return the route for documents of one state, None for all.

        >>> asked = BUILT_IN_EVENTS[EventFamily.SPLASH].filtered("open")
        >>> asked.query(Interval(0, 60), None)["lifecycle"]
        'open'
        """
        return self if lifecycle is None else replace(self, filters={"lifecycle": lifecycle})

    def flat(self, answer: Response) -> Response:
        """Return an answer with documents and cursor at the top: see `places`."""
        return flat_answer(answer, self.items, (self.next, self.more, self.lost), (), self.rows)

    @property
    def is_ours(self) -> bool:
        """Whether documents have our units and words."""
        as_ours = self.spelling is AS_OURS and self.numbers == "json"
        return as_ours and not (self.words or self.leg) and self.units.items() <= UNITS.items()

    def ours(self, column: str, value: object) -> object:
        """Return a value of a document in the column's unit and in our words.

        What cannot be converted is unchanged, a text that ``leg`` cannot read is None.

        >>> route = BUILT_IN_EVENTS[EventFamily.SPLASH]
        >>> replace(route, units={"magnitude_pct": "bps"}).ours("magnitude_pct", 150)
        1.5
        """
        if self.is_ours:
            return value
        if column in UNITS:
            return self._number(value, self.units.get(column, UNITS[column]), UNITS[column])
        if not isinstance(value, str):
            return value
        if column not in _WORDED:
            return self.spelling.our_part(column, value, self.leg)
        return next((ours for ours, theirs in self.words.items() if value == theirs), value)

    def _number(self, value: object, unit: str, wanted: str) -> object:
        if unit == "iso":
            if not isinstance(value, str):
                return None if value is None else str(value)  # of no unit that is known
            with contextlib.suppress(*UNREADABLE):
                value = iso_ms(value)
        elif isinstance(value, str) and self.numbers != "json":
            with contextlib.suppress(*UNREADABLE):
                text = plain_number(value, unit) if self.numbers == "printed" else value
                return converted_text(text, unit, wanted)
        if unit == wanted or not isinstance(value, int | float):
            return value
        if wanted in ("s", "ms"):
            return math.floor(Fraction(value) * UNIT_FACTORS[unit][1] / UNIT_FACTORS[wanted][1])
        return value * unit_factor(unit, wanted)


BUILT_IN_EVENTS: Mapping[EventFamily, EventRoute] = {
    EventFamily(family): EventRoute.of(EventFamily(family), said, AS_OURS, LIMITS)
    for family, said in BUILT_IN_DOCUMENT["events"].items()
}
"""The event logs of docs/interface.md. A splash has one leg, kept in the buy columns."""
