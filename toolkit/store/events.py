"""Event documents in the store: kept whole and once, with the ledger of the logs they came from."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import duckdb
import polars as pl

from toolkit.intervals import Interval, difference, union
from toolkit.market import EventFamily
from toolkit.store.batch import Ledger
from toolkit.store.ingest import Inserted
from toolkit.store.ledger import Edge, final_part
from toolkit.tables import EVENT

__all__ = ["insert_documents", "read_event_ledger", "write_event_answers"]

_KEY = ["family", "schema_id", "event_id", "event_type", "ts_ms"]


def insert_documents(
    connection: duckdb.DuckDBPyConnection, documents: pl.DataFrame, load_id: int
) -> Inserted:
    """Append the documents that the store does not hold, byte for byte.

    A document is known by family, schema, event id, event type and ts_ms. One that is held under
    its key with other bytes is appended as the next revision; one that is held as it is, in any
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
    if stamped.height:
        connection.register("documents", stamped)
        connection.execute("INSERT INTO event SELECT * FROM documents")
        connection.unregister("documents")
    revised = int((stamped["revision"] > 0).sum())
    return Inserted(stamped.height - revised, revised, documents.height - stamped.height)


def write_event_answers(
    connection: duckdb.DuckDBPyConnection,
    answered: Mapping[EventFamily, Iterable[Interval]],
    edges: Mapping[EventFamily, Edge],
    load_id: int,
) -> None:
    """Record windows paged to their end, and how far the service answered in this load."""
    known = read_event_ledger(connection)
    for family, stretches in answered.items():
        held = known[family].answered if family in known else []
        final = [part for stretch in stretches for part in final_part(stretch, edges[family])]
        fresh = difference(union(final), held)
        rows = [(family.value, start, end, load_id) for start, end in fresh]
        if rows:
            connection.executemany("INSERT INTO event_coverage VALUES (?, ?, ?, ?)", rows)
    for family, edge in edges.items():
        connection.execute(
            "DELETE FROM event_edge WHERE family = ? AND load_id = ?", [family.value, load_id]
        )
        connection.execute(
            "INSERT INTO event_edge VALUES (?, ?, ?, ?, ?, ?)",
            [
                family.value,
                load_id,
                edge.retention_s,
                edge.delay_s,
                edge.served_at,
                int(time.time()),
            ],
        )


def read_event_ledger(
    connection: duckdb.DuckDBPyConnection,
) -> dict[EventFamily, Ledger]:
    """For each event log ever asked: how far it answered at last, and the windows it did."""
    edges = connection.execute(
        "SELECT family, served_at, delay_s, retention_s FROM event_edge "
        "QUALIFY row_number() OVER (PARTITION BY family ORDER BY load_id DESC) = 1"
    ).fetchall()
    stretches: dict[str, list[tuple[int, int]]] = {}
    for family, start, end in connection.execute(
        "SELECT family, start_ts, end_ts FROM event_coverage"
    ).fetchall():
        stretches.setdefault(family, []).append((start, end))
    return {
        EventFamily(family): Ledger(
            Edge(served_at, delay_s, retention_s, step_s=0), union(stretches.get(family, []))
        )
        for family, served_at, delay_s, retention_s in edges
    }
