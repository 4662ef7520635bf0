"""A column that statistics need and that nobody could read is refused at the first page."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from toolkit.errors import WireError
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory
from toolkit.wire.exchange import Response, RetryPolicy
from toolkit.wire.history_page import NEEDED, Page, check_needed
from toolkit.wire.paging import trajectory_pages
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.rows.rows import read_history_page

KEYS = {
    Family.PRICE: Trajectory.parse("BTC_USD:KRAKEN.spot"),
    Family.SPREAD: Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.futures"),
    Family.FUNDING: Trajectory.parse("funding/BTC_USD:COINBASE.spot:KRAKEN.futures"),
}
ROWS: dict[Family, dict[str, object]] = {
    Family.PRICE: {"price": 97.6, "mark_price": None, "volume": None},
    Family.SPREAD: {"buy_price": 97.6, "sell_price": 97.9, "spread_pct": 0.3},
    Family.FUNDING: {
        "buy_rate": 0.0,
        "sell_rate": 0.0001,
        "buy_interval_hours": None,
        "sell_interval_hours": 8,
        "differential_pct_8h": 0.01,
    },
}


def check(family: Family, height: int = 300, missing: str = "", **changes: object) -> None:
    """Check a page of equal rows, with some values changed and one field left out."""
    row = {name: value for name, value in (ROWS[family] | changes).items() if name != missing}
    items = [{"ts": 60 * number, **row} for number in range(height, 0, -1)]
    answer = Response(200, {}, json.dumps({"items": items}).encode(), "http://h/p")
    route = BUILT_IN.histories[family]
    check_needed(route, read_history_page(route, KEYS[family], answer).frame, answer)


def test_a_price_sent_as_text_is_refused_with_the_line_that_reads_it() -> None:
    with pytest.raises(WireError) as refused:
        check(Family.PRICE, price="97.6")
    assert str(refused.value) == (
        "http://h/p: price is null in 300 of 300 rows: the service sends text '97.6'; "
        'the profile can read it: numbers = "text" in [history.price]'
    )


def test_the_pager_refuses_it_before_any_row() -> None:
    route = BUILT_IN.histories[Family.PRICE]
    flow = trajectory_pages(route, KEYS[Family.PRICE], Interval(0, 600), RetryPolicy())
    next(flow)
    body = json.dumps({"items": [{"ts": 60, "price": "97.6"}], "next_end_time": None})
    with pytest.raises(WireError, match="price is null in 1 of 1 rows"):
        assert not isinstance(flow.send(Response(200, {}, body.encode())), Page)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("97,6", "sends text '97,6'; no line of the profile can read that"),
        ({"value": 97.6}, 'sends {"value":97.6}; no line of the profile can read that'),
        (True, "sends true; no line of the profile can read that"),
    ],
)
def test_what_no_line_reads_is_said_to_be_so(value: object, says: str) -> None:
    with pytest.raises(WireError) as refused:
        check(Family.PRICE, price=value)
    assert says in str(refused.value)


def test_a_field_of_another_name_is_guessed_and_the_line_given() -> None:
    with pytest.raises(WireError) as refused:
        check(Family.PRICE, missing="price", px=97.6)
    assert "the service sends no field of that name; the profile can read it: " in str(
        refused.value
    )
    assert 'fields.price = { wire = "px", unit = "quote" } in [history.price]' in str(refused.value)


def test_without_a_guess_the_fields_that_came_are_named() -> None:
    with pytest.raises(WireError) as refused:
        check(Family.PRICE, missing="price", zz="k")
    assert "it sends zz (unit not stated, e.g. 'k'); the profile can read it" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_field_whose_unit_schemas_made_unusable_is_refused_with_the_units_line() -> None:
    route = BUILT_IN.histories[Family.PRICE]
    route = replace(route, fields=tuple(r for r in route.fields if r.column != "price"))
    answer = Response(200, {}, b'{"items":[{"ts":60,"price":97.6}],"next_end_time":null}')
    page = read_history_page(route, KEYS[Family.PRICE], answer)
    with pytest.raises(WireError, match=r'fields.price = { unit = "quote" } in \[history.price\]'):
        check_needed(route, page.frame, answer)


@pytest.mark.parametrize(
    ("family", "columns"),
    [(Family.SPREAD, ("buy_price", "sell_price")), (Family.FUNDING, ("buy_rate", "sell_rate"))],
)
def test_a_leg_sent_as_text_is_refused_although_there_is_the_figure_of_both(
    family: Family, columns: tuple[str, ...]
) -> None:
    for column in columns:
        with pytest.raises(WireError, match=rf"{column} is null in 300 of 300 rows: .* text '9.6'"):
            check(family, **{column: "9.6"})


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        (Family.SPREAD, {"spread_pct": "0.3"}),  # the legs have it
        (Family.SPREAD, {"missing": "spread_pct"}),
        (Family.SPREAD, {"missing": "buy_price"}),  # the spread has it
        (Family.SPREAD, {"buy_price": None, "spread_pct": None}),  # a leg is missing
        (Family.FUNDING, {"buy_rate": None}),  # it does not settle then
        (Family.FUNDING, {"sell_rate": None, "differential_pct_8h": None}),
        (Family.FUNDING, {"missing": "buy_rate"}),  # the differential has it
        (Family.PRICE, {"price": None, "height": 9}),  # an outage
        (Family.PRICE, {"volume": "5.0", "mark_price": "97.6"}),  # nothing needs them
    ],
)
def test_what_statistics_can_do_with_is_not_refused(
    family: Family, changes: dict[str, object]
) -> None:
    check(family, **changes)  # type: ignore[arg-type]  # the parameters of check, by name


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        (Family.SPREAD, {"missing": "buy_price", "spread_pct": "0.3"}),
        (Family.FUNDING, {"missing": "sell_rate", "differential_pct_8h": "0.3"}),
    ],
)
def test_legs_and_their_difference_both_unread_are_refused(
    family: Family, changes: dict[str, object]
) -> None:
    with pytest.raises(WireError, match="the service sends no field of that name"):
        check(family, **changes)  # type: ignore[arg-type]  # the parameters of check, by name


@pytest.mark.parametrize("family", Family)
def test_a_long_page_of_nulls_in_all_that_is_needed_is_refused(family: Family) -> None:
    nulls = dict.fromkeys(name for columns in NEEDED[family] for name in columns)
    with pytest.raises(WireError, match="is null in 10 of 10 rows: the service sends null"):
        check(family, height=10, **nulls)
    check(family, height=9, **nulls)


def test_a_time_sent_as_text_is_an_error_with_the_line_that_reads_it() -> None:
    body = b'{"items":[{"ts":"1700000040","price":1.0}],"next_end_time":null}'
    route = BUILT_IN.histories[Family.PRICE]
    with pytest.raises(WireError, match=r'text, .1700000040.; .* numbers = "text" in \[history'):
        read_history_page(route, Trajectory.parse("BTC_USD:KRAKEN.spot"), Response(200, {}, body))
