"""Writing a batch: rows that are new, rows that were revised, and the ledger, in one transaction.

What the store holds is looked up only in the stretch the batch touches; what is new goes in by one
sorted insert. (A primary key would cost seven times the rate, unsorted arrival twenty times the
read: research/storage.md A3, A4.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import duckdb
import polars as pl

from toolkit.intervals import Interval, difference, union
from toolkit.market import Family
from toolkit.tables import SERIES, Table

__all__ = ["Inserted", "insert_answered", "insert_rows"]

_KEY = ["trajectory_id", "ts"]


@dataclass(frozen=True, slots=True)
class Inserted:
    """What became of the rows of a batch: new, revised (a changed answer), or held already.

    Examples
    --------
    >>> Inserted(new=2) + Inserted(new=1, repeated=4)
    Inserted(new=3, revised=0, repeated=4)
    """

    new: int = 0
    revised: int = 0
    repeated: int = 0

    def __add__(self, other: Inserted) -> Inserted:
        return Inserted(
            self.new + other.new, self.revised + other.revised, self.repeated + other.repeated
        )


def insert_rows(
    connection: duckdb.DuckDBPyConnection, family: Family, rows: pl.DataFrame, load_id: int
) -> Inserted:
    """Append the rows that the series table does not hold.

    ``rows`` has trajectory_id, ts and the family's value columns. A row equal to the newest one
    held under its key is dropped; one that differs becomes the next revision. Where a batch brings
    several different rows of one key, those not held in any revision follow in order of arrival.
    """
    if rows.is_empty():
        return Inserted()
    table = SERIES[family]
    values = [c.name for c in table.values if c.name != "revision"]
    distinct = rows.select(*_KEY, *values).unique(maintain_order=True, keep="first")
    fresh = _fresh(distinct, _held(connection, table, distinct), values)
    if fresh.height:
        stamped = fresh.with_columns(load_id=pl.lit(load_id, pl.Int64)).sort(
            *table.order, "revision"
        )
        connection.register("fresh", stamped.select(table.names))
        connection.execute(f"INSERT INTO {table.name} SELECT * FROM fresh")  # noqa: S608 - ours
        connection.unregister("fresh")
    revised = int((fresh["revision"] > 0).sum())
    return Inserted(fresh.height - revised, revised, rows.height - fresh.height)


def _held(connection: duckdb.DuckDBPyConnection, table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    """Every revision held in the stretch of each trajectory that the batch touches."""
    touched = rows.group_by("trajectory_id").agg(low=pl.col("ts").min(), high=pl.col("ts").max())
    connection.register("touched", touched)
    found: pl.DataFrame = connection.sql(
        f"SELECT s.* EXCLUDE (load_id) FROM {table.name} s JOIN touched USING (trajectory_id) "  # noqa: S608 - ours
        "WHERE s.ts BETWEEN low AND high AND s.ts BETWEEN $low AND $high",
        params={"low": rows["ts"].min(), "high": rows["ts"].max()},
    ).pl()
    connection.unregister("touched")
    return found


def _fresh(rows: pl.DataFrame, held: pl.DataFrame, values: list[str]) -> pl.DataFrame:
    """The rows to append, with their revision."""
    newest = held.group_by(_KEY).agg(
        pl.col("revision").max(), *(pl.col(v).sort_by("revision").last() for v in values)
    )
    several = pl.len().over(_KEY) > 1
    compared = rows.with_columns(several=several).join(
        newest, on=_KEY, how="left", suffix="_newest", maintain_order="left"
    )
    differs = pl.any_horizontal(pl.col(v).ne_missing(pl.col(f"{v}_newest")) for v in values)
    fresh = compared.filter(pl.col("revision").is_null() | differs).select(
        *rows.columns, "several", "revision"
    )
    if fresh["several"].any():
        repeats = held.select(*rows.columns).with_columns(several=pl.lit(value=True))
        fresh = fresh.join(
            repeats,
            on=[*rows.columns, "several"],
            how="anti",
            nulls_equal=True,
            maintain_order="left",
        )
    arrival = pl.int_range(pl.len(), dtype=pl.Int32).over(_KEY)
    return fresh.with_columns(
        revision=(pl.col("revision").fill_null(-1) + 1 + arrival).cast(pl.Int32)
    ).drop("several")


def insert_answered(
    connection: duckdb.DuckDBPyConnection,
    trajectory_id: int,
    answered: Iterable[tuple[int, int]],
    load_id: int,
) -> list[Interval]:
    """Record stretches as answered for; what the ledger has already is not recorded twice."""
    wanted = union(answered)
    if not wanted:
        return []
    held = connection.execute(
        "SELECT start_ts, end_ts FROM coverage "
        "WHERE trajectory_id = ? AND start_ts < ? AND end_ts > ?",
        [trajectory_id, wanted[-1].end, wanted[0].start],
    ).fetchall()
    fresh = difference(wanted, held)
    for start, end in fresh:
        connection.execute(
            "INSERT INTO coverage VALUES (?, ?, ?, ?)", [trajectory_id, start, end, load_id]
        )
    return fresh
