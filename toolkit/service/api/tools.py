"""Tools: routes described once for REST, MCP, ``/schemas`` and OpenAPI, with query and record.

The JSON Schema (draft 2020-12) of each answer is made from the records and documents that
``/schemas`` shows. All fields are required except ``lost`` of a page, ``exchanges`` of a source and
``next_cursor``. Others may be added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from toolkit.market import EventFamily, Market, Plan
from toolkit.service.accounts import Limit, Reach, Terms
from toolkit.service.api.calls import Call
from toolkit.service.events.documents import (
    FundingChange,
    Lifecycle,
    SplashChange,
    SpreadChange,
    document_schema,
)
from toolkit.service.market.source import Kind
from toolkit.service.problems import bad_request

LONGEST_WINDOW_S = 7 * 86_400
"""The longest window of one request to an event log (s)."""

_LAST = 253_402_300_799  # the end of year 9999: milliseconds do not fit


def _unix_s(description: str) -> Meta:
    return Meta(ge=0, le=_LAST, description=f"Unix seconds; {description}")


_Symbol = Annotated[str, Meta(description="BASE_QUOTE, e.g. BTC_USDT")]
_Exchange = Annotated[str, Meta(description="an UPPERCASE name; a DEX is DEX-{CHAIN}")]
_Market = Annotated[Literal["spot", "futures", "dex"], Meta(description="spot, futures or dex")]
_EndTime = Annotated[int, _unix_s("only rows before this time (default: now)")]
_WindowStart = Annotated[int, _unix_s("the window's start, included")]
_WindowEnd = Annotated[int, _unix_s("the window's end, excluded, at most 7 days after its start")]
_Limit = Annotated[int, Meta(ge=1, description="a whole number of items, 1 or more")]
_LeastPct = Annotated[
    float, Meta(ge=0, le=1_000_000, description="percent, 0 to 1000000; the least absolute size")
]
_Lifecycle = Annotated[Lifecycle, Meta(description="open or closed")]
_Cursor = Annotated[str, Meta(description="the previous page's next_cursor, same query otherwise")]
_SpreadChange = Annotated[
    SpreadChange, Meta(description="spread.opened, spread.updated or spread.closed")
]
_SplashChange = Annotated[
    SplashChange, Meta(description="splash.pump, splash.dump or splash.faded")
]
_FundingChange = Annotated[
    FundingChange, Meta(description="funding.opened, funding.updated or funding.closed")
]


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
    min_pct: _LeastPct | UnsetType = UNSET
    lifecycle: _Lifecycle | UnsetType = UNSET
    cursor: _Cursor | UnsetType = UNSET


class SpreadEventQuery(EventQuery, frozen=True, kw_only=True):
    """A window of the log of spreads."""

    event_type: _SpreadChange | UnsetType = UNSET


class SplashEventQuery(EventQuery, frozen=True, kw_only=True):
    """A window of the log of pumps and dumps."""

    event_type: _SplashChange | UnsetType = UNSET


class FundingEventQuery(EventQuery, frozen=True, kw_only=True):
    """A window of the log of funding dislocations."""

    event_type: _FundingChange | UnsetType = UNSET


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


Q = TypeVar("Q", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Tool(Generic[Q]):
    """A route: its name, query, minimum plan, and the function that answers.

    ``limit``: the page sizes under a plan's terms, None for a route without pages. ``reach``: how
    far back and how late they show its data. ``documents``: the family of items that are event
    documents, not records. ``slow``: an answer may take seconds, so it runs in a thread.
    """

    name: str
    path: str
    summary: str
    query: type[Q]
    answer: Callable[[Call[Q]], bytes]
    minimum_plan: Plan = Plan.BUILDER
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
        """Return the ``/schemas`` entry for a plan; only a plan that includes it has a reach."""
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

        Unknown parameters are ignored. Others may be sent once.
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


_Schema = dict[str, Any]

_STRING: _Schema = {"type": "string"}
_INTEGER: _Schema = {"type": "integer"}
_BOOLEAN: _Schema = {"type": "boolean"}
_OBJECT: _Schema = {"type": "object"}
_UNIX_S: _Schema = {"type": "integer", "unit": "s"}
_KIND: _Schema = {"type": "string", "enum": list(get_args(Kind))}
_MARKET: _Schema = {"type": "string", "enum": list(Market)}


def _nullable(schema: _Schema) -> _Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(fields: Mapping[str, _Schema], *, optional: tuple[str, ...] = ()) -> _Schema:
    required = [name for name in fields if name not in optional]
    return {"type": "object", "properties": dict(fields), "required": required}


def _array(items: _Schema) -> _Schema:
    return {"type": "array", "items": items}


_ITEMS: _Schema = {}  # replaced by the tool's own record
_LOST = _array(_object({"start": _UNIX_S, "end": _UNIX_S, "why": _STRING}))
_PAGE = {"items": _ITEMS, "next_end_time": _nullable(_UNIX_S), "lost": _LOST}
_PRICE_HEAD = {"symbol": _STRING, "exchange": _STRING, "market": _MARKET}
_PAIR_HEAD = {
    "symbol": _STRING,
    "buy_exchange": _STRING,
    "buy_market": _MARKET,
    "sell_exchange": _STRING,
    "sell_market": _MARKET,
}
_VENUES = _array(
    _object(
        {
            "exchange": _STRING,
            "market": _MARKET,
            "funding_interval_hours": _nullable(_INTEGER | {"unit": "hours"}),
            "dex_network": _nullable(_STRING),
        }
    )
)
_COUNTS: dict[str, _Schema] = {family: _INTEGER | {"unit": "count"} for family in EventFamily}
_DESCRIBED = _object(
    {
        "route": _STRING,
        "minimum_plan": {"type": "string", "enum": list(Plan)},
        "retention_s": _nullable(_UNIX_S),
        "delay_s": _UNIX_S,
        "input_schema": _OBJECT,
        "record": _nullable(_OBJECT),
        "pagination": _nullable(_OBJECT),
        "document": _OBJECT,
    },
    optional=("document",),
)
_SCHEMAS = {
    "version": _STRING,
    "source": _object(
        {"kind": _KIND, "id": _STRING, "exchanges": _array(_STRING)}, optional=("exchanges",)
    ),
    "tools": {"type": "object", "additionalProperties": _DESCRIBED},
}


_BODIES: Mapping[str, tuple[str, Mapping[str, _Schema]]] = {
    "schemas": ("schemas", _SCHEMAS),
    "symbols/search": ("symbols_page", {"items": _ITEMS, "truncated": _BOOLEAN}),
    "history/price": ("price_history_page", _PRICE_HEAD | _PAGE),
    "history/spread": ("spread_history_page", _PAIR_HEAD | _PAGE),
    "history/funding": ("funding_history_page", _PAIR_HEAD | _PAGE),
    "event-activity": (
        "event_activity",
        {
            "ts": _UNIX_S,
            "windows": _ITEMS,
            "top_symbols": _array(_object({"symbol": _STRING} | _COUNTS)),
        },
    ),
    "dashboards/spread": ("spread_dashboard", {"ts": _UNIX_S, "items": _ITEMS}),
    "dashboards/funding-overview": ("funding_overview", {"ts": _UNIX_S, "items": _ITEMS}),
}


def body_schema(tool: Tool[Any]) -> _Schema:
    """Return the schema of a tool's answer."""
    if tool.documents:
        page = {
            "items": _array(document_schema(tool.documents)),
            "has_more": _BOOLEAN,
            "next_cursor": _STRING,
            "lost": _LOST,
        }
        return _named(f"{tool.documents}_events_page", page, optional=("next_cursor", "lost"))
    kind, fields = _BODIES[tool.path]
    items: _Schema = {}
    if tool.record is not None:
        record = {name: _field(name, field) for name, field in tool.record.fields.items()}
        items = _array(_object(record))
    said = {name: items if said is _ITEMS else said for name, said in fields.items()}
    return _named(kind, said, optional=("lost",))


def _named(kind: str, fields: Mapping[str, _Schema], *, optional: tuple[str, ...] = ()) -> _Schema:
    return _object({"type": {"type": "string", "enum": [kind]}, **fields}, optional=optional)


def _field(name: str, field: RecordField) -> _Schema:
    if name == "venues":
        return _VENUES
    schema: _Schema = {"type": field.type}
    if field.unit:
        schema["unit"] = field.unit
    if field.sign:
        schema["description"] = f"{field.sign} Positive means: {field.positive_means}."
    return _nullable(schema) if field.nullable else schema
