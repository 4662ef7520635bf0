"""What identifies a row of a trajectory: a fact of the store, as the service declares it.

The key is ts alone unless a fact names more. A row that shares its time with another, and is not
the same by the key, is a row of its own and no revision.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import duckdb
import polars as pl

from toolkit.market import Family
from toolkit.tables import SERIES

TIME_ALONE = ("ts",)
"""The key of rows of which no two share a time."""


def read_key(connection: duckdb.DuckDBPyConnection, family: Family) -> tuple[str, ...]:
    """Read the key of a family's rows: ts and columns or fields of ``extra``, () for all values."""
    found = connection.execute(
        "SELECT value FROM meta WHERE name = ?", [f"{family}_key"]
    ).fetchall()
    return tuple(json.loads(found[0][0])) if found else TIME_ALONE


def write_keys(
    connection: duckdb.DuckDBPyConnection, keys: Mapping[Family, tuple[str, ...]]
) -> None:
    """Keep the keys that differ from those the store has."""
    for family, key in keys.items():
        if key != read_key(connection, family):
            name = f"{family}_key"
            connection.execute("DELETE FROM meta WHERE name = ?", [name])
            connection.execute("INSERT INTO meta VALUES (?, ?)", [name, json.dumps(key)])


def values_of(family: Family) -> pl.Expr:
    """Build the expression of a row's identity where only all of its values tell it apart."""
    return pl.struct(column.name for column in SERIES[family].values).struct.json_encode()


def identity(family: Family, key: tuple[str, ...]) -> pl.Expr:
    """Build the expression of what identifies a row among those of its time, as text.

    >>> row = {"price": [1.0], "mark_price": [None], "volume": [None], "extra": ['{"seq":7}']}
    >>> pl.DataFrame(row).select(identity(Family.PRICE, ("ts", "seq"))).item()
    '{"seq":"7"}'
    """
    if not key:
        return values_of(family)
    columns = {column.name for column in SERIES[family].values}
    parts = [
        pl.col(name).cast(pl.String)
        if name in columns
        else pl.col("extra").str.json_path_match(f"$[{json.dumps(name)}]").alias(name)
        for name in key
        if name != "ts"
    ]
    return pl.struct(parts).struct.json_encode() if parts else pl.lit("")
