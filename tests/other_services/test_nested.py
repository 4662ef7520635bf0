"""The kind `nested`, paged through over a real socket."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

from tests.other_services.asking import ask, event_pages
from tests.other_services.data import NOW, START, TRAJECTORIES, Data, sample
from tests.other_services.kinds import running_other

PRICE, _, SPREAD, TURNED, FUNDING, _ = TRAJECTORIES
KEYS = {
    PRICE: "BTC_USDT|AURORA:SPOT",
    SPREAD: "BTC_USDT|AURORA:SPOT|CORONA:PERP",
    TURNED: "BTC_USDT|CORONA:PERP|AURORA:SPOT",
    FUNDING: "BTC_USDT|CORONA:PERP|DRACO:PERP",
}


@pytest.fixture(scope="module")
def base_url():
    with running_other("nested", sample()) as address:
        yield address


def paged(base_url: str, family: str, key: str, **parameters: object) -> list[dict]:
    """Return the records of all pages, oldest first."""
    found, before = [], {}
    while True:
        result = ask(base_url, f"history/{family}", key=key, **parameters, **before).body["result"]
        found += result["data"]
        if not result["page"]:
            return found[::-1]
        before = {"before": result["page"]["before"]}


def times(records: list[dict], name: str = "open") -> pl.Series:
    read = pl.Series([record["t"][name] for record in records]).str.to_datetime(
        "%Y-%m-%dT%H:%M:%SZ"
    )
    return read.dt.epoch("s")


def numbers(texts: list[str | None]) -> list[float | None]:
    assert all(text is None or "e" not in text.lower() for text in texts)
    return [None if text is None else float(text) for text in texts]


@pytest.mark.parametrize("limit", [1, 7, 100, 1_000])
def test_pages_of_a_price_give_each_row_exactly(base_url: str, limit: int) -> None:
    rows = sample().rows[PRICE].head(40 if limit == 1 else 10_000)
    end = {"before": "2026-11-09T18:40:00Z"} if limit == 1 else {}
    records = [] if end else paged(base_url, "price", KEYS[PRICE], limit=limit)
    while end:
        result = ask(base_url, "history/price", key=KEYS[PRICE], limit=1, **end).body["result"]
        records = result["data"] + records
        end = {"before": result["page"]["before"]} if result["page"] else {}
    assert times(records).to_list() == rows["ts"].to_list()
    assert numbers([each["px"]["last"] for each in records]) == rows["price"].to_list()
    assert numbers([each["px"]["mark"] for each in records]) == rows["mark_price"].to_list()
    assert numbers([each["vol"] for each in records]) == rows["volume"].to_list()
    assert rows["price"].null_count() == 1


def test_a_price_is_asked_for_as_the_document_promises_too(base_url: str) -> None:
    leg = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}
    found, end_time = [], NOW
    while end_time is not None:
        result = ask(base_url, "history/price", **leg, end_time=end_time).body["result"]
        found += result["data"]
        end_time = result["page"].get("next_end_time")
    assert times(found[::-1]).to_list() == sample().rows[PRICE]["ts"].to_list()


@pytest.mark.parametrize("trajectory", [SPREAD, TURNED])
def test_pages_of_a_spread_give_each_row_exactly_in_bps(base_url: str, trajectory: str) -> None:
    rows = sample().rows[trajectory]
    records = paged(base_url, "spread", KEYS[trajectory])
    assert times(records).to_list() == rows["ts"].to_list()
    for side in ("buy", "sell"):
        prices = numbers([each["legs"][side]["px"] for each in records])
        assert prices == rows[f"{side}_price"].to_list()
    sent = [Fraction(each["edge"]["bps"]) for each in records]
    assert sent == [Fraction(repr(value)) * 100 for value in rows["spread_pct"]]


def test_pages_of_funding_give_each_settlement_with_a_fraction_per_year(base_url: str) -> None:
    rows = sample().rows[FUNDING]
    records = paged(base_url, "funding", KEYS[FUNDING], limit=10)
    assert len(records) > 20
    assert times(records, "settled").to_list() == rows["ts"].to_list()
    for side in ("buy", "sell"):
        legs = [each["legs"][side] for each in records]
        assert numbers([leg["rate"] for leg in legs]) == rows[f"{side}_rate"].to_list()
        hours = numbers([leg["hours"] for leg in legs])
        assert hours == rows[f"{side}_interval_hours"].to_list()
    per_year = numbers([each["edge"]["per_year"] for each in records])
    per_8h_pct = [None if each is None else each * 8 / 8_760 * 100 for each in per_year]
    assert per_8h_pct == pytest.approx(rows["differential_pct_8h"].to_list(), rel=1e-14)


def test_rows_of_one_second_are_never_on_two_pages() -> None:
    ts = [START, *[START + 60] * 5, START + 120]
    rows = pl.DataFrame({"ts": ts, "price": [float(number) for number in range(len(ts))]})
    rows = rows.with_columns(mark_price=None, volume=None)
    with running_other("nested", Data({PRICE: rows}, clock=sample().clock)) as base_url:
        found = paged(base_url, "price", KEYS[PRICE], limit=2)
    assert numbers([each["px"]["last"] for each in found]) == rows["price"].to_list()


def test_documents_have_the_facts_nested_in_text_and_iso_times(base_url: str) -> None:
    events = sample().events["spread"].reverse()
    found = [item for page in event_pages(base_url, "spread", limit=500) for item in page]
    events = events.head(len(found))
    assert [item["meta"]["id"] for item in found] == events["event_id"].to_list()
    sizes = [Fraction(item["size"]["bps"]) for item in found]
    assert sizes == [Fraction(value) * 100 for value in events["magnitude_pct"]]
    assert found[0]["t"]["happened"] == "2026-11-09T23:00:00Z"
    assert found[0]["legs"]["sell"] == {"venue": "corona", "kind": "PERP"}


def test_listing_and_snapshots_name_exchanges_in_lower_case(base_url: str) -> None:
    listing = ask(base_url, "symbols/search", q="btc", limit=5).body["result"]["data"]
    assert [pair["pair"] for pair in listing] == ["BTC_USDT"]
    assert {"venue": "draco", "kind": "PERP"} in listing[0]["places"]
    spreads = ask(base_url, "dashboards/spread").body["result"]["data"]
    assert [spread["legs"]["buy"]["venue"] for spread in spreads] == ["aurora", "corona"]
    rates = ask(base_url, "dashboards/funding-overview").body["result"]["data"]
    newest = sample().rows[FUNDING].drop_nulls("buy_rate")["buy_rate"][-1]
    assert (rates[0]["venue"], rates[0]["kind"]) == ("corona", "PERP")
    assert float(rates[0]["now"]["rate"]) == newest


def test_refusals_have_their_words_in_a_list_of_errors(base_url: str) -> None:
    for status, path, key in [
        (404, "schemas", {}),
        (400, "history/spread", {}),
        (400, "history/spread", {"key": "BTC_USDT|AURORA:spot|CORONA:PERP"}),
        (400, "history/spread", {"key": KEYS[PRICE]}),
        (404, "history/price", {"key": "BTC_USDT|KRAKEN:SPOT"}),
        (400, "history/price", {"key": KEYS[PRICE], "before": "2026-11-01T00:00:00"}),
    ]:
        reply = ask(base_url, path, **key)
        assert reply.status == status
        assert reply.body["errors"][0]["detail"]
