"""Comparison of a service's records with the fields that the profile expects.

A guess is a proposal for a person and is never used to read data. Names are compared by words,
units by dimension.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from toolkit.market import UNIT_FACTORS
from toolkit.wire.exchange import decoded
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.places import WHOLE, parts_said_of, upper_levels, value_at, values_of

_LEAST_LIKENESS = 0.45
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_SIDES = {"buy", "sell"}
_DEEPEST = 6
_SYNONYMS = {
    word: name
    for name, words in {
        "buy": "bid long entry",
        "sell": "ask short exit",
        "time": "t timestamp at date epoch ts",
        "price": "px last close quote",
        "volume": "vol turnover size",
        "pct": "percent percentage bp bps gap basis",
        "hour": "h hrs",
        "differential": "diff delta",
    }.items()
    for word in words.split()
}
_RATIO_WORDS = {"pct": "percent", "percent": "percent", "bps": "bps", "fraction": "fraction"}
_PERIOD_WORDS = {"8h": "_per_8h", "h": "_per_hour", "hour": "_per_hour", "day": "_per_day"}


@dataclass(frozen=True, slots=True)
class ShownField:
    """A field that the service shows: its JSON type and unit if known, an example.

    ``title`` is the service's name of a field read by position.
    """

    name: str
    type: str | None = None
    unit: str | None = None
    example: object = None
    title: str = ""

    def __str__(self) -> str:
        if self.example is None:
            return f"{self.name} ({self.unit})" if self.unit else self.name
        return f"{self.name} ({self.unit or 'unit not stated'}, e.g. {self.example!r:.40})"


@dataclass(frozen=True, slots=True)
class FieldSurvey:
    """A record's fields: found, expected but missing (with their units), and unknown.

    ``text``: numbers are sent as text.
    """

    matched: tuple[str, ...]
    missing: Mapping[str, str]
    unknown: tuple[ShownField, ...]
    guesses: Mapping[str, ShownField]
    text: bool = False


def described_fields(schemas: bytes, route: HistoryRoute) -> dict[str, dict[str, str]]:
    """Find what a ``/schemas`` body of any shape has on a route's fields, by name.

    It is under the route's family, its path or the end of it, or beside such a text: fields by
    name, each with a unit or an object of facts, or a list of pairs, names and units by position.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> route = BUILT_IN.histories["price"]
    >>> described_fields(b'[{"of": "history/price", "columns": [["time", "ms"]]}]', route)
    {'[0]': {'title': 'time', 'unit': 'ms'}}
    """
    words = (route.family.value, f"history/{route.family}", route.path)
    parts = parts_said_of(decoded(schemas), words)
    found = next((facts for part in parts for facts in _field_facts(part)), {})
    return {
        name: {fact: text for fact, text in facts.items() if isinstance(text, str)}
        for name, facts in found.items()
    }


def _field_facts(part: object, depth: int = 0) -> Iterator[dict[str, dict[str, Any]]]:
    values = [*values_of(part).values()]
    if depth > _DEEPEST or not values:
        return
    if isinstance(part, dict) and any(isinstance(v, dict) and "unit" in v for v in values):
        yield {name: facts for name, facts in part.items() if isinstance(facts, dict)}
    elif isinstance(part, dict) and all(isinstance(v, str) and v in UNIT_FACTORS for v in values):
        yield {name: {"unit": unit} for name, unit in part.items()}
    elif isinstance(part, list):
        with suppress(msgspec.ValidationError):
            pairs = msgspec.convert(part, list[tuple[str, str]])
            yield {f"[{at}]": {"title": n, "unit": unit} for at, (n, unit) in enumerate(pairs)}
    for value in values:
        yield from _field_facts(value, depth + 1)


def unit_in_name(name: str) -> str | None:
    """Read the unit that a field's own name states, None without one.

    >>> unit_in_name("advantage_pct_8h"), unit_in_name("edge.bps"), unit_in_name("premium")
    ('percent_per_8h', 'bps', None)
    """
    words = re.split(r"[^a-z0-9]+", name.lower())
    ratios = {_RATIO_WORDS[word] for word in words if word in _RATIO_WORDS}
    periods = {_PERIOD_WORDS[word] for word in words if word in _PERIOD_WORDS}
    one = len(ratios) == 1 and len(periods) < 2
    return "".join([*ratios, *periods]) if one else None


def shown_fields(
    described: Mapping[str, Mapping[str, str]], rows: Sequence[Mapping[str, Any]]
) -> list[ShownField]:
    """List the fields of a ``/schemas`` record and those in rows of a page.

    >>> found = shown_fields({"t": {"type": "integer", "unit": "s"}}, [{"t": 60, "mid": 1.5}])
    >>> [str(field) for field in found]
    ['t (s, e.g. 60)', 'mid (unit not stated, e.g. 1.5)']
    """
    found = []
    for name in dict.fromkeys([*described, *(name for row in rows for name in row)]):
        said = described.get(name, {})
        example = next((row[name] for row in rows if row.get(name) is not None), None)
        kind, unit = said.get("type", _json_type(example)), said.get("unit")
        if isinstance(example, str) and _ISO.match(example):
            kind, unit = "number", "iso"
        found.append(ShownField(name, kind, unit, example, said.get("title", "")))
    return found


def survey_fields(route: HistoryRoute, shown: Iterable[ShownField]) -> FieldSurvey:
    """Compare a route's rules with the fields that the service shows.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> shown = [ShownField("ts", "integer", "s"), ShownField("px", "number", "quote")]
    >>> found = survey_fields(BUILT_IN.histories["price"], shown)
    >>> found.matched, list(found.missing), found.guesses["price"].name
    (('ts',), ['price', 'mark_price', 'volume'], 'px')
    """
    by_name = {field.name: field for field in shown}
    matched = tuple(rule.column for rule in route.sent if rule.wire in by_name)
    missing = {rule.column: rule.wanted for rule in route.sent if rule.wire not in by_name}
    taken = {rule.wire for rule in route.sent}
    unknown = tuple(f for name, f in by_name.items() if name not in {*taken, *route.row_leg})
    guesses = guessed(missing, unknown)
    read = [*(by_name[name] for name in taken & by_name.keys()), *guesses.values()]
    text = any(_NUMBER.fullmatch(f"{f.example}") for f in read if isinstance(f.example, str))
    return FieldSurvey(matched, missing, unknown, guesses, text)


def guessed(missing: Mapping[str, str], unknown: Iterable[ShownField]) -> dict[str, ShownField]:
    """Guess the field of each column that has a likely one, each field at most once.

    A field of another dimension or type is excluded. The unit "" (a name, a path) compares only
    names.

    >>> bid, ask = ShownField("bid_px", "number", "quote"), ShownField("ask_px", "number", "quote")
    >>> found = guessed({"buy_price": "quote", "sell_price": "quote"}, [ask, bid])
    >>> found["buy_price"].name, found["sell_price"].name
    ('bid_px', 'ask_px')
    """
    scored = []
    for column, unit in missing.items():
        for field in unknown:
            likeness = _likeness(column, field.title or field.name)
            fits = _unit_fits(unit, field)
            if fits is not None and (likeness >= _LEAST_LIKENESS or (fits and likeness > 0)):
                scored.append((likeness + 0.5 * fits, column, field))
    found: dict[str, ShownField] = {}
    for _, column, field in sorted(scored, key=lambda each: (-each[0], each[1])):
        if column not in found and field not in found.values():
            found[column] = field
    return found


def rows_of(body: bytes, items: str) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of a page and their place: ``items``, or that of its only array.

    >>> rows_of(b'{"data": [{"t": 60}], "next": null}', "items"), rows_of(b"[[60, 3]]", "items")
    (([{'t': 60}], 'data'), ([{'[0]': 60, '[1]': 3}], '[]'))
    """
    page = decoded(body)
    levels = upper_levels(page) if isinstance(page, dict) else ()
    arrays = ([n for n, value in level.items() if isinstance(value, list)] for level in levels)
    first: list[str] = next(filter(None, arrays), [])
    place = WHOLE if isinstance(page, list) else first[0] if len(first) == 1 else items
    rows = value_at(page, place)
    return [row for row in map(values_of, rows) if row] if isinstance(rows, list) else [], place


def _unit_fits(wanted: str, field: ShownField) -> bool | None:
    """Check that a field's unit fits, None if unit or type excludes it.

    Without a unit, a number of the years 2001 to 2286 in s or ms is a time.
    """
    if not wanted:
        return False
    if field.type not in ("integer", "number", None):
        return None
    if field.unit in UNIT_FACTORS:
        return UNIT_FACTORS[field.unit][0] == UNIT_FACTORS[wanted][0] or None
    at = field.example if isinstance(field.example, int) else 0
    return wanted == "s" and (10**9 <= at < 10**10 or 10**12 <= at < 10**13)


def _likeness(one: str, other: str) -> float:
    ours, theirs = _words(one), _words(other)
    if ours & _SIDES != theirs & _SIDES:
        return 0.0
    common = len(ours & theirs) / max(len(ours | theirs), 1)
    return max(common, difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio() * 0.9)


def _words(name: str) -> set[str]:
    parts = (part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name))
    return {_SYNONYMS.get(part, part.rstrip("s") or part) for part in parts}


def _json_type(example: object) -> str | None:
    if isinstance(example, str) and _NUMBER.fullmatch(example):
        return "number"
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return None if example is None else kinds.get(type(example), "object")
