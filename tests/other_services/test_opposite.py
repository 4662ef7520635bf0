"""The kinds `opposite` and `opposite-unsaid`, paged through over a real socket."""

from __future__ import annotations

import json

import polars as pl
import pytest

from tests.other_services.asking import ask
from tests.other_services.data import NOW, START, TRAJECTORIES, Data, sample
from tests.other_services.kinds import running_other

PRICE, _, SPREAD, TURNED, FUNDING, _ = TRAJECTORIES
LEG = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}
LEGS = {
    SPREAD: {"symbol": "BTC_USDT", "first": "AURORA:spot", "second": "CORONA:futures"},
    TURNED: {"symbol": "BTC_USDT", "first": "CORONA:futures", "second": "AURORA:spot"},
    FUNDING: {"symbol": "BTC_USDT", "first": "CORONA:futures", "second": "DRACO:futures"},
}


@pytest.fixture(scope="module")
def base_url():
    with running_other("opposite", sample()) as address:
        yield address


def paged(base_url: str, family: str, **parameters: object) -> list[dict]:
    """Return the rows of all pages, paged as the interface document says, oldest first."""
    found, end_time = [], NOW
    while end_time is not None:
        page = ask(base_url, f"history/{family}", **parameters, end_time=end_time).body
        assert page["type"] == f"{family}_page"
        found, end_time = page["points"] + found, page["next_end_time"]
    return found


@pytest.mark.parametrize("limit", [7, 200, 2_000])
def test_pages_of_a_price_give_each_row_exactly(base_url: str, limit: int) -> None:
    found = pl.DataFrame(paged(base_url, "price", **LEG, limit=limit), infer_schema_length=None)
    expected = sample().rows[PRICE]
    assert found["time"].to_list() == expected["ts"].to_list()
    for sent, name in (("price", "price"), ("mark", "mark_price"), ("volume", "volume")):
        assert found[sent].to_list() == expected[name].to_list()


@pytest.mark.parametrize("trajectory", [SPREAD, TURNED])
def test_pages_of_a_spread_give_its_figure_alone_with_the_opposite_sign(
    base_url: str, trajectory: str
) -> None:
    found = paged(base_url, "spread", **LEGS[trajectory])
    expected = sample().rows[trajectory]
    assert {tuple(row) for row in found} == {("time", "premium_pct")}
    assert [row["time"] for row in found] == expected["ts"].to_list()
    assert [-row["premium_pct"] for row in found] == expected["spread_pct"].to_list()
    buy, sell = (expected[f"{side}_price"] for side in ("buy", "sell"))
    assert [row["premium_pct"] > 0 for row in found] == (buy > sell).to_list()


def test_pages_of_funding_give_the_figure_alone_with_the_opposite_sign(base_url: str) -> None:
    found = paged(base_url, "funding", **LEGS[FUNDING], limit=10)
    expected = sample().rows[FUNDING]
    assert {tuple(row) for row in found} == {("time", "advantage_pct_8h")}
    assert [row["time"] for row in found] == expected["ts"].to_list()
    turned = [row["advantage_pct_8h"] for row in found]
    assert [each if each is None else -each for each in turned] == (
        expected["differential_pct_8h"].to_list()
    )


def test_rows_of_one_second_are_never_on_two_pages() -> None:
    ts = [START, *[START + 60] * 5, START + 120]
    rows = pl.DataFrame({"ts": ts, "spread_pct": [float(number) for number in range(len(ts))]})
    legs = {"buy_price": None, "sell_price": None}
    data = Data({SPREAD: rows.with_columns(**legs)}, clock=sample().clock)
    with running_other("opposite", data) as base_url:
        found = paged(base_url, "spread", **LEGS[SPREAD], limit=2)
    assert [-row["premium_pct"] for row in found] == rows["spread_pct"].to_list()


@pytest.mark.parametrize(("kind", "said"), [("opposite", True), ("opposite-unsaid", False)])
def test_the_sign_is_declared_by_one_of_the_two_alone(kind: str, said: bool) -> None:
    with running_other(kind, sample()) as base_url:
        schemas = ask(base_url, "schemas").body
        row = ask(base_url, "history/spread", **LEGS[SPREAD], limit=1).body["points"][0]
    assert ("positive_means" in json.dumps(schemas)) is said
    assert schemas["histories"]["spread"]["fields"]["premium_pct"]["unit"] == "percent"
    assert -row["premium_pct"] == sample().rows[SPREAD]["spread_pct"][-1]


def test_listing_and_snapshots_are_objects_by_symbol(base_url: str) -> None:
    listing = ask(base_url, "symbols/search").body
    assert listing["BTC_USDT"] == {"AURORA": ["spot"], "CORONA": ["futures"], "DRACO": ["futures"]}
    spreads = ask(base_url, "dashboards/spread").body["spreads"]["BTC_USDT"]
    newest = {(each["first"], each["second"]): -each["premium_pct"] for each in spreads}
    assert newest["AURORA:spot", "CORONA:futures"] == sample().rows[SPREAD]["spread_pct"][-1]
    rates = ask(base_url, "dashboards/funding-overview").body["rates"]["BTC_USDT"]
    settled = sample().rows[FUNDING].drop_nulls("sell_rate")
    assert rates["DRACO:futures"] == {
        "rate": settled["sell_rate"][-1],
        "hours": settled["sell_interval_hours"][-1],
        "since": settled["ts"][-1],
    }


def test_refusals_have_their_words_in_the_field_message(base_url: str) -> None:
    for status, path, parameters in [
        (400, "history/price", LEG | {"end_time": "now"}),
        (400, "history/spread", LEG),
        (404, "history/spread", LEGS[SPREAD] | {"second": "KRAKEN:spot"}),
    ]:
        reply = ask(base_url, path, **parameters)
        assert reply.status == reply.body["status"] == status
        assert reply.body["message"]
