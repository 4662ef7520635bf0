"""One DuckDB file: series, the coverage ledger, and where everything came from."""

from toolkit.store.batch import Batch, Ledger, LoadOrigin
from toolkit.store.ingest import Inserted
from toolkit.store.ledger import Edge, to_ask
from toolkit.store.store import Store

__all__ = ["Batch", "Edge", "Inserted", "Ledger", "LoadOrigin", "Store", "to_ask"]
