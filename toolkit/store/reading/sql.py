"""Queries of users over the views of a store: one SELECT that reads nothing else.

A stranger's file may have views and functions under any name. So no name is looked up in the file:
the views are temporary ones, over tables named in full, in a read-only transaction.
"""

from __future__ import annotations

import difflib
import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import polars as pl

from toolkit.errors import InputError
from toolkit.market import Stream
from toolkit.store.file.engine import DATABASE, first_line
from toolkit.store.ledger.history import show_as_known
from toolkit.store.reading.frames import rows_of
from toolkit.store.reading.views import VIEWS

_TEXT = "VARCHAR"
_CAST = {
    "hugeint": "DECIMAL(38,0)",
    "timestamp_s": "TIMESTAMP",
    **dict.fromkeys(
        ("uhugeint", "bignum", "bit", "geometry", "interval", "union", "variant"), _TEXT
    ),
    **dict.fromkeys(("time with time zone", "time_ns", "timestamptz_ns"), _TEXT),
}
_LENGTH = (
    "struct_pack(us := TRY(CASE WHEN datepart('year', {x}) = 0 AND datepart('month', {x}) = 0 "
    "THEN epoch_us({x}) END), words := CAST({x} AS VARCHAR))"
)
_TIME = (
    "CASE WHEN {x} = TIME '24:00:00' THEN error('24:00:00 is not a time of day that a frame holds; "
    "cast it to VARCHAR') ELSE {x} END"
)
_MADE = {"interval": _LENGTH, "time": _TIME}
_DAY_S = 86_400
_PER_S = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799  # of the years 1 to 9999
_INFINITE = 2**63 - 1


def held_rows_of(relation: duckdb.DuckDBPyRelation) -> pl.DataFrame:
    """Return the rows of a relation in types that polars has.

    Raises what DuckDB raises, `duckdb.NotSupportedError` for values that no type has.
    """
    names, kinds = relation.columns, relation.types
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise duckdb.NotSupportedError(
            f"two columns have the name {twice[0]}; name one of them by AS"
        )
    lengths = [name for name, kind in zip(names, kinds, strict=True) if kind.id == "interval"]
    parts = [_part(f"#{at}", kind) for at, kind in enumerate(kinds, 1)]
    if any(part != f"#{at}" for at, part in enumerate(parts, 1)):
        named = (f"{part} AS {_quoted(name)}" for part, name in zip(parts, names, strict=True))
        relation = relation.project(", ".join(named))
    try:
        found = rows_of(relation)
        found = found.with_columns(_length(found[name]) for name in lengths)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        line = str(error).splitlines()[0]
        raise duckdb.NotSupportedError(
            f"a frame cannot hold its columns ({line}); cast them"
        ) from None
    for at, column in enumerate(found, 1):
        if not all(map(_has_times, _leaves(column))):
            name = column.name if column.name.isidentifier() else f"column {at}"
            raise duckdb.NotSupportedError(
                f"{name} has times that are infinite or outside of the years 1 to 9999; cast it to "
                "VARCHAR to see them"
            )
    return found


def _part(column: str, kind: Any) -> str:
    """Return the expression of a column as a type that polars has."""
    if kind.id in _MADE:
        return _MADE[kind.id].format(x=column)
    held = _held(kind)
    return column if held == str(kind) else f"CAST({column} AS {held})"


def _held(kind: Any) -> str:
    """Return the name of the nearest type that polars has, of nested ones in each part."""
    if kind.id in _CAST:
        return _CAST[kind.id]
    if kind.id not in ("list", "array", "struct", "map", "tuple"):
        return str(kind)
    children = dict(kind.children) if kind.id != "tuple" else {}
    if kind.id in ("list", "array"):
        end = f"[{children['size']}]" if kind.id == "array" else "[]"
        return f"{_held(children['child'])}{end}"
    if kind.id == "map":
        return f"MAP({_held(children['key'])}, {_held(children['value'])})"
    if kind.id == "struct":
        fields = (f"{_quoted(name)} {_held(child)}" for name, child in children.items())
        return f"STRUCT({', '.join(fields)})"
    return f"TUPLE({', '.join(_held(child) for _, child in kind.children)})"


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _length(parts: pl.Series) -> pl.Series:
    """Make intervals of their microseconds, or of their words where one has months."""
    us, words = parts.struct.field("us"), parts.struct.field("words")
    has_months = (us.is_null() & words.is_not_null()).any()
    return (words if has_months else us.cast(pl.Duration("us"))).alias(parts.name)


def _leaves(column: pl.Series) -> Iterator[pl.Series]:
    """Yield the values of a column, of nested ones those of each part."""
    kind = column.dtype
    if isinstance(kind, pl.List | pl.Array):
        yield from _leaves(column.explode())
    elif isinstance(kind, pl.Map):
        yield from _leaves(column.map.keys())
        yield from _leaves(column.map.values())
    elif isinstance(kind, pl.Struct):
        for field in kind.fields:
            yield from _leaves(column.struct.field(field.name))
    else:
        yield column


def _has_times(values: pl.Series) -> bool:
    """Return whether Python has all of these values, if they are times."""
    kind = values.dtype
    if isinstance(kind, pl.Datetime):
        per_s = _PER_S[kind.time_unit]
        first, last = _FIRST_S * per_s, (_LAST_S + 1) * per_s - 1
        first, last = max(first, 1 - _INFINITE), min(last, _INFINITE - 1)
    elif kind == pl.Date:
        first, last = _FIRST_S // _DAY_S, _LAST_S // _DAY_S
    else:
        return True
    return bool(values.to_physical().is_between(first, last).all())


_NAMES = [view.name for view in VIEWS]
_COLUMNS = sorted({column.name for view in VIEWS for column in view.columns})
_TIMES = {each.name for view in VIEWS for each in view.columns if each.type == "TIMESTAMP"}
_NAIVE = pl.Datetime("us")
_ALLOWED = f"one SELECT over the views {', '.join(_NAMES)}"
_TABLE_FUNCTIONS = {"generate_series", "range", "repeat", "unnest"}
"""The functions in place of a view that are allowed: others read files, or run a text."""
_PLACES = ("catalog_name", "schema_name", "catalog", "schema")
_UNKNOWN_VIEW = re.compile(r"Table with name (\S+) does not exist")
_UNKNOWN_COLUMN = re.compile(r'Referenced column "([^"]+)" not found|column named "([^"]+)"')
_SHOWN = 80
_LESS = "a shorter window or an aggregate takes less"
_REFUSED = (
    duckdb.ProgrammingError,
    duckdb.DataError,
    duckdb.NotSupportedError,
    duckdb.PermissionException,
)
"""Errors that are the query's fault: of its words, its names, and the values that it makes."""

Parameters = Mapping[str, object] | Sequence[object]
"""The values of ``$name``, or of ``?`` in their order."""


def select(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    values: Parameters | None = None,
    as_of: int | None = None,
    at_most: int | None = None,
) -> pl.DataFrame:
    """Return the rows of a query over the views, as of a time (s, local clock) if one is given.

    The cursor is for this query alone. Rows beyond ``at_most`` are not read.
    """
    connection.execute("USE memory")
    _check(connection, query)
    at = f"{DATABASE}.main."
    if as_of is not None:
        at = f"known_{uuid.uuid4().hex}_"  # no query can name what it reads
        show_as_known(connection, as_of, at)
    for view in VIEWS:
        connection.execute(f"CREATE TEMP VIEW {view.name} AS {view.query.format(at=at)}")
    try:
        return held_rows_of(connection.sql(_cut(query, at_most), params=values or []))
    except _REFUSED as error:
        raise _refusal(query, first_line(error)) from None


def takes_too_much(query: str, at_most: str) -> InputError:
    """Return the error of a query that took more time or memory than ``at_most``, in words."""
    allowed = f"one that takes at most {at_most}"
    return InputError("query", _short(query), allowed, advice=_LESS)


def in_utc(found: pl.DataFrame) -> pl.DataFrame:
    """Return an answer with a zone for the times that the views name."""
    naive = [name for name, kind in found.schema.items() if name in _TIMES and kind == _NAIVE]
    return found.with_columns(pl.col(naive).dt.replace_time_zone("UTC"))


def _cut(query: str, at_most: int | None) -> str:
    """Return a query for the first rows of another, which was checked to be one SELECT."""
    return query if at_most is None else f"FROM (\n{query.rstrip().rstrip(';')}\n) LIMIT {at_most}"


def values_of(parameters: Parameters | None) -> Parameters:
    """Turn parameters into what DuckDB takes: streams into keys, numpy's values into Python's."""
    if parameters is None:
        return []
    if isinstance(parameters, Mapping):
        return {name: _value(value) for name, value in parameters.items()}
    if isinstance(parameters, Sequence) and not isinstance(parameters, str):
        return [_value(value) for value in parameters]
    allowed = "names and values for $name, or a list of values for ?"
    raise InputError("parameters", parameters, allowed)


def _value(given: Any) -> object:
    if isinstance(given, Stream):
        return given.key
    return given.item() if hasattr(given, "dtype") and hasattr(given, "item") else given


def _check(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Refuse all but a single SELECT, and names in the file itself."""
    text = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()[0][0]
    parsed = json.loads(text)
    if parsed["error"] and parsed["error_type"] == "parser":
        raise _refusal(query, parsed["error_message"].splitlines()[0])
    if parsed["error"] or len(parsed["statements"]) != 1:
        raise InputError("query", _short(query), _ALLOWED)
    for node in _nodes(parsed):
        if any(str(node.get(place, "")).lower() == DATABASE for place in _PLACES):
            advice = f"name a view without {DATABASE}"
            raise InputError("query", _short(query), _ALLOWED, advice=advice)
        if node.get("type") == "TABLE_FUNCTION":
            name = node["function"].get("function_name", "")
            if name.lower() not in _TABLE_FUNCTIONS:
                raise _unknown(name, [], f"the views {', '.join(_NAMES)}")


def _nodes(parsed: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a JSON document."""
    if isinstance(parsed, dict):
        yield parsed
        parsed = list(parsed.values())
    if isinstance(parsed, list):
        for each in parsed:
            yield from _nodes(each)


def _refusal(query: str, line: str) -> InputError:
    """Return what the first line of an error means, with the nearest view or column."""
    if unknown := _UNKNOWN_VIEW.search(line):
        return _unknown(unknown[1], _NAMES, f"the views {', '.join(_NAMES)}")
    if unknown := _UNKNOWN_COLUMN.search(line):
        return _unknown(unknown[1] or unknown[2], _COLUMNS, "a column of the views that are read")
    words = line.split(": ", 1)[-1].rstrip("!.")
    return InputError("query", _short(query), "SQL that DuckDB can run", advice=words)


def _unknown(name: str, known: Sequence[str], allowed: str) -> InputError:
    name = name.strip('"')
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    advice = f"nearest: {', '.join(near)}" if near else ""
    return InputError("query", name, allowed, advice=advice)


def _short(query: str) -> str:
    line = " ".join(query.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]} ..."
