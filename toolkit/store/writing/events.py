"""Event documents in the store: kept whole and once."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import polars as pl

from toolkit.foreign import plain
from toolkit.market import EventFamily, EventLog
from toolkit.store.ledger.streams import (
    add_counts,
    append,
    count_rows,
    note_lateness,
    number_streams,
    stamp,
)
from toolkit.store.reading.frames import frame_of
from toolkit.store.writing.ingest import Inserted
from toolkit.tables import EVENT
from toolkit.wire.events.events import lasting_content
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS, EventRoute

_EVENT = ["family", "schema_id", "event_id", "event_type"]
_KEY = [*_EVENT, "ts_ms"]
_WEEK_MS = 7 * 86_400_000


def insert_documents(
    connection: duckdb.DuckDBPyConnection,
    documents: pl.DataFrame,
    load_id: int,
    limits: Limits = LIMITS,
    committed_at: int | None = None,
    *,
    routes: Mapping[EventFamily, EventRoute] = BUILT_IN_EVENTS,
) -> Inserted:
    """Append the documents that the store does not hold, byte for byte.

    A document is known by family, schema, event id, event type and ts_ms. One that is held under
    its key with other content is appended as the next revision. One that is held as it is, in any
    revision, is not, nor is one that differs in the volatile fields of ``routes`` alone. Of one key
    at most ``document_versions`` of the limits are kept, and of one event id and type at most
    ``event_documents`` in a week of Unix time. Others are counted.
    """
    if documents.is_empty():
        return Inserted()
    distinct = documents.unique([*_KEY, "document"], keep="first", maintain_order=True)
    held = _held(connection, distinct).with_columns(own=pl.col("load_id") == load_id)
    fresh = distinct.join(
        held, on=[*_KEY, "document"], how="anti", nulls_equal=True, maintain_order="left"
    )
    alike = _alike(held, fresh, routes)
    fresh = fresh.filter(~alike["again"])
    newest = held.group_by(_KEY).agg(pl.col("revision").max())
    stamped = (
        fresh.join(newest, on=_KEY, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(arrival=pl.int_range(pl.len(), dtype=pl.Int32).over(_KEY))
        .with_columns(
            revision=(pl.col("revision").fill_null(-1) + 1 + pl.col("arrival")).cast(pl.Int32)
        )
        .pipe(stamp, load_id, committed_at)
        .select(EVENT.names)
    )
    kept = _within(connection, stamped, limits).sort(*EVENT.order, "revision", maintain_order=True)
    surplus = stamped.join(kept, on=[*_KEY, "revision"], how="anti", nulls_equal=True)
    append(connection, EVENT, kept)
    logs = {EventLog(EventFamily(family)): family for family in kept["family"].unique()}
    numbers = {logs[log]: n for log, n in number_streams(connection, logs).items()}
    rows = pl.DataFrame({"family": list(numbers), "stream_id": list(numbers.values())})
    if logs:
        counted = kept.join(rows, on="family")
        add_counts(connection, count_rows(counted))
        note_lateness(connection, counted)
    revised = int((kept["revision"] > 0).sum())
    repeated = documents.height - stamped.height
    named = surplus.group_by("family", "event_id").len().rows()
    unkept = {f"events/{family} {plain(event, 80)}": n for family, event, n in sorted(named)}
    came = [*_KEY, "document"]
    twice = documents.height - distinct.height
    twice += distinct.join(held.filter("own"), on=came, how="semi", nulls_equal=True).height
    twice += int((alike["again"] & alike["own"]).sum())
    return Inserted(kept.height - revised, revised, repeated, unkept, twice)


def _alike(
    held: pl.DataFrame, fresh: pl.DataFrame, routes: Mapping[EventFamily, EventRoute]
) -> pl.DataFrame:
    """Return for each fresh document whether one before it differs in volatile fields alone.

    The columns are ``again``, and ``own``: whether all such came in the same load.
    """
    held = held.join(fresh.select(_KEY), on=_KEY, how="semi", nulls_equal=True)
    if held.is_empty() and not fresh.select(_KEY).is_duplicated().any():
        return fresh.select(again=pl.repeat(False, pl.len()), own=pl.repeat(True, pl.len()))
    rows = pl.concat(
        [
            held.select(*_KEY, "document", "own", fresh=False),
            fresh.select(*_KEY, "document", own=True, fresh=True),
        ]
    )
    several = pl.col("fresh").any().over(_KEY) & (pl.len().over(_KEY) > 1)
    content = [
        _content(routes[EventFamily(family)], document) if compared else None
        for family, document, compared in rows.select("family", "document", several).iter_rows()
    ]
    same = [*_KEY, "content"]
    found = rows.with_columns(content=pl.Series(content, dtype=pl.String)).select(
        "fresh",
        again=pl.col("content").is_not_null() & (pl.int_range(pl.len()).over(same) > 0),
        own=pl.col("own").all().over(same),
    )
    return found.filter("fresh").drop("fresh")


def _content(route: EventRoute, document: str) -> str:
    """Return what is equal in each delivery of a document, the text of one that is not JSON."""
    try:
        return lasting_content(route, document.encode())
    except UNREADABLE:
        return document


def _within(
    connection: duckdb.DuckDBPyConnection, fresh: pl.DataFrame, limits: Limits
) -> pl.DataFrame:
    """Return the documents that are kept: not too many of a key, nor of an event in a week."""
    kept = fresh.filter(pl.col("revision") < limits.document_versions)
    if kept.is_empty():
        return kept
    kept = kept.with_columns(week=pl.col("ts_ms") // _WEEK_MS * _WEEK_MS)
    place = pl.int_range(pl.len()).over(*_EVENT, "week") + pl.col("held").fill_null(0)
    return (
        kept.join(
            _held_per_week(connection, kept),
            on=[*_EVENT, "week"],
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        .filter(place < limits.event_documents)
        .select(fresh.columns)
    )


def _held_per_week(connection: duckdb.DuckDBPyConnection, arrived: pl.DataFrame) -> pl.DataFrame:
    """Count what is held of the events that arrived, by their weeks, which start at ``week`` (ms).

    Only the weeks from the first to the last of them are read.
    """
    connection.register("arrived", arrived.select(*_EVENT, "week").unique())
    weeks = arrived["week"].unique().to_list()
    counted = frame_of(
        connection,
        "SELECT a.family, a.schema_id, a.event_id, a.event_type, a.week, count(*) AS held "
        "FROM event e JOIN arrived a ON e.event_id = a.event_id AND e.family = a.family "
        "AND e.event_type IS NOT DISTINCT FROM a.event_type "
        "AND e.schema_id IS NOT DISTINCT FROM a.schema_id "
        "AND e.ts_ms >= a.week AND e.ts_ms < a.week + $length "
        "WHERE e.ts_ms >= $first AND e.ts_ms < $end GROUP BY ALL",
        params={"length": _WEEK_MS, "first": min(weeks), "end": max(weeks) + _WEEK_MS},
    )
    connection.unregister("arrived")
    return counted


def _held(connection: duckdb.DuckDBPyConnection, arrived: pl.DataFrame) -> pl.DataFrame:
    """Return what is held under the keys that arrived: key, revision, document and load.

    A scan takes 2,048 documents into memory at once. So only those of these keys are read.
    """
    connection.register("arrived", arrived.select(_KEY).unique())
    held = frame_of(
        connection,
        "WITH held AS (SELECT e.rowid AS row FROM event e JOIN arrived a "
        "ON e.event_id = a.event_id AND e.ts_ms = a.ts_ms AND e.family = a.family "
        "AND e.event_type IS NOT DISTINCT FROM a.event_type "
        "AND e.schema_id IS NOT DISTINCT FROM a.schema_id WHERE e.ts_ms BETWEEN $low AND $high) "
        "SELECT family, schema_id, event_id, event_type, ts_ms, revision, document, load_id "
        "FROM event WHERE rowid IN (SELECT row FROM held)",
        params={"low": arrived["ts_ms"].min(), "high": arrived["ts_ms"].max()},
    )
    connection.unregister("arrived")
    return held
