"""The kind `inforce`, paged through over a real socket."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

from tests.other_services.asking import ask
from tests.other_services.data import NOW, START, TRAJECTORIES, Data, sample
from tests.other_services.kinds import running_other
from toolkit.service.market.source import Clock

PRICE, _, SPREAD, _, FUNDING, _ = TRAJECTORIES
LEG = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}
LEGS = {"symbol": "BTC_USDT", "legs": "AURORA.spot,CORONA.futures"}
FUNDING_LEGS = {"symbol": "BTC_USDT", "legs": "CORONA.futures,DRACO.futures"}
RATES = ("buy_pct_h", "sell_pct_h", "diff_pct_h")


@pytest.fixture(scope="module")
def base_url():
    with running_other("inforce", sample()) as address:
        yield address


def paged(base_url: str, family: str, **parameters: object) -> list[dict]:
    """Return the rows of all pages, paged as the interface document says, oldest first."""
    found, end_time = [], NOW
    while True:
        page = ask(base_url, f"history/{family}", **parameters, end_time=end_time).body
        assert page["series"] == family
        if not page["points"]:
            return found[::-1]
        found += page["points"]
        end_time = page["next_end_time"]


def exactly(values: list[float | None]) -> list[Fraction | None]:
    return [None if value is None else Fraction(repr(value)) for value in values]


def read(texts: list[str | None]) -> list[Fraction | None]:
    return [None if text is None else Fraction(text) for text in texts]


@pytest.mark.parametrize("limit", [7, 300, 5_000])
def test_pages_of_a_price_give_each_row_exactly_and_300_rows_at_most(
    base_url: str, limit: int
) -> None:
    page = ask(base_url, "history/price", **LEG, limit=limit).body["points"]
    assert len(page) == min(limit, 300)
    found = paged(base_url, "price", **LEG, limit=limit)
    expected = sample().rows[PRICE]
    assert [row["at"] for row in found] == expected["ts"].to_list()
    for sent, name in (("close", "price"), ("mark", "mark_price"), ("turnover", "volume")):
        assert read([row[sent] for row in found]) == exactly(expected[name].to_list())


def test_pages_of_a_spread_give_each_row_exactly(base_url: str) -> None:
    found = paged(base_url, "spread", **LEGS)
    expected = sample().rows[SPREAD]
    assert [row["at"] for row in found] == expected["ts"].to_list()
    for sent, name in (("buy", "buy_price"), ("sell", "sell_price"), ("diff_pct", "spread_pct")):
        assert read([row[sent] for row in found]) == exactly(expected[name].to_list())


def test_pages_of_funding_have_the_rates_in_force_at_each_hour(base_url: str) -> None:
    found = paged(base_url, "funding", **FUNDING_LEGS, limit=10)
    rows = sample().rows[FUNDING]
    first = rows["ts"][0]
    assert [row["at"] for row in found] == list(range(first, found[-1]["at"] + 1, 3_600))
    assert rows["ts"][-1] <= found[-1]["at"] <= NOW
    for side in ("buy", "sell"):
        known = rows.drop_nulls(f"{side}_rate")
        hours = pl.DataFrame({"ts": [row["at"] for row in found]})
        in_force = hours.join_asof(known, on="ts").select(
            "ts", rate=f"{side}_rate", interval_hours=f"{side}_interval_hours"
        )
        assert read([row[f"{side}_pct_h"] for row in found]) == [
            row["rate"] and Fraction(repr(row["rate"])) * 100 / int(row["interval_hours"])
            for row in in_force.to_dicts()
        ]
    assert len(found) > rows.height


def test_the_difference_is_that_of_the_rates_and_null_before_both_are_known() -> None:
    rows = pl.DataFrame(
        {
            "ts": [START, START + 7_200],
            "buy_rate": [0.0008, None],
            "sell_rate": [None, 0.0001],
            "buy_interval_hours": [8.0, 8.0],
            "sell_interval_hours": [1.0, 1.0],
            "differential_pct_8h": [None, 0.0],
        }
    )
    data = Data({FUNDING: rows}, clock=Clock(fixed_at=START + 3 * 3_600))
    with running_other("inforce", data) as base_url:
        found = paged(base_url, "funding", **FUNDING_LEGS)
    assert [tuple(row[name] for name in RATES) for row in found] == [
        ("0.01", None, None),
        ("0.01", None, None),
        ("0.01", "0.01", "0"),
        ("0.01", "0.01", "0"),
    ]


def test_a_trajectory_without_any_rate_has_no_hours() -> None:
    empty = sample().rows[FUNDING].clear()
    with running_other("inforce", Data({FUNDING: empty}, clock=sample().clock)) as base_url:
        assert paged(base_url, "funding", **FUNDING_LEGS) == []


def test_schemas_say_that_rates_are_in_force_in_percent_per_hour(base_url: str) -> None:
    schemas = ask(base_url, "schemas").body
    assert schemas["rates"] == "in_force"
    assert schemas["units"]["history/funding"]["buy_pct_h"] == "percent_per_hour"


def test_listing_and_snapshots_name_instruments_as_text(base_url: str) -> None:
    listing = ask(base_url, "symbols/search", q="BTC").body
    assert "BTC_USDT@DRACO.futures" in listing["instruments"]
    spread = ask(base_url, "dashboards/spread").body["points"][0]
    assert read([spread["diff_pct"]]) == exactly(sample().rows[SPREAD]["spread_pct"].to_list()[-1:])
    rates = ask(base_url, "dashboards/funding-overview").body["points"]
    newest = paged(base_url, "funding", **FUNDING_LEGS)[-1]
    assert {rate["instrument"]: rate["pct_h"] for rate in rates} == {
        "BTC_USDT@CORONA.futures": newest["buy_pct_h"],
        "BTC_USDT@DRACO.futures": newest["sell_pct_h"],
    }


def test_refusals_have_their_words_in_the_reason_of_an_error(base_url: str) -> None:
    for status, path, parameters in [
        (400, "history/price", LEG | {"limit": "many"}),
        (400, "history/spread", LEGS | {"legs": "AURORA.spot"}),
        (404, "history/spread", LEGS | {"legs": "AURORA.spot,KRAKEN.spot"}),
    ]:
        reply = ask(base_url, path, **parameters)
        assert reply.status == status
        assert reply.body["error"]["reason"]
