"""What a table of the store is made of: its columns with their units, its key, and its DDL."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its DuckDB type, its unit ("" where it has none) and what it is."""

    name: str
    type: str
    unit: str
    meaning: str
    nullable: bool = False


BROUGHT = ("load_id", "committed_at")
"""The columns that say how a row or document came into the store: by which load, and when."""

_POLARS: dict[str, pl.DataType] = {
    "BIGINT": pl.Int64(),
    "INTEGER": pl.Int32(),
    "DOUBLE": pl.Float64(),
    "VARCHAR": pl.String(),
    "JSON": pl.String(),
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns, its key (which no two rows share) and the order rows are kept in."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    order: tuple[str, ...] = ()

    @property
    def ddl(self) -> str:
        """The CREATE TABLE statement, without a primary key: one costs seven times the load rate.

        >>> from toolkit.tables import META
        >>> print(META.ddl)
        CREATE TABLE IF NOT EXISTS meta (name VARCHAR NOT NULL, value VARCHAR NOT NULL)
        """
        columns = ", ".join(
            f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in self.columns
        )
        return f"CREATE TABLE IF NOT EXISTS {self.name} ({columns})"

    @property
    def schema(self) -> pl.Schema:
        """The same columns as a polars schema."""
        return pl.Schema({c.name: _POLARS[c.type] for c in self.columns})

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(c.name for c in self.columns)

    @property
    def values(self) -> tuple[Column, ...]:
        """The columns that carry what the service sent: neither key nor provenance.

        >>> from toolkit.market import Family
        >>> from toolkit.tables import SERIES
        >>> [c.name for c in SERIES[Family.PRICE].values]
        ['price', 'mark_price', 'volume', 'extra']
        """
        return tuple(c for c in self.columns if c.name not in (*self.key, "place", *BROUGHT))
