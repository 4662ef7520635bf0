"""Bringing a store of an older format to this one, with a copy of it as it was beside it.

==========  ======================================================================================
format      what it brought
==========  ======================================================================================
2           the gap ledger, webhook deliveries, and the plan and quota of a load
3           one table of streams, one ledger for all of them, merged and with what was asked for
4           answers that are provisional, with when they came, and how late a stream once was
==========  ======================================================================================
"""

from __future__ import annotations

import itertools
import logging
import os
from pathlib import Path

import duckdb
import polars as pl

from toolkit.errors import StoreError
from toolkit.intervals import Interval, clip, difference, union
from toolkit.market import Family, SnapshotKind, Stream
from toolkit.store.answers import rowless_parts
from toolkit.store.connection import OWN_FILES, copy_draft, opened
from toolkit.store.coverage import record, record_answers
from toolkit.store.refusals import first_line, full_disk
from toolkit.store.schema import FORMAT_VERSION, STORAGE_VERSION, read_format
from toolkit.store.streams import add_counts, append, number_streams
from toolkit.store.views import make_views
from toolkit.tables import COVERAGE, DELIVERY, EDGE, GAP, SERIES, STREAM, CoverageState

_log = logging.getLogger(__name__)
_ANSWERED = "answered"  # the state of a stretch in formats 1 to 3
_PAGE_ROWS = 500  # holes nearer to each other than so many rows are asked for as one
_LOAD_2 = {
    "plan": "VARCHAR",
    "quota": "BIGINT",
    "quota_window_s": "BIGINT",
    "quota_left": "BIGINT",
}


def backup_path(path: Path, version: int) -> Path:
    """Return where to keep the copy of a store of an older format: a name that is free.

    >>> backup_path(Path("rail.duckdb"), 2)
    PosixPath('rail.format-2.duckdb')
    """
    numbers = itertools.chain([""], (f"-{n}" for n in itertools.count(2)))
    names = (f"{path.stem}.format-{version}{number}{path.suffix}" for number in numbers)
    return next(p for p in map(path.with_name, names) if not (p.exists() or p.is_symlink()))


def bring_up_to_date(path: Path, wait_s: float) -> None:
    """Migrate the store of an older format at ``path``. ``wait_s`` is that of `opened`."""
    with opened(path, writable=False, wait_s=wait_s) as connection:
        version = read_format(connection, path)
    if version < FORMAT_VERSION:
        with opened(path, writable=True, wait_s=wait_s) as connection:
            migrate(connection, path)


def migrate(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Bring a store of an older format to ours in one transaction, its copy made first.

    The connection must be a writing one without a transaction. A store of our format is left alone.
    """
    version = read_format(connection, path)
    if version == FORMAT_VERSION:
        return
    copy = backup_path(path, version)
    _back_up(connection, path, copy)
    try:
        _change(connection, version)
    except duckdb.Error as error:
        if full_disk(path, error):  # each further try would leave one more copy
            copy.unlink(missing_ok=True)
        raise
    _log.warning(
        "%s was brought from store format %s to %s; as it was, it is kept in %s",
        path,
        version,
        FORMAT_VERSION,
        copy,
    )


def _change(connection: duckdb.DuckDBPyConnection, version: int) -> None:
    connection.execute("BEGIN")
    if version < 2:
        _to_format_2(connection)
    if version < 3:
        _to_format_3(connection)
    else:
        _add_columns(connection)
    _reopen_answers(connection)
    make_views(connection)
    connection.execute(
        "UPDATE meta SET value = ? WHERE name = 'format_version'", [str(FORMAT_VERSION)]
    )
    connection.execute("COMMIT")


def _back_up(connection: duckdb.DuckDBPyConnection, path: Path, copy: Path) -> None:
    """Copy the whole database."""
    draft = copy_draft(path.resolve())
    quoted, alias = str(draft).replace("'", "''"), '"' + draft.name.replace('"', '""') + '"'
    try:
        _remove(draft)  # of a migration that was killed
        connection.execute(f"ATTACH '{quoted}' AS {alias} (STORAGE_VERSION '{STORAGE_VERSION}')")
        name = connection.execute("SELECT current_database()").fetchall()[0][0]
        connection.execute(f'COPY FROM DATABASE "{name}" TO {alias}')
        connection.execute(f"DETACH {alias}")
        draft.chmod(0o600)
        os.link(draft, copy)
    except (OSError, duckdb.Error) as error:
        raise full_disk(copy, error) or StoreError(
            f"{copy} cannot be written ({first_line(error)}): a store of an older format is only "
            "changed beside a copy of it; make a place for it there, or move the store",
            path=str(copy),
        ) from None
    finally:
        _remove(draft)


def _remove(draft: Path) -> None:
    for end in OWN_FILES:
        draft.with_name(f"{draft.name}{end}").unlink(missing_ok=True)


def _to_format_2(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE gap (load_id BIGINT, gap_id INTEGER, trajectory_id INTEGER, family VARCHAR, "
        "start_ts BIGINT, end_ts BIGINT, cause VARCHAR, status VARCHAR, repaired_load_id BIGINT)"
    )
    connection.execute(DELIVERY.ddl)
    for name, kind in _LOAD_2.items():
        connection.execute(f"ALTER TABLE load ADD COLUMN {name} {kind}")


def _to_format_3(connection: duckdb.DuckDBPyConnection) -> None:
    """Make one table of streams and one ledger, and count what is held."""
    connection.execute(STREAM.ddl)
    connection.execute(
        "INSERT INTO stream SELECT trajectory_id, family, "
        "CASE family WHEN 'funding' THEN 'funding/' || key ELSE key END, 0, 0, NULL, NULL, 0 "
        "FROM trajectory"
    )
    held = connection.execute(
        "SELECT 'events/' || family AS key FROM event UNION SELECT 'events/' || family "
        "FROM event_edge UNION SELECT 'events/' || family FROM gap WHERE family IS NOT NULL "
        "UNION SELECT 'snapshot/' || kind FROM snapshot WHERE list_contains(?, kind) ORDER BY key",
        [[kind.value for kind in SnapshotKind]],
    ).fetchall()
    number_streams(connection, [Stream.parse(key) for (key,) in held])
    _merge_ledgers(connection)
    _renumber_gaps(connection)
    for table in SERIES.values():
        connection.execute(f"ALTER TABLE {table.name} RENAME COLUMN trajectory_id TO stream_id")
    for name in ("trajectory", "event_coverage", "event_edge"):
        connection.execute(f"DROP TABLE {name}")
    _count_everything(connection)


def _merge_ledgers(connection: duckdb.DuckDBPyConnection) -> None:
    """Merge both ledgers. What was asked for is taken to be the span of what was answered."""
    answered = connection.execute(
        "SELECT trajectory_id, start_ts, end_ts FROM coverage UNION ALL "
        "SELECT stream_id, start_ts, end_ts FROM event_coverage c "
        "JOIN stream s ON s.key = 'events/' || c.family"
    ).fetchall()
    edges: pl.DataFrame = connection.sql(
        "SELECT trajectory_id AS stream_id, load_id, retention_s, delay_s, step_s, tail_ts, "
        "served_at, asked_at FROM edge UNION ALL "
        "SELECT stream_id, load_id, retention_s, delay_s, 0, NULL, served_at, asked_at "
        "FROM event_edge e JOIN stream s ON s.key = 'events/' || e.family UNION ALL "
        "SELECT stream_id, load_id, NULL, 0, NULL, NULL, n.served_at, n.served_at "
        "FROM snapshot n JOIN stream s ON s.key = 'snapshot/' || n.kind"
    ).pl()
    connection.execute("DROP TABLE coverage")
    connection.execute("DROP TABLE edge")
    connection.execute(COVERAGE.ddl)
    connection.execute(EDGE.ddl)
    stretches: dict[int, list[tuple[int, int]]] = {}
    for number, start, end in answered:
        stretches.setdefault(number, []).append((start, end))
    spans = {
        number: [(min(start for start, _ in parts), max(end for _, end in parts))]
        for number, parts in stretches.items()
    }
    closed = [
        (number, _ANSWERED, start, end, None, None)
        for number, parts in stretches.items()
        for start, end in union(parts)
    ]
    append(connection, COVERAGE, closed)
    record(connection, CoverageState.ASKED, spans)
    newest = edges.sort("load_id", "served_at").unique("stream_id", keep="last")
    connection.register("newest", newest.select(EDGE.names))
    connection.execute("INSERT INTO edge SELECT * FROM newest ORDER BY stream_id")
    connection.unregister("newest")


def _add_columns(connection: duckdb.DuckDBPyConnection) -> None:
    """Bring the tables of format 3 to the columns of format 4."""
    for table, values in ((STREAM, "*, 0"), (COVERAGE, "*, NULL, NULL")):
        connection.execute(f"ALTER TABLE {table.name} RENAME TO before")
        connection.execute(table.ddl)
        connection.execute(f"INSERT INTO {table.name} SELECT {values} FROM before")  # noqa: S608 - ours
        connection.execute("DROP TABLE before")


def _reopen_answers(connection: duckdb.DuckDBPyConnection) -> None:
    """Make provisional what older formats took for the last word: holes, and all of event logs.

    What has rows stays settled. The rest is asked for again by the next load, where the plan still
    reaches it.
    """
    closed = connection.execute(
        "SELECT stream_id, kind, c.start_ts, c.end_ts, step_s, coalesce(e.served_at, c.end_ts) "
        "FROM coverage c JOIN stream USING (stream_id) LEFT JOIN edge e USING (stream_id) "
        "WHERE state = ?",
        [_ANSWERED],
    ).fetchall()
    connection.execute("DELETE FROM coverage WHERE state = ?", [_ANSWERED])
    settled: dict[int, list[Interval]] = {}
    provisional: dict[int, list[Interval]] = {}
    clocks: dict[int, int] = {}
    for number, kind, start, end, step_s, served_at in closed:
        whole = Interval(start, end)
        still = [whole]
        if kind in set(Family):
            times = connection.sql(
                f"SELECT ts FROM {SERIES[Family(kind)].name} "  # noqa: S608 - ours
                "WHERE stream_id = $number AND ts >= $start AND ts < $end",
                params={"number": number, "start": start, "end": end},
            ).pl()["ts"]
            reach_s = _PAGE_ROWS * (step_s or 1)
            still = rowless_parts(whole, times, step_s, young_from=start, reach_s=reach_s)
        settled.setdefault(number, []).extend(difference([whole], still))
        provisional.setdefault(number, []).extend(clip(still, whole))
        clocks[number] = served_at
    record_answers(connection, settled, provisional, clocks)


def _renumber_gaps(connection: duckdb.DuckDBPyConnection) -> None:
    gaps: pl.DataFrame = connection.sql(
        "SELECT load_id, gap_id, coalesce(trajectory_id, stream_id) AS stream_id, start_ts, "
        "end_ts, cause, status, repaired_load_id FROM gap g "
        "LEFT JOIN stream s ON s.key = 'events/' || g.family"
    ).pl()
    connection.execute("DROP TABLE gap")
    connection.execute(GAP.ddl)
    connection.register("gaps", gaps.select(GAP.names))
    connection.execute("INSERT INTO gap SELECT * FROM gaps")
    connection.unregister("gaps")


def _count_everything(connection: duckdb.DuckDBPyConnection) -> None:
    series = " UNION ALL ".join(
        f"SELECT stream_id, ts, revision FROM {table.name}"  # noqa: S608 - ours
        for table in SERIES.values()
    )
    counted: pl.DataFrame = connection.sql(
        "SELECT stream_id, count(*) FILTER (revision = 0) AS rows, "  # noqa: S608 - ours
        "count(*) FILTER (revision > 0) AS revisions, min(ts) AS first_ts, max(ts) AS last_ts "
        f"FROM ({series} UNION ALL "
        "SELECT stream_id, ts, revision FROM event JOIN stream s ON s.key = 'events/' || family "
        "UNION ALL SELECT stream_id, served_at, 0 FROM snapshot n "
        "JOIN stream s ON s.key = 'snapshot/' || n.kind) GROUP BY stream_id"
    ).pl()
    add_counts(connection, counted)
