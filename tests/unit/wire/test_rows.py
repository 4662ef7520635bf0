"""A page's bytes to a frame: what fits goes to columns, the rest is kept, nothing is guessed."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolkit.errors import WireError
from toolkit.market import Family, Trajectory
from toolkit.wire.exchange import Response
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.rows.rows import RawPage, column_schema, read_history_page

PRICE = BUILT_IN.histories[Family.PRICE]
SPREAD = BUILT_IN.histories[Family.SPREAD]
KEYS = {
    Family.PRICE: Trajectory.parse("BTC_USD:KRAKEN.spot"),
    Family.SPREAD: Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.spot"),
}
ROW = '{"ts":60,"price":1.5,"mark_price":null,"volume":2.0}'


def read(body: str | bytes, route: HistoryRoute = PRICE) -> RawPage:
    """The page of a body."""
    content = body.encode() if isinstance(body, str) else body
    headers = {"content-type": "application/json"}
    return read_history_page(
        route, KEYS[route.family], Response(200, headers, content, "http://h/p")
    )


def read_rows(*rows: str, route: HistoryRoute = PRICE) -> RawPage:
    return read('{"items":[' + ",".join(rows) + '],"next_end_time":null}', route)


def kinds(page: RawPage) -> list[tuple[str, str, str]]:
    return [(f.kind, f.where.rpartition("/")[2], f.says) for f in page.findings]


def with_unit(route: HistoryRoute, column: str, unit: str) -> HistoryRoute:
    fields = (replace(rule, unit=unit) if rule.column == column else rule for rule in route.fields)
    return replace(route, fields=tuple(fields))


def test_rows_that_conform_fill_the_columns_in_the_order_of_the_wire() -> None:
    page = read_rows(ROW, '{"ts":0,"price":100,"mark_price":7.0,"volume":null}')
    assert page.frame.rows() == [(60, 1.5, None, 2.0, None), (0, 100.0, 7.0, None, None)]
    assert page.frame.schema == column_schema(Family.PRICE)
    assert (page.oldest, page.newest, page.findings) == (0, 60, ())


def test_a_field_that_was_null_in_all_of_one_page_is_read_in_the_next_one() -> None:
    null = '{"ts":0,"price":1.0,"mark_price":null,"volume":null}'
    assert read_rows(null).frame["volume"].to_list() == [None]
    assert read_rows(null, ROW).frame["volume"].to_list() == [None, 2.0]
    assert read_rows(null.replace(',"volume":null', "")).findings[0].kind == "field_missing"


def test_a_page_without_rows_has_the_same_columns() -> None:
    page = read_rows()
    assert page.frame.schema == column_schema(Family.PRICE)
    assert (page.frame.height, page.oldest, page.newest) == (0, None, None)


VALUE = st.none() | st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.lists(st.tuples(st.integers(0, 2_000_000_000), VALUE, VALUE, VALUE), max_size=8)


@settings(deadline=None)
@given(ROWS)
@example([(0, 5e-324, -0.0, 1.7976931348623157e308)])
def test_every_float_arrives_bit_for_bit(rows) -> None:
    names = ("ts", "price", "mark_price", "volume")
    page = read_rows(*(json.dumps(dict(zip(names, row, strict=True))) for row in rows))
    came = page.frame.drop("extra").rows()
    assert [[bits(value) for value in row] for row in came] == [
        [bits(value) for value in row] for row in rows
    ]


def bits(value: float | None) -> bytes | None:
    return None if value is None else struct.pack("<d", value)


@settings(deadline=None)
@given(ROWS)
def test_a_page_with_one_row_that_deviates_is_otherwise_read_the_same(rows) -> None:
    names = ("ts", "price", "mark_price", "volume")
    texts = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    exact = read_rows(*texts).frame
    deviating = read_rows(*texts, '{"ts":1,"price":"?","mark_price":null,"volume":null}').frame
    assert deviating.head(-1).equals(exact, null_equal=True)
    assert deviating.schema == exact.schema


BEYOND = "9" * 400
X = '{"b": 1.10,"a" :[1e2, "\\u00e9é", null]}'


@pytest.mark.parametrize(
    ("row", "values", "extra", "found"),
    [
        ('"price":1,"mark_price":null,"volume":2,"note":"x"', (1.0, None, 2.0), '{"note":"x"}',
         ["field_unknown note"]),
        ('"price":1,"volume":2', (1.0, None, 2.0), None, ["field_missing mark_price"]),
        ('"price":"1.50","mark_price":true,"volume":2', (None, None, 2.0),
         '{"price":"1.50","mark_price":true}', ["type_changed mark_price", "type_changed price"]),
        ('"last":1,"mark_price":null,"volume":2', (None, None, 2.0), '{"last":1}',
         ["field_missing price", "field_unknown last"]),
        (f'"price":1e999,"mark_price":null,"volume":{BEYOND}', (None, None, None),
         f'{{"price":1e999,"volume":{BEYOND}}}', ["type_changed price", "type_changed volume"]),
        (f'"price":1,"mark_price":null,"volume":2,"x":{X}', (1.0, None, 2.0), f'{{"x":{X}}}',
         ["field_unknown x"]),
        ('"price":1,"mark_price":null,"volume":2,"a\\"\\n":1', (1.0, None, 2.0), '{"a\\"\\n":1}',
         ['field_unknown a"\n']),
    ],
    ids=["unknown", "missing", "other types", "renamed", "beyond a float", "nested", "escapes"],
)  # fmt: skip
def test_what_fits_no_column_is_kept_as_it_came_and_counted(row, values, extra, found) -> None:
    odd = '{"ts":60,' + row + "}"
    page = read_rows(odd, '{"ts":0,"price":9,"mark_price":8,"volume":7}', odd)
    assert page.frame.rows()[::2] == [(60, *values, extra)] * 2
    assert page.frame.row(1) == (0, 9.0, 8.0, 7.0, None)
    named = (each.split(" ", 1) for each in found)
    assert kinds(page) == [(kind, f"price.{name}", "in 2 of 3 rows") for kind, name in named]
    if extra is not None:
        assert json.loads(extra).items() <= json.loads('{"ts":60,' + row + "}").items()


def test_large_whole_numbers_are_the_nearest_floats() -> None:
    page = read_rows('{"ts":1,"price":12345678901234567890123,"mark_price":null,"volume":null}')
    assert page.frame["price"].item() == float("12345678901234567890123")
    assert page.findings == ()


@pytest.mark.parametrize(
    "ts",
    [
        *('"60"', "60.0", "60.5", "true", "1e2", "[60]"),
        *("9223372036854775808", "-9223372036854775809", "9" * 40),
        *("1700000000000", "253402300800", "-1"),
    ],
)
def test_a_row_without_a_time_in_seconds_is_refused(ts) -> None:
    with pytest.raises(WireError, match="time") as caught:
        read_rows(ROW, '{"ts":' + ts + ',"price":1,"mark_price":null,"volume":null}')
    assert "\n" not in str(caught.value)
    assert caught.value.status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<!doctype html>\n<p>maintenance",
        b'{"items":[' + ROW.encode(),
        b'{"items":[{"ts":NaN,"price":1,"mark_price":null,"volume":null}]}',
        b'{"items":[{"ts":1,"price":NaN]}',
        b"[]",
        b"null",
        b"7",
        b'"text"',
        b'\xef\xbb\xbf{"items":[]}',
        b'{"items":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"items":null}',
        b'{"items":{"ts":1}}',
        b'{"items":[1]}',
        b'{"items":[null]}',
        b"{}",
        b'{"status":429,"detail":"slow\\ndown"}',
        b'{"errors":[]}',
        b'{"a":[{"ts":1}],"b":[{"ts":2}]}',
        b'{"a\\nb":1,"' + b"c" * 10_000 + b'":2}',
    ],
)
def test_a_body_that_is_no_page_is_one_wire_error_of_one_line(body) -> None:
    with pytest.raises(WireError) as caught:
        read(body)
    assert str(caught.value).startswith("http://h/p answered 200, but ")
    if not body.lstrip().startswith((b"{", b"[")):
        assert f"(application/json, {len(body)} bytes" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert (caught.value.status, caught.value.url) == (200, "http://h/p")


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        *((word, word) for word in ("NaN", "Infinity", "-Infinity", "nan", "None")),
        *((text, "text that is not Unicode") for text in ('"\\ud83d"', '"\\udc00\\ud83d"')),
        (b'"\xf0\x9f"', "text that is not Unicode"),
    ],
)
def test_a_value_that_is_not_json_costs_that_value_alone(sent: str | bytes, says: str) -> None:
    value = sent if isinstance(sent, bytes) else sent.encode()
    odd = b'{"ts":0,"price":%b,"mark_price":null,"volume":7.0,"of":"NaN \\ud83d\\ude00"}' % value
    page = read(b'{"items":[%b,%b],"next_end_time":null}' % (ROW.encode(), odd))
    assert page.frame.rows() == [
        (60, 1.5, None, 2.0, None),
        (0, None, None, 7.0, '{"of":"NaN \\ud83d\\ude00"}'),
    ]
    assert kinds(page)[0] == ("not_json", "price.price", says)


def test_a_value_on_a_line_that_is_not_json_costs_that_value_alone() -> None:
    layer = {"history": {"price": {"rows": "lines", "next": ""}}}
    route = BUILT_IN.over(layer).histories[Family.PRICE]
    body = ROW.encode() + b'\n{"ts":0,"price":NaN,"mark_price":null,"volume":7.0}\n'
    page = read(body, route)
    assert page.frame.select("ts", "price").rows() == [(60, 1.5), (0, None)]
    assert kinds(page)[0] == ("not_json", "price.price", "NaN")


def test_a_name_that_is_not_unicode_costs_the_name_alone() -> None:
    page = read(b'{"\xff":1,"\\ud800":[],"items":[%b],"next_end_time":60}' % ROW.encode())
    assert page.frame.height == 1
    assert [kind for kind, *_ in kinds(page)] == ["not_json"] * 2


@pytest.mark.parametrize("ts", ["null", "NaN"])
def test_a_row_without_a_time_beside_others_is_kept_in_a_finding(ts: str) -> None:
    page = read_rows(ROW, '{"ts":' + ts + ',"price":1,"mark_price":null,"volume":null}')
    assert (page.frame["ts"].to_list(), page.size) == ([60], 2)
    lost = '{"ts":null,"price":1,"mark_price":null,"volume":null}'
    assert kinds(page)[-1] == ("row_without_time", "price.ts", lost)


PAGE = b'{"type":"p","items":[' + ROW.encode() + b'],"next_end_time":60,"x":{"y":[1,"z"]}}'


@settings(deadline=None)
@given(st.data())
def test_no_damage_to_a_page_raises_anything_but_a_wire_error(data) -> None:
    body = bytearray(PAGE)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        piece = data.draw(st.binary(max_size=3) | st.sampled_from([b"[", b"{", b'"', b"1e9", b"-"]))
        body[at : at + data.draw(st.integers(0, 3))] = piece
    told = ""
    try:
        read(bytes(body))
    except WireError as error:
        told = str(error)
    assert "\n" not in told


def test_rows_under_another_name_are_found_where_there_is_but_one_array() -> None:
    page = read('{"data":[' + ROW + '],"next_end_time":60}')
    assert page.frame.height == 1
    assert kinds(page) == [("items_renamed", "price", "'data' instead of 'items'")]


def test_no_rows_under_another_name_are_an_empty_page_only_beside_the_paging_value() -> None:
    assert read('{"data":[],"next_end_time":null}').frame.height == 0
    with pytest.raises(WireError, match="without rows under 'items'; it has 'data', 'status'"):
        read('{"data":[],"status":"ok"}')


@pytest.mark.parametrize(
    ("said", "pointer", "ends", "kind"),
    [
        ('"next_end_time":60', 60, False, None),
        ('"next_end_time":60.0', 60, False, None),
        ('"next_end_time":null', None, True, None),
        ('"next_end_time":""', None, False, None),
        ('"next_end_time":false', None, False, None),
        ('"other":1', None, False, "next_missing"),
        ('"next_end_time":1700000000000', 1700000000, False, "next_in_ms"),
        ('"next_end_time":1700000000000.0', 1700000000, False, "next_in_ms"),
        ('"next_end_time":-1', None, False, "next_unreadable"),
        ('"next_end_time":"60"', None, False, "next_unreadable"),
        ('"next_end_time":60.5', None, False, "next_unreadable"),
        ('"next_end_time":{"a":\n1}', None, False, "next_unreadable"),
        ('"next_end_time":1e999', None, False, "next_unreadable"),
        ('"next_end_time":' + "9" * 400, None, False, "next_unreadable"),
    ],
)
def test_the_paging_value_is_read_or_its_oddity_recorded(said, pointer, ends, kind) -> None:
    page = read('{"items":[' + ROW + "]," + said + "}")
    assert (page.next_end_time, page.ends) == (pointer, ends)
    assert [f.kind for f in page.findings] == ([kind] if kind else [])
    assert all(len(f.says) < 120 for f in page.findings)


@pytest.mark.parametrize("said", ['"60"', "60.5", "{}", "-1", "9" * 400])
def test_an_empty_page_that_points_on_unclearly_is_no_end(said) -> None:
    with pytest.raises(WireError, match="what follows is unclear"):
        read('{"items":[],"next_end_time":' + said + "}")


def test_a_paging_value_in_seconds_stays_so_beside_times_in_milliseconds() -> None:
    route = with_unit(PRICE, "ts", "ms")
    row = '{"ts":1700000000000,"price":1,"mark_price":null,"volume":null}'
    page = read('{"items":[' + row + '],"next_end_time":1700000000}', route)
    assert (page.next_end_time, page.oldest) == (1700000000, 1700000000)
    assert page.findings == ()


def test_a_time_in_milliseconds_is_the_second_it_lies_in_and_what_is_cut_off_is_recorded() -> None:
    rows = [f'{{"ts":{ts},"price":1,"mark_price":null,"volume":null}}' for ts in (1999, 1000, 999)]
    page = read_rows(*rows, route=with_unit(PRICE, "ts", "ms"))
    assert page.frame["ts"].to_list() == [1, 1, 0]
    assert kinds(page) == [
        ("time_cut", "price.ts", "a part of a second was left out in 2 of 3 rows")
    ]


def test_a_time_in_hours_is_its_second() -> None:
    page = read_rows(ROW, route=with_unit(PRICE, "ts", "hours"))
    assert page.frame["ts"].item() == 216_000


def test_a_field_without_a_rule_is_kept_beside_columns_that_stay_null() -> None:
    route = replace(SPREAD, fields=SPREAD.fields[:-1])
    page = read_rows('{"ts":60,"buy_price":1,"sell_price":2,"spread_pct":1.10}', route=route)
    assert page.frame.row(0) == (60, 1.0, 2.0, None, '{"spread_pct":1.10}')


@pytest.mark.parametrize(
    "head",
    [
        {},
        {"symbol": "BTC_USD", "exchange": "KRAKEN", "market": "spot"},
        {"symbol": "btc-usd", "exchange": "Kraken"},
        {"symbol": None, "exchange": {"name": "BINANCE"}, "market": 1},
        {"buy_exchange": "BINANCE", "pair": "ETH_USD"},
    ],
)
def test_a_page_that_names_its_own_trajectory_or_none_is_read(head) -> None:
    assert read(json.dumps({**head, "items": [], "next_end_time": None})).frame.height == 0


@pytest.mark.parametrize(
    ("family", "head"),
    [
        (Family.PRICE, {"exchange": "BINANCE"}),
        (Family.PRICE, {"symbol": "BTC_USDT"}),
        (Family.PRICE, {"market": "futures"}),
        (Family.SPREAD, {"buy_exchange": "KRAKEN", "sell_exchange": "COINBASE"}),
        (Family.SPREAD, {"sell_market": "futures"}),
    ],
)
def test_a_page_of_another_trajectory_is_refused(family, head) -> None:
    body = json.dumps({**head, "items": [], "next_end_time": None})
    with pytest.raises(WireError, match="for another trajectory: "):
        read(body, BUILT_IN.histories[family])


def test_the_names_asked_with_are_the_names_looked_for() -> None:
    route = replace(PRICE, parameters={**PRICE.parameters, "exchange": "venue"})
    assert read('{"venue":"KRAKEN","exchange":"X","items":[]}', route).frame.height == 0
    with pytest.raises(WireError, match="venue is 'X', asked was 'KRAKEN'"):
        read('{"venue":"X","items":[]}', route)


def test_prices_of_0_or_less_are_kept_and_are_one_finding_of_their_column() -> None:
    low = ROW.replace("1.5", "-2"), ROW.replace('"mark_price":null', '"mark_price":0')
    page = read_rows(ROW, ROW.replace("1.5", "0"), *low)
    assert page.frame["price"].to_list() == [1.5, 0.0, -2.0, 1.5]
    assert kinds(page) == [
        ("price_not_positive", "price.price", "in 2 of 4 rows, the lowest -2"),
        ("price_not_positive", "price.mark_price", "in 1 of 4 rows, the lowest 0"),
    ]


def test_a_leg_of_a_spread_without_a_price_above_0_is_a_finding() -> None:
    row = '{"ts":60,"buy_price":0,"sell_price":1.5,"spread_pct":null}'
    assert kinds(read_rows(row, route=SPREAD)) == [
        ("price_not_positive", "spread.buy_price", "in 1 of 1 rows, the lowest 0")
    ]
