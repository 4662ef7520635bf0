"""Answers of a query as polars frames.

DuckDB hands its rows to polars by Arrow's C interface, since its own way imports pyarrow (45 MB, 70
ms). DuckDB is not imported here: polars keeps each type of which it made a frame, with all that its
module imports, beyond the end of the program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    import duckdb


_MIDWAY = re.compile(r"^got external error: (([\w ]+) Error: .*)", re.DOTALL)
"""What polars says where DuckDB failed while it handed rows over."""


@dataclass(frozen=True, slots=True)
class _QueryRows:
    """The rows of a query, as Arrow hands them on."""

    relation: duckdb.DuckDBPyRelation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.relation.__arrow_c_stream__(requested_schema)


def frame_of(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    params: object = None,
    **frames: pl.DataFrame,
) -> pl.DataFrame:
    """Run a query, which may read frames by name, and return its rows. Raises DuckDB's errors."""
    for name, frame in frames.items():
        connection.register(name, frame)
    found = rows_of(connection.sql(query, params=params))
    for name in frames:
        connection.unregister(name)
    return found


def rows_of(relation: duckdb.DuckDBPyRelation) -> pl.DataFrame:
    """Return the rows of a relation, as `frame_of` does those of a query."""
    try:
        return pl.DataFrame(_QueryRows(relation))
    except pl.exceptions.ComputeError as error:
        found = _MIDWAY.match(str(error))
        if found is None:
            raise
        raise _error_of_duckdb(found[2], found[1]) from None


def _error_of_duckdb(kind: str, message: str) -> Exception:
    """Return DuckDB's error of a kind such as ``Out of Range``, which polars hands on as text."""
    import duckdb  # noqa: PLC0415 - the module holds no type of DuckDB

    classes = {name.lower(): value for name, value in vars(duckdb).items()}
    found = classes.get(f"{kind.replace(' ', '').lower()}exception", duckdb.DatabaseError)
    return found(message)  # type: ignore[no-any-return]  # looked up by name
