"""Fields that are twice in one object: the last value counts, and a finding names each."""

from __future__ import annotations

import pytest

from toolkit.intervals import Interval
from toolkit.loader.follow.reader import Message, Messages
from toolkit.market import EventFamily, EventLog, Family, Trajectory
from toolkit.wire.event_log import EventPage, event_pages
from toolkit.wire.exchange import Response, RetryPolicy
from toolkit.wire.findings import Finding
from toolkit.wire.listing import Listing, list_symbols
from toolkit.wire.profile.profile import BUILT_IN, with_schemas
from toolkit.wire.rows.mending import doubled_fields
from toolkit.wire.rows.rows import RawPage, read_history_page
from toolkit.wire.signatures import read_delivery

KEY = Trajectory.parse("BTC_USD:KRAKEN.spot")
ROW = '{"ts":60,"price":1.5,"mark_price":null,"volume":2.0}'
TWICE = ROW.replace('"price":1.5', '"price":1.5,"price":9.5')
DOCUMENT = b'{"schema":"svc.splash.v1","event_id":"e1","ts":60,"pct":1,"pct":{"a":1,"a":2}}'


def read(body: str, **layer: object) -> RawPage:
    route = BUILT_IN.over({"history": {"price": layer}}).histories[Family.PRICE]
    return read_history_page(route, KEY, Response(200, {}, body.encode()))


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    found = [each for each in findings if each.kind == "doubled_field"]
    return [(each.where.rpartition("/")[2], each.says.partition(";")[0]) for each in found]


@pytest.mark.parametrize(
    "rows",
    [
        [ROW, TWICE, TWICE],
        [ROW, TWICE.replace('":', '" : '), TWICE],
        [ROW, TWICE, TWICE.replace("}", ',"of":{"a:b":"c: d"}}')],
    ],
    ids=["as declared", "with blanks", "with more"],
)
def test_a_field_that_rows_have_twice_is_one_finding_of_the_page(rows: list[str]) -> None:
    page = read(f'{{"items":[{",".join(rows)}],"next_end_time":null}}')
    assert page.frame["price"].to_list() == [1.5, 9.5, 9.5]
    assert told(page.findings) == [("price.price", "in 2 objects")]


def test_of_rows_that_are_twice_in_a_page_the_last_count_and_that_is_a_finding() -> None:
    page = read(f'{{"items":[{ROW}],"items":[{ROW},{ROW}],"next_end_time":null}}')
    assert page.frame.height == 2
    assert told(page.findings) == [("price.items", "in 1 object")]


@pytest.mark.parametrize(
    "row",
    [
        ROW.replace("60", '"1970-01-01T00:01:00Z"'),
        ROW.replace("60", '"1970-01-01T00:01:00Z"').replace("}", ',"of":{"ts":"a:b \\": "}}'),
        ROW.replace("60", '"1970-01-01T00:01:00Z"').replace("}", ',"of":"1:2\\u003a3"}'),
    ],
)
def test_colons_in_texts_double_no_field(row: str) -> None:
    page = read(
        f'{{"meta":{{"at":"12:30"}},"items":[{row},{row}],"next_end_time":null}}',
        fields={"ts": {"unit": "iso"}},
    )
    assert (page.frame.height, told(page.findings)) == (2, [])


def test_a_field_that_a_document_has_twice_is_a_finding_by_every_way_it_comes() -> None:
    route = BUILT_IN.events[EventFamily.SPLASH]
    steps = event_pages(route, Interval(0, 120), RetryPolicy(attempts=1))
    next(steps)
    page = steps.send(Response(200, {}, b'{"items":[%b],"has_more":false}' % DOCUMENT))
    assert isinstance(page, EventPage)
    pending = Messages(BUILT_IN)
    pending.add(Message(EventLog(EventFamily.SPLASH), DOCUMENT))
    delivery = read_delivery(BUILT_IN.events, DOCUMENT)
    assert page.frame["document"].to_list() == [DOCUMENT.decode()]
    for findings in (page.findings, tuple(pending.batch_of_all()[2]), delivery.findings):
        assert [where.rpartition(".")[2] for where, _ in told(findings)] == ["a", "pct"]


def test_documents_that_are_twice_in_a_page_are_a_finding() -> None:
    steps = event_pages(
        BUILT_IN.events[EventFamily.SPLASH], Interval(0, 120), RetryPolicy(attempts=1)
    )
    next(steps)
    page = steps.send(Response(200, {}, b'{"items":[{"ts":60}],"items":[],"has_more":false}'))
    assert isinstance(page, EventPage)
    assert [where.rpartition(".")[2] for where, _ in told(page.findings)] == ["items"]


def test_a_field_that_the_schemas_or_the_listing_have_twice_is_a_finding() -> None:
    profile = with_schemas(BUILT_IN, b'{"tools":{},"source":{"id":"a","id":"b"}}')
    steps = list_symbols(BUILT_IN, "BTC", RetryPolicy(attempts=1))
    next(steps)
    with pytest.raises(StopIteration) as listed:
        steps.send(Response(200, {}, b'{"items":[{"symbol":"A_B","symbol":"C_B","venues":[]}]}'))
    assert isinstance(listed.value.value, Listing)
    assert told(profile.findings) == [("schemas.id", "in 1 object")]
    assert told(listed.value.value.findings) == [("search.symbol", "in 1 object")]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"a":1e999}', b"[" * 100_000, b"9" * 5000])
def test_what_no_reader_can_hold_doubles_no_field(body: bytes) -> None:
    assert doubled_fields([body], "/p") == []
