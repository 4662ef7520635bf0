"""Arrivals of each event document by channel."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import polars as pl

from toolkit.store.writing.batch import ARCHIVE
from toolkit.tables import ARRIVAL
from toolkit.wire.limits import LIMITS, Limits

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
_SAME = (
    "a.event_id = b.event_id AND a.ts_ms = b.ts_ms AND a.family = b.family "
    "AND a.event_type IS NOT DISTINCT FROM b.event_type "
    "AND a.schema_id IS NOT DISTINCT FROM b.schema_id AND a.ts_ms BETWEEN $low AND $high"
)
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
        SELECT DISTINCT b.* FROM event a JOIN fresh b ON {_SAME}
    ), counted AS (
        SELECT b.*, count(a.load_id) AS place
        FROM known b LEFT JOIN arrival a ON {_SAME} AND a.channel = b.channel GROUP BY ALL
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
    """Write down which documents came by which channel, and how often.

    ``came`` has channels, each with documents that came together: of a page, or of messages, which
    have their ``arrived_ms``. Others came ``now_ms``. Only documents that the store holds count. Of
    the archive, which is asked for the same again, the first arrival alone is kept, with how often
    at most it was in one page, as neighbouring pages share a second. Of another channel as many
    arrivals are kept as ``document_versions`` of the limits.
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
        connection.register("came", rows)
        asked = {"archive": ARCHIVE, "load_id": load_id, "most": limits.document_versions}
        times = {"low": rows["ts_ms"].min(), "high": rows["ts_ms"].max()}
        connection.execute(_INSERT, asked | times)
        connection.unregister("came")
