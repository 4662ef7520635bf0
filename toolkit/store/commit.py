"""Writing a batch: rows, documents, snapshots, gaps, and the ledger entries that vouch for them."""

from __future__ import annotations

import duckdb
import polars as pl

from toolkit.market import Family, Stream
from toolkit.store.batch import Batch, Snapshot
from toolkit.store.coverage import record, write_edges
from toolkit.store.events import insert_documents
from toolkit.store.gaps import settle_gaps, write_gaps
from toolkit.store.ingest import Inserted, insert_rows
from toolkit.store.keys import read_key
from toolkit.store.ledger import final_part
from toolkit.store.streams import add_counts, append, count_rows, number_streams
from toolkit.tables import SNAPSHOT, CoverageState

__all__ = ["write_batch"]


def write_batch(connection: duckdb.DuckDBPyConnection, load_id: int, batch: Batch) -> Inserted:
    """Write a batch inside the connection's transaction, and return what became of its rows."""
    total = Inserted()
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
            total += insert_rows(connection, family, pl.concat(frames), load_id, key=key, tied=tied)
    if batch.documents:
        total += insert_documents(connection, pl.concat(batch.documents), load_id)
    total += _insert_snapshots(connection, batch.snapshots, numbers, load_id)
    final = {
        numbers[stream]: [part for i in answered for part in final_part(i, batch.edges[stream])]
        for stream, answered in batch.answered.items()
    }
    record(connection, CoverageState.ANSWERED, final)
    edges = {numbers[stream]: edge for stream, edge in batch.edges.items()}
    write_edges(connection, edges, load_id)
    write_gaps(connection, batch.gaps.values(), numbers, load_id)
    settle_gaps(connection, edges, load_id)
    return total


def _tied(batch: Batch, family: Family, numbers: dict[Stream, int]) -> pl.DataFrame | None:
    """Return the times at which one page had several rows, None without any."""
    tied = [(numbers[t], ts) for t, at in batch.tied.items() if t.family is family for ts in at]
    schema = {"stream_id": pl.Int32, "ts": pl.Int64}
    return pl.DataFrame(tied, schema=schema, orient="row") if tied else None


def _insert_snapshots(
    connection: duckdb.DuckDBPyConnection,
    snapshots: list[Snapshot],
    numbers: dict[Stream, int],
    load_id: int,
) -> Inserted:
    rows = [(s.log.of.value, s.served_at, s.document.decode(), load_id) for s in snapshots]
    append(connection, SNAPSHOT, rows)
    counted = [(numbers[s.log], s.served_at, 0) for s in snapshots]
    schema = {"stream_id": pl.Int32, "ts": pl.Int64, "revision": pl.Int32}
    add_counts(connection, count_rows(pl.DataFrame(counted, schema=schema, orient="row")))
    return Inserted(new=len(rows))
