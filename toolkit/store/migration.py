"""Bringing a store of an older format to this one, with a copy of it as it was beside it.

==========  ======================================================================================
format      what it brought
==========  ======================================================================================
2           the gap ledger, webhook deliveries, and the plan and quota of a load
3           one table of streams, one ledger for all of them, merged and with what was asked for
4           answers that are provisional, with when they came, and how late a stream once was
5           series kept from snapshots, and of a snapshot the rest alone
6           when each row and document was committed
7           how the ledger changes, from the migration on
8           the history of alerts
9           how long a row may change, and the hash of the user's profile
10          when each event document came by each channel
11          what the service's own source lost, and why
==========  ======================================================================================
"""

from __future__ import annotations

import itertools
import logging
from pathlib import Path

import duckdb
import polars as pl

from toolkit.intervals import Interval, clip, difference, union
from toolkit.market import Family, SnapshotKind, SnapshotLog, Stream
from toolkit.store.answers import rowless_parts
from toolkit.store.arrivals import begin_arrivals
from toolkit.store.backup import back_up
from toolkit.store.batch import Snapshot
from toolkit.store.connection import opened
from toolkit.store.coverage import record, record_answers
from toolkit.store.engine import DATABASE, refuse_functions
from toolkit.store.frames import frame_of
from toolkit.store.history import begin_history
from toolkit.store.ledger import SETTLE_S
from toolkit.store.refusals import full_disk
from toolkit.store.schema import FORMAT_VERSION, read_format
from toolkit.store.snapshots import insert_snapshots
from toolkit.store.streams import add_counts, append, number_streams
from toolkit.store.views import make_views
from toolkit.tables import (
    ALERTS,
    ARRIVAL,
    CHANGES,
    COVERAGE,
    COVERAGE_CHANGE,
    DATED,
    DELIVERY,
    EDGE,
    EDGE_CHANGE,
    GAP,
    SERIES,
    SNAPSHOT,
    SNAPSHOT_SERIES,
    STREAM,
    CoverageState,
)

_log = logging.getLogger(__name__)
_ANSWERED = "answered"  # the state of a stretch in formats 1 to 3
_ANSWERS_AT_ONCE = 50
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
    refuse_functions(connection, path)
    connection.execute(f"USE {DATABASE}")  # a new table goes there
    copy = backup_path(path, version)
    back_up(
        connection,
        path,
        copy,
        "a store of an older format is only changed beside a copy of it; make a place for it "
        "there, or move the store",
    )
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
    for table in (ARRIVAL, *CHANGES, *ALERTS):
        connection.execute(table.ddl)
    if version < 2:
        _to_format_2(connection)
    if version < 3:
        _to_format_3(connection)
    _add_columns(connection)
    if version < 4:
        _reopen_answers(connection)
    if version < 5:
        _split_snapshots(connection)
    _add_committed_at(connection)
    if version < 7:
        begin_history(connection)
    if version < 10:
        begin_arrivals(connection)
    make_views(connection)
    connection.execute(
        "UPDATE meta SET value = ? WHERE name = 'format_version'", [str(FORMAT_VERSION)]
    )
    connection.execute("COMMIT")


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
    edges = frame_of(
        connection,
        "SELECT trajectory_id AS stream_id, load_id, retention_s, delay_s, step_s, tail_ts, "
        "served_at, asked_at FROM edge UNION ALL "
        "SELECT stream_id, load_id, retention_s, delay_s, 0, NULL, served_at, asked_at "
        "FROM event_edge e JOIN stream s ON s.key = 'events/' || e.family UNION ALL "
        "SELECT stream_id, load_id, NULL, 0, NULL, NULL, n.served_at, n.served_at "
        "FROM snapshot n JOIN stream s ON s.key = 'snapshot/' || n.kind",
    )
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
        (number, _ANSWERED, start, end, None, None, None)
        for number, parts in stretches.items()
        for start, end in union(parts)
    ]
    append(connection, COVERAGE, closed)
    record(connection, CoverageState.ASKED, spans)
    newest = edges.sort("load_id", "served_at").unique("stream_id", keep="last")
    newest = newest.with_columns(settle_s=pl.lit(SETTLE_S, pl.Int64)).select(EDGE.names)
    connection.register("newest", newest)
    connection.execute("INSERT INTO edge SELECT * FROM newest ORDER BY stream_id")
    connection.unregister("newest")


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
            times = frame_of(
                connection,
                f"SELECT ts FROM {SERIES[Family(kind)].name} "  # noqa: S608 - ours
                "WHERE stream_id = $number AND ts >= $start AND ts < $end",
                params={"number": number, "start": start, "end": end},
            )["ts"]
            reach_s = _PAGE_ROWS * (step_s or 1)
            still = rowless_parts(whole, times, step_s, young_from=start, reach_s=reach_s)
        settled.setdefault(number, []).extend(difference([whole], still))
        provisional.setdefault(number, []).extend(clip(still, whole))
        clocks[number] = served_at
    record_answers(connection, settled, provisional, clocks)


def _split_snapshots(connection: duckdb.DuckDBPyConnection) -> None:
    """Make series of the snapshots held, a few answers at a time: a store may hold thousands."""
    kinds = [kind.value for kind in SnapshotKind]
    connection.execute("ALTER TABLE snapshot RENAME TO whole_snapshot")
    for table in (SNAPSHOT, *SNAPSHOT_SERIES.values()):
        connection.execute(table.ddl)
    connection.execute(
        "INSERT INTO snapshot SELECT kind, served_at, row_number() OVER (PARTITION BY kind, "
        "served_at ORDER BY load_id) - 1, NULL, NULL, NULL, document, load_id, NULL "
        "FROM whole_snapshot WHERE NOT list_contains(?, kind)",
        [kinds],
    )
    numbers = connection.execute(
        "SELECT rowid FROM whole_snapshot WHERE list_contains(?, kind) "
        "ORDER BY served_at, load_id, rowid",
        [kinds],
    ).fetchall()
    for start in range(0, len(numbers), _ANSWERS_AT_ONCE):
        some = numbers[start : start + _ANSWERS_AT_ONCE]
        answers = connection.execute(
            "SELECT kind, served_at, document, load_id FROM whole_snapshot "
            "WHERE list_contains(?, rowid) ORDER BY served_at, load_id, rowid",
            [[number for (number,) in some]],
        ).fetchall()
        insert_snapshots(
            connection,
            [
                (Snapshot(SnapshotLog.named(kind), at, document.encode()), load_id)
                for kind, at, document, load_id in answers
            ],
            None,
        )
    connection.execute("DROP TABLE whole_snapshot")


def _add_committed_at(connection: duckdb.DuckDBPyConnection) -> None:
    """Add the time of the commit, which is not known of what is held: null."""
    for table in DATED:
        connection.execute(f"ALTER TABLE {table.name} ADD COLUMN IF NOT EXISTS committed_at BIGINT")


def _add_columns(connection: duckdb.DuckDBPyConnection) -> None:
    """Add the columns that tables of formats from 3 on lack, null but for those with a value."""
    connection.execute("ALTER TABLE load ADD COLUMN IF NOT EXISTS profile_hash VARCHAR")
    settling = f", {SETTLE_S} AS settle_s"
    values = {STREAM: ", 0 AS late_s", EDGE: settling, EDGE_CHANGE: settling}
    for table in (*values, COVERAGE, COVERAGE_CHANGE):
        if connection.table(table.name).columns != [*table.names]:
            connection.execute(f"ALTER TABLE {table.name} RENAME TO before")
            connection.execute(table.ddl)
            connection.execute(
                f"INSERT INTO {table.name} BY NAME SELECT *{values.get(table, '')} FROM before"  # noqa: S608 - ours
            )
            connection.execute("DROP TABLE before")


def _renumber_gaps(connection: duckdb.DuckDBPyConnection) -> None:
    gaps = frame_of(
        connection,
        "SELECT load_id, gap_id, coalesce(trajectory_id, stream_id) AS stream_id, start_ts, "
        "end_ts, cause, status, repaired_load_id FROM gap g "
        "LEFT JOIN stream s ON s.key = 'events/' || g.family",
    )
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
    counted = frame_of(
        connection,
        "SELECT stream_id, count(*) FILTER (revision = 0) AS rows, "  # noqa: S608 - ours
        "count(*) FILTER (revision > 0) AS revisions, min(ts) AS first_ts, max(ts) AS last_ts "
        f"FROM ({series} UNION ALL "
        "SELECT stream_id, ts, revision FROM event JOIN stream s ON s.key = 'events/' || family "
        "UNION ALL SELECT stream_id, served_at, 0 FROM snapshot n "
        "JOIN stream s ON s.key = 'snapshot/' || n.kind) GROUP BY stream_id",
    )
    add_counts(connection, counted)
