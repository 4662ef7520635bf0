"""The client over real sockets: against the local service, and one that is told what to say."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

from tests import miniature
from toolkit.client import Client
from toolkit.client.stream import upgrade
from toolkit.intervals import Interval
from toolkit.market import Leg, Symbol, Trajectory
from toolkit.service import Config, running
from toolkit.wire.exchange import Response
from toolkit.wire.findings import Finding
from toolkit.wire.quota import Allowance

SPREAD = Trajectory.parse("BTC_USDT:AURORA.spot:BOREAS.spot")
PRICE = Trajectory.parse("ETH_USDT:BOREAS.spot")
START, END = miniature.START, miniature.END
SCHEMAS = {"source": {"kind": "live", "id": "x"}}


@pytest.fixture
def client(base_url: str) -> Iterator[Client]:
    """A client of the local service."""
    with Client(base_url, "demo-pro") as each:
        yield each


@pytest.fixture(scope="module")
def market() -> pl.DataFrame:
    """What the service serves, read without it."""
    return miniature.rows()


def prices(market: pl.DataFrame, symbol: str, leg: Leg) -> pl.DataFrame:
    rows = market.filter(symbol=symbol, exchange=leg.exchange, market=leg.market.value)
    return rows.select(pl.col("ts").cast(pl.Int64), "price").sort("ts")


@pytest.mark.parametrize("plan", ["free", "builder", "pro"])
def test_every_plan_gets_the_rows_it_may_see_in_pages_of_its_size(base_url, market, plan) -> None:
    with Client(base_url, f"demo-{plan}") as client:
        pages = list(client.pages(SPREAD, Interval(START, END)))
        limit = next(iter(client.profile().histories.values())).limit
    frame = pl.concat(page.frame for page in pages)
    assert limit == {"free": 1000, "builder": 5000, "pro": 5000}[plan]
    assert max(page.frame.height for page in pages) <= limit
    buy, sell = (set(prices(market, "BTC_USDT", leg)["ts"]) for leg in SPREAD.legs)
    seen_until = END - {"free": 60, "builder": 0, "pro": 0}[plan]
    assert frame["ts"].sort().to_list() == [ts for ts in sorted(buy & sell) if ts < seen_until]


@pytest.mark.parametrize(
    "window", [(START - 9_000, START), (END, END + 9_000), (START + 1, START + 2)]
)
def test_a_window_without_rows_is_a_frame_without_rows(client, window) -> None:
    rows = client.history(SPREAD, *window)
    assert rows.height == 0
    assert rows.columns == ["trajectory", "ts", "buy_price", "sell_price", "spread_pct", "extra"]


def test_symbols_are_listed_with_their_legs(client) -> None:
    listing = client.symbols()
    assert list(map(str, listing.legs)) == ["BTC_USDT", "ETH_USDT"]
    assert [str(leg) for leg in listing.legs[Symbol("BTC", "USDT")]] == [
        "AURORA.spot",
        "BOREAS.spot",
        "CORONA.futures",
        "DEX-SOLARIS.dex",
    ]
    assert (listing.truncated, listing.findings) == (False, ())
    assert list(map(str, client.symbols("eth").legs)) == ["ETH_USDT"]
    assert client.symbols("no such symbol").legs == {}


def test_the_local_service_is_met_without_a_finding(client) -> None:
    profile = client.profile()
    assert {f.kind for f in profile.findings} <= {"tool_missing"}  # what it does not serve
    assert profile.source is not None
    assert (profile.source.kind, profile.source.id[:10]) == ("simulated", "miniature-")
    assert {route.retention_s for route in profile.histories.values()} == {30 * 86_400}
    assert {page.findings for page in client.pages(SPREAD, Interval(START, END))} == {()}


def test_clock_plan_and_quota_are_those_of_the_last_answer_that_had_them(scripted, ask) -> None:
    told = {"RateLimit-Policy": '"builder";q=600;w=60', "RateLimit": '"builder";r=9;t=1'}
    for date, quota in (("22 Mar 2023 00:00:00", {}), ("22 Mar 2023 00:00:05", told), ("?", {})):
        headers = {"Date": f"Wed, {date} GMT", **quota}
        scripted.answer(body={**SCHEMAS, "items": []}, headers=headers)
    client = ask().client
    seen = []
    for asking in (client.profile, client.symbols, client.symbols):
        asking()
        seen.append((client.served_at(), client.allowance))
    builder = Allowance("builder", 600, 60, 9)
    assert seen == [(1679443200, None), (1679443205, builder), (1679443205, builder)]


def test_without_a_date_the_local_clock_stands_in(scripted, ask) -> None:
    scripted.answer(body=SCHEMAS)
    client = ask().client
    before = int(time.time())
    client.profile()
    assert before <= client.served_at() <= int(time.time())


def test_many_threads_discover_the_profile_once(scripted, ask) -> None:
    scripted.answer(body=SCHEMAS)
    client = ask().client
    together = threading.Barrier(8)

    def discover(_: int) -> int:
        together.wait(10)
        return id(client.profile())

    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(discover, range(8)))
    assert len(found) == 1
    assert scripted.paths == ["schemas"]


def test_many_threads_share_a_client(client, market) -> None:
    legs = market.select("symbol", "exchange", "market").unique().rows()
    keys = [Trajectory.parse(f"{symbol}:{exchange}.{kind}") for symbol, exchange, kind in legs]
    with ThreadPoolExecutor(4) as threads:
        loaded = list(threads.map(lambda key: client.history(key, START, END), keys))
    for key, rows in zip(keys, loaded, strict=True):
        assert rows.select("ts", "price").equals(prices(market, str(key.symbol), key.buy))
        assert rows["trajectory"].unique().to_list() == [key.key]
        assert rows.columns == ["trajectory", "ts", "price", "mark_price", "volume", "extra"]


def test_a_refusal_does_not_cost_the_connection(scripted, ask) -> None:
    scripted.answer(body=SCHEMAS)
    scripted.answer(503, b"x" * 100_000, times=2)
    scripted.answer(body={"items": []})
    ask().client.symbols()
    assert (len(scripted.asked), scripted.connections) == (4, 1)


@pytest.mark.parametrize("left", ["at the end of its block", "by nobody"])
def test_a_client_that_is_closed_leaves_no_connection_open(scripted, left) -> None:
    scripted.answer(body=SCHEMAS)
    client = Client(scripted.base_url, "k")
    with client if left != "by nobody" else contextlib.nullcontext():
        client.profile()
        assert len(scripted.open_connections) == 1
    if left == "by nobody":
        del client
        gc.collect()  # a socket left open would warn here, which is an error
    scripted.wait_until_closed()
    assert scripted.open_connections == set()


def test_the_repr_names_the_address_and_nothing_else(scripted) -> None:
    with Client(scripted.base_url + "/", "k") as client:
        assert repr(client) == f"Client({scripted.base_url!r})"


def test_an_address_with_a_path_is_kept_before_every_route(scripted) -> None:
    scripted.answer(body=SCHEMAS)
    with Client(scripted.base_url + "/rail/", "k") as client:
        client.profile()
    assert [each.path for each in scripted.asked] == ["/rail/api/v1/data/schemas"]


def test_a_query_arrives_as_it_was_meant(scripted, ask) -> None:
    scripted.answer(body=SCHEMAS)
    scripted.answer(body={"items": [], "next_end_time": None})
    client = ask().client
    client.symbols("a&b=c d/é%")
    client.history(Trajectory.parse("A+B_C'D:X.spot"), 0, 60)
    search, history, _ = scripted.asked[1:]
    assert search.query["q"] == ["a&b=c d/é%"]
    assert history.query["symbol"] == ["A+B_C'D"]


def test_a_field_that_a_snapshot_has_twice_is_a_finding_and_the_answer_stays(scripted, ask) -> None:
    scripted.answer(body=SCHEMAS)
    sent = b'{"items":[{"symbol":"A_B","rate":1,"rate":2}]}'
    scripted.answer(body=sent)
    findings: list[Finding] = []
    assert ask().client.snapshot("funding", findings) == sent
    assert [(each.kind, each.where.rpartition(".")[2]) for each in findings] == [
        ("doubled_field", "rate")
    ]


MARKET = "/api/v1/data/ws"


def test_a_socket_that_opens_a_plan_without_it_a_wrong_key_and_a_path_without_one() -> None:
    with running(Config(miniature.source(), port=0)) as service:
        statuses = []
        for key, path in (
            ("demo-pro", MARKET),
            ("demo-free", MARKET),
            ("wrong", MARKET),
            ("demo-pro", "/api/v1/data/none/ws"),
            ("demo-pro", "/api/v1/data/schemas"),
        ):
            with Client(service.base_url, key) as client:
                found = upgrade(client, path)
            assert isinstance(found, Response)
            statuses.append(found.status)
    assert statuses[:4] == [101, 403, 401, 404]
    assert statuses[4] != 101
