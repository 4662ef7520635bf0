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
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import numpy as np
import pytest

from tests.exchanges.fake import Fake
from tests.exchanges.truth import LISTINGS, Listing, Truth
from tests.forked import PYTHON

ccxt = pytest.importorskip("ccxt")

DAY = 1_795_651_200
NOW = DAY + 86_400 + 30_000 + 17  # in the middle of a minute
SPOT = {
    "BINANCE": "binance",
    "BYBIT": "bybit",
    "OKX": "okx",
    "KRAKEN": "kraken",
    "COINBASE": "coinbaseexchange",
    "HYPERLIQUID": "hyperliquid",
    "GATE": "gate",
    "KUCOIN": "kucoin",
    "BITGET": "bitget",
    "DERIBIT": "deribit",
    "MEXC": "mexc",
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
        name = (SPOT if market == "spot" else FUTURES)[exchange]
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


def test_the_truth_has_spreads_of_a_percent_and_moves_of_two_within_five_minutes() -> None:
    truth = Truth(7)
    prices = [
        truth.minutes(truth.listing("BTC_USDT", leg), DAY, DAY + 2 * 86_400).close
        for leg in ("BINANCE.spot", "BYBIT.futures", "OKX.futures")
    ]
    assert (abs(prices[0] / prices[1] - 1) > 0.01).sum() + (prices[1] > prices[2] * 1.01).sum() > 5
    assert (abs(prices[0][5:] / prices[0][:-5] - 1) > 0.02).sum() > 5


def ask(fake: Fake, place: str, **asked: Any) -> tuple[int, Any, Any]:
    """The status, the headers and the JSON of an answer."""
    post = json.dumps(asked).encode() if place.endswith("/info") else None
    url = f"{fake.at}/{place}" + ("" if post else f"?{urlencode(asked)}")
    try:
        with urlopen(Request(url, post), timeout=5) as answer:
            return answer.status, answer.headers, json.loads(answer.read())
    except HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


HOURS_2_000 = 1000 * (NOW // 60 * 60 - 2_880 * 60)  # two days before the open minute, in ms
PAGES: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "Binance gives 500 where no limit is asked for": (
        "api.binance.com/api/v3/klines",
        {"symbol": "BTCUSDT", "interval": "1m", "startTime": HOURS_2_000},
        500,
        "first",
    ),
    "and at most 1,000": (
        "api.binance.com/api/v3/klines",
        {"symbol": "BTCUSDT", "interval": "1m", "startTime": HOURS_2_000, "limit": 5000},
        1000,
        "first",
    ),
    "Bybit cuts a window at its old end": (
        "api.bybit.com/v5/market/kline",
        {
            "category": "linear",
            "symbol": "BTCUSDT",
            "interval": "1",
            "start": HOURS_2_000,
            "end": 1000 * NOW,
            "limit": 1000,
        },
        1000,
        "newest",
    ),
    "OKX gives 300, the newest": (
        "www.okx.com/api/v5/market/history-candles",
        {"instId": "BTC-USDT", "bar": "1m", "before": HOURS_2_000, "limit": 5000},
        300,
        "newest",
    ),
    "OKX has no `until`": (
        "www.okx.com/api/v5/market/candles",
        {"instId": "BTC-USDT-SWAP", "bar": "1m", "until": HOURS_2_000},
        100,
        "newest",
    ),
    "Kraken gives the last 720, whatever is asked for": (
        "api.kraken.com/0/public/OHLC",
        {"pair": "XXBTZUSD", "interval": 1, "since": HOURS_2_000 // 1000},
        720,
        "newest",
    ),
    "Kraken Futures gives 2,000 and says that there are more": (
        "futures.kraken.com/api/charts/v1/trade/PF_XBTUSD/1m",
        {"from": HOURS_2_000 // 1000, "to": NOW},
        2000,
        "first",
    ),
    "Hyperliquid has the last 5,000": (
        "api.hyperliquid.xyz/info",
        {"type": "candleSnapshot", "req": {"coin": "BTC", "interval": "1m", "startTime": 0}},
        5000,
        "newest",
    ),
    "KuCoin Futures gives 200, the first": (
        "api-futures.kucoin.com/api/v1/kline/query",
        {"symbol": "XBTUSDTM", "granularity": 1, "from": HOURS_2_000},
        200,
        "first",
    ),
}


def stamps(told: Any) -> list[int]:
    """When the rows of an answer start (s), in its order."""
    while isinstance(told, dict):
        told = next(x for x in (told.get(y) for y in INSIDE) if x is not None)
    moments = [
        int(row[0] if isinstance(row, list) else row.get("t", row.get("time"))) for row in told
    ]
    return [each // 1000 if each > 1 << 33 else each for each in moments]


INSIDE = ("result", "list", "data", "candles", "XXBTZUSD")


@pytest.mark.parametrize("said", PAGES)
def test_a_page_of_bars_is_cut_where_and_how_its_exchange_does(fake: Clocked, said: str) -> None:
    place, asked, most, kept = PAGES[said]
    _, _, told = ask(fake, place, **asked)
    found = stamps(told)
    assert most * 0.93 < len(found) <= most
    if "OKX" in said or "Bybit" in said:
        assert found == sorted(found, reverse=True)
    open_minute = NOW // 60 * 60
    assert (
        max(found) == open_minute if kept == "newest" else min(found) <= HOURS_2_000 // 1000 + 120
    )


def test_what_is_too_much_or_too_long_ago_is_an_error_where_it_is_on_the_exchange(
    fake: Clocked, reader: Callable[[str], Any]
) -> None:
    bars = {"currency_pair": "BTC_USDT", "interval": "1m", "from": NOW - 601_000}
    status, _, body = ask(fake, "api.gateio.ws/api/v4/spot/candlesticks", **bars)
    assert (status, "too long ago" in body) == (400, True)
    window = {"granularity": 60, "start": "2026-11-25T00:00:00Z", "end": "2026-11-25T05:00:00Z"}
    status, _, body = ask(fake, "api.exchange.coinbase.com/products/BTC-USD/candles", **window)
    assert (status, "exceeds 300" in body) == (400, True)
    fake.trouble["OKX"].reach_s = 86_400
    with pytest.raises(ccxt.BadRequest):
        reader("OKX.spot").fetch_ohlcv("BTC/USDT", since=1000 * (NOW - 90_000), limit=5)
    with pytest.raises(ccxt.BadSymbol):
        reader("BINANCE.spot").fetch_ohlcv("NO/USDT")


def test_the_open_minute_is_told_by_its_mark_alone_and_what_was_traded_so_far(
    fake: Clocked,
) -> None:
    bars = {"currency_pair": "BTC_USDT", "interval": "1m", "limit": 3}
    rows = ask(fake, "api.gateio.ws/api/v4/spot/candlesticks", **bars)[2]
    assert [row[-1] for row in rows] == ["true", "true", "false"]
    asked = {"instId": "BTC-USDT", "bar": "1m", "limit": 3}
    rows = ask(fake, "www.okx.com/api/v5/market/candles", **asked)[2]["data"]
    assert [row[-1] for row in rows] == ["0", "1", "1"]
    bar = fake.truth.bars("BTC_USDT", "OKX.spot", NOW // 60 * 60, NOW)[0]
    assert 0 < float(rows[0][5]) < bar.volume
    fake.moment += 60 - NOW % 60
    rows = ask(fake, "www.okx.com/api/v5/market/candles", **asked)[2]["data"]
    assert float(rows[1][5]) == bar.volume


def test_settlements_have_the_stamps_intervals_and_fields_of_their_exchange(
    fake: Clocked, reader: Callable[[str], Any]
) -> None:
    hourly = {"type": "fundingHistory", "coin": "kPEPE", "startTime": 1000 * (NOW - 86_400 * 40)}
    told = ask(fake, "api.hyperliquid.xyz/info", **hourly)[2]
    assert len(told) == 500
    assert {each["time"] % 3_600_000 for each in told} <= set(range(31, 48))
    fake.trouble["HYPERLIQUID"].stamp_late_ms = 111_000
    assert ask(fake, "api.hyperliquid.xyz/info", **hourly)[2][0]["time"] % 3_600_000 == 111_000
    okx = {"instId": "SOL-USDT-SWAP", "until": 1000 * (NOW - 86_400 * 3)}
    told = ask(fake, "www.okx.com/api/v5/public/funding-rate-history", **okx)[2]["data"]
    found = [int(each["fundingTime"]) // 1000 for each in told]
    assert found == sorted(found, reverse=True)
    assert NOW - found[0] < 4 * 3600  # `until` meant nothing
    assert set(np.diff(found).tolist()) == {-4 * 3600, -8 * 3600}
    assert all(each["fundingRate"] != each["realizedRate"] for each in told)
    page = {"after": 1000 * found[3]}
    okx = ask(
        fake, "www.okx.com/api/v5/public/funding-rate-history", instId="SOL-USDT-SWAP", **page
    )
    assert okx[2]["data"][0] == told[4]
    month = {"start_timestamp": 1000 * (NOW - 100 * 86_400), "end_timestamp": 1000 * NOW}
    name = "BTC_USDC-PERPETUAL"
    place = "www.deribit.com/api/v2/public/get_funding_rate_history"
    told = ask(fake, place, instrument_name=name, **month)[2]["result"]
    assert len(told) == 744
    assert told[9]["interest_8h"] == pytest.approx(sum(x["interest_1h"] for x in told[2:10]))
    place = "futures.kraken.com/derivatives/api/v4/historicalfundingrates"
    told = ask(fake, place, symbol="PF_XBTUSD")[2]["rates"]
    assert len(told) == 700
    assert abs(float(told[0]["fundingRate"])) > 1000 * abs(float(told[0]["relativeFundingRate"]))
    intervals = reader("BINANCE.futures").fetch_funding_intervals()
    assert len(intervals) == 1  # others are 8 h, and aren't told


def test_a_settlement_is_published_when_its_exchange_does(fake: Clocked) -> None:
    fake.moment = DAY + 8 * 3600 + 5
    asked = {"category": "linear", "symbol": "BTCUSDT"}

    def newest() -> int:
        told = ask(fake, "api.bybit.com/v5/market/funding/history", **asked)[2]
        return int(told["result"]["list"][0]["fundingRateTimestamp"]) // 1000

    assert newest() == DAY + 8 * 3600
    fake.trouble["BYBIT"].published_late_s = 140
    assert newest() == DAY
    fake.moment += 140
    assert newest() == DAY + 8 * 3600


def test_a_leg_comes_and_goes(fake: Clocked, reader: Callable[[str], Any]) -> None:
    fake.moment = DAY + 11 * 3600
    assert "DOGE/USDT:USDT" not in reader("BYBIT.futures").load_markets()
    fake.moment = DAY + 36 * 3600
    exchange = reader("BYBIT.futures")
    assert exchange.load_markets()["DOGE/USDT:USDT"]["active"]
    rows = exchange.fetch_ohlcv("DOGE/USDT:USDT", since=1000 * (DAY + 41_400), limit=1000)
    assert rows[0][0] == 1000 * (DAY + 12 * 3600)
    exchange = reader("OKX.spot")
    rows = exchange.fetch_ohlcv("XRP/USDT", since=1000 * (DAY + 29 * 3600), limit=300)
    assert rows[-1][0] == 1000 * (DAY + 30 * 3600 - 60)
    fake.trouble["KRAKEN"].delisted.add("BTC_USD KRAKEN.futures")
    assert not reader("KRAKEN.futures").load_markets()["BTC/USD:USD"]["active"]


CANDLES = {"symbol": "BTCUSDT", "interval": "1m", "limit": 10}
SPOT_BARS = "api.binance.com/api/v3/klines"


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        ({"down": "reset"}, "NetworkError"),
        ({"down": "silence"}, "RequestTimeout"),
        ({"status": 502}, "ExchangeNotAvailable"),
        ({"status": 429, "retry_after": 7}, "RateLimitExceeded"),
        ({"status": 451}, "ExchangeNotAvailable"),
        ({"status": 403}, "ExchangeNotAvailable"),
    ],
    ids=str,
)
def test_an_exchange_is_down_or_refuses(
    fake: Clocked, reader: Callable[[str], Any], trouble: dict[str, Any], error: str
) -> None:
    exchange = reader("KRAKEN.spot")
    exchange.load_markets()
    exchange.timeout = 200
    fake.trouble["KRAKEN"].__dict__.update(trouble, only="OHLC", left=1)
    with pytest.raises(getattr(ccxt, error)):
        exchange.fetch_ohlcv("BTC/USD")
    assert exchange.fetch_ohlcv("BTC/USD")
    assert fake.per_minute("KRAKEN") == {NOW // 60 * 60: 4}
    assert fake.requests[-1].url == "https://api.kraken.com/0/public/OHLC"
    assert fake.requests[-1].asked["pair"] == "XXBTZUSD"


def test_a_refusal_for_a_while_says_until_when(fake: Clocked) -> None:
    trouble = fake.trouble["BINANCE"]
    trouble.status, trouble.retry_after = 429, 90
    assert ask(fake, SPOT_BARS)[1]["Retry-After"] == "90"
    trouble.retry_after_as_date, trouble.skew_s = True, -3600
    answer = ask(fake, SPOT_BARS)[1]
    assert (answer["Date"], answer["Retry-After"]) == (
        "Fri, 27 Nov 2026 07:20:17 GMT",
        "Fri, 27 Nov 2026 07:21:47 GMT",
    )


def test_html_of_status_200_is_no_error_to_ccxt(
    fake: Clocked, reader: Callable[[str], Any]
) -> None:
    exchange = reader("BYBIT.spot")
    exchange.load_markets()
    fake.trouble["BYBIT"].down = "html"
    assert exchange.fetch_ohlcv("BTC/USDT") == []


@pytest.mark.parametrize("leg", LEGS)
def test_null_prices_are_null_in_each_shape(
    fake: Clocked, reader: Callable[[str], Any], leg: str
) -> None:
    fake.trouble[leg.partition(".")[0]].null_every = 2
    exchange = reader(leg)
    exchange.load_markets()
    rows = exchange.fetch_ohlcv(unified(listings(leg)[0]), since=1000 * (NOW - 3600), limit=50)
    assert {row[4] is None for row in rows if row[0] % 120_000 == 0} == {True}
    assert {row[4] is None for row in rows if row[0] % 120_000} == {False}


def test_rows_may_be_missing_short_or_cut_and_a_clock_may_be_wrong(fake: Clocked) -> None:
    def rows() -> list[Any]:
        return ask(fake, SPOT_BARS, **CANDLES)[2]

    trouble, whole = fake.trouble["BINANCE"], rows()
    assert [row[0] for row in whole][-1] == 1000 * (NOW // 60 * 60)
    trouble.short_for_s = 90
    assert [a == b for a, b in zip(whole, rows(), strict=True)] == [True] * 7 + [False] * 3
    trouble.short_for_s, trouble.missing = 0, ((NOW // 60 * 60 - 180, NOW // 60 * 60 - 60),)
    assert [row[0] // 60_000 - NOW // 60 for row in rows()][-3:] == [-4, -1, 0]
    trouble.missing, trouble.page_cap = (), 4
    assert rows() == whole[-4:]
    trouble.open_last, trouble.page_cap = False, 5
    assert rows() == whole[-6:-1]
    trouble.open_last, trouble.skew_s = True, 60
    assert rows()[-1][0] == 1000 * (NOW // 60 * 60 + 60)


def test_a_saved_file_is_answered_again_whatever_the_time(tmp_path: Path) -> None:
    url = "https://api.binance.com/api/v3/klines?symbol=BTCUSDT&startTime=1795700000000&limit=2"
    saved = {"url": url, "method": "GET", "body": None, "status": 418}
    saved |= {"headers": {"Content-Type": "text/html", "Content-Length": "99"}, "text": "banned"}
    post = {**saved, "url": "https://api.hyperliquid.xyz/info", "method": "POST", "status": 200}
    post |= {"body": json.dumps({"type": "fundingHistory", "coin": "BTC", "startTime": 17})}
    post |= {"text": "[1]"}
    path = tmp_path / "saved.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in (saved, post)), encoding="utf-8")
    with Fake.replaying(path) as fake:
        asked = {"symbol": "BTCUSDT", "startTime": 1795800000000, "limit": 2}
        status, headers, text = ask(fake, "api.binance.com/api/v3/klines", **asked)
        assert (status, headers["Content-Type"], text) == (418, "text/html", "banned")
        asked = {"type": "fundingHistory", "coin": "BTC", "startTime": 1795800000000}
        assert ask(fake, "api.hyperliquid.xyz/info", **asked)[2] == [1]
        assert ask(fake, "api.hyperliquid.xyz/info", **asked, endTime=1795800000001)[2] == [1]
        assert ask(fake, "api.hyperliquid.xyz/info", **{**asked, "coin": "ETH"})[0] == 404


def test_a_fake_that_is_gone_comes_back_at_its_address() -> None:
    fake = Clocked(Truth())
    place = "api.kraken.com/0/public/Time"
    with fake:
        at = fake.at
    with pytest.raises(URLError):
        ask(fake, place)
    with fake:
        assert fake.at == at
        assert ask(fake, place)[2]["result"]["unixtime"] == NOW


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
def test_raw_answers_have_the_shape_of_those_of_the_exchange(
    real_data: Path, reader: Callable[[str], Any], leg: str
) -> None:
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
