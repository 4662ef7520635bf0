"""Writing the rows of a batch: those that are new, and those that were revised.

What the store holds is looked up only in the stretch that the batch touches. What is new goes in by
one sorted insert: a primary key would cost seven times the rate, unsorted arrival twenty times the
read (docs/design.md). Each table is asked and written once per batch, however many trajectories it
brings: a statement costs most of a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import polars as pl

from toolkit.market import Family
from toolkit.store.streams import add_counts, append, count_rows, note_lateness
from toolkit.tables import SERIES, Table

__all__ = ["Inserted", "insert_rows"]

_KEY = ["stream_id", "ts"]


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

    ``rows`` has stream_id, ts and the family's value columns. A row equal to the newest one
    held under its key is dropped. One that differs becomes the next revision. Where a batch brings
    several different rows of one key, those not held in any revision follow in order of arrival.
    """
    if rows.is_empty():
        return Inserted()
    table = SERIES[family]
    values = [c.name for c in table.values]
    distinct = rows.select(*_KEY, *values).unique(maintain_order=True)
    fresh = _fresh(distinct, _held(connection, table, distinct), values)
    if fresh.height:
        stamped = fresh.with_columns(load_id=pl.lit(load_id, pl.Int64))
        append(connection, table, stamped.sort(table.key).select(table.names))
        add_counts(connection, count_rows(stamped))
        note_lateness(connection, stamped)
    revised = int((fresh["revision"] > 0).sum())
    return Inserted(fresh.height - revised, revised, rows.height - fresh.height)


def _held(connection: duckdb.DuckDBPyConnection, table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    """Every revision held in the stretch of each trajectory that the batch touches."""
    touched = rows.group_by("stream_id").agg(low=pl.col("ts").min(), high=pl.col("ts").max())
    connection.register("touched_rows", touched)
    found: pl.DataFrame = connection.sql(
        f"SELECT s.* EXCLUDE (load_id) FROM {table.name} s JOIN touched_rows USING (stream_id) "  # noqa: S608 - ours
        "WHERE s.ts BETWEEN low AND high AND s.ts BETWEEN $low AND $high",
        params={"low": rows["ts"].min(), "high": rows["ts"].max()},
    ).pl()
    connection.unregister("touched_rows")
    return found


def _fresh(rows: pl.DataFrame, held: pl.DataFrame, values: list[str]) -> pl.DataFrame:
    """Return the rows to append, with their revision."""
    newest = held.sort("revision").unique(_KEY, keep="last")
    several = pl.len().over(_KEY) > 1
    compared = rows.with_columns(several=several).join(
        newest, on=_KEY, how="left", suffix="_newest", maintain_order="left"
    )
    differs = pl.any_horizontal(pl.col(v).ne_missing(pl.col(f"{v}_newest")) for v in values)
    fresh = compared.filter(pl.col("revision").is_null() | differs).select(
        *rows.columns, "several", "revision"
    )
    following = pl.col("revision").fill_null(-1) + 1
    if fresh["several"].any():
        repeats = held.select(*rows.columns).with_columns(several=pl.lit(value=True))
        fresh = fresh.join(
            repeats,
            on=[*rows.columns, "several"],
            how="anti",
            nulls_equal=True,
            maintain_order="left",
        )
        following += pl.int_range(pl.len(), dtype=pl.Int32).over(_KEY)  # slow: only where needed
    return fresh.with_columns(revision=following.cast(pl.Int32)).drop("several")
