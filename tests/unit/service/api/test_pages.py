from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
import numpy as np
import pytest

from toolkit.market import Leg, Trajectory
from toolkit.service import Bars, Clock, Config, Replay, running
from toolkit.service.api.calls import Pages
from toolkit.service.market.source import BLOCK_ROWS, Kind, Whole

NOW = 1_700_000_400
ALPHA = list(range(NOW - 60, NOW - 540, -60))  # newest first
PRICE = Trajectory.parse("BTC_USDT:ALPHA.spot")


def stamps(page: Mapping[str, Any]) -> list[int]:
    return [item["ts"] for item in page["items"]]


@pytest.fixture(scope="module")
def at(replay: Replay) -> Callable[..., Any]:
    """Pages of the same bars at another time."""
    pages = Pages(replay)

    def ask(
        key: str, now: int, *, before: int | None = None, limit: int = 99, since: int | None = None
    ) -> list[int]:
        end = now if before is None else before
        page = pages.page(Trajectory.parse(key), before=end, limit=limit, now=now, since=since)
        return [item["ts"] for item in json.loads(b"[%b]" % page.items)]

    return ask


def test_a_page_has_its_trajectory_and_items_from_the_newest_to_the_oldest(page) -> None:
    found = page("ALPHA.spot")
    assert list(found) == ["type", "symbol", "exchange", "market", "items", "next_end_time"]
    assert list(found.values())[:4] == ["price_history_page", "BTC_USDT", "ALPHA", "spot"]
    assert stamps(found) == ALPHA
    assert [item["price"] for item in found["items"]] == [107.0 - i for i in range(8)]
    assert found["next_end_time"] is None


@pytest.mark.parametrize(
    ("end_time", "newest"),
    [(ALPHA[2], ALPHA[3]), (ALPHA[2] + 1, ALPHA[2]), (NOW, ALPHA[0]), (NOW + 10**6, ALPHA[0])],
)
def test_end_time_is_exclusive(page, end_time, newest) -> None:
    assert stamps(page("ALPHA.spot", end_time=end_time))[0] == newest


@pytest.mark.parametrize("end_time", [0, ALPHA[-1]])
def test_a_trajectory_with_nothing_in_range_is_an_empty_page(page, end_time) -> None:
    found = page("ALPHA.spot", end_time=end_time)
    assert (found["items"], found["next_end_time"]) == ([], None)


def test_a_bar_is_seen_when_it_is_over_and_not_a_second_before(at: Callable[..., Any]) -> None:
    key, newest = "BTC_USDT:ALPHA.spot", ALPHA[0]
    assert newest not in at(key, newest + 59)
    assert at(key, newest + 60)[0] == newest


def test_a_bar_that_has_begun_is_not_shown_even_to_a_later_end_time(page) -> None:
    assert stamps(page("BETA.futures", end_time=NOW + 999))[0] == NOW - 120
    assert stamps(page("SLOW.spot", end_time=NOW + 999)) == [NOW - 3600, NOW - 7200]


def test_a_moment_is_seen_at_once(at: Callable[..., Any]) -> None:
    key = "BTC_USDT:DEX-SOLARIS.dex"
    assert at(key, NOW - 1, before=NOW + 9) == [NOW - 1]
    assert at(key, NOW, before=NOW + 9) == [NOW, NOW - 1]
    assert at(key, NOW) == [NOW - 1]  # the default end time, now, is exclusive


def test_no_time_shows_a_row_of_its_future(at: Callable[..., Any]) -> None:
    for key, interval_s in (
        ("BTC_USDT:ALPHA.spot", 60),
        ("BTC_USDT:SLOW.spot", 3600),
        ("BTC_USDT:ALPHA.spot:BETA.futures", 60),
    ):
        for now in range(NOW - 600, NOW + 30, 30):
            assert all(ts + interval_s <= now for ts in at(key, now, before=NOW + 10**6))


def test_rows_beyond_the_retention_are_as_if_they_were_not_there(replay: Replay) -> None:
    retention_s = NOW - ALPHA[5]
    config = Config(replay, port=0, clock=Clock(fixed_at=NOW), retention_s=retention_s)
    route = "/api/v1/data/history/price?symbol=BTC_USDT&exchange=ALPHA&market=spot"
    with (
        running(config) as service,
        httpx.Client(base_url=service.base_url, headers={"apikey": "demo-free"}) as client,
    ):
        whole = client.get(route).json()
        first = client.get(f"{route}&limit=5").json()
        last = client.get(f"{route}&limit=5&end_time={ALPHA[4]}").json()
        beyond = client.get(f"{route}&end_time={ALPHA[5]}").json()
    assert (stamps(whole), whole["next_end_time"]) == (ALPHA[:6], None)
    assert (stamps(first), first["next_end_time"]) == (ALPHA[:5], ALPHA[4])
    assert (stamps(last), last["next_end_time"]) == ([ALPHA[5]], None)
    assert (stamps(beyond), beyond["next_end_time"]) == ([], None)


def test_a_spread_has_the_moments_that_both_legs_have_with_the_legs_as_asked(page) -> None:
    found = page("ALPHA.spot", "BETA.futures")
    assert list(found)[:6] == [
        *("type", "symbol", "buy_exchange", "buy_market", "sell_exchange", "sell_market")
    ]
    assert stamps(found) == ALPHA[1::2]
    for item in found["items"]:
        assert item["sell_price"] == 99.5
        assert item["spread_pct"] == 100.0 * (99.5 / item["buy_price"] - 1.0)
        assert item["spread_pct"] < 0
    back = page("BETA.futures", "ALPHA.spot")["items"]
    assert [item["sell_price"] for item in back] == [item["buy_price"] for item in found["items"]]
    assert all(item["spread_pct"] > 0 for item in back)


class Walk(Whole):
    """A source of one symbol whose legs have more rows than a block, with awkward numbers."""

    kind: Kind = "simulated"
    id = "walk"
    listing: Mapping[str, tuple[Leg, ...]] = {
        "BTC_USDT": (Leg.parse("ALPHA.spot"), Leg.parse("BETA.spot"))
    }

    def __init__(self) -> None:
        rows = 2 * BLOCK_ROWS + 777
        random = np.random.default_rng(3)
        ts = np.arange(rows, dtype=np.int64) * 60
        price = random.random(rows) * 10.0 ** random.integers(-12, 18, rows)
        price[:7] = [0.1 + 0.2, 1e16, 1e22, 5e-324, 1.7976931348623157e308, 123456789.12345679, 1.0]
        self.legs = {
            "ALPHA.spot": Bars(ts, price, 60),
            "BETA.spot": Bars(ts[2::3], price[2::3] * 1.0001, 60),
        }

    def bars(self, symbol: str, leg: Leg) -> Bars:
        assert symbol == "BTC_USDT"
        return self.legs[str(leg)]


@pytest.fixture(scope="module")
def walk() -> Walk:
    return Walk()


@pytest.fixture(scope="module")
def walking(walk: Walk) -> Iterator[httpx.Client]:
    now = 60 * len(walk.legs["ALPHA.spot"].ts)
    with (
        running(Config(walk, port=0, clock=Clock(fixed_at=now))) as service,
        httpx.Client(base_url=f"{service.base_url}/api/v1/data/") as client,
    ):
        client.headers["apikey"] = "demo-pro"
        yield client


def read_all(client: httpx.Client, route: str, query: dict[str, str], limit: int) -> list[Any]:
    found: list[Any] = []
    end: dict[str, int] = {}
    while True:
        one = client.get(route, params={**query, "limit": str(limit), **end}).json()
        found += one["items"]
        if one["next_end_time"] is None:
            return found
        end = {"end_time": one["next_end_time"]}


@pytest.mark.parametrize("limit", [10_000, 8_192, 777])
def test_every_row_arrives_once_and_unrounded_across_blocks(walk, walking, limit) -> None:
    query = {"symbol": "BTC_USDT", "exchange": "ALPHA", "market": "spot"}
    items = read_all(walking, "history/price", query, limit)
    bars = walk.legs["ALPHA.spot"]
    assert [item["ts"] for item in items] == bars.ts[::-1].tolist()
    assert [item["price"] for item in items] == bars.price[::-1].tolist()
    assert {(item["mark_price"], item["volume"]) for item in items} == {(None, None)}


def test_every_common_moment_of_two_legs_arrives_once(walk: Walk, walking: httpx.Client) -> None:
    query = {"symbol": "BTC_USDT", "buy_exchange": "ALPHA", "buy_market": "spot"}
    query |= {"sell_exchange": "BETA", "sell_market": "spot"}
    items = read_all(walking, "history/spread", query, 5_000)
    beta = walk.legs["BETA.spot"]
    assert [item["ts"] for item in items] == beta.ts[::-1].tolist()
    assert [item["sell_price"] for item in items] == beta.price[::-1].tolist()
    assert [item["buy_price"] for item in items] == (
        walk.legs["ALPHA.spot"].price[2::3][::-1].tolist()
    )


def test_numbers_are_written_in_their_shortest_form(walk: Walk, walking: httpx.Client) -> None:
    query = {"symbol": "BTC_USDT", "exchange": "ALPHA", "market": "spot", "end_time": "420"}
    texts = re.findall(r'"price":([^,]+)', walking.get("history/price", params=query).text)
    for text, value in zip(texts, walk.legs["ALPHA.spot"].price[6::-1].tolist(), strict=True):
        digits = re.split("[eE]", text)[0].replace(".", "").strip("0")
        shortest = re.split("e", repr(value))[0].replace(".", "").strip("0")
        assert digits == shortest


def test_a_page_of_any_place_and_length_is_that_slice_of_the_rows(walk: Walk) -> None:
    pages = Pages(walk)
    bars = walk.legs["ALPHA.spot"]
    rows, now = len(bars.ts), 60 * len(bars.ts)
    random = np.random.default_rng(5)
    edges = [BLOCK_ROWS, 2 * BLOCK_ROWS, rows]
    starts = [*random.integers(0, rows, 20), *(edge + d for edge in edges for d in (-1, 0))]
    for newer in map(int, starts):
        limit = int(random.integers(1, 10_000))
        before = now - 60 * newer
        page = pages.page(PRICE, before=before, limit=limit, now=now, since=None)
        expected = bars.ts[::-1][newer : newer + limit].tolist()
        assert [item["ts"] for item in json.loads(b"[%b]" % page.items)] == expected
        assert page.next_end_time == (expected[-1] if newer + limit < rows else None)
