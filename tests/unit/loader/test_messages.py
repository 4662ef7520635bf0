"""What is made of the messages of streams before they are stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.intervals import Interval
from toolkit.loader.follow.reader import Message, Messages
from toolkit.market import EventFamily, EventLog, Source, Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter
from toolkit.store.writing.pages import KeptPage, packed_page
from toolkit.store.writing.remap import remap
from toolkit.wire.event_log import document_frame, read_document
from toolkit.wire.exchange import Response
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.rows.rows import read_history_page

PRICE = Trajectory.parse("BTC_USDT:AURORA.spot")


def told(messages: Messages) -> tuple[Batch, int, list[str]]:
    batch, repeated, findings = messages.batch_of_all()
    return batch, repeated, [finding.kind for finding in findings]


def test_a_document_that_comes_again_with_another_trace_is_the_same_document() -> None:
    pending = Messages(BUILT_IN)
    for body in (b'{"event_id":"e","ts":1,"trace":"a"}', b'{"event_id":"e","ts":1,"trace":"b"}'):
        pending.add(Message(EventLog(EventFamily.SPREAD), body))
    batch, repeated, findings = told(pending)
    assert (batch.documents[0].height, repeated, findings) == (1, 1, [])


def test_a_document_of_an_earlier_batch_is_remembered_and_a_changed_one_is_not_it() -> None:
    pending = Messages(BUILT_IN)
    pending.add(Message(EventLog(EventFamily.SPREAD), b'{"event_id":"e","ts":1}'))
    pending.batch_of_all()
    pending = pending.following()
    pending.add(Message(EventLog(EventFamily.SPREAD), b'{"event_id":"e","ts":1}'))
    pending.add(Message(EventLog(EventFamily.SPREAD), b'{"event_id":"e","ts":1,"pct":2}'))
    batch, repeated, _ = told(pending)
    assert (batch.documents[0].height, repeated) == (1, 1)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "document_unreadable"),
        (b"[]", "document_unreadable"),
        (b"\xff", "document_unreadable"),
        (b"{}", "without_time"),
        (b'{"ts":"x"}', "without_time"),
        (b'{"ts":4000000000000000000}', "without_time"),
    ],
)
def test_a_message_that_is_no_document_is_a_finding_and_costs_no_other(
    body: bytes, kind: str
) -> None:
    pending = Messages(BUILT_IN)
    pending.add(Message(EventLog(EventFamily.SPREAD), body))
    pending.add(Message(EventLog(EventFamily.SPREAD), b'{"event_id":"e","ts":1}'))
    batch, _, findings = told(pending)
    assert batch.documents[0].height == 1
    assert kind in findings


def test_a_record_that_cannot_be_read_is_a_finding_and_costs_no_other() -> None:
    pending = Messages(BUILT_IN)
    for body in (b'{"ts":60,"price":1.5}', b'{"ts":"x"}', b'{"ts":120,"price":2.5}'):
        pending.add(Message(PRICE, body))
    batch, _, findings = told(pending)
    rows = [row for frame in batch.rows[PRICE] for row in frame.select("ts", "price").rows()]
    assert rows == [(60, 1.5), (120, 2.5)]
    assert "record_unreadable" in findings
    assert batch.answered == {}


def test_where_the_archive_says_otherwise_than_the_stream_it_has_the_last_word(
    tmp_path: Path,
) -> None:
    pending = Messages(BUILT_IN)
    pending.add(Message(PRICE, b'{"ts":60,"price":1.5}'))
    pending.add(Message(EventLog(EventFamily.SPREAD), b'{"event_id":"e","ts":60,"pct":1}'))
    route = BUILT_IN.histories[PRICE.family]
    body = b'{"items":[{"ts":60,"price":2.5}],"next_end_time":null}'
    page = read_history_page(route, PRICE, Response(200, {}, body)).frame
    edge, whole = Edge(10_000, step_s=60), Interval(0, 120)
    pending.batch.add(PRICE, page, whole, edge)
    log = BUILT_IN.events[EventFamily.SPREAD]
    document = read_document(log, b'{"event_id":"e","ts":60,"pct":2}', [])
    pending.batch.add_documents(EventLog(log.family), document_frame([document]), whole, edge)
    store = Store(tmp_path / "s.duckdb")
    writer = StoreWriter(store)
    writer.bind(Source("replay", "x"))
    load_id = writer.start_load(LoadOrigin("http://h", 0, None, "0"))
    writer.commit(load_id, pending.batch_of_all()[0])
    assert store.series(PRICE)["price"].to_list() == [2.5]
    assert store.events(EventFamily.SPREAD, Interval(0, 120))["document"].to_list() == [
        document["document"]
    ]
    assert store.ledger()[PRICE].answered == [whole]


def test_rows_of_streams_are_kept_as_pages_before_those_of_the_archive(tmp_path: Path) -> None:
    store = Store(tmp_path / "rail.duckdb")
    writer, pending = StoreWriter(store), Messages(BUILT_IN)
    writer.bind(Source("replay", "example"))
    body = b'{"items":[{"ts":60,"price":2.0,"mark_price":null,"volume":1.0}]}'
    archived = KeptPage(PRICE, Interval(0, 120), Response(200, {}, body, PRICE.key))
    pending.batch.pages.append(packed_page(archived))
    pending.batch.rows[PRICE] = [
        read_history_page(BUILT_IN.histories[PRICE.family], PRICE, archived.answer).frame
    ]
    for ts in (60, 120):
        record = b'{"ts":%d,"price":1.0,"mark_price":null,"volume":1.0}' % ts
        pending.add(Message(PRICE, record))
    writer.commit(writer.start_load(LoadOrigin("http://h", 9, None, "0")), told(pending)[0])
    wanted = store.sql("FROM prices ORDER BY time").rows()
    assert remap(store, None).pages == 2
    assert store.sql("FROM prices ORDER BY time").rows() == wanted
    assert store.series(PRICE)["price"].to_list() == [2.0, 1.0]
    assert store.catalogue()["revisions"].to_list() == [1]
