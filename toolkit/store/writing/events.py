"""Event documents in the store, kept whole and once, and their arrivals by channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    run_with,
    stamp,
)
from toolkit.store.reading.frames import frame_of
from toolkit.store.writing.batch import ARCHIVE
from toolkit.store.writing.ingest import Inserted
from toolkit.tables import ARRIVAL, EVENT
from toolkit.wire.event_log import lasting_content
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS, EventRoute

_EVENT = ["family", "schema_id", "event_id", "event_type"]
_DOCUMENT = [*_EVENT, "ts_ms"]
_WEEK_MS = 7 * 86_400_000
_OF_EVENT = (
    "e.event_id = a.event_id AND e.family = a.family "
    "AND e.event_type IS NOT DISTINCT FROM a.event_type "
    "AND e.schema_id IS NOT DISTINCT FROM a.schema_id"
)


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

    The key of a document is family, schema, event id, event type and ts_ms. Other content under a
    key is the next revision, unless it is held in any revision or differs only in the volatile
    fields of ``routes``. Of one key at most ``document_versions`` of the limits are kept, and of
    one event id and type at most ``event_documents`` in a week of Unix time. Others are counted.
    """
    if documents.is_empty():
        return Inserted()
    distinct = documents.unique([*_DOCUMENT, "document"], keep="first", maintain_order=True)
    held = _held(connection, distinct).with_columns(own=pl.col("load_id") == load_id)
    fresh = distinct.join(
        held, on=[*_DOCUMENT, "document"], how="anti", nulls_equal=True, maintain_order="left"
    )
    alike = _alike(held, fresh, routes)
    fresh = fresh.filter(~alike["again"])
    newest = held.group_by(_DOCUMENT).agg(pl.col("revision").max())
    stamped = (
        fresh.join(newest, on=_DOCUMENT, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(arrival=pl.int_range(pl.len(), dtype=pl.Int32).over(_DOCUMENT))
        .with_columns(
            revision=(pl.col("revision").fill_null(-1) + 1 + pl.col("arrival")).cast(pl.Int32)
        )
        .pipe(stamp, load_id, committed_at)
        .select(EVENT.names)
    )
    kept = _within(connection, stamped, limits).sort(*EVENT.order, "revision", maintain_order=True)
    surplus = stamped.join(kept, on=[*_DOCUMENT, "revision"], how="anti", nulls_equal=True)
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
    came = [*_DOCUMENT, "document"]
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
    held = held.join(fresh.select(_DOCUMENT), on=_DOCUMENT, how="semi", nulls_equal=True)
    if held.is_empty() and not fresh.select(_DOCUMENT).is_duplicated().any():
        return fresh.select(again=pl.repeat(False, pl.len()), own=pl.repeat(True, pl.len()))
    rows = pl.concat(
        [
            held.select(*_DOCUMENT, "document", "own", fresh=False),
            fresh.select(*_DOCUMENT, "document", own=True, fresh=True),
        ]
    )
    several = pl.col("fresh").any().over(_DOCUMENT) & (pl.len().over(_DOCUMENT) > 1)
    content = [
        _content(routes[EventFamily(family)], document) if compared else None
        for family, document, compared in rows.select("family", "document", several).iter_rows()
    ]
    same = [*_DOCUMENT, "content"]
    found = rows.with_columns(content=pl.Series(content, dtype=pl.String)).select(
        "fresh",
        again=pl.col("content").is_not_null() & (pl.int_range(pl.len()).over(same) > 0),
        own=pl.col("own").all().over(same),
    )
    return found.filter("fresh").drop("fresh")


def _content(route: EventRoute, document: str) -> str:
    """Return what is equal in each delivery of a document, the text if that is not JSON."""
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
    """Count the stored documents of the events that arrived, by ``week`` (its start, ms)."""
    weeks = arrived["week"].unique().to_list()
    return frame_of(
        connection,
        "SELECT a.family, a.schema_id, a.event_id, a.event_type, a.week, count(*) AS held "  # noqa: S608 - ours
        f"FROM event e JOIN arrived a ON {_OF_EVENT} "
        "AND e.ts_ms >= a.week AND e.ts_ms < a.week + $length "
        "WHERE e.ts_ms >= $first AND e.ts_ms < $end GROUP BY ALL",
        params={"length": _WEEK_MS, "first": min(weeks), "end": max(weeks) + _WEEK_MS},
        arrived=arrived.select(*_EVENT, "week").unique(),
    )


def _held(connection: duckdb.DuckDBPyConnection, arrived: pl.DataFrame) -> pl.DataFrame:
    """Return what is held under the keys that arrived: key, revision, document and load."""
    return frame_of(
        connection,
        f"WITH held AS (SELECT e.rowid AS row FROM event e JOIN arrived a ON {_OF_EVENT} "  # noqa: S608 - ours
        "AND e.ts_ms = a.ts_ms WHERE e.ts_ms BETWEEN $low AND $high) "
        "SELECT family, schema_id, event_id, event_type, ts_ms, revision, document, load_id "
        "FROM event WHERE rowid IN (SELECT row FROM held)",
        params={"low": arrived["ts_ms"].min(), "high": arrived["ts_ms"].max()},
        arrived=arrived.select(_DOCUMENT).unique(),
    )


ARRIVALS = (
    "SELECT family, schema_id, event_id, event_type, ts_ms, channel, "
    "min(arrived_ms) AS arrived_ms, "
    "CASE WHEN count(*) = count(deliveries) THEN sum(deliveries)::BIGINT END AS n_deliveries "
    "FROM arrival WHERE family = $family AND ts >= $low AND ts < $high GROUP BY ALL "
    "ORDER BY ts_ms, event_id, event_type, schema_id, channel"
)
"""The query of `toolkit.store.Store.arrivals`."""

OPENED = (
    "SELECT channel, family, min(ts) AS start_ts, max(ts) + 1 AS end_ts FROM arrival "
    "WHERE channel <> $archive GROUP BY channel, family, load_id ORDER BY ALL"
)
"""The query of `toolkit.store.Store.channels_open`."""

_KEY = "family, schema_id, event_id, event_type, ts_ms, ts, channel"
_SAME = f"{_OF_EVENT} AND e.ts_ms = a.ts_ms AND e.ts_ms BETWEEN $low AND $high"
_INSERT = f"""
    INSERT INTO arrival
    WITH together AS (
        SELECT {_KEY}, min(arrived_ms) AS arrived_ms, count(*) AS times
        FROM came GROUP BY {_KEY}, page
    ), fresh AS (
        SELECT {_KEY}, min(arrived_ms) AS arrived_ms,
            CASE channel WHEN $archive THEN max(times) ELSE sum(times) END AS deliveries
        FROM together GROUP BY {_KEY}
    ), known AS (
        SELECT DISTINCT a.* FROM event e JOIN fresh a ON {_SAME}
    ), counted AS (
        SELECT a.*, count(e.load_id) AS place
        FROM known a LEFT JOIN arrival e ON {_SAME} AND e.channel = a.channel GROUP BY ALL
    )
    SELECT {_KEY}, place, arrived_ms, deliveries, $load_id FROM counted
    WHERE place < CASE channel WHEN $archive THEN 1 ELSE $most END
    ORDER BY family, ts_ms, event_id, channel
"""  # noqa: S608 - ours


def note_arrivals(
    connection: duckdb.DuckDBPyConnection,
    came: Sequence[tuple[str, pl.DataFrame]],
    load_id: int,
    now_ms: int,
    limits: Limits = LIMITS,
) -> None:
    """Record which documents came by which channel, and how often.

    ``came`` has channels with documents, which came at their ``arrived_ms``, or at ``now_ms``
    without one. Only stored documents count. Of the archive, which is asked for the same again,
    only the first arrival is kept, with the most repeats in one page. Of another channel
    ``document_versions`` arrivals are kept.
    """
    parts = [
        frame.select(
            *ARRIVAL.names[:6],
            channel=pl.lit(channel),
            page=pl.lit(at),
            arrived_ms="arrived_ms" if "arrived_ms" in frame.columns else pl.lit(now_ms),
        )
        for at, (channel, frame) in enumerate(came)
        if frame.height
    ]
    if parts:
        rows = pl.concat(parts)
        asked = {"archive": ARCHIVE, "load_id": load_id, "most": limits.document_versions}
        times = {"low": rows["ts_ms"].min(), "high": rows["ts_ms"].max()}
        run_with(connection, _INSERT, asked | times, came=rows)
