"""The event pager and the reading of documents, one by one and at once, without a server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace

import msgspec
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolkit.errors import PagingError, WireError
from toolkit.intervals import Interval
from toolkit.market import EventFamily
from toolkit.wire.event_log import (
    EventPage,
    columns_at_once,
    document_frame,
    event_pages,
    read_document,
)
from toolkit.wire.exchange import Request, Response, RetryPolicy, Send
from toolkit.wire.findings import Finding
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS, EventRoute
from toolkit.wire.profile.profile import BUILT_IN, with_schemas

SPREAD = BUILT_IN_EVENTS[EventFamily.SPREAD]
DAY = Interval(0, 86_400)


def document(ts: int, number: int = 0, **changes: object) -> dict[str, object]:
    leg = {"exchange": "AURORA", "market": "spot", "price": 1.0}
    given: dict[str, object] = {
        "schema": "svc.spread.v1",
        "event_type": "spread.opened",
        "event_id": f"e{ts}-{number}",
        "lifecycle": "open",
        "ts": ts,
        "ts_ms": ts * 1000 + number,
        "instrument": {"symbol": "BTC_USDT"},
        "buy": leg,
        "sell": leg | {"exchange": "BOREAS"},
        "spread": {"pct": 1.5, "peak_pct": 2},
    }
    return given | changes


def walk(
    answers: Callable[[Request], object], window: Interval = DAY
) -> tuple[list[EventPage], list[Request]]:
    """Drive the pager with a function from request to body."""
    asked: list[Request] = []
    pages: list[EventPage] = []
    flow = event_pages(SPREAD, window, RetryPolicy(attempts=1))
    step = next(flow)
    while True:
        try:
            if isinstance(step, Send):
                asked.append(step.request)
                body = answers(step.request)
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                step = flow.send(Response(200, {}, raw))
            else:
                assert isinstance(step, EventPage)
                pages.append(step)
                step = flow.send(None)
        except StopIteration:
            return pages, asked


def served(documents: list[dict[str, object]], limit: int) -> Callable[[Request], object]:
    """A log that pages by cursor."""

    def answer(request: Request) -> object:
        at = int(dict(request.query).get("cursor", "0"))
        more = at + limit < len(documents)
        page = {"items": documents[at : at + limit], "has_more": more}
        return page | ({"next_cursor": str(at + limit)} if more else {})

    return answer


def test_the_bytes_of_a_document_are_kept_as_they_came() -> None:
    raw = b'{ "ts" :60,"schema":"x", "spread":{"pct":1.10}, "trace":"t\\u00e9" }'
    pages, _ = walk(lambda _: b'{"items":[' + raw + b'],"has_more":false}')
    assert pages[0].frame["document"].to_list() == [raw.decode()]


def test_an_empty_page_ends_the_window_whatever_has_more_says() -> None:
    pages, asked = walk(lambda _: {"items": [], "has_more": True, "next_cursor": "c"})
    assert len(asked) == 1
    assert pages[0].last
    assert [f.kind for f in pages[0].findings] == ["more_without_more"]


def test_a_cursor_that_comes_twice_is_an_error_not_a_circle() -> None:
    page = {"items": [document(5)], "has_more": True, "next_cursor": "again"}
    with pytest.raises(PagingError, match="circles"):
        walk(lambda _: page)


def test_more_without_a_cursor_is_an_error_not_a_silent_end() -> None:
    with pytest.raises(PagingError, match="no cursor"):
        walk(lambda _: {"items": [document(5)], "has_more": True})


@pytest.mark.parametrize(
    "paging", [{"next_cursor": None}, {"next_cursor": ""}, {"has_more": False}]
)
def test_a_full_page_that_names_either_field_may_be_the_last(paging: dict[str, object]) -> None:
    page = {"items": [document(5, number) for number in range(500, 0, -1)], **paging}
    pages, asked = walk(lambda _: page)
    assert (len(asked), pages[0].last, pages[0].findings) == (1, True, ())


def test_a_full_page_that_names_neither_more_nor_a_cursor_is_an_error_that_names_both() -> None:
    page = {"items": [document(5, number) for number in range(500)], "has_more": None}
    with pytest.raises(
        PagingError, match=r"500 doc.* neither 'has_more' nor 'next_cursor'"
    ) as told:
        walk(lambda _: page)
    assert "as many as were asked for" in str(told.value)


def test_a_page_cut_short_that_names_neither_is_found_out_by_asking_for_the_rest() -> None:
    every = [document(ts) for ts in range(900, 0, -100)]

    def capped(*, rising: bool) -> Callable[[Request], object]:
        def answer(request: Request) -> object:
            start, end = (int(dict(request.query)[name]) for name in ("start_time", "end_time"))
            found = [each for each in every if start <= int(str(each["ts"])) < end]
            return {"items": (found[::-1] if rising else found)[:4]}

        return answer

    for rising in (False, True):
        with pytest.raises(PagingError, match=r"neither 'has_more' nor .* 3 others came for"):
            walk(capped(rising=rising))


def test_a_whole_page_that_names_neither_is_the_window_with_a_finding() -> None:
    page = {"items": [document(600), document(300)]}

    def answer(request: Request) -> object:
        return page if dict(request.query)["end_time"] == "86400" else {"items": [document(300)]}

    pages, asked = walk(answer)
    assert [dict(each.query)["end_time"] for each in asked] == ["86400", "301"]
    assert (pages[0].frame.height, pages[0].last) == (2, True)
    assert [f.kind for f in pages[0].findings] == ["paging_unnamed"]


def test_no_content_is_an_empty_page() -> None:
    flow = event_pages(SPREAD, DAY, RetryPolicy())
    next(flow)
    page = flow.send(Response(204, {}, b""))
    assert isinstance(page, EventPage)
    assert (page.frame.height, page.last, page.findings) == (0, True, ())


def test_a_log_that_is_oldest_first_comes_whole_by_its_cursor() -> None:
    documents = [document(ts) for ts in range(100, 9_000, 100)]
    pages, _ = walk(served(documents, 20))
    assert pl.concat(page.frame for page in pages)["ts"].to_list() == list(range(100, 9_000, 100))
    assert pages[-1].last


@pytest.mark.parametrize("far", [10**30, 2**63, 253_402_300_800_000, -(10**18), "soon", None])
def test_a_time_of_no_use_is_made_up_for_by_the_other_one(far: object) -> None:
    by_seconds = read_document(SPREAD, json.dumps({"ts": 60, "ts_ms": far}).encode(), [])
    by_milliseconds = read_document(SPREAD, json.dumps({"ts": far, "ts_ms": 60_001}).encode(), [])
    assert (by_seconds["ts"], by_seconds["ts_ms"]) == (60, 60_000)
    assert (by_milliseconds["ts"], by_milliseconds["ts_ms"]) == (60, 60_001)
    floats = read_document(SPREAD, b'{"ts":60.0,"ts_ms":60000.5}', [])
    assert (floats["ts"], floats["ts_ms"], type(floats["ts"])) == (60, 60_000, int)


def test_a_document_without_a_time_of_use_is_kept_in_a_finding_and_costs_no_other() -> None:
    odd = b'{ "ts":4e18, "ts_ms":1e999 }'
    good = json.dumps(document(5)).encode()
    pages, _ = walk(lambda _: b'{"items":[' + odd + b"," + good + b'],"has_more":false}')
    assert pages[0].frame["ts"].to_list() == [5]
    assert [f.says for f in pages[0].findings if f.kind == "without_time"] == [odd.decode()]


def test_a_page_on_which_nothing_has_a_time_is_a_wire_error() -> None:
    odd = document(5) | {"ts": 10**30, "ts_ms": 10**33}
    with pytest.raises(WireError, match="without a time"):
        walk(lambda _: {"items": [odd, odd], "has_more": False})


@pytest.mark.parametrize("value", [b"1" + b"0" * 400, b"1" * 5_000, b"1e999"])
def test_a_value_that_no_column_can_hold_is_null_and_a_finding(value: bytes) -> None:
    findings: list[Finding] = []
    body = b'{"ts":60,"spread":{"pct":%b,"peak_pct":2},"lifecycle":"open"}' % value
    row = read_document(SPREAD, body, findings)
    assert row["magnitude_pct"] is None
    assert (row["lifecycle"], row["document"]) == ("open", body.decode())
    assert {f.kind for f in findings} <= {"out_of_range", "type_changed"}
    assert row["event_id"] == read_document(SPREAD, b" " + body, [])["event_id"]


@pytest.mark.parametrize(
    ("sent", "kept", "kind"),
    [([90_000, 5], [5], "outside_window"), ([5, 6], [5, 6], "not_newest_first")],
)
def test_documents_outside_the_window_and_another_order_are_found(sent, kept, kind) -> None:
    (page,), _ = walk(lambda _: {"items": [document(ts) for ts in sent], "has_more": False})
    assert (page.frame["ts"].to_list(), [f.kind for f in page.findings]) == (kept, [kind])


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"items":7}', b'{"items":[1]}'])
def test_a_body_that_is_no_event_page_is_a_wire_error(body: bytes) -> None:
    with pytest.raises(WireError):
        walk(lambda _: body)


def test_columns_are_read_by_their_paths_and_a_value_of_another_type_is_null() -> None:
    findings: list[Finding] = []
    row = read_document(SPREAD, json.dumps(document(60)).encode(), findings)
    names = ("symbol", "buy_exchange", "sell_exchange", "magnitude_pct", "peak_pct")
    assert tuple(row[name] for name in names) == ("BTC_USDT", "AURORA", "BOREAS", 1.5, 2.0)
    assert findings == []
    row = read_document(SPREAD, json.dumps(document(60, spread={"pct": "1.5"})).encode(), findings)
    assert row["magnitude_pct"] is None
    assert [each.kind for each in findings] == ["type_changed"]


def test_a_document_without_an_id_is_known_by_its_lasting_content() -> None:
    first, again, other = (
        read_document(
            SPREAD, json.dumps(document(60, event_id=None, trace=trace, price=price)).encode(), []
        )["event_id"]
        for trace, price in (("a", 1), ("b", 1), ("a", 2))
    )
    assert first == again
    assert first != other


def test_schemas_may_rename_the_cursor_and_say_depth_and_delay() -> None:
    tool = {
        "route": SPREAD.path,
        "retention_s": 3600,
        "delay_s": 60,
        "pagination": {"next": "token", "more": "further", "max_window_s": 7200, "max_limit": 9},
    }
    body = json.dumps({"source": {"id": "x"}, "tools": {"anything": tool}}).encode()
    route = with_schemas(BUILT_IN, body).events[EventFamily.SPREAD]
    assert (route.next, route.more, route.limit) == ("token", "further", 9)
    assert (route.window_s, route.retention_s, route.delay_s) == (7200, 3600, 60)


def endless(items: Callable[[int], list[dict[str, object]]]) -> Callable[[Request], object]:
    """A log whose every page has another cursor, with these items by the page's number."""
    numbers = itertools.count()

    def answer(_: Request) -> object:
        number = next(numbers)
        return {"items": items(number), "has_more": True, "next_cursor": f"c{number}"}

    return answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "items",
    [
        lambda _: [document(100, 1)],
        lambda number: [document(100, 1, event_id=f"e{number}")],
        lambda number: [document(100 + number % 7, 1)],
        lambda number: [document(DAY.start - 1 - number, 1)],
        lambda number: [document(DAY.end + number, 1)],
    ],
    ids=["one", "new ones at one time", "to and fro", "ever older", "ever newer"],
)
def test_pages_that_get_nowhere_in_time_are_ended_though_no_cursor_repeats(items) -> None:
    with pytest.raises(PagingError, match=r"1,000 pages in a row without a step in time") as caught:
        walk(endless(items))
    assert SPREAD.path in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("step", [-1, 1])
def test_pages_of_one_document_are_followed_as_long_as_time_moves(step: int) -> None:
    documents = [document(5_000 + step * (n // 900), 0, event_id=f"e{n}") for n in range(1_100)]
    pages, asked = walk(served(documents, 1))
    assert sum(page.frame.height for page in pages) == len(asked) == 1_100


@pytest.mark.slow
def test_newer_documents_than_asked_for_are_passed_on_the_way_down() -> None:
    later = [document(DAY.end + 5_000 - n, 0, event_id=f"e{n}") for n in range(1_050)]
    pages, _ = walk(served([*later, document(100, 0)], 1))
    assert pl.concat(page.frame for page in pages).height == 1


def test_a_cursor_of_20_mb_is_refused_by_name() -> None:
    page = {"items": [document(100, 1)], "has_more": True, "next_cursor": "c" * 20_000_000}
    with pytest.raises(WireError, match=r"a cursor of 20,000,000 bytes .* at most 4,096") as caught:
        walk(lambda _: page)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["A\x1b[2J_B", "A\u202e_B", "A" * 65])
def test_a_symbol_that_is_not_printable_or_too_long_is_a_finding_and_its_document_is_kept(
    text: str,
) -> None:
    body = json.dumps({"ts": 60, "symbol": text}).encode()
    findings: list[Finding] = []
    row = read_document(BUILT_IN_EVENTS[EventFamily.SPLASH], body, findings)
    assert row["symbol"] is None
    assert row["document"] == body.decode()
    (finding,) = findings
    assert (finding.kind, finding.says.isprintable()) == ("not_a_name", True)


def test_whole_numbers_are_text_in_each_column_of_names_at_once_and_one_by_one() -> None:
    numbers = {"schema": 1, "event_id": 70_312, "event_type": 2.0, "lifecycle": 3}
    sent = [document(60, **numbers), document(60, event_id=2**70), document(60, event_id="x")]
    (page,), _ = walk(lambda _: {"items": sent, "has_more": False})
    assert page.frame["event_id"].to_list() == ["70312", str(2**70), "x"]
    assert page.frame.row(0)[1:4] == ("1", "70312", "2")
    assert page.findings == ()
    (page,), _ = walk(lambda _: {"items": [document(60, event_id=7)] * 2, "has_more": False})
    assert (page.frame["event_id"].to_list(), page.findings) == (["7", "7"], ())


@pytest.mark.parametrize("sent", [True, 1.5, [7], {"id": 7}])
def test_an_id_that_is_no_text_and_no_whole_number_is_null_with_a_finding(sent: object) -> None:
    findings: list[Finding] = []
    row = read_document(SPREAD, json.dumps(document(60, event_id=sent)).encode(), findings)
    assert row["event_id"].startswith("sha256:")
    assert [each.kind for each in findings] == ["type_changed"]


@pytest.mark.parametrize("market", ["perp", "SPOT", "spot>BYBIT.futures"])
def test_a_market_that_is_none_is_null_with_a_finding(market: str) -> None:
    leg = {"exchange": "AURORA", "market": market}
    (page,), _ = walk(lambda _: {"items": [document(60, buy=leg)], "has_more": False})
    row = page.frame.row(0, named=True)
    assert (row["buy_exchange"], row["buy_market"]) == ("AURORA", None)
    assert (row["sell_exchange"], row["sell_market"]) == ("BOREAS", "spot")
    assert page.findings == (Finding("leg_unreadable", f"{SPREAD.path}.buy_market", market),)


@pytest.mark.parametrize(
    "odd",
    [b'"pct":NaN', b'"pct":-Infinity', b'"note":"cut \\ud83d"', b'"note":"cut \xf0\x9f"'],
)
def test_a_value_that_is_not_json_costs_no_document_of_the_page(odd: bytes) -> None:
    sent = [json.dumps(document(ts)).encode() for ts in range(40, 0, -1)]
    sent[3] = sent[3].replace(b'"spread": {"pct": 1.5', b'"spread": {%b' % odd)
    (page,), _ = walk(lambda _: b'{"items":[%b],"has_more":false}' % b",".join(sent))
    assert page.frame.height == 40
    assert page.frame["magnitude_pct"].to_list() == [1.5] * 3 + [None] + [1.5] * 36
    assert [each.kind for each in page.findings] == ["not_json"]
    assert [json.loads(text)["ts"] for text in page.frame["document"]] == list(range(40, 0, -1))


def test_an_item_that_is_no_document_costs_no_other() -> None:
    sent = [document(60), 7, None, [document(60)]]
    (page,), _ = walk(lambda _: {"items": sent, "has_more": False})
    assert page.frame.height == 1
    assert [each.kind for each in page.findings] == ["document_unreadable"] * 3


def test_a_control_character_of_a_text_is_its_escape_in_a_frame_and_the_document_stays() -> None:
    body = json.dumps({"event_type": "splash.\x1b[31mpump", "id": "\x07", "ts": 60}).encode()
    row = read_document(BUILT_IN_EVENTS[EventFamily.SPLASH], body, [])
    frame = document_frame([row])
    assert (frame["event_type"][0], frame["event_id"][0]) == (r"splash.\x1b[31mpump", r"\x07")
    assert frame["document"][0] == body.decode()
    assert not [c for c in "\x1b\x07" if c in str(frame)]


BODY = (
    b'{"schema":"svc.spread.v1","event_type":"spread.closed","event_id":"e1","lifecycle":"closed",'
    b'"ts":60,"ts_ms":60486,"instrument":{"symbol":"BTC_USDT"},"buy":{"exchange":"KRAKEN",'
    b'"market":"spot"},"sell":{"exchange":"BYBIT","market":"spot"},"spread":{"pct":0.5}}'
)
PLACES = (
    *("schema", "event_id", "id", "event_type", "ts", "ts_ms", "instrument", "instrument.symbol"),
    *("symbol", "buy", "buy.exchange", "buy_exchange", "spread", "spread.pct", "close_reason"),
)
VALUES = st.sampled_from(
    [
        *(b"null", b"60", b"60.0", b"1e400", b"-1", b"99999999999999", b"9" * 400, b"true", b"[]"),
        *(b'""', b'"BTC_USDT"', b'"--x"', b'"a b"', rb'"\ud800"', b'"\xff"', b"{}", b'{"a":1}'),
        *(b'{"symbol":"ETH_USDT"}', b'{"pct":1,"pct":2}', b'{"pct":"1"}', b'{"exchange":null}'),
    ]
)


def one_by_one(route: EventRoute, bodies: list[bytes]) -> list[dict[str, object]] | None:
    """Return the rows of documents that have no finding, None for others."""
    findings: list[Finding] = []
    try:
        rows = [read_document(route, body, findings) for body in bodies]
    except Exception:  # noqa: BLE001 - whatever it refuses is none of ours
        return None
    return None if findings or any(row["ts"] is None for row in rows) else rows


@example([{"instrument.symbol": b"null"}, {}])
@example([{"buy.exchange": b'"BYBIT"'}, {"buy.exchange": b"null", "buy_exchange": b'"OKX"'}])
@given(st.lists(st.dictionaries(st.sampled_from(PLACES), VALUES, max_size=3), min_size=1))
def test_a_page_read_at_once_has_the_columns_of_its_documents(
    changes: list[dict[str, bytes]],
) -> None:
    fields = msgspec.json.decode(BODY, type=dict[str, msgspec.Raw])
    plain = {name: bytes(raw) for name, raw in fields.items()}
    bodies = [
        b"{%b}" % b",".join(b'"%b":%b' % (n.encode(), v) for n, v in (plain | change).items())
        for change in changes
    ]
    at_once = columns_at_once(SPREAD, [msgspec.Raw(body) for body in bodies])
    if at_once is not None:
        rows = one_by_one(SPREAD, bodies)
        assert rows is not None
        assert at_once == {name: [row[name] for row in rows] for name in rows[0]}


def test_documents_as_the_interface_has_them_are_read_at_once() -> None:
    late = BODY.replace(b'"ts":60,', b"").replace(b'{"pct":0.5}', b'{"pct":1,"peak_pct":2.5}')
    at_once = columns_at_once(SPREAD, [msgspec.Raw(BODY), msgspec.Raw(late)])
    rows = one_by_one(SPREAD, [BODY, late])
    assert at_once is not None
    assert rows is not None
    assert at_once == {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize(
    "route",
    [
        replace(SPREAD, units={"magnitude_pct": "bps"}),
        replace(SPREAD, paths=SPREAD.paths | {"symbol": ("legs[0]",)}),
        replace(SPREAD, paths=SPREAD.paths | {"symbol": ("instrument",)}),
        replace(SPREAD, limits=replace(SPREAD.limits, document_bytes=len(BODY) - 1)),
    ],
    ids=["another unit", "a place in a list", "a value that is an object", "too large"],
)
def test_what_needs_more_than_to_be_read_is_left_to_the_reading_one_by_one(
    route: EventRoute,
) -> None:
    assert columns_at_once(route, [msgspec.Raw(BODY)]) is None
