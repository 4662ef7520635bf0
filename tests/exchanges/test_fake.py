"""The fake is read by ccxt's own classes as real exchanges are, and its answers equal its truth."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.exchanges.fake import Fake
from tests.exchanges.truth import LISTINGS, Listing, Truth

ccxt = pytest.importorskip("ccxt")

DAY = 1_795_651_200
NOW = DAY + 86_400 + 30_000 + 17  # in the middle of a minute
SPOT = {
    "BINANCE": "binance", "BYBIT": "bybit", "OKX": "okx", "KRAKEN": "kraken",
    "COINBASE": "coinbaseexchange", "HYPERLIQUID": "hyperliquid", "GATE": "gate",
    "KUCOIN": "kucoin", "BITGET": "bitget", "DERIBIT": "deribit", "MEXC": "mexc",
}
FUTURES = {**SPOT, "BINANCE": "binanceusdm", "KRAKEN": "krakenfutures", "KUCOIN": "kucoinfutures"}
FUTURES.pop("COINBASE")
LEGS = [f"{each}.spot" for each in SPOT] + [f"{each}.futures" for each in FUTURES]


class Clocked(Fake):
    """A fake whose clock tests set."""

    moment = float(NOW)

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth, now=lambda: self.moment)


@pytest.fixture
def fake() -> Iterator[Clocked]:
    with Clocked(Truth.eventful(DAY)) as fake:
        yield fake


@functools.cache
def reader_class(name: str) -> type[Any]:
    """A class of ccxt, but that it asks the fake, and by the fake's clock."""

    def fetch(self: Any, url: str, *arguments: Any, **options: Any) -> Any:
        there = f"{self.fake.at}/{url.removeprefix('https://')}"
        return base.fetch(self, there, *arguments, **options)

    base = getattr(ccxt, name)
    told = {"fetch": fetch, "milliseconds": lambda self: int(1000 * self.fake.now())}
    return type(name, (base,), told)


@pytest.fixture
def reader(fake: Clocked) -> Iterator[Callable[[str], Any]]:
    """A class of ccxt over the fake, for one leg."""
    made = []

    def read(leg: str) -> Any:
        exchange, _, market = leg.partition(".")
        name = (SPOT if market == "spot" else FUTURES)[exchange]
        made.append(reader_class(name)({"enableRateLimit": False, "timeout": 5_000}))
        made[-1].fake = fake
        return made[-1]

    yield read
    for each in made:
        each.session.close()


def listings(leg: str) -> list[Listing]:
    found = [each for each in LISTINGS if each.leg == leg]
    few = ("BTC", "ETH", "SOL")  # that Hyperliquid has on its spot market
    return [each for each in found if leg != "HYPERLIQUID.spot" or each.base in few]


def unified(listing: Listing) -> str:
    """What ccxt calls a leg."""
    thousand = "K" if listing.exchange == "HYPERLIQUID" else "1000"  # ccxt's capital for kPEPE
    base = f"{thousand if listing.multiplier > 1 else ''}{listing.base}"
    settle = "" if listing.hours is None else f":{listing.quote}"
    return f"{base}/{listing.quote}{settle}"


@pytest.mark.parametrize("leg", LEGS)
def test_ccxt_reads_markets_bars_and_settlements_that_are_the_truth(
    fake: Clocked, reader: Callable[[str], Any], leg: str
) -> None:
    exchange = reader(leg)
    exchange.load_markets()
    for listing in listings(leg):
        market = exchange.market(unified(listing))
        assert market["swap"] is (listing.hours is not None)
        assert market["active"] is (listing.symbol != "XRP_USDT" or leg != "OKX.spot")
        if market["swap"]:
            assert market["contractSize"] in {float(listing.contract or 1), 10.0 ** -listing.lot[1]}
    listing = listings(leg)[-1]
    symbol = unified(listing)
    start = NOW // 60 * 60 - 180 * 60
    rows = exchange.fetch_ohlcv(symbol, "1m", since=1000 * start, limit=200)
    assert [row[0] for row in rows] == sorted({row[0] for row in rows})
    told = {row[0] // 1000: row[1:] for row in rows}
    truth = fake.truth.bars(listing.symbol, leg, start, NOW // 60 * 60)
    lots = {"GATE.futures", "KUCOIN.futures", "MEXC.futures"}
    each_lot = float(listing.contract) if leg in lots else 1.0
    for bar in truth:
        prices = [each / listing.multiplier for each in told[bar.ts][:4]]
        assert prices == [bar.open, bar.high, bar.low, bar.close]
        assert told[bar.ts][4] * each_lot * listing.multiplier == pytest.approx(bar.volume, 1e-12)
    untraded = set(told) - {bar.ts for bar in truth} - {NOW // 60 * 60}
    assert all(told[ts][4] == 0 and len(set(told[ts][:4])) == 1 for ts in untraded)
    if market["swap"]:
        since = DAY - 40 * 3600
        paid = exchange.fetch_funding_rate_history(symbol, since=1000 * since, limit=100)
        rates = {each["timestamp"] // 3_600_000 * 3600: each["fundingRate"] for each in paid}
        if leg == "DERIBIT.futures":
            rates = {each["timestamp"] // 1000: each["info"]["interest_1h"] for each in paid}
        expected = {x.ts: x.rate for x in fake.truth.settlements(listing.symbol, leg, since, NOW)}
        newest = {ts: expected[ts] for ts in sorted(expected)[-len(rates) :]}
        assert {ts: float(rate) for ts, rate in rates.items()} == newest
        assert len(newest) > 5
