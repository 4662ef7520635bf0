"""What a query answers, as a polars frame.

DuckDB hands its rows to polars by Arrow's C interface. Its own way to polars goes through pyarrow,
which takes 45 MB of memory and 70 ms to import. DuckDB is not imported here either: polars
remembers each type of which it made a frame, and with the type it would keep what the type's module
imports beyond the end of the program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class _QueryRows:
    """The rows of a query, as Arrow hands them on."""

    relation: duckdb.DuckDBPyRelation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.relation.__arrow_c_stream__(requested_schema)


def frame_of(
    connection: duckdb.DuckDBPyConnection, query: str, params: object = None
) -> pl.DataFrame:
    """Run a query, and return its rows. It raises what DuckDB raises.

    >>> import duckdb
    >>> with duckdb.connect() as connection:
    ...     frame_of(connection, "SELECT $ts AS ts", {"ts": 60}).rows()
    [(60,)]
    """
    return pl.DataFrame(_QueryRows(connection.sql(query, params=params)))
