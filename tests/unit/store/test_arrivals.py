"""Which event documents came by which channel, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Source
from toolkit.store import ARCHIVE, SOCKET, Batch, Edge, LoadOrigin, Store, StoreWriter
from toolkit.store.file.maintenance import verify
from toolkit.wire.events.events import document_frame
from toolkit.wire.limits import Limits

LOG = EventLog(EventFamily.SPLASH)
WINDOW = Interval(0, 1_000)


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    writer = StoreWriter(Store(tmp_path / "rail.duckdb"))
    writer.bind(Source("live", "s"))
    return writer


def documents(names: Sequence[str], **columns: object) -> pl.DataFrame:
    return document_frame(
        [
            {"family": "splash", "event_id": name, "ts": 60, "ts_ms": 60_000, "document": "{}"}
            | columns
            for name in names
        ]
    )


def commit(writer: StoreWriter, *pages: pl.DataFrame, heard: pl.DataFrame | None = None) -> None:
    batch = Batch()
    for page in pages:
        batch.add_documents(LOG, page, WINDOW, Edge(2_000))
    if heard is not None:
        batch.documents.append(heard.drop("arrived_ms"))
        batch.came.append((SOCKET, heard))
    load = writer.start_load(LoadOrigin("http://x", 0, None, "0"))
    writer.commit(load, batch, Limits(document_versions=3))


def came(writer: StoreWriter) -> list[tuple[object, ...]]:
    found = writer.store.arrivals("splash", WINDOW)
    return found.select("event_id", "channel", "n_deliveries").rows()


def test_the_archive_counts_once_whatever_is_asked_again_but_for_twice_in_one_page(
    writer: StoreWriter,
) -> None:
    commit(writer, documents(["a", "b", "b"]), documents(["a", "c"]))
    before = writer.store.arrivals("splash", WINDOW)
    commit(writer, documents(["a", "b", "c"]))
    assert came(writer) == [("a", ARCHIVE, 1), ("b", ARCHIVE, 2), ("c", ARCHIVE, 1)]
    assert writer.store.arrivals("splash", WINDOW).equals(before)


def test_a_socket_counts_each_time_up_to_a_limit_and_came_when_its_first_message_did(
    writer: StoreWriter,
) -> None:
    for at in range(5):
        heard = documents(["a", "a"]).with_columns(arrived_ms=pl.Series([70_000 + at, 80_000]))
        commit(writer, heard=heard)
    commit(writer, documents(["a"]))
    assert came(writer) == [("a", ARCHIVE, 1), ("a", SOCKET, 6)]
    (arrived,) = writer.store.arrivals("splash", WINDOW).filter(channel=SOCKET)["arrived_ms"]
    assert arrived == 70_000
    assert writer.store.channels_open().rows() == [(SOCKET, "splash", 60, 61)] * 3
    assert not list(verify(writer.store))


def test_documents_without_schema_or_type_are_told_apart_from_those_with_one(
    writer: StoreWriter,
) -> None:
    commit(writer, documents(["a"]), documents(["a"], event_type="splash.pump"))
    commit(writer, documents(["a"], schema_id="v2"), documents(["a"], event_type="splash.pump"))
    assert [row[0] for row in came(writer)] == ["a"] * 3


def test_a_document_that_is_not_kept_has_no_arrival(writer: StoreWriter) -> None:
    batch = Batch()
    batch.came.append((SOCKET, documents(["a"])))
    writer.commit(writer.start_load(LoadOrigin("http://x", 0, None, "0")), batch)
    assert came(writer) == []
