"""The series of a pair: statistics work on it, and it says what was done to the prices."""

from __future__ import annotations

import time

import pytest

import toolkit as tk
from toolkit.errors import InputError
from toolkit.market import Pair
from toolkit.series import own_series

BUY, SELL = "BTC_USDT:AURORA.spot", "BTC_USDT:BOREAS.spot"


@pytest.fixture(scope="module")
def rail(tmp_path_factory):
    with tk.open(tmp_path_factory.mktemp("pairs") / "s.duckdb") as rail:
        rail.sync([BUY, SELL, f"{BUY}:BOREAS.spot"], "3h", progress=False)
        yield rail


def test_a_pair_of_the_services_own_legs_is_the_services_spread(rail):
    pair, sent = rail.pair(BUY, SELL), rail.spread(f"{BUY}:BOREAS.spot")
    both = pair.df.join(sent.df, on="ts", suffix="_sent")
    assert both.height > 100
    assert both["buy_price"].to_list() == both["buy_price_sent"].to_list()
    assert both["spread_bps"].to_list() == pytest.approx(both["spread_bps_sent"].to_list())


def test_statistics_and_the_card_of_a_pair_work(rail):
    pair = rail.pair(BUY, SELL)
    assert Pair.parse(pair.stream.key) == pair.stream
    for found in (pair.summary(), pair.half_life(), pair.coverage(), pair.lead_lag()):
        assert found["trajectory"].to_list() == [pair.stream.key]
    assert pair.summary()["n"].item() == pair.df["spread_bps"].count()
    assert "until its next bar is due" in repr(pair)
    assert len(pair.resample("5m")) > 20


def test_series_of_the_legs_and_a_multiplier_make_a_pair_and_a_note(rail):
    pair = rail.pair(rail.prices(BUY), SELL, multiplier=10)
    assert "the sell price is divided by 10" in pair.facts["notes"]
    assert pair.df["sell_coins"].unique().to_list() == [10.0]


def test_gaps_of_a_pair_are_those_of_its_legs_by_a_count_of_seconds(rail):
    rail.sync("BTC_USDT:CORONA.spot", "1h", progress=False)
    start = rail.prices(BUY).window.start
    window = (start - 600, start + 3 * 3_600 - 600)
    pair = rail.pair(BUY, "BTC_USDT:CORONA.spot", *window)
    order = ["held", "empty", "not yet known", "missing", "unrecoverable"]
    worst = [0] * (window[1] - window[0])
    for key in (BUY, "BTC_USDT:CORONA.spot"):
        for row in rail.prices(key, *window).gaps().to_dicts():
            first = int(row["start"].timestamp()) - window[0]
            for second in range(first, first + row["length_s"]):
                worst[second] = max(worst[second], order.index(row["state"]))
    gaps = pair.gaps()
    assert {order[each] for each in worst} - {"held"} == set(gaps["state"])
    assert gaps["start"].is_sorted()
    for state in order[1:]:
        length = gaps.filter(state=state)["length_s"].sum()
        assert length == worst.count(order.index(state))


def test_gaps_of_a_pair_with_rows_of_your_own_are_refused(rail):
    rows = rail.prices(SELL).df.select("ts", "price")
    mine = own_series(rows, "BTC_USDT:MINE.spot")
    with pytest.raises(InputError, match="that the service answered for"):
        rail.pair(BUY, mine).gaps()


def test_a_pair_that_is_none_is_refused_before_anything_is_read(rail):
    with pytest.raises(InputError, match=r"^fx: "):
        rail.pair(BUY, "BTC_USD:NOWHERE.spot")
    with pytest.raises(InputError, match=r"^multiplier: "):
        rail.pair(BUY, "ETH_USDT:NOWHERE.spot")


def test_legs_as_known_at_two_times_are_no_pair(rail):
    past = rail.as_of(int(time.time()) + 60).prices(BUY)
    with pytest.raises(InputError, match=r"^as_of: "):
        rail.pair(past, SELL)
