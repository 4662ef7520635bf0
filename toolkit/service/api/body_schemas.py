"""JSON Schema (draft 2020-12) of each tool's answer: MCP's output schemas and OpenAPI's bodies.

Made from the records and documents that ``/schemas`` shows. All fields are required but ``lost`` of
a page, ``exchanges`` of a source and ``next_cursor``, and others may be added. A nullable field
is an ``anyOf``, which every schema reader understands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from toolkit.market import EventFamily, Market, Plan
from toolkit.service.api.tools import RecordField, Tool
from toolkit.service.events.documents import document_schema
from toolkit.service.market.source import Kind

_Schema = dict[str, Any]

_STRING: _Schema = {"type": "string"}
_INTEGER: _Schema = {"type": "integer"}
_BOOLEAN: _Schema = {"type": "boolean"}
_OBJECT: _Schema = {"type": "object"}
_SECONDS: _Schema = {"type": "integer", "unit": "s"}
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
_LOST = _array(_object({"start": _SECONDS, "end": _SECONDS, "why": _STRING}))
_PAGE = {"items": _ITEMS, "next_end_time": _nullable(_SECONDS), "lost": _LOST}
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
        "retention_s": _nullable(_SECONDS),
        "delay_s": _SECONDS,
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
            "ts": _SECONDS,
            "windows": _ITEMS,
            "top_symbols": _array(_object({"symbol": _STRING} | _COUNTS)),
        },
    ),
    "dashboards/spread": ("spread_dashboard", {"ts": _SECONDS, "items": _ITEMS}),
    "dashboards/funding-overview": ("funding_overview", {"ts": _SECONDS, "items": _ITEMS}),
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
