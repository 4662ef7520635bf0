"""The kind `rows`, paged through over a real socket."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

from tests.other_services.asking import KEY, Reply, ask, event_pages
from tests.other_services.data import NOW, START, TRAJECTORIES, Data, sample
from tests.other_services.kinds import running_other

PRICE, _, SPREAD, _, FUNDING, _ = TRAJECTORIES
LEG = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}
LEGS = {"pair": "BTC_USDT", "buy": "AURORA/spot", "sell": "CORONA/futures"}
FUNDING_LEGS = {"pair": "BTC_USDT", "buy": "CORONA/futures", "sell": "DRACO/futures"}


@pytest.fixture(scope="module")
def base_url():
    with running_other("rows", sample()) as address:
        yield address


def pages(base_url: str, family: str, *, in_header: bool = True, **parameters: object):
    """Yield each page, newest first, its cursor sent in the header or as the parameter."""
    mark = None
    while True:
        sent = {} if mark is None else {"X-Continue-At": mark}
        path, headers = f"history/{family}", KEY | sent if in_header else KEY
        as_parameter = {"continue_at": mark} if mark is not None and not in_header else {}
        reply = ask(base_url, path, headers, **parameters, **as_parameter)
        yield reply
        mark = reply.headers["X-Mark"]
        if mark is None:
            return


def oldest_first(replies: list[Reply]) -> list[tuple]:
    """Return the columns of all rows."""
    return list(zip(*[row for reply in replies for row in reply.body][::-1], strict=True))


@pytest.mark.parametrize("in_header", [True, False])
@pytest.mark.parametrize("limit", [7, 50, 500])
def test_pages_of_a_price_give_each_row_exactly(base_url: str, limit: int, in_header: bool) -> None:
    rows = sample().rows[PRICE]
    found = list(pages(base_url, "price", in_header=in_header, **LEG, limit=limit))
    assert {len(reply.body) for reply in found[:-1]} <= {limit}
    ts_ms, price, mark_price, volume = oldest_first(found)
    assert [each // 1_000 for each in ts_ms] == rows["ts"].to_list()
    for texts, name in ((price, "price"), (mark_price, "mark_price"), (volume, "volume")):
        assert [each and float(each) for each in texts] == rows[name].to_list()


def test_a_price_is_paged_by_end_time_as_the_document_promises(base_url: str) -> None:
    found, end_time = {}, NOW
    while end_time is not None:
        reply = ask(base_url, "history/price", **LEG, end_time=end_time, limit=100)
        found |= {row[0]: row[1] for row in reply.body}
        end_time = reply.headers["X-Next-End-Time"]
    assert [found[ts_ms] and float(found[ts_ms]) for ts_ms in sorted(found)] == (
        sample().rows[PRICE]["price"].to_list()
    )


def test_pages_of_a_spread_give_each_row_exactly_in_hundredths_of_a_percent(base_url: str) -> None:
    rows = sample().rows[SPREAD]
    ts_ms, buy, sell, figure = oldest_first(list(pages(base_url, "spread", **LEGS)))
    assert [each // 1_000 for each in ts_ms] == rows["ts"].to_list()
    assert [float(each) for each in buy] == rows["buy_price"].to_list()
    assert [float(each) for each in sell] == rows["sell_price"].to_list()
    pct = [Fraction(each) / 100 for each in figure]
    assert pct == [Fraction(repr(each)) for each in rows["spread_pct"]]


def test_pages_of_funding_give_each_settlement_exactly(base_url: str) -> None:
    rows = sample().rows[FUNDING]
    found = oldest_first(list(pages(base_url, "funding", **FUNDING_LEGS, limit=10)))
    for sent, name, size in (
        (found[1], "buy_rate", 10_000),
        (found[2], "sell_rate", 10_000),
        (found[5], "differential_pct_8h", 100),
    ):
        expected = [each if each is None else Fraction(repr(each)) for each in rows[name]]
        assert [each if each is None else Fraction(each) / size for each in sent] == expected
    assert list(found[3]) == rows["buy_interval_hours"].to_list()
    assert list(found[4]) == rows["sell_interval_hours"].to_list()


def test_rows_of_one_second_lie_a_millisecond_apart_and_no_page_loses_one() -> None:
    ts = [START, *[START + 60] * 5, START + 120]
    rows = pl.DataFrame({"ts": ts, "price": [float(number) for number in range(len(ts))]})
    rows = rows.with_columns(mark_price=None, volume=None)
    with running_other("rows", Data({PRICE: rows}, clock=sample().clock)) as base_url:
        found = oldest_first(list(pages(base_url, "price", **LEG, limit=2)))
    assert [each % 1_000 for each in found[0]] == [0, 0, 1, 2, 3, 4, 0]
    assert [float(each) for each in found[1]] == rows["price"].to_list()


def test_documents_are_passed_on_as_they_are(base_url: str) -> None:
    found = [item for page in event_pages(base_url, "funding", limit=500) for item in page]
    events = sample().events["funding"].reverse().head(len(found))
    assert [item["event_id"] for item in found] == events["event_id"].to_list()
    differentials = [item["differential_pct_8h"] for item in found]
    assert differentials == events["differential_pct_8h"].to_list()


def test_schemas_name_a_unit_that_nobody_knows_and_no_sign(base_url: str) -> None:
    columns = {each["of"]: dict(each["columns"]) for each in ask(base_url, "schemas").body}
    assert columns["history/spread"]["spread"] == "basis"
    assert columns["history/price"]["time"] == "ms"


def test_listing_and_snapshots_are_by_position(base_url: str) -> None:
    assert ["BTC_USDT", "AURORA", "spot"] in ask(base_url, "symbols/search", q="BTC").body
    spread = ask(base_url, "dashboards/spread").body[0]
    assert spread[:3] == ["BTC_USDT", "AURORA/spot", "CORONA/futures"]
    assert spread[3] == sample().rows[SPREAD]["ts"][-1] * 1_000
    newest = sample().rows[FUNDING].drop_nulls("buy_rate")["buy_rate"][-1]
    rate = ask(base_url, "dashboards/funding-overview").body[0]
    assert Fraction(rate[3]) == Fraction(repr(newest)) * 10_000


def test_refusals_have_their_words_at_the_third_place(base_url: str) -> None:
    for status, path, parameters in [
        (400, "history/price", LEG | {"limit": 501}),
        (400, "history/price", LEG | {"continue_at": "bm90aGluZw"}),
        (400, "history/price", LEG | {"market": "SPOT"}),
        (400, "history/spread", LEGS | {"sell": "CORONA.futures.x"}),
        (404, "history/spread", LEGS | {"sell": "KRAKEN/spot"}),
    ]:
        reply = ask(base_url, path, **parameters)
        assert reply.status == status
        assert reply.body[0] == "refused"
        assert reply.body[2]
