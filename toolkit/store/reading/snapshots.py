"""Snapshots in the file: an answer's rows of series, and the rest as a document."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import duckdb
import polars as pl

from toolkit.intervals import EVER, Ends, Interval, clip, difference
from toolkit.market import SnapshotKind, SnapshotTrajectory
from toolkit.store.ledger.contents import POLLED, limits
from toolkit.store.ledger.history import seen
from toolkit.store.ledger.streams import add_counts, append, count_rows, number_streams, run_with
from toolkit.store.reading.frames import frame_of
from toolkit.store.reading.scanning import value_columns
from toolkit.store.writing.batch import Snapshot
from toolkit.tables import SNAPSHOT, SNAPSHOT_SERIES, LedgerState
from toolkit.wire.rows.snapshot_rows import SnapshotRow, rebuilt_snapshot, split_snapshot


def insert_snapshots(
    connection: duckdb.DuckDBPyConnection,
    snapshots: Sequence[tuple[Snapshot, int]],
    committed_at: int,
) -> None:
    """Write answers, each with its load: their rows, what is left, and the counts of the series.

    Each answer of a second has its own revision. ``committed_at`` is the local clock (s).
    """
    if not snapshots:
        return
    counted = connection.execute(
        "SELECT kind, served_at, count(*) FROM snapshot WHERE list_contains(?, served_at) "
        "GROUP BY ALL",
        [list({each.served_at for each, _ in snapshots})],
    ).fetchall()
    revisions = Counter({(kind, ts): int(count) for kind, ts, count in counted})
    documents: list[tuple[object, ...]] = []
    found: list[tuple[SnapshotRow, int, int, int]] = []
    for snapshot, load_id in snapshots:
        at = (snapshot.log.of.value, snapshot.served_at)
        revision, split = revisions[at], split_snapshot(snapshot.log.of, snapshot.document)
        revisions[at] += 1
        found += [(row, snapshot.served_at, revision, load_id) for row in split.rows]
        tracked = len(split.rows) if split.understood else None
        fields = None if split.fields is None else json.dumps(split.fields)
        rest = (tracked, snapshot.period_s, fields, split.document, load_id, committed_at)
        documents.append((*at, revision, *rest))
    append(connection, SNAPSHOT, documents)
    numbers = number_streams(connection, [row.stream for row, *_ in found])
    for kind, table in SNAPSHOT_SERIES.items():
        rows = [
            {
                "stream_id": numbers[row.stream],
                "ts": ts,
                **row.values,
                "place": row.place,
                "extra": row.extra,
                "revision": revision,
                "load_id": load_id,
                "committed_at": committed_at,
            }
            for row, ts, revision, load_id in found
            if row.stream.kind == kind
        ]
        if rows:
            frame = pl.DataFrame(rows, schema=table.schema).sort("ts", "revision", "stream_id")
            append(connection, table, frame)
            add_counts(connection, count_rows(frame))


def read_snapshots(
    connection: duckdb.DuckDBPyConnection,
    kind: SnapshotKind,
    window: Ends = EVER,
    *,
    newest: bool = False,
    as_of: int | None = None,
    every_s: int = 0,
) -> pl.DataFrame:
    """Return the answers of a kind, newest first, rebuilt: served_at (s), document, load_id.

    With ``every_s`` only the last one of each so many seconds: weeks of answers are large.
    """
    last = "QUALIFY row_number() OVER (PARTITION BY served_at // $every ORDER BY served_at DESC, "
    last += "load_id DESC, revision DESC) = 1"
    kept = frame_of(
        connection,
        "FROM snapshot WHERE kind = $kind AND served_at >= $low AND served_at < $high "
        f"AND {seen(as_of)} {last if every_s else ''} "
        f"ORDER BY served_at DESC, load_id DESC, revision DESC LIMIT {1 if newest else 2**31}",
        params={"kind": kind.value} | limits(window) | ({"every": every_s} if every_s else {}),
    )
    split = kept.filter(pl.col("fields").is_not_null())
    if split.height:
        rows = _rows_of(connection, kind, split)
        documents = [
            each["document"]
            if each["fields"] is None
            else rebuilt_snapshot(
                kind,
                each["document"],
                json.loads(each["fields"]),
                rows[each["served_at"], each["revision"]],
            )
            for each in kept.iter_rows(named=True)
        ]
        kept = kept.with_columns(document=pl.Series(documents, dtype=pl.String))
    return kept.select("kind", "served_at", "document", "load_id")


def _rows_of(
    connection: duckdb.DuckDBPyConnection, kind: SnapshotKind, answers: pl.DataFrame
) -> Mapping[tuple[int, int], Sequence[SnapshotRow]]:
    """Read the rows of some answers, by the second and the revision of the answer."""
    table = SNAPSHOT_SERIES[f"snapshot-{kind}"]
    values = value_columns(f"snapshot-{kind}")
    times = answers["served_at"].sort()
    found = run_with(
        connection,
        f"SELECT ts, r.revision, key, place, extra, {', '.join(values)} FROM {table.name} r "  # noqa: S608 - ours
        "JOIN stream USING (stream_id) SEMI JOIN answers a ON r.ts = a.served_at "
        "AND r.revision = a.revision WHERE ts >= ? AND ts <= ?",
        [times[0], times[-1]],
        answers=answers.select("served_at", "revision"),
    )
    rows: dict[tuple[int, int], list[SnapshotRow]] = {}
    streams: dict[str, SnapshotTrajectory] = {}
    for ts, revision, key, place, extra, *row in found:
        stream = streams.get(key) or streams.setdefault(key, SnapshotTrajectory.parse(key))
        values_of = dict(zip(values, row, strict=True))
        rows.setdefault((ts, revision), []).append(SnapshotRow(stream, place, values_of, extra))
    return rows


def read_polls(
    connection: duckdb.DuckDBPyConnection, kind: SnapshotKind, window: Ends = EVER
) -> pl.DataFrame:
    """Return the rows of `toolkit.store.Store.polls`: ts and period_s (s), by ts."""
    return frame_of(
        connection,
        f"WITH {POLLED}, answers AS (SELECT served_at AS ts, max(period_s) AS period_s "  # noqa: S608 - ours
        "FROM snapshot WHERE kind = $kind AND tracked IS NOT NULL AND served_at >= $low "
        "AND served_at < $high GROUP BY served_at) "
        "SELECT ts, coalesce(a.period_s, spacing_s) AS period_s FROM answers a "
        "LEFT JOIN polled p ON p.kind = 'snapshot-' || $kind ORDER BY ts",
        params={"kind": kind.value} | limits(window),
    )


def poll_coverage(
    connection: duckdb.DuckDBPyConnection,
    stream: SnapshotTrajectory,
    window: Interval,
    tolerance_s: int | None = None,
) -> pl.DataFrame | None:
    """Return the rows of `Store.coverage` for a series kept from snapshots, None without an answer.

    Two answers at most ``tolerance_s`` (1.5 periods) apart cover the time between them.
    """
    polls = read_polls(connection, stream.of)
    if polls.is_empty():
        return None
    period, spacing = pl.col("period_s").fill_null(1), -pl.col("ts").diff(-1)
    apart = pl.lit(tolerance_s) if tolerance_s is not None else period * 3 // 2
    lasts = pl.when(spacing <= apart).then(spacing).otherwise(pl.min_horizontal(period, spacing))
    ends = polls.select("ts", end=pl.col("ts") + lasts.fill_null(period))
    held = clip(ends.iter_rows(), window)
    due_at = ends["end"][-1]
    lost = difference(clip([window], (EVER.start, max(due_at, window.start))), held)
    later = clip([window], (max(due_at, window.start), EVER.end))
    found = [
        *((*each, LedgerState.HELD) for each in held),
        *((*each, LedgerState.UNRECOVERABLE) for each in lost),
        *((*each, LedgerState.UNKNOWN) for each in later),
    ]
    schema = {"start_ts": pl.Int64, "end_ts": pl.Int64, "state": pl.String}
    return pl.DataFrame(sorted(found), schema=schema, orient="row")
