"""Places in JSON: where an answer has its rows, and a row its fields.

``px.last`` is the field ``last`` of the object ``px``, ``legs[A.b]`` the field ``A.b`` of ``legs``,
``[1]`` the second value of a list, in a document ``[-1]`` the last, ``header:x-next`` a header. A
field with the whole name, such as ``px.last``, comes first.

An answer with such places is flattened before it is read: each row becomes one object with these
values under the places' names, the rest unchanged, a list as an object with the names ``[0]``,
``[1]`` and so on.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from toolkit.wire.exchange import HEADER, UNREADABLE, Response, decoded

WHOLE = "[]"
"""The place of rows that are the answer itself."""
FIRST_NAME = "*1"
"""The place of the name that a row has in the object that holds it."""
_DIGITS = 19
_OUR_PAGE = b'{"[]":'
"""How a page begins that was made of a stream's records, for a route whose rows are the answer."""
_STEP = re.compile(r"\[[^\[\]]+\]|[^.\[\]]+")
_POSITION = re.compile(r"\[(\d{1,9}|-1)\]")
_DEEPEST = 6
_Parts = dict[str, msgspec.Raw]


def is_plain(place: str) -> bool:
    """Check for the name of a field at the top.

    >>> is_plain("price"), is_plain("px.last"), is_plain("[1]"), is_plain("header:x-next")
    (True, False, False, False)
    """
    return not (place.startswith(HEADER) or "." in place or "[" in place)


def is_nameable(place: str) -> bool:
    """Check for a place that a profile can name: not empty, nothing that JSON escapes.

    >>> is_nameable("px.last"), is_nameable('a"b'), is_nameable("")
    (True, False, False)
    """
    return bool(place) and not any(char in '"\\' or char < " " for char in place)


def value_at(value: object, place: str) -> object:
    """Return the value at a place in decoded JSON, None if it is absent.

    >>> value_at({"px": {"last": 3}, "legs": ["a", "b"]}, "px.last"), value_at([1, 2], "[1]")
    (3, 2)
    """
    if isinstance(value, dict) and place in value:
        return value[place]
    for step in _STEP.findall(place):
        if isinstance(value, dict):
            value = value.get(step, value.get(step.strip("[]")))
        elif isinstance(value, list) and (position := _POSITION.fullmatch(step)):
            at = int(position[1])
            value = value[at] if at < len(value) and value else None
        else:
            return None
    return value


def text_at(body: bytes, place: str) -> str:
    """Return the text at a place in a JSON body, "" if it is absent.

    >>> text_at(b'{"fault": {"why": "no such pair"}}', "fault.why")
    'no such pair'
    """
    found = value_at(decoded(body), place) if place else None
    return found if isinstance(found, str) else ""


def values_of(value: object) -> dict[str, Any]:
    """Return the values of an object or a list by name, else {}.

    >>> values_of([60, {"a": 1}])
    {'[0]': 60, '[1]': {'a': 1}}
    """
    if isinstance(value, list):
        return {f"[{at}]": each for at, each in enumerate(value)}
    return value if isinstance(value, dict) else {}


def upper_levels(page: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the values of an object and of the objects in it, by place.

    >>> upper_levels({"result": {"list": []}})[1]
    {'result.list': []}
    """
    return page, {
        f"{name}.{below}": value
        for name, part in page.items()
        if isinstance(part, dict)
        for below, value in part.items()
    }


def parts_said_of(said: object, words: Container[str], depth: int = 0) -> Iterator[object]:
    """Yield the parts of a document that belong to given words, by name or as neighbours.

    >>> list(parts_said_of({"tools": [{"route": "/p", "unit": "s"}], "/p": 3}, ["/p"]))
    [3, {'route': '/p', 'unit': 's'}]
    """
    if depth > _DEEPEST or not isinstance(said, dict | list):
        return
    if isinstance(said, dict):
        yield from (value for name, value in said.items() if name in words)
        if any(isinstance(value, str) and value in words for value in said.values()):
            yield said
    for value in said.values() if isinstance(said, dict) else said:
        yield from parts_said_of(value, words, depth + 1)


def leaves(value: object, prefix: str = "", deepest: int = 50) -> dict[str, Any]:
    """Return the values in objects and lists by place, down to ``deepest`` levels.

    >>> leaves({"px": {"last": 3}, "t": 60}), leaves([60, 3])
    ({'px.last': 3, 't': 60}, {'[0]': 60, '[1]': 3})
    """
    if not isinstance(value, dict | list):
        return {prefix: value}
    found: dict[str, Any] = {}
    above = f"{prefix}." if prefix and isinstance(value, dict) else prefix
    for name, each in values_of(value).items():
        opens = deepest and each and isinstance(each, dict | list)
        place = f"{above}{name}"
        found |= leaves(each, place, deepest - 1) if opens else {place: each}
    return found


def flat_answer(
    answer: Response, items: str, beside: Sequence[str], fields: Sequence[str], rows: str = "list"
) -> Response:
    """Return an answer with its rows, and the values beside them, at the top under their places.

    ``fields`` are the places in a row. ``rows`` is the rows' form: a list, an object of columns, an
    object with the name ``*1`` of each row, a JSON value per line, or lists below one of their
    names. An answer without such places, or not a JSON object, is unchanged.

    >>> body = b'{"result": {"data": [[60, {"last": 3}, "x"]]}}'
    >>> flat = flat_answer(Response(200, {"x-next": "60"}, body), "result.data", ["header:x-next"],
    ...                    ["[0]", "[1].last"])
    >>> flat.body
    b'{"result.data":[{"[0]":60,"[1].last":3,"[2]":"x"}],"header:x-next":60}'
    """
    if rows == "list" and all(map(is_plain, (items, *beside, *fields))):
        return answer
    ours = answer.body.startswith(_OUR_PAGE)
    if rows == "lines" and not ours:
        lines = (line for line in answer.body.splitlines() if line.strip())
        answer = replace(answer, body=b"[%b]" % b",".join(lines))
    try:
        top = _parts(msgspec.Raw(answer.body), at_top=None if ours else items)
    except UNREADABLE:
        return answer
    if top is None:
        return answer
    for place in (items, *beside):
        if place.startswith(HEADER):
            top[place] = _header(answer, place.removeprefix(HEADER))
        elif place not in top and not is_plain(place):
            taken: _Parts = {}
            rest = _taken(msgspec.Raw(msgspec.json.encode(top)), _tree((place,)), taken)
            top = (None if rest is None else _parts(rest)) or {}
            top |= taken
    if items in top and rows in ("columns", "keyed") and bytes(top[items])[:1] == b"{":
        if items == WHOLE:  # what is beside the rows is in their own object
            parts = _parts(top[items]) or {}
            top = {place: parts[place] for place in beside if place in parts} | top
        top[items] = (_of_columns if rows == "columns" else _of_names)(top[items], beside)
    if items in top and rows == "table":
        top[items] = _of_table(top[items])
    if items in top and bytes(top[items])[:1] == b"[":
        top[items] = _flat_rows(top[items], _tree(tuple(fields)))
    return Response(answer.status, answer.headers, msgspec.json.encode(top), answer.url)


def with_rows(body: bytes, place: str, wanted: Sequence[bool]) -> bytes:
    """Return a body with only some of its rows, other bytes unchanged.

    ``wanted`` has a value per row at ``place``. A body with other rows there, or that is not JSON,
    is unchanged.

    >>> body = b'{"result": {"data": [[60, 1], [0, 2]]}, "next":60}'
    >>> with_rows(body, "result.data", [True, False])
    b'{"result": {"data": [[60, 1]]}, "next":60}'
    """
    try:
        parts = _parts(msgspec.Raw(body), at_top=place) or {}
    except UNREADABLE:
        return body
    array = parts.get(place)
    for step in () if array is not None else _STEP.findall(place):
        array = parts.get(step, msgspec.Raw(b""))
        parts = _parts(array) or {}
    found = bytes(array or b"")
    if not found.startswith(b"[") or body.count(found) != 1:
        return body
    rows = decoded(found, list[msgspec.Raw]) or []  # none where they are on a line each
    if len(rows) != len(wanted):
        return body
    before, after = body.split(found)
    return b"%b[%b]%b" % (before, b",".join(map(bytes, itertools.compress(rows, wanted))), after)


def _of_columns(items: msgspec.Raw, beside: Sequence[str]) -> msgspec.Raw:
    columns = _columns(items, beside)
    if len({len(column) for column in columns.values()}) != 1:
        return items
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return msgspec.Raw(msgspec.json.encode(rows))


def _columns(raw: msgspec.Raw, beside: Sequence[str], above: str = "") -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for name, value in (_parts(raw) or {}).items():
        place = f"{above}{name}"
        if bytes(value)[:1] == b"{":
            found |= _columns(value, (), f"{place}.")
        elif bytes(value)[:1] == b"[" and place not in beside:
            found[place] = msgspec.json.decode(value, type=list[msgspec.Raw])
    return found


def _of_names(items: msgspec.Raw, beside: Sequence[str]) -> msgspec.Raw:
    rows = []
    for name, value in msgspec.json.decode(items, type=_Parts).items():
        if name not in beside:
            number = name.isdecimal() and str(int(name[:_DIGITS])) == name
            said = msgspec.Raw(name.encode()) if number else name
            rows.append({FIRST_NAME: said, **(_parts(value) or {WHOLE: value})})
    return msgspec.Raw(msgspec.json.encode(rows))


def _of_table(items: msgspec.Raw) -> msgspec.Raw:
    try:
        names, *rows = msgspec.json.decode(items, type=list[list[msgspec.Raw]])
        columns = [msgspec.json.decode(name, type=str) for name in names]
        found = [dict(zip(columns, row, strict=True)) for row in rows]
    except (*UNREADABLE, ValueError):
        return items
    return msgspec.Raw(msgspec.json.encode(found)) if len({*columns}) == len(columns) else items


def _flat_rows(items: msgspec.Raw, tree: Mapping[str, Any]) -> msgspec.Raw:
    rows = []
    for raw in msgspec.json.decode(items, type=list[msgspec.Raw]):
        taken: _Parts = {}
        rest = _taken(raw, tree, taken)
        parts = None if rest is None else _parts(rest)
        if rest is not None and parts is None:
            return items  # rows that are neither objects nor lists
        rows.append(taken | (parts or {}))
    return msgspec.Raw(msgspec.json.encode(rows))


def _parts(raw: msgspec.Raw, at_top: str | None = None) -> _Parts | None:
    """Return the values of an object or a list by name, else None."""
    first = bytes(raw).lstrip()[:1]
    if at_top == WHOLE:
        return {WHOLE: raw} if first in (b"[", b"{") else None
    if first == b"{":
        return msgspec.json.decode(raw, type=_Parts)
    if first == b"[":
        values = msgspec.json.decode(raw, type=list[msgspec.Raw])
        return {f"[{at}]": value for at, value in enumerate(values)}
    return None


def _taken(raw: msgspec.Raw, tree: Mapping[str, Any], taken: _Parts) -> msgspec.Raw | None:
    """Move the values at a tree's places into ``taken``. Return the rest, None for nothing."""
    parts = _parts(raw)
    if parts is None:
        return raw
    for said, below in tree.items():
        step = said if said in parts else said.strip("[]")
        if step not in parts:
            continue
        if isinstance(below, str):
            taken[below] = parts.pop(step)
        elif (left := _taken(parts.pop(step), below, taken)) is not None:
            parts[step] = left
    return msgspec.Raw(msgspec.json.encode(parts)) if parts else None


@functools.lru_cache(maxsize=64)
def _tree(places: tuple[str, ...]) -> dict[str, Any]:
    """Return the places as a tree of steps. Each ends with its own name."""
    tree: dict[str, Any] = {}
    for place in places:
        *steps, last = _STEP.findall(place) or [place]
        at = tree
        for step in steps:
            at = at.setdefault(step, {})
        at[last] = place
    return tree


def _header(answer: Response, name: str) -> msgspec.Raw:
    """Return a header as JSON: a number, text, or null if absent."""
    said = answer.headers.get(name.lower())
    if said is None or not said.strip():
        return msgspec.Raw(b"null")
    number = decoded(said, int | float) is not None
    return msgspec.Raw(said.strip().encode() if number else msgspec.json.encode(said))
