"""Queries of users over the views of a store: one SELECT that reads nothing else.

The query runs in a read-only transaction of an engine that reaches no other file and no address
(`toolkit.store.connection`). A file may come from a stranger, with views and functions under any
name. So no name of the query is looked up in the file: the views are temporary ones made here, over
tables that are named in full.
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
from toolkit.store.engine import DATABASE
from toolkit.store.held_types import held_rows_of
from toolkit.store.history import show_as_known
from toolkit.store.refusals import first_line
from toolkit.store.views import VIEWS

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


Values = Mapping[str, object] | Sequence[object]
"""Parameters as DuckDB takes them."""


def select(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    values: Values | None = None,
    as_of: int | None = None,
    at_most: int | None = None,
) -> pl.DataFrame:
    """Return the rows of a query over the views, as of a time (s, local clock) where one is given.

    The connection is a cursor in a read-only transaction, for this query alone. Rows beyond
    ``at_most`` are not read.
    """
    connection.execute("USE memory")
    _check(connection, query)
    at = f"{DATABASE}.main."
    if as_of is not None:
        at = f"known_{uuid.uuid4().hex}_"  # no query can name what it reads
        show_as_known(connection, as_of, at)
    for view in VIEWS:
        text = view.sql(at=at)
        connection.execute(f"CREATE TEMP VIEW {view.name} AS {text}")
    try:
        return held_rows_of(connection.sql(_cut(query, at_most), params=values or []))
    except _REFUSED as error:
        raise _refusal(query, first_line(error)) from None


def too_slow(query: str, within_s: float) -> InputError:
    """Return the error of a query that took longer than it may."""
    allowed = f"one that takes at most {within_s:g} s"
    return InputError("query", _short(query), allowed, advice=_LESS)


def too_large(query: str, memory: str) -> InputError:
    """Return the error of a query that took more memory than it may, in words."""
    allowed = f"one that takes at most {memory} of memory"
    return InputError("query", _short(query), allowed, advice=_LESS)


def in_utc(found: pl.DataFrame) -> pl.DataFrame:
    """Return an answer whose times, under the names that the views give them, have their zone.

    >>> import datetime as dt
    >>> in_utc(pl.DataFrame({"time": [dt.datetime(2026, 11, 1)]})).schema["time"]
    Datetime(time_unit='us', time_zone='UTC')
    """
    naive = [name for name, kind in found.schema.items() if name in _TIMES and kind == _NAIVE]
    return found.with_columns(pl.col(naive).dt.replace_time_zone("UTC"))


def _cut(query: str, at_most: int | None) -> str:
    """Return a query for the first rows of another, which was checked to be one SELECT."""
    return query if at_most is None else f"FROM (\n{query.rstrip().rstrip(';')}\n) LIMIT {at_most}"


def values_of(parameters: Parameters | None) -> Values:
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
    """Refuse what is no single SELECT, and names in the file itself."""
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
