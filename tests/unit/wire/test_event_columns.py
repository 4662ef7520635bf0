"""A page that is read at once has the very columns that its documents have one by one."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolkit.market import EventFamily
from toolkit.wire.event_log import Finding, columns_at_once, read_document
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS, EventRoute

SPREAD = BUILT_IN_EVENTS[EventFamily.SPREAD]
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
