"""One DuckDB file: series, the coverage ledger, and where everything came from."""

from toolkit.store.batch import Batch, Ledger, LoadOrigin, Snapshot
from toolkit.store.catalogue import event_logs
from toolkit.store.deliveries import Delivered, Kept, keep_deliveries, read_deliveries
from toolkit.store.gaps import Gap
from toolkit.store.ingest import Inserted
from toolkit.store.ledger import Edge, to_ask
from toolkit.store.store import Store

__all__ = [
    "Batch",
    "Delivered",
    "Edge",
    "Gap",
    "Inserted",
    "Kept",
    "Ledger",
    "LoadOrigin",
    "Snapshot",
    "Store",
    "event_logs",
    "keep_deliveries",
    "read_deliveries",
    "to_ask",
]
