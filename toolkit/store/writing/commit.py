"""Writing a batch: rows, documents, snapshots, gaps, and the ledger entries that vouch for them."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import polars as pl

from toolkit.intervals import Interval, clip, difference, union
from toolkit.market import EventFamily, EventLog, Family, Stream
from toolkit.store.ledger.coverage import record_answers, write_edges
from toolkit.store.ledger.gaps import settle_gaps, write_gaps
from toolkit.store.ledger.ledger import LATE_S, Edge, final_part
from toolkit.store.ledger.streams import add_counts, count_rows, number_streams
from toolkit.store.reading.snapshots import insert_snapshots
from toolkit.store.writing.arrivals import note_arrivals
from toolkit.store.writing.batch import Answered, Batch, Snapshot
from toolkit.store.writing.events import insert_documents
from toolkit.store.writing.ingest import Inserted, insert_rows, read_key
from toolkit.wire.limits import Limits
from toolkit.wire.profile.event_routes import EventRoute

_PARTS = 16


def write_batch(
    connection: duckdb.DuckDBPyConnection,
    load_id: int,
    batch: Batch,
    limits: Limits,
    now_ms: int,
    *,
    logs: Mapping[EventFamily, EventRoute],
) -> Inserted:
    """Write a batch inside the connection's transaction, and return what became of its rows.

    ``now_ms`` is the local clock at the commit (ms), ``logs`` are the routes of the event logs.
    """
    total, now = Inserted(), now_ms // 1_000
    streams: list[Stream] = [*batch.edges, *batch.rows, *(gap.of for gap in batch.gaps.values())]
    numbers = number_streams(connection, streams)
    for family in Family:
        frames = [
            pl.concat(pages).with_columns(stream_id=pl.lit(numbers[t], pl.Int32))
            for t, pages in batch.rows.items()
            if t.family is family
        ]
        if frames:
            key, tied = read_key(connection, family), _tied(batch, family, numbers)
            total += insert_rows(
                connection, family, pl.concat(frames), load_id, key=key, tied=tied, committed_at=now
            )
    if batch.documents:
        documents = pl.concat(batch.documents)
        total += insert_documents(connection, documents, load_id, limits, now, routes=logs)
    note_arrivals(connection, batch.came, load_id, now_ms, limits)
    insert_snapshots(connection, [(snapshot, load_id) for snapshot in batch.snapshots], now)
    total += _counted_snapshots(connection, batch.snapshots, numbers)
    edges = {numbers[stream]: edge for stream, edge in batch.edges.items()}
    _record_answers(connection, batch, numbers, now)
    write_edges(connection, edges, load_id, now)
    write_gaps(connection, batch.gaps.values(), numbers, load_id, now)
    settle_gaps(connection, edges, load_id, now)
    return total


def _record_answers(
    connection: duckdb.DuckDBPyConnection, batch: Batch, numbers: dict[Stream, int], now: int
) -> None:
    """Record what the pages answer for: settled, or provisional where more may still arrive."""
    settled: dict[int, list[Interval]] = {}
    provisional: dict[int, list[Interval]] = {}
    clocks: dict[int, int] = {}
    for stream, answers in batch.answered.items():
        number, edge = numbers[stream], batch.edges[stream]
        plain = union(answer.stretch for answer in answers if answer.is_plain)
        clocks[number] = edge.clock
        parts = [
            (part, answer.open_parts)
            for answer in (*map(Answered, plain), *(a for a in answers if not a.is_plain))
            for whole in difference(
                _in_archive(connection, stream, answer, edge),
                [*_missing(connection, stream, answer), *((x.start, x.end) for x in answer.lost)],
            )
            for part in final_part(whole, edge)
        ]
        settled[number] = [each for part, still in parts for each in difference([part], still)]
        provisional[number] = [each for part, still in parts for each in clip(still, part)]
    told = {numbers[stream]: answers for stream, answers in batch.answered.items()}
    record_answers(connection, settled, provisional, clocks, now, answers=told)


def _in_archive(
    connection: duckdb.DuckDBPyConnection, stream: Stream, answer: Answered, edge: Edge
) -> list[Interval]:
    """Return the part of an answer before the first document that only a stream has brought.

    Such a document shows that the archive is late. One older than `LATE_S` shows nothing.
    """
    if answer.archived is None or not isinstance(stream, EventLog):
        return [answer.stretch]
    connection.register("archived", answer.archived)
    first = connection.execute(
        "SELECT min(ts) FROM event e ANTI JOIN archived a ON e.event_id = a.event_id "
        "AND e.event_type IS NOT DISTINCT FROM a.event_type AND e.ts_ms = a.ts_ms "
        "WHERE family = ? AND ts >= ? AND ts < ?",
        [stream.family.value, max(answer.stretch.start, edge.clock - LATE_S), answer.stretch.end],
    ).fetchall()[0][0]
    connection.unregister("archived")
    return [answer.stretch] if first is None else clip([answer.stretch], (-(2**62), first))


def _missing(
    connection: duckdb.DuckDBPyConnection, stream: Stream, answer: Answered
) -> list[Interval]:
    """Return the parts of an answer of which something came that the store does not hold.

    Each is asked for again by itself. So very many become one.
    """
    parts = union(answer.missing)
    if answer.archived is not None and isinstance(stream, EventLog):
        connection.register("archived", answer.archived)
        found = connection.execute(
            "SELECT DISTINCT ts FROM archived a ANTI JOIN (SELECT event_id, event_type, ts_ms "
            "FROM event WHERE family = ? AND ts >= ? AND ts <= ?) e ON e.event_id = a.event_id "
            "AND e.event_type IS NOT DISTINCT FROM a.event_type AND e.ts_ms = a.ts_ms",
            [stream.family.value, answer.archived["ts"].min(), answer.archived["ts"].max()],
        ).fetchall()
        connection.unregister("archived")
        parts = union([*parts, *((ts, ts + 1) for (ts,) in found)])
    return parts if len(parts) <= _PARTS else [Interval(parts[0].start, parts[-1].end)]


def _tied(batch: Batch, family: Family, numbers: dict[Stream, int]) -> pl.DataFrame | None:
    """Return the times at which one page had several rows, None without any."""
    tied = [(numbers[t], ts) for t, at in batch.tied.items() if t.family is family for ts in at]
    schema = {"stream_id": pl.Int32, "ts": pl.Int64}
    return pl.DataFrame(tied, schema=schema, orient="row") if tied else None


def _counted_snapshots(
    connection: duckdb.DuckDBPyConnection, snapshots: list[Snapshot], numbers: dict[Stream, int]
) -> Inserted:
    counted = [(numbers[s.log], s.served_at, 0) for s in snapshots]
    schema = {"stream_id": pl.Int32, "ts": pl.Int64, "revision": pl.Int32}
    add_counts(connection, count_rows(pl.DataFrame(counted, schema=schema, orient="row")))
    return Inserted(new=len(snapshots))
