"""A page of event documents to columns at once, where each document is as the route expects it.

Read one by one, a document costs about three times as much. A page with a single document that
needs more than to be read (a finding, a unit, an id that is made) is left to
`toolkit.wire.events.events`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from toolkit.foreign import is_name
from toolkit.market import Market
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.profile.event_routes import EventRoute

TIMES = {
    "ts": range(-62_135_596_800, 253_402_300_800),
    "ts_ms": range(-62_135_596_800_000, 253_402_300_800_000),
}
"""The years 1 to 9999."""
NUMBERS = {
    "ts": int,
    "ts_ms": int,
    "magnitude_pct": float,
    "peak_pct": float,
    "differential_pct_8h": float,
}
"""The columns that are not text."""
NAMES = ("symbol", "buy_exchange", "buy_market", "sell_exchange", "sell_market")
"""Columns whose text must be printable and bounded (`toolkit.foreign.is_name`)."""
MARKETS = frozenset(market.value for market in Market)
"""What a column of markets holds."""
LARGEST = sys.float_info.max
"""The largest number that a column holds."""

_Tree = dict[str, "_Tree"]


def columns_at_once(route: EventRoute, items: Sequence[msgspec.Raw]) -> dict[str, list[Any]] | None:
    """Return the columns of documents, each read as by `toolkit.wire.events.events.read_document`.

    None where any of them has a finding, no time or no id, or a value that is to be converted.

    >>> from toolkit.market import EventFamily
    >>> from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS
    >>> body = msgspec.Raw(b'{"event_id":"e1","ts":60,"pct":11.4,"exchange":"KRAKEN"}')
    >>> read = columns_at_once(BUILT_IN_EVENTS[EventFamily.SPLASH], [body])
    >>> read["event_id"], read["ts_ms"], read["magnitude_pct"], read["buy_exchange"]
    (['e1'], [60000], [11.4], ['KRAKEN'])
    """
    places = tuple(route.paths.items())
    reader = _reader(places) if route.is_ours and items else None
    if (
        reader is None
        or max(memoryview(item).nbytes for item in items) > route.limits.document_bytes
    ):
        return None
    try:
        texts = [bytes(item).decode() for item in items]
        found = iter(zip(*map(reader[1], map(reader[0].decode, items)), strict=True))
        columns = {name: _checked(name, _first(found, paths)) for name, paths in places}
    except (*UNREADABLE, AttributeError, OverflowError, ValueError):
        return None
    if any(None in columns[name] for name in TIMES):
        columns["ts"], columns["ts_ms"] = (
            [ts if ts is not None or ms is None else ms // 1000 for ts, ms in _times(columns)],
            [ms if ms is not None or ts is None else ts * 1000 for ts, ms in _times(columns)],
        )
    if None in columns["ts"] or None in columns["event_id"]:
        return None
    return {"family": [route.family.value] * len(items), "document": texts, **columns}


def _times(columns: dict[str, list[Any]]) -> Iterator[tuple[int | None, int | None]]:
    return zip(columns["ts"], columns["ts_ms"], strict=True)


def _first(found: Iterator[tuple[Any, ...]], paths: Iterable[str]) -> list[Any]:
    """Return of each document the first value at one of the places that is there."""
    values, *others = [_at_place(found, path) for path in paths]
    for other in others:
        if None not in values:
            break
        if values.count(None) == len(values):
            values = other
        else:
            values = tuple(b if a is None else a for a, b in zip(values, other, strict=True))
    return list(values)


def _at_place(found: Iterator[tuple[Any, ...]], path: str) -> tuple[Any, ...]:
    """Return the values at a place: of the field of that whole name where there is one."""
    whole = next(found)
    if "." not in path:
        return whole
    nested = next(found)
    if whole.count(msgspec.UNSET) == len(whole):
        return nested
    return tuple(b if a is msgspec.UNSET else a for a, b in zip(whole, nested, strict=True))


def _checked(name: str, values: list[Any]) -> list[Any]:
    """Return the values of a column. Raises `ValueError` for one that it cannot hold as it is."""
    kind = NUMBERS.get(name, str)
    kinds = set(map(type, values)) - {type(None)}
    if kind is str and int in kinds:
        values = [str(value) if type(value) is int else value for value in values]
        kinds = set(map(type, values)) - {type(None)}
    if not kinds <= ({int, float} if kind is float else {kind}):
        raise ValueError(name)
    if int in kinds and kind is float:
        return [None if value is None else float(value) for value in values]
    distinct = set(values) - {None}
    held = TIMES.get(name) or (MARKETS if name.endswith("_market") else None)
    if not all(
        map(held.__contains__ if held else is_name, distinct if held or name in NAMES else ())
    ):
        raise ValueError(name)
    return values


@functools.lru_cache(maxsize=64)
def _reader(
    places: tuple[tuple[str, tuple[str, ...]], ...],
) -> tuple[msgspec.json.Decoder[Any], attrgetter[tuple[Any, ...]]] | None:
    """Return what decodes a document, and what takes the values at the places out of it.

    Each place is looked for as the name of a field at the top, then level by level. None where one
    of them is in a list, or is both a value and an object.
    """
    steps = [way for _, paths in places for way in _ways(paths)]
    tree: _Tree = {}
    for way in steps:
        level = tree
        for step in way:
            level = level.setdefault(step, {})
    if any("[" in step or _at(tree, way) for way in steps for step in way):
        return None
    taken = attrgetter(*(_name(tree, way) for way in steps))
    return msgspec.json.Decoder(_record(tree)), taken


def _ways(paths: Iterable[str]) -> list[list[str]]:
    """Return the steps to each place: its whole name, then its parts where it has several."""
    return [way for path in paths for way in ([path], path.split("."))[: 1 + ("." in path)]]


def _at(tree: _Tree, way: Iterable[str]) -> _Tree:
    return functools.reduce(lambda level, step: level[step], way, tree)


def _name(tree: _Tree, way: Sequence[str]) -> str:
    """Return the attribute of a place: the fields of each level are numbered."""
    return ".".join(f"f{list(_at(tree, way[:n])).index(step)}" for n, step in enumerate(way))


def _absent(name: str) -> Any:
    """Return the value of a field that is absent. A null of a dotted name is not a nested value."""
    return msgspec.UNSET if "." in name else None


def _record(tree: _Tree) -> type[msgspec.Struct]:
    kinds = [_record(below) if below else Any for below in tree.values()]
    fields = [
        (f"f{n}", kind, _absent(name) if kind is Any else msgspec.field(default_factory=kind))
        for n, (name, kind) in enumerate(zip(tree, kinds, strict=True))
    ]
    renamed = {f"f{n}": name for n, name in enumerate(tree)}
    return msgspec.defstruct("Part", fields, rename=renamed, gc=False)
