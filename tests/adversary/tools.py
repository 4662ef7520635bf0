"""The tools of a service with other pages and names: wrappers around the answers.

Each body is made by the faithful service and then changed, so the faithful service has no code for
this. The switches are read at every call, since they may be changed while it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from tests.adversary.rest import RestSwitches
from tests.adversary.settings import ActiveSwitches
from toolkit.market import unit_factor
from toolkit.service.api.calls import Call
from toolkit.service.api.tools import EventQuery, PriceQuery, Record, SearchQuery, SpreadQuery, Tool

_FAITHFUL = RestSwitches()
_ALL = 10**9


def adverse_tools(tools: Sequence[Tool[Any]], active: ActiveSwitches) -> tuple[Tool[Any], ...]:
    """Return the tools with their present names. They read the switches at each answer.

    >>> from toolkit.service.api.registry import TOOLS
    >>> from tests.adversary.settings import Adversary
    >>> named = RestSwitches(renamed_tools={"data.get_schemas": "rail.describe"})
    >>> adverse_tools(TOOLS, ActiveSwitches(Adversary(rest=named)))[0].name
    'rail.describe'
    """
    switches = active.adversary.rest
    return tuple(
        replace(
            tool,
            name=switches.renamed_tools.get(tool.name, tool.name),
            answer=partial(_answer, active, tools, tool),
        )
        for tool in tools
    )


def _answer(
    active: ActiveSwitches, tools: Sequence[Tool[Any]], tool: Tool[Any], call: Call[Any]
) -> bytes:
    switches = active.adversary.rest
    if isinstance(call.query, EventQuery):
        call = replace(call, now=call.now - active.adversary.archive_lag_s)
    if switches == _FAITHFUL:
        return tool.answer(call)
    if isinstance(call.query, PriceQuery | SpreadQuery):
        history = _history if switches.pages in ("backwards", "rising") else _oldest_first
        return msgspec.json.encode(history(switches, tool, call))
    if isinstance(call.query, EventQuery):
        return msgspec.json.encode(_events(switches, tool, call))
    if isinstance(call.query, SearchQuery) and switches.symbols_cap is not None:
        return msgspec.json.encode(_symbols(switches.symbols_cap, tool, call))
    if tool.path == "schemas":
        return msgspec.json.encode(
            _schemas(switches, tools, msgspec.json.decode(tool.answer(call)))
        )
    return tool.answer(call)


def _history(switches: RestSwitches, tool: Tool[Any], call: Call[Any]) -> dict[str, Any]:
    """Return a page of a trajectory, cut and renamed by the switches."""
    asked = call.now if call.query.end_time is UNSET else call.query.end_time
    limit = min(call.limit, switches.page_cap or call.limit)
    whole = switches.end_time == "inclusive"
    end = asked + whole
    page, more = _rows_before(switches, tool, call, end, limit)
    rows: list[dict[str, Any]] = page["items"]
    if not rows and not more and switches.at_end == "repeat":
        page, _ = _rows_before(switches, tool, call, call.now + 1, _ALL)
        rows = page["items"][-limit:]
    elif rows and switches.empty_pages_s is not None:
        edge = (end - 1) - (end - 1) % switches.empty_pages_s
        scanned = [row for row in rows if row["ts"] >= edge]
        if not scanned:
            return page | {"items": [], "next_end_time": edge - whole}
        more |= len(scanned) < len(rows)
        rows = scanned
    offset = {"oldest": 0, "oldest-1": -1, "oldest+1": 1}[switches.next_end_time]
    page["items"] = [_worded(switches, tool.record, row) for row in rows]
    if switches.pages == "rising":
        page["items"].reverse()
    page["next_end_time"] = None
    if rows and (more or switches.at_end == "repeat"):
        page["next_end_time"] = rows[-1]["ts"] + offset
    elif switches.at_end == "missing":
        del page["next_end_time"]
    elif switches.at_end == "echo":
        page["next_end_time"] = asked
    return page


def _oldest_first(switches: RestSwitches, tool: Tool[Any], call: Call[Any]) -> dict[str, Any]:
    """Return a page of a trajectory that is paged forwards, or not at all."""
    asked = call.now if call.query.end_time is UNSET else call.query.end_time
    end = asked if switches.pages == "oldest" else call.now + 1
    page, _ = _rows_before(switches, tool, call, end, _ALL)
    rows = page["items"][::-1]
    if switches.pages == "forwards":
        rows = [row for row in rows if row["ts"] >= asked]
    taken = rows[: min(call.limit, switches.page_cap or call.limit)]
    return page | {
        "items": [_worded(switches, tool.record, row) for row in taken],
        "next_end_time": taken[-1]["ts"] + 1 if len(taken) < len(rows) else None,
    }


def _rows_before(
    switches: RestSwitches, tool: Tool[Any], call: Call[Any], end: int, limit: int
) -> tuple[dict[str, Any], bool]:
    """Return the newest rows before ``end``, by rounded time, and whether there are more."""
    tie_s = switches.tie_s
    before = -(-end // tie_s) * tie_s
    query = msgspec.structs.replace(call.query, end_time=before)
    page = msgspec.json.decode(tool.answer(replace(call, query=query, limit=limit)))
    for row in page["items"]:
        if switches.tie_field is not None:
            row[switches.tie_field] = row["ts"] % tie_s
        row["ts"] -= row["ts"] % tie_s
    return page, page["next_end_time"] is not None


def _events(switches: RestSwitches, tool: Tool[Any], call: Call[EventQuery]) -> dict[str, Any]:
    limit = min(call.limit, switches.page_cap or call.limit)
    call = replace(call, limit=limit)
    page: dict[str, Any]
    if switches.pages == "backwards":
        page = msgspec.json.decode(tool.answer(call))
    else:
        page = _oldest_documents(tool, call)
    page["items"] = [
        _renamed_ids(switches, _worded(switches, None, document)) for document in page["items"]
    ]
    hidden = {"both": (), "cursor": ("has_more",), "more": ("next_cursor",)}
    for name in hidden.get(switches.cursor_names, ("has_more", "next_cursor")):
        page.pop(name, None)
    return page


def _oldest_documents(tool: Tool[Any], call: Call[EventQuery]) -> dict[str, Any]:
    """Return a page of a log that is oldest first. Its cursor is the number of those before."""
    at = 0 if call.query.cursor is UNSET else int(call.query.cursor)
    query = msgspec.structs.replace(call.query, cursor=UNSET)
    page: dict[str, Any]
    page = msgspec.json.decode(tool.answer(replace(call, query=query, limit=_ALL)))
    found = page["items"][::-1]
    page |= {"items": found[at : at + call.limit], "has_more": at + call.limit < len(found)}
    return page | ({"next_cursor": str(at + call.limit)} if page["has_more"] else {})


def _symbols(cap: int, tool: Tool[Any], call: Call[SearchQuery]) -> dict[str, Any]:
    """Return a listing of a few symbols, without a word that there are more."""
    page: dict[str, Any] = msgspec.json.decode(tool.answer(replace(call, limit=_ALL)))
    del page["truncated"]
    return page | {"items": page["items"][: min(cap, call.limit)]}


def _worded(switches: RestSwitches, record: Record | None, row: dict[str, Any]) -> dict[str, Any]:
    """Return a record or document with the names and units of the switches."""
    said = dict(row)
    for name, unit in switches.units.items():
        if record is not None and name in record.fields and said.get(name) is not None:
            described = record.fields[name]
            value = said[name] * unit_factor(described.unit or unit, unit)
            said[name] = round(value) if described.type == "integer" else value
    for name in switches.reversed_fields:
        if record is not None and said.get(name) is not None:
            said[name] = -said[name]
    if record is not None and switches.numbers == "text":
        said = {n: str(v) if isinstance(v, float) else v for n, v in said.items()}
    return {
        switches.renamed_fields.get(name, name): value
        for name, value in said.items()
        if name not in switches.missing_fields
    } | dict(switches.extra_fields)


def _renamed_ids(switches: RestSwitches, found: Any) -> Any:
    """Rename the schema ids in a JSON value."""
    if isinstance(found, dict):
        return {name: _renamed_ids(switches, value) for name, value in found.items()}
    if isinstance(found, list):
        return [_renamed_ids(switches, value) for value in found]
    return switches.schema_ids.get(found, found) if isinstance(found, str) else found


def _schemas(
    switches: RestSwitches, tools: Sequence[Tool[Any]], document: dict[str, Any]
) -> dict[str, Any]:
    """Change ``/schemas`` to the names and units of the switches."""
    paged = {tool.name for tool in tools if tool.pagination is not None}
    for name, said in document["tools"].items():
        if name not in paged:
            continue
        if said["record"] is not None:
            _describe_record(switches, said["record"])
        if "document" in said:
            properties = said["document"].get("properties", {})
            said["document"]["properties"] = _names(switches, properties)
            said["document"] = _renamed_ids(switches, said["document"])
    document["tools"] = {
        switches.renamed_tools.get(name, name): said for name, said in document["tools"].items()
    }
    return document


def _describe_record(switches: RestSwitches, record: dict[str, Any]) -> None:
    if not switches.undeclared:
        _declare(switches, record)
    record["key"] = [switches.renamed_fields.get(name, name) for name in record["key"]]
    record["fields"] = _names(switches, record["fields"]) | {
        name: {"type": _json_type(value), "unit": None, "nullable": False}
        for name, value in switches.extra_fields.items()
    }


def _declare(switches: RestSwitches, record: dict[str, Any]) -> None:
    """State the units, signs and key that the switches give the record."""
    fields = record["fields"]
    for name, unit in switches.units.items():
        if name in fields:
            fields[name]["unit"] = unit
    for name in switches.reversed_fields:
        if "sign" in fields.get(name, {}):
            fields[name] |= {
                said: _other_way(fields[name][said]) for said in ("sign", "positive_means")
            }
    if switches.tie_s > 1:
        record["key"] = []
        if switches.tie_field is not None:
            record["key"] = ["ts", switches.tie_field]
            fields[switches.tie_field] = {"type": "integer", "unit": "s", "nullable": False}


def _other_way(sentence: str) -> str:
    """Swap the legs, or longs and shorts, in a sentence on a sign."""
    pair = ("buy", "sell") if "buy" in sentence else ("long", "short")
    swapped = sentence.replace(pair[0], "\0").replace(pair[1], pair[0])
    return swapped.replace("\0", pair[1])


def _names(switches: RestSwitches, described: Mapping[str, Any]) -> dict[str, Any]:
    return {
        switches.renamed_fields.get(name, name): value
        for name, value in described.items()
        if name not in switches.missing_fields
    }


def _json_type(value: object) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return kinds.get(type(value), "object")
