"""An event in ever new versions: the first hundred are kept, and the others are counted by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog
from toolkit.store import (
    ARCHIVE,
    SOCKET,
    Batch,
    Delivered,
    Edge,
    Inserted,
    LoadOrigin,
    Store,
    StoreWriter,
    keep_deliveries,
)
from toolkit.wire.event_log import document_frame, read_document
from toolkit.wire.findings import Finding
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS

from .conftest import SOURCE, faults_of, writer_of

SPLASH = EventFamily.SPLASH

SAYS = (
    "it came in ever new versions; the first of them are kept; document_versions and "
    "event_documents of the limits allow more"
)


def row(event: str, version: int) -> dict[str, object]:
    """A version of an event: all of one type and time."""
    body = b'{"schema":"s.splash.v1","event_type":"splash.pump","event_id":"%b","ts":60,"pct":%d}'
    return read_document(BUILT_IN_EVENTS[SPLASH], body % (event.encode(), version), [])


def opened(folder: Path) -> tuple[Store, int]:
    store = Store(folder / "rail.duckdb")
    writer_of(store).bind(SOURCE)
    return store, writer_of(store).start_load(LoadOrigin("http://x", 1, None, "0"))


def commit(store: Store, load_id: int, rows: list[dict[str, object]]) -> Inserted:
    return writer_of(store).commit(load_id, Batch(documents=[document_frame(rows)]))


def test_a_hundred_versions_are_kept_byte_for_byte_and_the_others_are_named(tmp_path: Path) -> None:
    store, load_id = opened(tmp_path)
    total = Inserted()
    for first in range(0, 160, 40):
        sent = [row("e1", number) for number in range(first, first + 40)]
        total += commit(store, load_id, [*sent, row("e2", first)])
    assert (total.new, total.revised, total.repeated) == (2, 99 + 3, 0)
    assert total.findings == Counter({Finding("versions_not_kept", "events/splash e1", SAYS): 60})
    with store.reading() as connection:
        held = connection.execute(
            "SELECT document FROM event WHERE event_id = 'e1' ORDER BY revision"
        ).fetchall()
    assert [each for (each,) in held] == [
        row("e1", n)["document"] for n in range(LIMITS.document_versions)
    ]
    again = commit(store, load_id, [row("e1", 7), row("e1", 99), row("e1", 120)])
    assert (again.repeated, again.unkept) == (2, {"events/splash e1": 1})
    newest = store.events(SPLASH, Interval(0, 120)).filter(event_id="e1")["document"]
    assert newest.to_list() == [row("e1", 99)["document"]]


def test_the_rule_holds_for_webhooks_too(tmp_path: Path) -> None:
    store, load_id = opened(tmp_path)
    rows = [row("e1", number) for number in range(101)]
    kept = keep_deliveries(
        writer_of(store), load_id, [Delivered("d1", "splash")], document_frame(rows)
    )
    assert kept.events == Inserted(new=1, revised=99, unkept={"events/splash e1": 1})


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 150)), max_size=150), max_size=3
    )
)
def test_what_came_is_new_or_revised_or_repeated_or_counted_as_not_kept(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[str, int]]]
) -> None:
    store, load_id = opened(tmp_path_factory.mktemp("versions"))
    total, held = Inserted(), {"a": set[int](), "b": set[int]()}
    for batch in batches:
        if batch:
            total += commit(store, load_id, [row(*each) for each in batch])
        for event, version in dict.fromkeys(batch):
            if len(held[event]) < LIMITS.document_versions:
                held[event].add(version)
    kept = sum(map(len, held.values()))
    assert total.new + total.revised == kept
    came = sum(map(len, batches))
    assert total.new + total.revised + total.repeated + sum(total.unkept.values()) == came


def test_named_events_are_bounded_in_number() -> None:
    total = Inserted()
    for number in range(1_100):
        total += Inserted(unkept={f"events/splash e{number}": 2})
    assert len(total.unkept) == 1_001
    assert total.unkept["other events"] == 200
    assert sum(total.unkept.values()) == 2_200


def traced(trace: str, size: int = 2, note: str = "") -> dict[str, object]:
    """A version of one event whose delivery has a trace of its own."""
    body = f'{{"event_id":"e1","ts":60,"pct":{size},"note":"{note}","trace":"{trace}"}}'
    return read_document(BUILT_IN_EVENTS[SPLASH], body.encode(), [])


def test_a_document_that_differs_in_its_trace_alone_is_no_revision(tmp_path: Path) -> None:
    store, load_id = opened(tmp_path)
    first = commit(store, load_id, [traced("a"), traced("b"), traced("c", size=3)])
    assert (first.new, first.revised, first.repeats_counted) == (
        *(1, 1),
        "0 held already, 1 came twice",
    )
    another = writer_of(store).start_load(LoadOrigin("http://x", 2, None, "0"))
    again = commit(store, another, [traced("d"), traced("e", size=3), traced("a")])
    assert (again.new, again.revised, again.repeats_counted) == (0, 0, "3 held already")
    with store.reading() as connection:
        kept = connection.execute("SELECT document FROM event ORDER BY revision").fetchall()
    assert kept == [(traced("a")["document"],), (traced("c", size=3)["document"],)]


def test_what_differs_between_deliveries_is_said_by_the_profile_of_the_load(tmp_path: Path) -> None:
    store, _ = opened(tmp_path)
    logs = {SPLASH: replace(BUILT_IN_EVENTS[SPLASH], volatile=("note",))}
    writer = writer_of(store)
    load_id = writer.start_load(LoadOrigin("http://x", 2, None, "0", logs=logs))
    sent = [traced("a", note="x"), traced("a", note="y"), traced("b")]
    found = writer.commit(load_id, Batch(documents=[document_frame(sent)]))
    assert (found.new, found.revised) == (1, 1)
    delivered = [Delivered("d1", "splash")]
    hooked = keep_deliveries(writer, load_id, delivered, document_frame([traced("a", note="z")]))
    assert (hooked.events.new, hooked.events.revised) == (0, 0)


LOG = EventLog(EventFamily.SPLASH)
WINDOW = Interval(0, 1_000)


@pytest.fixture
def writer(store: Store) -> StoreWriter:
    return writer_of(store)


def documents(names: Sequence[str], **columns: object) -> pl.DataFrame:
    return document_frame(
        [
            {"family": "splash", "event_id": name, "ts": 60, "ts_ms": 60_000, "document": "{}"}
            | columns
            for name in names
        ]
    )


def come(writer: StoreWriter, *pages: pl.DataFrame, heard: pl.DataFrame | None = None) -> None:
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
    come(writer, documents(["a", "b", "b"]), documents(["a", "c"]))
    before = writer.store.arrivals("splash", WINDOW)
    come(writer, documents(["a", "b", "c"]))
    assert came(writer) == [("a", ARCHIVE, 1), ("b", ARCHIVE, 2), ("c", ARCHIVE, 1)]
    assert writer.store.arrivals("splash", WINDOW).equals(before)


def test_a_socket_counts_each_time_up_to_a_limit_and_came_when_its_first_message_did(
    writer: StoreWriter,
) -> None:
    for at in range(5):
        heard = documents(["a", "a"]).with_columns(arrived_ms=pl.Series([70_000 + at, 80_000]))
        come(writer, heard=heard)
    come(writer, documents(["a"]))
    assert came(writer) == [("a", ARCHIVE, 1), ("a", SOCKET, 6)]
    (arrived,) = writer.store.arrivals("splash", WINDOW).filter(channel=SOCKET)["arrived_ms"]
    assert arrived == 70_000
    assert writer.store.channels_open().rows() == [(SOCKET, "splash", 60, 61)] * 3
    assert not list(faults_of(writer.store))


def test_documents_without_schema_or_type_are_told_apart_from_those_with_one(
    writer: StoreWriter,
) -> None:
    come(writer, documents(["a"]), documents(["a"], event_type="splash.pump"))
    come(writer, documents(["a"], schema_id="v2"), documents(["a"], event_type="splash.pump"))
    assert [row[0] for row in came(writer)] == ["a"] * 3


def test_a_document_that_is_not_kept_has_no_arrival(writer: StoreWriter) -> None:
    batch = Batch()
    batch.came.append((SOCKET, documents(["a"])))
    writer.commit(writer.start_load(LoadOrigin("http://x", 0, None, "0")), batch)
    assert came(writer) == []
