"""Writing a batch: rows, documents, gaps and the ledger entries that vouch for them."""

from __future__ import annotations

import duckdb
import polars as pl

from toolkit.market import Family, Trajectory
from toolkit.store.batch import Batch
from toolkit.store.events import insert_documents, write_event_answers
from toolkit.store.gaps import settle_gaps, write_gaps
from toolkit.store.ingest import (
    Inserted,
    insert_answered,
    insert_rows,
    number_trajectories,
    write_edges,
)
from toolkit.store.ledger import final_part

__all__ = ["write_batch"]


def write_batch(connection: duckdb.DuckDBPyConnection, load_id: int, batch: Batch) -> Inserted:
    """Write a batch inside the connection's transaction; gives what became of its rows."""
    total = Inserted()
    lost = [gap.of for gap in batch.gaps.values() if isinstance(gap.of, Trajectory)]
    numbers = number_trajectories(connection, dict.fromkeys([*batch.edges, *batch.rows, *lost]))
    for family in Family:
        frames = [
            pl.concat(pages).with_columns(trajectory_id=pl.lit(numbers[t], pl.Int32))
            for t, pages in batch.rows.items()
            if t.family is family
        ]
        if frames:
            total += insert_rows(connection, family, pl.concat(frames), load_id)
    final = {
        numbers[t]: [i for answered in batch.answered[t] for i in final_part(answered, e)]
        for t, e in batch.edges.items()
    }
    insert_answered(connection, final, load_id)
    edges = {numbers[t]: e for t, e in batch.edges.items()}
    write_edges(connection, edges, load_id)
    if batch.documents:
        total += insert_documents(connection, pl.concat(batch.documents), load_id)
        write_event_answers(connection, batch.event_answered, batch.event_edges, load_id)
    write_gaps(connection, batch.gaps.values(), numbers, load_id)
    settle_gaps(connection, edges, batch.event_edges, load_id)
    return total
