"""Webhook deliveries in the store: their ids and what they brought, in one transaction."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from toolkit.store.reading.frames import frame_of
from toolkit.store.store import Store
from toolkit.store.writing.arrivals import note_arrivals
from toolkit.store.writing.batch import WEBHOOK
from toolkit.store.writing.events import insert_documents
from toolkit.store.writing.ingest import Inserted
from toolkit.store.writing.writer import StoreWriter
from toolkit.tables import DELIVERY
from toolkit.wire.limits import LIMITS, Limits


@dataclass(frozen=True, slots=True)
class Delivered:
    """One genuine delivery: its id, and the text of its body if that is not an event document."""

    delivery_id: str
    family: str | None
    document: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What a commit of deliveries brought: new ones, those kept whole among them, and events."""

    deliveries: int
    whole: int
    events: Inserted


def keep_deliveries(
    writer: StoreWriter,
    load_id: int,
    delivered: Sequence[Delivered],
    documents: pl.DataFrame,
    limits: Limits = LIMITS,
) -> Kept:
    """Commit deliveries with the event documents they brought. What is held stays as it is.

    Documents are known by their own key, whatever the delivery's id: a sender that uses an id
    twice loses no event. They answer for no stretch of the event logs: a webhook is proof of
    what happened, never that nothing else did.
    """
    now_ms = time.time_ns() // 1_000_000
    now = now_ms // 1_000
    rows = [(d.delivery_id, now, d.family, d.document, load_id) for d in delivered]
    arrived = pl.DataFrame(rows, DELIVERY.schema, orient="row").unique(
        "delivery_id", keep="first", maintain_order=True
    )
    with writer.writing(load_id) as connection:
        connection.register("arrived_deliveries", arrived)
        new = connection.execute(
            "INSERT INTO delivery FROM arrived_deliveries a "
            "ANTI JOIN delivery d USING (delivery_id) RETURNING document IS NOT NULL"
        ).fetchall()
        connection.unregister("arrived_deliveries")
        inserted = insert_documents(
            connection, documents, load_id, limits, now, routes=writer.logs(load_id)
        )
        note_arrivals(connection, [(WEBHOOK, documents)], load_id, now_ms, limits)
    return Kept(len(new), sum(whole for (whole,) in new), inserted)


def read_deliveries(store: Store) -> pl.DataFrame:
    """Return the genuine deliveries held, in the order they came: the columns of `DELIVERY`."""
    with store.reading() as connection:
        return frame_of(
            connection, "SELECT * FROM delivery ORDER BY load_id, received_at, delivery_id"
        )
