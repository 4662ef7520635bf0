"""Event documents in the store: kept whole and once."""

from __future__ import annotations

import duckdb
import polars as pl

from toolkit.market import EventFamily, EventLog
from toolkit.store.ingest import Inserted
from toolkit.store.streams import add_counts, append, count_rows, note_lateness, number_streams
from toolkit.tables import EVENT

_KEY = ["family", "schema_id", "event_id", "event_type", "ts_ms"]


def insert_documents(
    connection: duckdb.DuckDBPyConnection, documents: pl.DataFrame, load_id: int
) -> Inserted:
    """Append the documents that the store does not hold, byte for byte.

    A document is known by family, schema, event id, event type and ts_ms. One that is held under
    its key with other bytes is appended as the next revision. One that is held as it is, in any
    revision, is not.
    """
    if documents.is_empty():
        return Inserted()
    distinct = documents.unique([*_KEY, "document"], keep="first", maintain_order=True)
    connection.register("arrived", distinct.select(_KEY))
    held: pl.DataFrame = connection.sql(
        "SELECT family, schema_id, event_id, event_type, ts_ms, revision, document FROM event "
        "WHERE ts_ms BETWEEN $low AND $high AND event_id IN (SELECT event_id FROM arrived)",
        params={"low": distinct["ts_ms"].min(), "high": distinct["ts_ms"].max()},
    ).pl()
    connection.unregister("arrived")
    fresh = distinct.join(
        held, on=[*_KEY, "document"], how="anti", nulls_equal=True, maintain_order="left"
    )
    newest = held.group_by(_KEY).agg(pl.col("revision").max())
    stamped = (
        fresh.join(newest, on=_KEY, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(arrival=pl.int_range(pl.len(), dtype=pl.Int32).over(_KEY))
        .with_columns(
            revision=(pl.col("revision").fill_null(-1) + 1 + pl.col("arrival")).cast(pl.Int32),
            load_id=pl.lit(load_id, pl.Int64),
        )
        .select(EVENT.names)
        .sort(*EVENT.order, "revision", maintain_order=True)
    )
    append(connection, EVENT, stamped)
    logs = {EventLog(EventFamily(family)): family for family in stamped["family"].unique()}
    numbers = {logs[log]: n for log, n in number_streams(connection, logs).items()}
    rows = pl.DataFrame({"family": list(numbers), "stream_id": list(numbers.values())})
    if logs:
        counted = stamped.join(rows, on="family")
        add_counts(connection, count_rows(counted))
        note_lateness(connection, counted)
    revised = int((stamped["revision"] > 0).sum())
    return Inserted(stamped.height - revised, revised, documents.height - stamped.height)
