"""The ledger's history: how it changed, and the tables of a store as they were known at a time.

Each change is logged in its transaction, with the second of its commit. Of what only grows the log
has the seconds added, and a change that streams with consecutive numbers share is one row
(docs/design.md, "As it was known").
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import duckdb
import polars as pl

from toolkit.errors import EmptyWindowError, InputError
from toolkit.market import format_ts, parse_ts
from toolkit.store.file.engine import DATABASE
from toolkit.store.ledger.streams import append, highest, read_fact
from toolkit.tables import DATED, EDGE, EVENT, GAP, ROWS, SNAPSHOT, TIE, CoverageState, Table

COUNTED_STREAM = "counted_stream"
"""The view of streams as of a time with the counts of what was held: it reads all rows."""

AS_NOW = f"{DATABASE}.main."
"""What begins the name of a table where what it holds now is meant, whatever views are shown."""

_RUN = ("first_stream_id", "last_stream_id")


def log_changes(
    connection: duckdb.DuckDBPyConnection,
    log: Table,
    changes: Sequence[Sequence[object]],
    committed_at: int | None = None,
) -> None:
    """Append changes to a log: rows of its columns without number and commit.

    Where the log has runs of streams, a row begins with the number of its stream. ``committed_at``
    is that of `toolkit.store.ledger.streams.stamp`.
    """
    if not changes:
        return
    logged = (*log.names[:1], *_RUN, log.names[-1])
    of_runs = _RUN[0] in log.names
    names = [name for name in log.names if name not in logged]
    schema_of_log = log.schema
    kinds = {name: schema_of_log[name] for name in names}
    schema = {"stream_id": pl.Int32} | kinds if of_runs else kinds
    rows = pl.DataFrame(changes, schema=schema, orient="row")
    if of_runs:
        rows = _in_runs(rows)
    at = int(time.time()) if committed_at is None else committed_at
    first = highest(connection, "change_id", log.name) + 1
    numbered = rows.with_row_index("change_id", first).with_columns(
        pl.col("change_id").cast(pl.Int64), committed_at=pl.lit(at, pl.Int64)
    )
    append(connection, log, numbered.select(log.names))


def _in_runs(rows: pl.DataFrame) -> pl.DataFrame:
    """Make one row of those that are the same for streams with consecutive numbers."""
    same = [name for name in rows.columns if name != "stream_id"]
    place = pl.int_range(pl.len(), dtype=pl.Int32).over(same)
    runs = rows.sort("stream_id").with_columns(run=pl.col("stream_id") - place)
    return (
        runs.group_by(*same, "run", maintain_order=True)
        .agg(first_stream_id=pl.col("stream_id").min(), last_stream_id=pl.col("stream_id").max())
        .drop("run")
    )


def seen(as_of: int | None) -> str:
    """Return the condition that a row was committed by then (s, local clock).

    Rows from before format 6 count from the start of their load. Raises `InputError` for an invalid
    time.
    """
    if as_of is None:
        return "true"
    at = parse_ts(as_of, parameter="as_of")
    loads = f"FROM {AS_NOW}load SELECT load_id WHERE started_at <= {at}"
    return f"(committed_at <= {at} OR (committed_at IS NULL AND load_id IN ({loads})))"


def undated_loads(connection: duckdb.DuckDBPyConnection, as_of: int) -> list[int]:
    """Return the loads under way then, of whose rows no commit is known."""
    undated = " UNION ".join(
        f"SELECT load_id FROM {table.name} WHERE committed_at IS NULL"  # noqa: S608 - ours
        for table in DATED
    )
    found = connection.execute(
        f"SELECT load_id FROM load SEMI JOIN ({undated}) USING (load_id) "  # noqa: S608 - ours
        "WHERE started_at <= $as_of AND coalesce(finished_at > $as_of, true) ORDER BY load_id",
        {"as_of": as_of},
    ).fetchall()
    return [int(number) for (number,) in found]


def held_counts(source: Callable[[Table], str]) -> str:
    """Return the query of what each stream has: key, rows, revisions, first_ts and last_ts.

    ``source`` gives what to read of a table: its name, or a query in brackets.
    """
    parts = [
        f"SELECT key, ts, revision % {TIE} AS revision FROM {source(table)} "  # noqa: S608 - ours
        f"JOIN {AS_NOW}stream USING (stream_id)"
        for table in ROWS.values()
    ]
    parts.append(f"SELECT 'events/' || family AS key, ts, revision FROM {source(EVENT)}")  # noqa: S608 - ours
    # each answer counts as one, whatever came in the same second
    answer = "SELECT 'snapshot/' || kind AS key, served_at AS ts, 0 AS revision"
    held = " UNION ALL ".join([*parts, f"{answer} FROM {source(SNAPSHOT)}"])
    return (
        "SELECT key, count(*) FILTER (revision = 0) AS rows, count(*) FILTER (revision > 0) "  # noqa: S608 - ours
        f"AS revisions, min(ts) AS first_ts, max(ts) AS last_ts FROM ({held}) GROUP BY key"
    )


def history_from(connection: duckdb.DuckDBPyConnection) -> int | None:
    """Read when the history begins (s, local clock), None where it is complete.

    A store that a toolkit brought from a format before 7 has a fact of it.
    """
    found = read_fact(connection, "history_from")
    return None if found is None else int(found)


def held_nothing(store: Path, as_of: int, first: object) -> EmptyWindowError:
    """Return the error of a time before the first load, which began at ``first``."""
    begun = f"the first load began {format_ts(first)}" if isinstance(first, int) else "no load"
    return EmptyWindowError(f"{store} held nothing as of {format_ts(as_of)}: {begun}")


def check_history(
    connection: duckdb.DuckDBPyConnection, as_of: int | None, *, parameter: str = "as_of"
) -> None:
    """Raise `InputError` for a time before the history begins."""
    begins = None if as_of is None else history_from(connection)
    if as_of is not None and begins is not None and as_of < begins:
        raise InputError(
            parameter,
            format_ts(as_of),
            f"a time from {format_ts(begins)} on, for what the ledger knew: its history begins "
            "there",
            advice="rows, documents and snapshots are known as of any time",
        )


def known_ledger(as_of: int | None = None) -> dict[str, str]:
    """Return the queries of the ledger's tables from their history: as of a time, or all of it."""
    then = "true" if as_of is None else f"committed_at <= {as_of}"

    def of_streams(log: str) -> str:
        return (
            f"(SELECT stream_id, c.* FROM {AS_NOW}{log} c JOIN {AS_NOW}stream "  # noqa: S608 - ours
            f"ON stream_id BETWEEN first_stream_id AND last_stream_id WHERE {then})"
        )

    provisional = f"state IN ('{CoverageState.PROVISIONAL}', '{CoverageState.LOST}')"
    by_time = "(PARTITION BY stream_id, state ORDER BY start_ts, end_ts"
    before = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    gaps = ", ".join(GAP.names)
    return {
        "coverage": (
            f"WITH changes AS {of_streams('coverage_change')}, begun AS (SELECT *, "  # noqa: S608 - ours
            f"coalesce(start_ts > max(end_ts) OVER {by_time} {before}, true) AS apart "
            f"FROM changes WHERE NOT {provisional}), grown AS (SELECT *, "
            f"count(*) FILTER (apart) OVER {by_time} ROWS UNBOUNDED PRECEDING) AS stretch "
            "FROM begun) SELECT stream_id, state, min(start_ts) AS start_ts, "
            "max(end_ts) AS end_ts, NULL::BIGINT AS first_served_at, NULL::BIGINT AS served_at, "
            "NULL::VARCHAR AS why "
            "FROM grown GROUP BY stream_id, state, stretch UNION ALL "
            "SELECT stream_id, state, start_ts, end_ts, first_served_at, served_at, why "
            f"FROM changes WHERE {provisional} GROUP BY ALL HAVING sum(added) > 0"
        ),
        "edge": (
            f"SELECT {', '.join(EDGE.names)} FROM {of_streams('edge_change')} "  # noqa: S608 - ours
            "QUALIFY row_number() OVER (PARTITION BY stream_id ORDER BY change_id DESC) = 1"
        ),
        "gap": (
            f"SELECT {gaps} FROM {AS_NOW}gap_change WHERE {then} "  # noqa: S608 - ours
            "QUALIFY row_number() OVER (PARTITION BY load_id, gap_id ORDER BY change_id DESC) = 1"
        ),
    }


def show_as_known(
    connection: duckdb.DuckDBPyConnection,
    as_of: int,
    prefix: str = "",
    *,
    hidden: Iterable[int] = (),
) -> None:
    """Put a view in the place of each table, for this connection: what it held at a time.

    ``as_of`` is in s of the local clock. ``prefix`` begins the names of the views. Streams with the
    numbers ``hidden`` are left out, and ``late_s`` is 0. The facts of the store are today's.
    """
    at = parse_ts(as_of, parameter="as_of")
    views = known_ledger(at) | {
        table.name: f"SELECT * FROM {AS_NOW}{table.name} WHERE {seen(at)}"  # noqa: S608 - ours
        for table in DATED
    }
    ended = f"coalesce(finished_at <= {at}, false)"
    parts = ", ".join(
        f"CASE WHEN {ended} THEN {name} END AS {name}"
        for name in ("finished_at", "finding", "quota_left")
    )
    views["load"] = f"SELECT * REPLACE ({parts}) FROM {AS_NOW}load WHERE started_at <= {at}"  # noqa: S608 - ours
    views["delivery"] = f"SELECT * FROM {AS_NOW}delivery WHERE received_at <= {at}"  # noqa: S608 - ours
    views["stream"] = _known_streams(at, list(hidden))
    held = held_counts(lambda table: f"(SELECT * FROM {AS_NOW}{table.name} WHERE {seen(at)})")  # noqa: S608 - ours
    views[COUNTED_STREAM] = (
        f"WITH held AS ({held}) SELECT s.stream_id, s.kind, s.key, "  # noqa: S608 - ours
        "coalesce(h.rows, 0) AS rows, coalesce(h.revisions, 0) AS revisions, h.first_ts, "
        f"h.last_ts FROM temp.main.{prefix}stream s LEFT JOIN held h ON s.key = h.key"
    )
    for name, query in views.items():
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {prefix}{name} AS {query}")


def _known_streams(as_of: int, hidden: Sequence[int]) -> str:
    """Return the query of the streams as of a time, without counts.

    Streams are numbered as they come, so those up to the highest number with something known were
    known, and each event log with a document.
    """
    numbers = {
        "coverage_change": ("last_stream_id", f"committed_at <= {as_of}"),
        "edge_change": ("last_stream_id", f"committed_at <= {as_of}"),
        "gap_change": ("stream_id", f"committed_at <= {as_of}"),
    } | {table.name: ("stream_id", seen(as_of)) for table in ROWS.values()}
    highest = " UNION ALL ".join(
        f"SELECT max({number}) AS highest FROM {AS_NOW}{table} WHERE {then}"  # noqa: S608 - ours
        for table, (number, then) in numbers.items()
    )
    return (
        "SELECT s.stream_id, s.kind, s.key, d.first_ts, 0::BIGINT AS late_s "  # noqa: S608 - ours
        f"FROM {AS_NOW}stream s LEFT JOIN (SELECT 'events/' || family AS key, min(ts) AS first_ts "
        f"FROM {AS_NOW}event WHERE {seen(as_of)} GROUP BY family) d ON d.key = s.key "
        f"WHERE (s.stream_id <= (SELECT max(highest) FROM ({highest})) OR d.key IS NOT NULL)"
        + (f" AND s.stream_id NOT IN ({', '.join(map(str, hidden))})" if hidden else "")
    )
