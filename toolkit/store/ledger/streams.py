"""The streams a store knows: their numbers, and how many rows each has."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import duckdb
import polars as pl

from toolkit.market import Stream
from toolkit.store.ledger.ledger import LATE_S
from toolkit.tables import STREAM, TIE, CoverageState, Table

_Stream = TypeVar("_Stream", bound=Stream)


def number_streams(
    connection: duckdb.DuckDBPyConnection, streams: Iterable[_Stream]
) -> dict[_Stream, int]:
    """Return the number of each stream in this store, a new one where it has none yet."""
    wanted = dict.fromkeys(streams)
    known = numbers_of(connection, wanted)
    fresh = [stream for stream in wanted if stream not in known]
    if fresh:
        first = highest(connection, "stream_id", "stream") + 1
        known |= {stream: number for number, stream in enumerate(fresh, first)}
        rows = [(known[s], s.kind, s.key, 0, 0, None, None, 0) for s in fresh]
        append(connection, STREAM, rows)
    return known


_FEW = 4
"""Up to this many rows, values in the statement take a third of the time of a frame."""


def numbers_of(
    connection: duckdb.DuckDBPyConnection, streams: Iterable[_Stream]
) -> dict[_Stream, int]:
    """Return the number of each of the streams that the store knows."""
    by_key = {stream.key: stream for stream in streams}
    found = connection.execute(
        "SELECT key, stream_id FROM stream WHERE list_contains(?, key)", [list(by_key)]
    ).fetchall()
    return {by_key[key]: int(number) for key, number in found}


def count_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Count fresh rows by stream: rows, revisions, first_ts and last_ts."""
    revised = pl.col("revision") % TIE > 0
    return rows.group_by("stream_id").agg(
        rows=(~revised).sum().cast(pl.Int64),
        revisions=revised.sum().cast(pl.Int64),
        first_ts=pl.col("ts").min(),
        last_ts=pl.col("ts").max(),
    )


def add_counts(connection: duckdb.DuckDBPyConnection, counted: pl.DataFrame) -> None:
    """Add the counts of `count_rows` to the streams'."""
    if counted.height:
        run_with(
            connection,
            "UPDATE stream SET rows = stream.rows + c.rows, "
            "revisions = stream.revisions + c.revisions, "
            "first_ts = least(stream.first_ts, c.first_ts), "
            "last_ts = greatest(stream.last_ts, c.last_ts) "
            "FROM counted c WHERE stream.stream_id = c.stream_id",
            counted=counted,
        )


def note_lateness(connection: duckdb.DuckDBPyConnection, rows: pl.DataFrame) -> None:
    """Record how late fresh rows came for a time that was answered for, but not called lost."""
    run_with(
        connection,
        "UPDATE stream SET late_s = greatest(late_s, l.late) FROM ("
        "SELECT stream_id, max(coalesce(served_at - ts, ?)) AS late FROM coverage c "
        "JOIN late_rows USING (stream_id) "
        "WHERE state NOT IN (?, ?) AND ts >= start_ts AND ts < end_ts GROUP BY stream_id) l "
        "WHERE stream.stream_id = l.stream_id",
        [LATE_S, CoverageState.ASKED, CoverageState.LOST],
        late_rows=rows.filter(revision=0).select("stream_id", "ts"),
    )


def stamp(rows: pl.DataFrame, load_id: int, committed_at: int | None = None) -> pl.DataFrame:
    """Add the load that brings rows, and the local clock at the commit (s), now by default."""
    at = int(time.time()) if committed_at is None else committed_at
    return rows.with_columns(load_id=pl.lit(load_id, pl.Int64), committed_at=pl.lit(at, pl.Int64))


def append(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    rows: pl.DataFrame | Sequence[Sequence[object]] | Sequence[Mapping[str, object]],
) -> None:
    """Insert rows into a table, if there are any."""
    if not len(rows):
        return
    frame = pl.DataFrame(rows, schema=table.schema, orient="row")
    if frame.height <= _FEW:
        row = f"({', '.join('?' * frame.width)})"
        insert = f"INSERT INTO {table.name} VALUES {', '.join([row] * frame.height)}"  # noqa: S608 - ours
        connection.execute(insert, [value for values in frame.iter_rows() for value in values])
    else:
        run_with(connection, f"INSERT INTO {table.name} SELECT * FROM appended", appended=frame)  # noqa: S608 - ours


def run_with(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    params: object = None,
    **frames: pl.DataFrame,
) -> list[tuple[Any, ...]]:
    """Run a statement that reads some frames by their names, and return its rows."""
    for name, frame in frames.items():
        connection.register(name, frame)
    found = connection.execute(query, params).fetchall()
    for name in frames:
        connection.unregister(name)
    return found


def highest(connection: duckdb.DuckDBPyConnection, column: str, table: str) -> int:
    """Return the highest number in a column, 0 for a table without rows."""
    query = f"SELECT coalesce(max({column}), 0) FROM {table}"  # noqa: S608 - ours
    return int(connection.execute(query).fetchall()[0][0])


def count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    """Count the rows of a table, or of a query in brackets."""
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])  # noqa: S608 - ours


def read_fact(connection: duckdb.DuckDBPyConnection, name: str) -> str | None:
    """Read a fact of the store, None where it has none of this name."""
    found = connection.execute("SELECT value FROM meta WHERE name = ?", [name]).fetchall()
    return str(found[0][0]) if found else None


def write_fact(connection: duckdb.DuckDBPyConnection, name: str, value: str) -> None:
    """Write a fact of the store, in place of one of this name."""
    connection.execute("DELETE FROM meta WHERE name = ?", [name])
    connection.execute("INSERT INTO meta VALUES (?, ?)", [name, value])
