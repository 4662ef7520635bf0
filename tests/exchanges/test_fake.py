"""The fake is read by ccxt's own classes as real exchanges are, and its answers equal its truth."""

from __future__ import annotations

import functools
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.exchanges.conftest import DAY, Clocked
from tests.exchanges.truth import LISTINGS, Listing, Truth
from tests.forked import PYTHON
from toolkit.market import Market
from toolkit.service.market.exchanges import KNOWN

ccxt = pytest.importorskip("ccxt")

NOW = int(Clocked.moment)
LEGS = [f"{exchange}.{market}" for exchange, facts in KNOWN.items() for market in facts]


@functools.cache
def reader_class(name: str) -> type[Any]:
    """A class of ccxt, but that it asks the fake, and by the fake's clock."""

    def fetch(self: Any, url: str, *arguments: Any, **options: Any) -> Any:
        there = f"{self.fake.at}/{url.removeprefix('https://')}"
        self.answers.append(base.fetch(self, there, *arguments, **options))
        return self.answers[-1]

    base = getattr(ccxt, name)
    told = {"fetch": fetch, "milliseconds": lambda self: int(1000 * self.fake.now())}
    return type(name, (base,), told)


@pytest.fixture
def reader(fake: Clocked) -> Iterator[Callable[[str], Any]]:
    """A class of ccxt over the fake, for one leg."""
    made = []

    def read(leg: str) -> Any:
        exchange, _, market = leg.partition(".")
        name = KNOWN[exchange][Market(market)].venue
        made.append(reader_class(name)({"enableRateLimit": False, "timeout": 5_000}))
        made[-1].fake, made[-1].answers = fake, []
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


@pytest.mark.parametrize("days", [1, 30])
def test_no_minute_of_the_truth_depends_on_the_window_that_asks_for_it(days: int) -> None:
    truth = Truth.eventful(DAY)
    start = DAY - days * 86_400
    for listing in LISTINGS[::17]:
        long, short = (truth.minutes(listing, start, start + x) for x in (86_400, 7_200))
        for whole, part in zip(long, short, strict=True):
            assert (whole[: len(part)] == part).all()
        late = truth.minutes(listing, start + 7_200, start + 7_260)
        assert [x[0] for x in late] == [x[120] for x in long]


SINCE = NOW // 60 * 60 - 2_880 * 60  # two days before the open minute
KLINES, CANDLES = "api.binance.com/api/v3/klines", "www.okx.com/api/v5/market"
PAGES = [
    (KLINES, "symbol=BTCUSDT&startTime={since}000", 500, "first"),
    (KLINES, "symbol=BTCUSDT&startTime={since}000&limit=5000", 1000, "first"),
    ("api.bybit.com/v5/market/kline",
     "category=linear&symbol=BTCUSDT&start={since}000&end={now}000&limit=1000", 1000, "newest"),
    (f"{CANDLES}/history-candles", "instId=BTC-USDT&before={since}000&limit=5000", 300, "newest"),
    (f"{CANDLES}/candles", "instId=BTC-USDT-SWAP&until={since}000", 100, "newest"),
    ("api.kraken.com/0/public/OHLC", "pair=XXBTZUSD&since={since}", 720, "newest"),
    ("futures.kraken.com/api/charts/v1/trade/PF_XBTUSD/1m", "from={since}&to={now}", 2000, "first"),
    ("api.hyperliquid.xyz/info", "", 5000, "newest"),
    ("api-futures.kucoin.com/api/v1/kline/query", "symbol=XBTUSDTM&from={since}000", 200, "first"),
]  # fmt: skip
"""What is asked for two days and more, how many bars of them come, and from which end."""


def stamps(told: Any) -> list[int]:
    """When the rows of an answer start (s), in its order."""
    while isinstance(told, dict):
        inside = ("result", "list", "data", "candles", "XXBTZUSD")
        told = next(told[name] for name in inside if name in told)
    found = [int(row[0] if isinstance(row, list) else row.get("t") or row["time"]) for row in told]
    return [each // 1000 if each > 1 << 33 else each for each in found]


@pytest.mark.parametrize(("place", "query", "most", "kept"), PAGES)
def test_a_page_of_bars_is_cut_where_and_how_its_exchange_does(fake, place, query, most, kept):
    """Without an error: Kraken's whatever is asked for, and that of OKX, which has no `until`."""
    asked = {"type": "candleSnapshot", "req": {"coin": "BTC", "interval": "1m", "startTime": 0}}
    body = None if query else json.dumps(asked).encode()
    url = f"{fake.at}/{place}" + (f"?{query.format(since=SINCE, now=NOW)}" if query else "")
    with urlopen(url, body, timeout=5) as answer:
        found = stamps(json.loads(answer.read()))
    assert most * 0.93 < len(found) <= most
    assert found == sorted(found, reverse="okx" in place or "bybit" in place)
    assert max(found) == NOW // 60 * 60 if kept == "newest" else min(found) <= SINCE + 120


def test_it_serves_until_ctrl_c_on_the_wall_clock() -> None:
    command = [PYTHON, "-m", "tests.exchanges.fake", "--days-ago", "2"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            assert process.stdout is not None
            name, _, at = process.stdout.readline().strip().partition("=")
            with urlopen(f"{at}/api.gateio.ws/api/v4/spot/time", timeout=20) as answer:
                behind_s = time.time() - json.loads(answer.read())["server_time"] / 1000
            process.send_signal(signal.SIGINT)
            assert (name, process.wait(20)) == ("RAIL_EXCHANGES_AT", 0)
            assert 86_400 < behind_s < 3 * 86_400
        finally:
            process.kill()


SAMPLES = {"binanceusdm": "binance.json", "coinbaseexchange": "coinbase.json"}
SAMPLES |= {"kucoinfutures": "kucoin.json"}
COLUMNS = {"open", "high", "low", "close", "volume", "cost", "ticks", "time", "vol", "amount"}
NEWER = {
    *("contractType", "deliveryDate", "marginAsset", "instFamily", "status", "create_time"),
    *("fundingRateGranularity", "contractValueTradePrecision", "openingDate"),
}
"""Fields of market lists that ccxt reads and the samples, which are older, haven't yet."""
MARKET = re.compile(r"[A-Z]{6,}")


def shape(told: Any) -> Any:
    """The keys, the lengths and the kinds of an answer's values, of the first of many rows."""
    if isinstance(told, dict):
        return {
            MARKET.sub("MARKET", key): shape(x[:1] if key in COLUMNS and isinstance(x, list) else x)
            for key, x in told.items()
        }
    if isinstance(told, list):
        rows = told[:1] if told and isinstance(told[0], list | dict) else told
        return [shape(each) for each in rows]
    if isinstance(told, int | float):
        return "truth" if isinstance(told, bool) else "number"
    return "nothing" if told is None else "text"


def fields(told: Any, within: str = "") -> set[str]:
    """The kinds of all fields of a market list by their names."""
    if isinstance(told, dict):
        return {x for key, each in told.items() for x in fields(each, MARKET.sub("MARKET", key))}
    if isinstance(told, list):
        return {x for each in told for x in fields(each, within)}
    return {f"{within}: {shape(told)}"}


@pytest.mark.parametrize("leg", LEGS)
def test_raw_answers_have_the_shape_of_those_of_the_exchange(real_data, reader, leg) -> None:
    exchange = reader(leg)
    path = real_data / "exchanges" / SAMPLES.get(exchange.id, f"{exchange.id}.json")
    if not path.exists():
        pytest.skip(f"needs the raw answers of exchanges: {path}")
    told = json.loads(path.read_text(encoding="utf-8"))
    exchange.load_markets()
    symbol = unified(listings(leg)[0])
    for sample in told.get("fetchMarkets(raw)", ()):
        real = fields(sample["response"])
        like = max((fields(each) for each in exchange.answers), key=lambda each: len(each & real))
        assert len(like & real) >= 10
        assert {each.partition(":")[0] for each in like - real} <= NEWER
    for method in ("fetchOHLCV", "fetchFundingRateHistory", "fetchTime"):
        for sample in told.get(method, ()):
            asked = sample["call"][1:2]
            mine = sample["exchange"] == exchange.id and sample["source"] == "comment"
            if mine and (not asked or (":" in asked[0]) is (":" in symbol)):
                getattr(exchange, method)(*([symbol] if asked else ()))
                found, real = shape(exchange.answers[-1]), shape(sample["response"])
                if leg == "GATE.spot" and asked:
                    found = [found[0][: len(real[0])]]  # the sample has not the mark yet
                assert found == real
