"""The layers of a wire profile as documents: read, merged and checked.

``built_in.toml`` comes first and has every name with a value of the allowed type. `/schemas`, then
the user's file, name only what differs.
"""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.errors import InputError
from toolkit.wire.limits import LIMITS

Document = Mapping[str, Any]

_TEXT = Path(__file__).with_name("built_in.toml").read_text(encoding="utf-8")
BUILT_IN_DOCUMENT: Document = tomllib.loads(_TEXT) | {"limits": dataclasses.asdict(LIMITS)}
"""The profile of docs/interface.md, with every name that a profile can have."""

PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
"""A route, and no address: the key goes to one host alone."""

_CASES = ("upper", "lower")
_CHOICES: Mapping[str, Sequence[str]] = {
    "times": ("s", "ms", "us", "ns", "iso"),
    "numbers": ("json", "text", "printed"),
    "rows": ("list", "columns", "keyed", "lines", "table"),
    "order": ("newest_first", "oldest_first"),
    "exchange_case": _CASES,
    "symbol_case": _CASES,
}
_LEAST = {"limit": 1, "retention_s": 1, "symbols_limit": 1, "window_s": 2}
_PLACEHOLDER = re.compile(r"\{[a-z.]+\}")
_HEADER = re.compile(r"\s*\[([^\[\]]+)\]")
_KEY = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_ENTRY = re.compile(rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*=")


def merged(before: Document, layer: Document) -> dict[str, Any]:
    """Lay a document over another. Tables are merged, except ``ask``, which is replaced.

    A text in place of a table is its ``path``, a number its ``wire``, a constant.

    >>> merged({"a": {"b": 1, "path": "/x"}, "ask": {"c": "1"}}, {"a": "/y", "ask": {"d": "2"}})
    {'a': {'b': 1, 'path': '/y'}, 'ask': {'d': '2'}}
    """
    found = dict(before)
    for name, value in layer.items():
        known = found.get(name)
        over = _table(value) if isinstance(known, dict) else value
        deeper = isinstance(known, dict) and isinstance(over, Mapping) and name != "ask"
        found[name] = merged(found[name], over) if deeper else over
    return found


def _table(value: Any) -> Any:
    """Return a text's or number's table, other values unchanged."""
    if isinstance(value, str):
        return {"path": value}
    return {"wire": value} if type(value) in (int, float) else value


def check_layer(said: Document, known: Document = BUILT_IN_DOCUMENT, at: str = "") -> None:
    """Raise `InputError` for the first entry of a layer that is not valid.

    ``known`` is what is built in at the place ``at``. A table that is empty there takes any name.

    >>> check_layer({"history": {"price": {"limit": "many"}}})
    Traceback (most recent call last):
    toolkit.errors.InputError: history.price.limit: 'many' is not allowed; allowed: a whole ...
    """
    for name, value in said.items():
        if known and name not in known:
            raise InputError(at or "profile", name, list(known))
        built_in = known.get(name, "")
        place = f"{at}.{name}" if at else name
        if isinstance(built_in, dict):
            if type(value) in (int, float) and "wire" in built_in:
                if built_in["unit"] != "hours" or not 0 < value < math.inf:
                    others = "others have { wire = ..., unit = ... }"
                    raise InputError(place, value, f"hours above 0, of an interval alone: {others}")
                continue
            if isinstance(value, str) and "path" in built_in:
                value = {"path": value}  # noqa: PLW2901 - a path stands for its table
            if not isinstance(value, dict):
                raise InputError(place, value, "a table")
            check_layer(value, built_in, place)
        elif at != "limits" and (allowed := _allowed(place, value, built_in)):  # they check theirs
            raise InputError(place, value, allowed)


def _allowed(place: str, value: object, built_in: object) -> str | Sequence[str]:
    """Return what is allowed instead of a value, "" if it is valid."""
    name = place.rpartition(".")[2]
    if place == "ok.value":
        fits = isinstance(value, str | int | list)
        return "" if fits else "a text, a whole number, true, false or a list"
    if isinstance(built_in, str):
        return _text_allowed(place, value, built_in)
    if isinstance(built_in, bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(built_in, int | float):
        least, endless = _LEAST.get(name, 0), name == "retention_s" and value == math.inf
        fits = endless or (type(value) is int and value >= least)
        return "" if fits else f"a whole number of {least} or more"
    texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return "" if texts else "a list of texts"


def _text_allowed(place: str, value: object, built_in: str) -> str | Sequence[str]:
    if choices := _CHOICES.get(place.rpartition(".")[2]):
        return "" if value in choices else choices
    if not isinstance(value, str):
        return "a text"
    if built_in.startswith("/"):
        plain = _PLACEHOLDER.sub("x", value) if place.startswith("history.") else value
        fits = PLAIN_PATH.fullmatch(plain) is not None
        return "" if fits else "a path below the service's address, e.g. /api/v1/data/schemas"
    return ""


def located(error: InputError, path: Path, text: str) -> InputError:
    r"""Return an error in a file's document with the file and line.

    >>> error = InputError("history.price.limit", 0, "a whole number of 1 or more")
    >>> str(located(error, Path("my.toml"), "[history.price]\nitems = 'r'\nlimit = 0"))
    'profile my.toml line 3, history.price.limit: 0 is not allowed; allowed: a whole number ...'
    """
    keys = (*error.parameter.split("."), str(error.value))
    line = line_of(text, keys if error.parameter != "profile" else keys[1:])
    where = f"profile {path}" + (f" line {line}" if line else "")
    if error.parameter != "profile":
        where += f", {error.parameter}"
    return InputError(where, error.value, error.allowed, advice=error.advice)


def line_of(text: str, keys: Sequence[str]) -> int:
    r"""Return the line of TOML that has an entry, or the nearest table; 0 for none.

    >>> text = '[spelling]\nsymbol = "x"\n\n[history.price]\nfields.ts = { unit = "week" }'
    >>> line_of(text, ["history", "price", "fields", "ts", "unit"]), line_of(text, ["tools"])
    (5, 0)
    """
    found, most = 0, 0
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            path = table = _keys(header[1])
        elif entry := _ENTRY.match(line):
            path = (*table, *_keys(entry[1]))
        else:
            continue
        shared = min(len(path), len(keys))
        if shared > most and path[:shared] == tuple(keys[:shared]):
            found, most = number, shared
    return found


def _keys(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_KEY, dotted))
