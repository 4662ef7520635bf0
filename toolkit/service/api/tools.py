"""Tools, each a route described once for REST, MCP, ``/schemas`` and OpenAPI, and their records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from toolkit.market import EventFamily, Plan
from toolkit.service.accounts.policy import Limit, Reach, Terms
from toolkit.service.accounts.problems import bad_request
from toolkit.service.api.calls import Call
from toolkit.service.events.documents import document_schema


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field: JSON type, unit (None: no unit), and the meaning of its sign."""

    type: str
    unit: str | None = None
    nullable: bool = False
    sign: str = ""
    positive_means: str = ""

    @property
    def document(self) -> dict[str, object]:
        """The field as ``/schemas`` shows it."""
        shown: dict[str, object] = {"type": self.type, "unit": self.unit, "nullable": self.nullable}
        if self.sign:
            shown |= {"sign": self.sign, "positive_means": self.positive_means}
        return shown


@dataclass(frozen=True, slots=True)
class Record:
    """The items of a page: the key fields, unique per item, and all fields."""

    key: tuple[str, ...]
    fields: Mapping[str, RecordField]

    @property
    def document(self) -> dict[str, object]:
        """The record as ``/schemas`` shows it."""
        return {
            "key": self.key,
            "fields": {name: field.document for name, field in self.fields.items()},
        }


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

PRICE_RECORD = Record(
    key=("ts",),
    fields={
        "ts": RecordField("integer", "s"),
        "price": RecordField("number", "quote"),
        "mark_price": RecordField("number", "quote", nullable=True),
        "volume": RecordField("number", "quote", nullable=True),
    },
)
"""An item of history/price."""

SPREAD_RECORD = Record(
    key=("ts",),
    fields={
        "ts": RecordField("integer", "s"),
        "buy_price": RecordField("number", "quote"),
        "sell_price": RecordField("number", "quote"),
        "spread_pct": _SPREAD_PCT,
    },
)
"""An item of history/spread."""

SYMBOL_RECORD = Record(
    key=("symbol",),
    fields={
        "symbol": RecordField("string"),
        "base": RecordField("string"),
        "quote": RecordField("string"),
        "venues": RecordField("array"),
        "updated_at": RecordField("integer", "s"),
    },
)
"""An item of symbols/search."""

FUNDING_RECORD = Record(
    key=("ts",),
    fields={
        "ts": RecordField("integer", "s"),
        "buy_rate": replace(_RATE, nullable=True),
        "sell_rate": replace(_RATE, nullable=True),
        "buy_interval_hours": RecordField("integer", "hours", nullable=True),
        "sell_interval_hours": RecordField("integer", "hours", nullable=True),
        "differential_pct_8h": RecordField(
            "number",
            "percent_per_8h",
            nullable=True,
            sign="Positive where the sell leg's rate in force is above the buy leg's, each brought "
            "to 8 h.",
            positive_means=_EARNS,
        ),
    },
)
"""An item of history/funding."""

SPREAD_DASHBOARD_RECORD = Record(
    key=("symbol", "buy_exchange", "buy_market", "sell_exchange", "sell_market"),
    fields={
        "symbol": RecordField("string"),
        "spread_type": RecordField("string"),
        "buy_exchange": RecordField("string"),
        "buy_market": RecordField("string"),
        "buy_price": RecordField("number", "quote"),
        "sell_exchange": RecordField("string"),
        "sell_market": RecordField("string"),
        "sell_price": RecordField("number", "quote"),
        "spread_pct": _SPREAD_PCT,
        "opened_at": RecordField("integer", "s", nullable=True),
    },
)
"""An item of dashboards/spread."""

FUNDING_OVERVIEW_RECORD = Record(
    key=("symbol", "exchange", "market"),
    fields={
        "symbol": RecordField("string"),
        "exchange": RecordField("string"),
        "market": RecordField("string"),
        "rate": _RATE,
        "interval_hours": RecordField("integer", "hours"),
        "next_funding_time": RecordField("integer", "s"),
    },
)
"""An item of dashboards/funding-overview."""

ACTIVITY_RECORD = Record(
    key=("window_s",),
    fields={
        "window_s": RecordField("integer", "s"),
        "spread": RecordField("integer", "count"),
        "splash": RecordField("integer", "count"),
        "funding": RecordField("integer", "count"),
    },
)
"""An item of event-activity's windows."""


Q = TypeVar("Q", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Tool(Generic[Q]):
    """A route: its name, query, minimum plan, and the function that answers.

    ``limit`` gives the page sizes under a plan's terms, None for a route without pages, ``reach``
    how far back and how late they show the route's data. ``documents`` is the family of items that
    are event documents, not records. ``slow``: an answer may take seconds, so it runs in a thread.
    """

    name: str
    path: str
    summary: str
    minimum_plan: Plan
    query: type[Q]
    answer: Callable[[Call[Q]], bytes]
    limit: Callable[[Terms], Limit] | None = None
    reach: Callable[[Terms], Reach] = lambda _: Reach()
    record: Record | None = None
    pagination: Mapping[str, object] | None = None
    documents: EventFamily | None = None
    slow: bool = False

    @property
    def route(self) -> str:
        """The path below the service's address."""
        return f"/api/v1/data/{self.path}"

    def input_schema(self, terms: Terms) -> dict[str, Any]:
        """Return the JSON Schema of the query, with the ``limit`` of these terms."""
        return _input_schema(self.query, self.limit(terms) if self.limit else None)

    def describe(self, plan: Plan, terms: Terms) -> dict[str, object]:
        """Return the ``/schemas`` entry for a plan, with the reach of a plan that includes it."""
        reach = self.reach(terms) if self.open_to(plan) else Reach()
        shown: dict[str, object] = {
            "route": self.route,
            "minimum_plan": self.minimum_plan,
            "retention_s": reach.retention_s,
            "delay_s": reach.delay_s,
            "input_schema": self.input_schema(terms),
            "record": self.record.document if self.record else None,
            "pagination": self.pagination,
        }
        if self.documents is not None:
            shown["document"] = document_schema(self.documents)
        return shown

    def open_to(self, plan: Plan) -> bool:
        """Return whether a plan includes the tool."""
        return plan.rank >= self.minimum_plan.rank

    def read(self, given: Sequence[tuple[str, str]], plan: Plan, terms: Terms) -> tuple[Q, int]:
        """Read the query and its limit from text parameters. A 400 names each wrong one.

        Parameters that the route does not know are ignored. Others may be sent once.

        >>> from toolkit.service.accounts.policy import TERMS
        >>> from toolkit.service.api.registry import TOOLS
        >>> TOOLS[1].read([("q", "btc"), ("unknown", "1")], Plan.FREE, TERMS[Plan.FREE])
        (SearchQuery(limit=UNSET, q='btc'), 100)
        """
        values: dict[str, Any] = {}
        errors: list[tuple[str, str]] = []
        for field in _fields(self.query):
            sent = [value for name, value in given if name == field.name]
            if len(sent) > 1:
                errors.append((field.name, f"sent {len(sent)} times; send it once"))
            elif sent:
                try:
                    values[field.name] = msgspec.convert(sent[0], field.type, strict=False)
                except msgspec.ValidationError:
                    errors.append((field.name, self._refusal(field.name, sent[0], plan, terms)))
            elif field.required:
                errors.append((field.name, "is missing"))
        page = Limit(0, 0) if self.limit is None else self.limit(terms)
        limit: int = values.get("limit", page.default)
        if limit > page.maximum:
            errors.append(("limit", self._refusal("limit", str(limit), plan, terms)))
        if errors:
            raise bad_request(errors)
        return self.query(**values), limit

    def _refusal(self, parameter: str, value: str, plan: Plan, terms: Terms) -> str:
        allowed = self.input_schema(terms)["properties"][parameter]
        rule = allowed["description"]
        if parameter == "limit":
            rule += f", at most {allowed['maximum']} on the {plan} plan"
        return f"{value[:80]!r} is not allowed; allowed: {rule}"


@cache
def _fields(query: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(query)  # cached, because it evaluates every annotation again


@cache
def _input_schema(query: type[msgspec.Struct], page: Limit | None) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([query])
    schema: dict[str, Any] = components[query.__name__]
    if page is not None:
        schema["properties"]["limit"] |= {"default": page.default, "maximum": page.maximum}
    return schema
