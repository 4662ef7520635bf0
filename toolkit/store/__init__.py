"""One DuckDB file: series, the coverage ledger, and where everything came from."""

from toolkit.store.file.connection import waiting_for
from toolkit.store.ledger.contents import (
    answer_words,
    clock_offset_s,
    clock_stands,
    event_logs,
    held_stretches,
    never_asked,
    profile_words,
    service_now,
)
from toolkit.store.ledger.ledger import (
    CLOCK_TOLERANCE_S,
    Edge,
    Gap,
    due_parts,
    joined,
    rowless_parts,
    settled_after_s,
    to_ask,
    unchanged,
)
from toolkit.store.reading.lookup import (
    check_known,
    chosen_window,
    held_key,
    held_trajectory,
    pair_advice,
    service_clock,
    sync_advice,
)
from toolkit.store.store import Store
from toolkit.store.writing.batch import (
    ARCHIVE,
    SOCKET,
    WEBHOOK,
    Batch,
    Ledger,
    LoadOrigin,
    Snapshot,
)
from toolkit.store.writing.ingest import Inserted
from toolkit.store.writing.writer import (
    Delivered,
    Kept,
    StoreWriter,
    keep_deliveries,
    read_deliveries,
)

__all__ = [
    "ARCHIVE",
    "CLOCK_TOLERANCE_S",
    "SOCKET",
    "WEBHOOK",
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
    "StoreWriter",
    "answer_words",
    "check_known",
    "chosen_window",
    "clock_offset_s",
    "clock_stands",
    "due_parts",
    "event_logs",
    "held_key",
    "held_stretches",
    "held_trajectory",
    "joined",
    "keep_deliveries",
    "never_asked",
    "pair_advice",
    "profile_words",
    "read_deliveries",
    "rowless_parts",
    "service_clock",
    "service_now",
    "settled_after_s",
    "sync_advice",
    "to_ask",
    "unchanged",
    "waiting_for",
]
