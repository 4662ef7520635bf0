"""Writing a batch: rows that are new, rows that were revised, and the ledger, in one transaction.

What the store holds is looked up only in the stretch the batch touches; what is new goes in by one
sorted insert. (A primary key would cost seven times the rate, unsorted arrival twenty times the
read: docs/design.md, "No primary key".) Each table is asked and written once a batch, however many
trajectories it brings: a statement costs most of a millisecond.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import polars as pl

from toolkit.intervals import difference, union
from toolkit.market import Family, Trajectory
from toolkit.store.ledger import Edge
from toolkit.tables import COVERAGE, EDGE, SERIES, TRAJECTORY, Table

__all__ = ["Inserted", "insert_answered", "insert_rows", "number_trajectories", "write_edges"]

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
    values = [c.name for c in table.values]
    distinct = rows.select(*_KEY, *values).unique(maintain_order=True)
    fresh = _fresh(distinct, _held(connection, table, distinct), values)
    if fresh.height:
        stamped = fresh.with_columns(load_id=pl.lit(load_id, pl.Int64))
        _append(connection, table, stamped.sort(table.key).select(table.names))
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
    return found


def _fresh(rows: pl.DataFrame, held: pl.DataFrame, values: list[str]) -> pl.DataFrame:
    """The rows to append, with their revision."""
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


def number_trajectories(
    connection: duckdb.DuckDBPyConnection, trajectories: Iterable[Trajectory]
) -> dict[Trajectory, int]:
    """The number of each trajectory in this store, a new one where it has none yet."""
    known = {
        (family, key): int(number)
        for family, key, number in connection.execute(
            "SELECT family, key, trajectory_id FROM trajectory"
        ).fetchall()
    }
    names = {t: (t.family.value, t.key) for t in trajectories}
    fresh = [name for name in names.values() if name not in known]
    known |= {name: number for number, name in enumerate(fresh, max(known.values(), default=0) + 1)}
    _append(connection, TRAJECTORY, [(known[name], *name) for name in fresh])
    return {t: known[name] for t, name in names.items()}


def insert_answered(
    connection: duckdb.DuckDBPyConnection,
    answered: Mapping[int, Iterable[tuple[int, int]]],
    load_id: int,
) -> None:
    """Record stretches as answered for, by trajectory number; no second is recorded twice."""
    wanted = {number: joined for number, parts in answered.items() if (joined := union(parts))}
    touched = [(number, parts[0].start, parts[-1].end) for number, parts in wanted.items()]
    bounds = {"trajectory_id": pl.Int32, "low": pl.Int64, "high": pl.Int64}
    connection.register("touched", pl.DataFrame(touched, schema=bounds, orient="row"))
    held: dict[int, list[tuple[int, int]]] = {number: [] for number in wanted}
    for number, start, end in connection.execute(
        "SELECT trajectory_id, start_ts, end_ts FROM coverage JOIN touched USING (trajectory_id) "
        "WHERE start_ts < high AND end_ts > low"
    ).fetchall():
        held[number].append((start, end))
    fresh = [
        (number, start, end, load_id)
        for number, parts in wanted.items()
        for start, end in difference(parts, held[number])
    ]
    _append(connection, COVERAGE, fresh)


def write_edges(
    connection: duckdb.DuckDBPyConnection, edges: Mapping[int, Edge], load_id: int
) -> None:
    """Record how far the service answered in this load, by trajectory number; the last stays."""
    asked_at = int(time.time())
    rows = [
        (number, load_id, e.retention_s, e.delay_s, e.step_s, e.tail_ts, e.served_at, asked_at)
        for number, e in edges.items()
    ]
    connection.execute(
        "DELETE FROM edge WHERE load_id = ? AND list_contains(?, trajectory_id)",
        [load_id, list(edges)],
    )
    _append(connection, EDGE, rows)


def _append(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    rows: pl.DataFrame | Sequence[tuple[object, ...]],
) -> None:
    if len(rows):
        frame = pl.DataFrame(rows, schema=table.schema, orient="row")
        connection.register("appended", frame)
        connection.execute(f"INSERT INTO {table.name} SELECT * FROM appended")  # noqa: S608 - ours
