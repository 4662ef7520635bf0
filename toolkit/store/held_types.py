"""The types of DuckDB that no frame of polars holds: the nearest that one holds, or a refusal.

polars ends in a panic on some of them, and shows others as another value. So a query's columns are
cast before polars sees them. A length of time is a Duration, as long as none has months, whose
length is not fixed. Else it is its text. So are unions, bits, and whole numbers of more than 38
digits. A time that is infinite or outside of the years 1 to 9999 is refused, since Python has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import polars as pl

from toolkit.store.frames import rows_of

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
    "CASE WHEN {x} = TIME '24:00:00' THEN error('24:00:00 is no time of a day that a frame holds; "
    "cast it to VARCHAR') ELSE {x} END"
)
_MADE = {"interval": _LENGTH, "time": _TIME}
_DAY_S = 86_400
_PER_S = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799  # of the years 1 to 9999
_INFINITE = 2**63 - 1


def held_rows_of(relation: duckdb.DuckDBPyRelation) -> pl.DataFrame:
    """Return the rows of a relation in types that polars holds.

    Raises what DuckDB raises, `duckdb.NotSupportedError` for what none can hold.

    Examples
    --------
    >>> import duckdb
    >>> with duckdb.connect() as connection:
    ...     held_rows_of(connection.sql("SELECT INTERVAL 3 HOURS AS a, INTERVAL 3 MONTHS")).rows()
    [(datetime.timedelta(seconds=10800), '3 months')]
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
    """Return the expression of a column as a type that polars holds."""
    if kind.id in _MADE:
        return _MADE[kind.id].format(x=column)
    held = _held(kind)
    return column if held == str(kind) else f"CAST({column} AS {held})"


def _held(kind: Any) -> str:
    """Return the name of the type nearest to one that polars holds, of nested ones in each part."""
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
    """Make lengths of time of their microseconds, or of their words where one has months."""
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
    """Return whether Python has all of these values, where they are times."""
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
