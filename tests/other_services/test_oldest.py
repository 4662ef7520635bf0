"""The kind `oldest`, paged forward in time over a real socket."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from tests.other_services.asking import KEY, ask
from tests.other_services.data import NOW, START, TRAJECTORIES, Data, sample
from tests.other_services.kinds import running_other
from tests.other_services.service import FAMILIES

PRICE, _, SPREAD, _, FUNDING, _ = TRAJECTORIES
LEG = {"pair": "BTC_USDT", "leg": "AURORA:SPOT"}
LEGS = {"pair": "BTC_USDT", "buy": "AURORA:SPOT", "sell": "CORONA:SWAP"}
FUNDING_LEGS = {"pair": "BTC_USDT", "buy": "CORONA:SWAP", "sell": "DRACO:SWAP"}
WINDOW = {"start_time": NOW - 7 * 86_400, "end_time": NOW}


@pytest.fixture(scope="module")
def base_url():
    with running_other("oldest", sample()) as address:
        yield address


def paged(base_url: str, family: str, **parameters: object) -> list[dict]:
    """Return the rows of all pages, followed forward from ``since``, if there is one."""
    found = []
    while True:
        page = ask(base_url, f"history/{family}", **parameters).body
        found += page["rows"]
        if page["next_since"] is None:
            return found
        parameters |= {"since": page["next_since"]}


def log(base_url: str, family: str, **parameters: object) -> list[dict]:
    """Return the documents of all pages of the last seven days."""
    found, cursor = [], {}
    while True:
        reply = ask(base_url, f"history/{family}-events", KEY | cursor, **WINDOW, **parameters)
        assert reply.body["log"]["family"] == family
        found += reply.body["log"]["documents"]
        if reply.headers["X-Log-Cursor"] is None:
            return found
        cursor = {"X-Log-Cursor": reply.headers["X-Log-Cursor"]}


def seconds(times: list[str]) -> list[float]:
    return [datetime.fromisoformat(time).timestamp() for time in times]


@pytest.mark.parametrize("limit", [7, 100, 1_000])
def test_pages_of_a_price_give_each_row_exactly(base_url: str, limit: int) -> None:
    found = paged(base_url, "price", **LEG, limit=limit)
    expected = sample().rows[PRICE]
    assert seconds([row["time"] for row in found]) == expected["ts"].to_list()
    for sent, name in (("price", "price"), ("mark", "mark_price"), ("volume", "volume")):
        assert [row[sent] for row in found] == expected[name].to_list()


def test_a_window_holds_its_beginning_and_not_its_end(base_url: str) -> None:
    window = {"since": "2026-11-09T19:00:00Z", "until": "2026-11-09T20:00:00+00:00"}
    ts = sample().rows[PRICE]["ts"].to_list()
    expected = [each for each in ts if START + 3_600 <= each < START + 7_200]
    for limit in (7, 60, 1_000):
        found = paged(base_url, "price", **LEG, **window, limit=limit)
        assert seconds([row["time"] for row in found]) == expected


def test_a_price_is_asked_for_by_exchange_and_market_too(base_url: str) -> None:
    promised = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}
    assert paged(base_url, "price", **promised) == paged(base_url, "price", **LEG)


def test_pages_of_a_spread_give_each_row_exactly(base_url: str) -> None:
    found = paged(base_url, "spread", **LEGS)
    expected = sample().rows[SPREAD]
    assert seconds([row["time"] for row in found]) == expected["ts"].to_list()
    for sent, name in (("buy", "buy_price"), ("sell", "sell_price"), ("pct", "spread_pct")):
        assert [row[sent] for row in found] == expected[name].to_list()


def test_pages_of_funding_give_each_settlement_exactly(base_url: str) -> None:
    found = paged(base_url, "funding", **FUNDING_LEGS, limit=10)
    expected = sample().rows[FUNDING]
    assert seconds([row["time"] for row in found]) == expected["ts"].to_list()
    assert [row["pct_8h"] for row in found] == expected["differential_pct_8h"].to_list()
    for side in ("buy", "sell"):
        assert [row[side]["rate"] for row in found] == expected[f"{side}_rate"].to_list()
        hours = [row[side]["hours"] for row in found]
        assert hours == expected[f"{side}_interval_hours"].to_list()


def test_rows_of_one_second_are_never_on_two_pages() -> None:
    ts = [START, *[START + 60] * 5, START + 120]
    rows = pl.DataFrame({"ts": ts, "price": [float(number) for number in range(len(ts))]})
    rows = rows.with_columns(mark_price=None, volume=None)
    with running_other("oldest", Data({PRICE: rows}, clock=sample().clock)) as base_url:
        found = paged(base_url, "price", **LEG, limit=2)
    assert [row["price"] for row in found] == rows["price"].to_list()


@pytest.mark.parametrize(
    ("family", "limit"), [*((family, 200) for family in FAMILIES), ("spread", 7)]
)
def test_pages_of_a_log_give_each_document_once_oldest_first(
    base_url: str, family: str, limit: int
) -> None:
    found = log(base_url, family, limit=limit)
    expected = sample().events[family].filter(pl.col("ts_ms") >= WINDOW["start_time"] * 1_000)
    assert [item["number"] for item in found] == expected["event_id"].to_list()
    assert [round(each * 1_000) for each in seconds([item["time"] for item in found])] == (
        expected["ts_ms"].to_list()
    )
    size = "pct_8h" if family == "funding" else "pct"
    name = "differential_pct_8h" if family == "funding" else "magnitude_pct"
    assert [item[size] for item in found] == expected[name].to_list()
    assert {item["schema"] for item in found} == {f"svc.{family}.v1"}


def test_documents_have_words_and_legs_of_their_own(base_url: str) -> None:
    spreads, splashes = log(base_url, "spread"), log(base_url, "splash")
    assert {(item["event_type"], item["lifecycle"]) for item in spreads} == {
        ("spread.opened", "born"),
        ("spread.gone", "gone"),
    }
    assert {item["event_type"] for item in splashes} == {"splash.born", "splash.gone"}
    assert spreads[0]["instrument"] == {
        "symbol": "BTC_USDT",
        "legs": ["AURORA:SPOT", "CORONA:SWAP"],
    }
    assert splashes[0]["instrument"]["legs"] == ["AURORA:SPOT"]


def test_the_filter_lifecycle_takes_the_word_of_the_document_and_its_own(base_url: str) -> None:
    born = log(base_url, "spread", lifecycle="born")
    assert born == log(base_url, "spread", lifecycle="open")
    assert {item["lifecycle"] for item in born} == {"born"}


def test_listing_and_snapshots_are_boards_by_pair(base_url: str) -> None:
    listing = ask(base_url, "symbols/search").body["pairs"]
    assert listing["BTC_USDT"] == ["AURORA:SPOT", "CORONA:SWAP", "DRACO:SWAP"]
    spreads = ask(base_url, "dashboards/spread").body
    assert seconds([spreads["at"]]) == [NOW]
    newest = sample().rows[SPREAD]["spread_pct"][-1]
    assert ["AURORA:SPOT", "CORONA:SWAP", newest] in spreads["board"]["BTC_USDT"]
    rates = ask(base_url, "dashboards/funding-overview").body["board"]["BTC_USDT"]
    settled = sample().rows[FUNDING].drop_nulls("sell_rate")
    assert rates["DRACO:SWAP"] == [settled["sell_rate"][-1], settled["sell_interval_hours"][-1]]


def test_refusals_have_their_words_in_the_text_of_a_fault(base_url: str) -> None:
    for status, path, parameters in [
        (400, "history/price", LEG | {"since": "2026-11-01 00:00"}),
        (400, "history/price", LEG | {"leg": "AURORA:spot"}),
        (400, "history/spread", LEG),
        (404, "history/price", LEG | {"leg": "KRAKEN:SPOT"}),
        (400, "history/spread-events", {"start_time": NOW - 8 * 86_400, "end_time": NOW}),
    ]:
        reply = ask(base_url, path, **parameters)
        assert reply.status == status
        assert reply.body["fault"]["text"]
