"""Exchanges are read whole, or it is said what is not: every trap of theirs, against the fake."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.exchanges.conftest import DAY, Clocked
from tests.exchanges.fake import Fake
from tests.other_services.server import Answer, Question, serving
from toolkit.errors import ExchangeOutageError as Outage
from toolkit.errors import ExchangeRefusedError as Refused
from toolkit.errors import InputError
from toolkit.market import Market
from toolkit.service.market.exchanges import KNOWN, ListedLeg, MarketFacts, WantedLegs
from toolkit.service.market.exchanges.reading import Connection, Exchange, ExchangeTime
from toolkit.service.market.source import Clock

pytest.importorskip("ccxt")

HOUR = 3_600
NOW = int(Clocked.moment)
BOTH = {"USDC": "USDT", "USD": "USDT"}


@pytest.fixture
def read(fake: Clocked) -> Iterator[Callable[..., Exchange]]:
    """An exchange over the fake."""
    made: list[Exchange] = []

    def read(name: str, sleep: Callable[[float], object] = lambda _: None) -> Exchange:
        assert fake.at
        made.append(Exchange(name, sleep=sleep))
        return made[-1]

    yield read
    for each in made:
        each.close()


def leg_of(exchange: Exchange, leg: str, symbol: str = "BTC_USDT") -> ListedLeg:
    """A leg of one exchange as it lists it: ``spot`` or ``futures``."""
    return exchange.list(WantedLegs((symbol,), BOTH, (Market(leg),)))[0]


def told(answers: Iterator[Any]) -> tuple[list[tuple[Any, ...]], dict[str, int], int]:
    """Rows (ts, price or rate, volume or hours), what was refused, and up to when all is known."""
    rows: list[tuple[Any, ...]] = []
    refused: dict[str, int] = {}
    known_until = 0
    for answer in answers:
        more = answer.rows
        columns = (
            (more.price, more.volume)
            if hasattr(more, "price")
            else (more.rate, more.interval_hours)
        )
        rows += zip(more.ts.tolist(), *(each.tolist() for each in columns), strict=True)
        refused |= answer.refused
        assert known_until <= answer.known_until
        known_until = answer.known_until
    assert [row[0] for row in rows] == sorted({row[0] for row in rows})
    return rows, refused, known_until


def true_bars(fake: Fake, leg: ListedLeg, start: int, end: int) -> list[tuple[int, float]]:
    return [(bar.ts, bar.close) for bar in fake.truth.bars(*leg.key, start, end)]


def assert_whole(fake: Fake, exchange: Exchange, leg: ListedLeg, start: int, end: int) -> None:
    rows, refused, known_until = told(exchange.bars(leg, start, end))
    assert [row[:2] for row in rows] == true_bars(fake, leg, start, end // 60 * 60)
    assert refused == {}
    assert known_until == end // 60 * 60


LEGS = {
    "BINANCE": ("spot", "futures"),
    "BYBIT": ("spot", "futures"),
    "OKX": ("spot", "futures"),
    "COINBASE": ("spot",),
    "GATE": ("futures",),
    "KRAKEN": ("futures",),
    "HYPERLIQUID": ("futures",),
    "BITGET": ("spot",),
    "DERIBIT": ("futures",),
}


@pytest.mark.slow
def test_two_days_of_twelve_legs_equal_the_truth_to_the_last_bit(fake, read) -> None:
    start, end = NOW - 2 * 86_400, NOW
    for name, markets in LEGS.items():
        exchange = read(name)
        for leg in exchange.list(WantedLegs(("ETH_USDT",), BOTH, tuple(map(Market, markets)))):
            bars = fake.truth.bars(*leg.key, -(-start // 60) * 60, end // 60 * 60)
            rows, refused, known_until = told(exchange.bars(leg, start, end))
            assert [row[:2] for row in rows] == [(bar.ts, bar.close) for bar in bars]
            assert (refused, known_until) == ({}, end // 60 * 60)
            volumes = [row[2] for row in rows]
            if leg.volume_factor is None:
                assert all(map(math.isnan, volumes))
            else:
                assert volumes == [bar.quote_volume for bar in bars]
            if leg.funding:
                rates, refused, known_until = told(exchange.settlements(leg, start, end))
                assert rates == [
                    tuple(each) for each in fake.truth.settlements(*leg.key, start, end)
                ]
                assert (refused, known_until) == ({}, end - 1)
    assert len(fake.requests) < 150


@pytest.mark.parametrize("name", KNOWN)
def test_each_exchange_is_read_as_its_own_shapes_and_names_are(fake, read, name) -> None:
    exchange = read(name)
    legs = exchange.list(WantedLegs(("BTC_USDT", "PEPE_USDT"), BOTH))
    assert {leg.key.leg.market for leg in legs} == set(KNOWN[name])
    for leg in legs:
        assert_whole(fake, exchange, leg, NOW - 2 * HOUR, NOW)
        if leg.funding:
            rates, _, _ = told(exchange.settlements(leg, DAY - 1, NOW))
            assert rates == [tuple(x) for x in fake.truth.settlements(*leg.key, DAY - 1, NOW)]
    assert exchange.now() == pytest.approx(fake.moment, abs=5)


@pytest.mark.parametrize(
    ("name", "market"),
    [("BINANCE", "spot"), ("BYBIT", "futures"), ("OKX", "spot"), ("COINBASE", "spot")],
)
def test_a_page_shorter_than_asked_for_leaves_no_hole(fake, read, name, market) -> None:
    exchange = read(name)
    leg = leg_of(exchange, market)
    fake.trouble[name].page_cap = 90
    assert_whole(fake, exchange, leg, NOW - 8 * HOUR, NOW)


def test_a_downtime_and_a_leg_without_trades_are_asked_for_twice_and_no_more(fake, read) -> None:
    exchange = read("BINANCE")
    leg = leg_of(exchange, "spot")
    end = NOW // 60 * 60
    fake.trouble["BINANCE"].missing = ((end - 2 * HOUR, end - HOUR), (end - 40 * 60, NOW))
    fake.requests.clear()
    rows, _, known_until = told(exchange.bars(leg, end - 3 * HOUR, NOW))
    hidden = [*range(end - 2 * HOUR, end - HOUR, 60), *range(end - 2_400, end, 60)]
    bars = true_bars(fake, leg, end - 3 * HOUR, end)
    assert [row[:2] for row in rows] == [bar for bar in bars if bar[0] not in hidden]
    assert known_until == end - 60
    assert len(fake.requests) == 2


def test_a_page_of_settlements_shorter_than_asked_for_leaves_no_hole(fake, read) -> None:
    start = NOW - 20 * 86_400
    for name, requests in (("OKX", 9), ("GATE", 9), ("BITGET", 4), ("MEXC", 4), ("DERIBIT", 2)):
        exchange = read(name)
        leg = leg_of(exchange, "futures", "ETH_USDT")
        fake.requests.clear()
        rates, _, _ = told(exchange.settlements(leg, start, NOW))
        assert rates == [tuple(each) for each in fake.truth.settlements(*leg.key, start, NOW)]
        assert len(fake.requests) <= requests


@pytest.mark.parametrize(
    ("name", "market", "minutes"),
    [("GATE", "spot", 10_000), ("HYPERLIQUID", "futures", 5_000), ("KRAKEN", "spot", 720)],
)
def test_an_exchange_with_a_short_memory_says_where_it_begins_before_it_is_asked(
    fake: Clocked, read: Callable[..., Exchange], name: str, market: str, minutes: int
) -> None:
    exchange = read(name)
    leg = leg_of(exchange, market)
    fake.requests.clear()
    with pytest.raises(Refused, match=f"beyond what {name} gives") as refused:
        list(exchange.bars(leg, NOW - 60 * minutes - 300, NOW))
    assert not fake.requests
    reach = refused.value.reach or 0
    assert NOW - 60 * minutes <= reach <= NOW - 60 * minutes + 240
    assert_whole(fake, exchange, leg, reach, reach + 5 * HOUR)
    assert_whole(fake, exchange, leg, NOW - HOUR, NOW)


def test_what_is_too_long_ago_is_refused_up_to_the_next_window(fake, read) -> None:
    exchange = read("GATE")
    leg = leg_of(exchange, "futures")
    fake.trouble["GATE"].reach_s = 2 * HOUR
    start = NOW // 60 * 60 - 24 * HOUR - 1999 * 60
    with pytest.raises(Refused) as refused:
        list(exchange.bars(leg, start, NOW))
    assert refused.value.reach == start + 1998 * 60


@pytest.mark.parametrize("name", KNOWN)
def test_html_with_status_200_is_an_outage_with_its_words_and_never_a_row(fake, read, name) -> None:
    exchange = read(name)
    leg = leg_of(exchange, next(iter(KNOWN[name])))
    fake.trouble[name].down = "html"
    with pytest.raises(Outage, match=r"Just a moment.*text/html"):
        list(exchange.bars(leg, NOW - HOUR, NOW))
    with pytest.raises(Outage, match="Just a moment"):
        exchange.list(WantedLegs(("BTC_USDT",), BOTH))


@pytest.mark.parametrize("status", [403, 451])
def test_an_exchange_that_does_not_answer_from_here_refuses(fake, read, status) -> None:
    fake.trouble["BYBIT"].status = status
    with pytest.raises(Refused, match=f"HTTP {status}") as refused:
        read("BYBIT").list(WantedLegs(("BTC_USDT",)))
    assert refused.value.reach is None


@pytest.mark.parametrize("as_date", [False, True])
def test_a_429_says_how_long_to_wait_in_seconds_or_as_a_date(fake, read, as_date) -> None:
    exchange = read("BINANCE")
    leg = leg_of(exchange, "spot")
    trouble = fake.trouble["BINANCE"]
    trouble.status, trouble.retry_after, trouble.retry_after_as_date = 429, 77, as_date
    with pytest.raises(Outage, match="HTTP 429") as outage:
        list(exchange.bars(leg, NOW - HOUR, NOW))
    assert outage.value.retry_after_s == 77


@pytest.mark.parametrize("down", ["reset", 502, 503])
def test_no_answer_is_an_outage_that_does_not_say_how_long(fake, read, down) -> None:
    exchange = read("OKX")
    leg = leg_of(exchange, "spot")
    if down == "reset":
        fake.trouble["OKX"].down = down
    else:
        fake.trouble["OKX"].status = down
    with pytest.raises(Outage) as outage:
        list(exchange.bars(leg, NOW - HOUR, NOW))
    assert outage.value.retry_after_s is None
    assert re.search("HTTP|Remote end closed connection|timed out", str(outage.value))


def test_null_prices_are_refused_and_counted_and_the_rest_is_kept(fake, read) -> None:
    exchange = read("BYBIT")
    leg = leg_of(exchange, "spot")
    fake.trouble["BYBIT"].null_every = 7
    start, end = NOW // 60 * 60 - HOUR, NOW // 60 * 60
    rows, refused, known_until = told(exchange.bars(leg, start, NOW))
    bars = true_bars(fake, leg, start, end)
    assert [row[:2] for row in rows] == [bar for bar in bars if bar[0] // 60 % 7]
    assert refused == {"a null price": len([n for n in range(start, end, 60) if n // 60 % 7 == 0])}
    assert known_until == end


@pytest.mark.parametrize("name", ["BINANCE", "OKX", "COINBASE"])
def test_minute_by_minute_is_the_truth_whatever_an_open_or_a_fresh_bar_says(fake, read, name):
    exchange = read(name)
    leg = leg_of(exchange, "spot")
    fake.trouble[name].short_for_s = 3.9
    known = start = NOW // 60 * 60 - 300
    rows: list[tuple[Any, ...]] = []
    for second in range(0, 600, 23):
        fake.moment = float(NOW - 300 + second)
        more, refused, known_until = told(exchange.bars(leg, known, int(fake.moment)))
        assert refused == {}
        assert known_until in {0, *range(known, int(fake.moment) - 3, 60)}
        rows, known = rows + more, max(known, known_until)
    assert known >= fake.moment - 130
    bars = fake.truth.bars(*leg.key, start, known)
    assert [row[:2] for row in rows] == [(bar.ts, bar.close) for bar in bars]
    if leg.volume_factor:
        assert [row[2] for row in rows] == [bar.quote_volume for bar in bars]


def test_the_clock_is_the_exchanges_own_however_wrong_the_machines_is(fake, read) -> None:
    exchange = read("KRAKEN")
    exchange.list(WantedLegs(("BTC_USDT",), BOTH))
    assert fake.moment - 2 <= exchange.now() <= fake.moment + 5
    fake.trouble["KRAKEN"].skew_s = -60.0
    exchange.list(WantedLegs(("BTC_USDT",), BOTH))
    assert fake.moment - 62 <= exchange.now() <= fake.moment - 55


def test_an_answer_is_as_old_as_its_date_and_its_age_or_else_as_its_question() -> None:
    clock = ExchangeTime()
    clock.hear("Fri, 27 Nov 2026 00:00:10 GMT", "30", asked_at=0.0)
    assert clock.told_at == 1_795_737_640
    assert clock.now() == pytest.approx(clock.told_at, abs=5)
    clock.hear(None, None, asked_at=clock.told_at + 7)
    assert clock.told_at == 1_795_737_647
    assert clock.now() < clock.told_at


@pytest.mark.parametrize("name", ["HYPERLIQUID", "BINANCE", "OKX"])
def test_late_stamps_are_put_on_the_hour(fake, read, name) -> None:
    exchange = read(name)
    leg = leg_of(exchange, "futures")
    fake.trouble[name].stamp_late_ms = 111_000
    fake.moment = NOW + 120.0
    rates, refused, _ = told(exchange.settlements(leg, DAY, NOW))
    assert rates == [tuple(each) for each in fake.truth.settlements(*leg.key, DAY, NOW)]
    assert refused == {}


def test_an_interval_that_changes_is_told_from_the_change_on(fake, read) -> None:
    exchange = read("OKX")
    leg = leg_of(exchange, "futures", "SOL_USDT")
    fake.moment = float(DAY + 48 * HOUR + 60)
    exchange.list(WantedLegs(("SOL_USDT",)))
    rates, _, _ = told(exchange.settlements(leg, DAY, DAY + 48 * HOUR + 60))
    assert {hours for ts, _, hours in rates if ts <= DAY + 24 * HOUR} == {8}
    assert {hours for ts, _, hours in rates if ts > DAY + 24 * HOUR} == {4}


@pytest.mark.parametrize("name", ["BYBIT", "BINANCE", "OKX", "GATE", "KUCOIN", "BITGET"])
def test_the_first_settlement_has_the_interval_that_the_exchange_states(fake, read, name) -> None:
    key = ("ETH_USDT", f"{name}.futures")
    fake.truth.begins[key] = DAY + HOUR
    exchange = read(name)
    leg = leg_of(exchange, "futures", "ETH_USDT")
    rates, _, _ = told(exchange.settlements(leg, DAY - 86_400, NOW))
    assert [(ts, hours) for ts, _, hours in rates] == [(DAY + 8 * HOUR * n, 8) for n in (1, 2, 3)]


def test_a_settlement_that_is_due_is_waited_for(fake, read) -> None:
    exchange = read("BINANCE")
    leg = leg_of(exchange, "futures")
    due = DAY + 24 * HOUR
    fake.trouble["BINANCE"].published_late_s = 40
    known = {}
    for after_s in (5, 39, 41):
        fake.moment = float(due + after_s)
        rates, _, known[after_s] = told(exchange.settlements(leg, DAY, NOW))
        assert (due in {each[0] for each in rates}) == (after_s > 40)
    assert known == {5: due - 1, 39: due - 1, 41: due + 41}
    fake.trouble["BINANCE"].published_late_s = 10_000
    fake.moment = float(due + 131)
    last = list(exchange.settlements(leg, DAY, NOW))[-1]
    assert (last.missing, last.known_until) == ((due,), due + 131)


def test_only_one_quote_is_listed_and_other_dollars_by_a_rename_that_is_noted(read) -> None:
    kraken = read("kraken")
    [leg] = kraken.list(WantedLegs(("BTC_USDT", "NOPE_USDT")))
    assert (str(leg.key.leg), leg.market, leg.note) == ("KRAKEN.spot", "BTC/USDT", "")
    assert kraken.left_out == (
        "KRAKEN.spot lists no NOPE_USDT",
        "KRAKEN.futures lists no BTC_USDT, NOPE_USDT; --rename USD=USDT takes it in USD",
    )
    spot, futures = kraken.list(WantedLegs(("BTC_USDT",), {"USD": "USDT"}))
    assert (spot.market, spot.note) == ("BTC/USDT", "")
    assert futures.market == "BTC/USD:USD"
    assert futures.note == "quoted in USD, served as BTC_USDT"
    assert kraken.left_out == ()
    with pytest.raises(Refused, match=r"\.spot lists no BTC_USDT; --rename USDC=USDT takes it in"):
        read("hyperliquid").list(WantedLegs(("BTC_USDT",)))
    with pytest.raises(
        Refused, match=r"OKX.spot lists no NOPE_USDT; OKX.futures lists no NOPE_USDT$"
    ):
        read("okx").list(WantedLegs(("NOPE_USDT",)))
    with pytest.raises(Refused, match="COINBASE has no such market"):
        read("coinbase").list(WantedLegs(("BTC_USDT",), markets=(Market.FUTURES,)))
    with pytest.raises(InputError, match="nearest: BINANCE"):
        Exchange("binanc")


def test_a_leg_that_is_no_longer_listed_is_left_out(read: Callable[..., Exchange]) -> None:
    listed = read("OKX").list(WantedLegs(("XRP_USDT", "BTC_USDT"), markets=(Market.SPOT,)))
    assert [leg.key.symbol for leg in listed] == ["BTC_USDT"]


def test_legs_that_are_added_later_leave_the_others_as_they_are(fake, read) -> None:
    exchange = read("BYBIT")
    first, second = leg_of(exchange, "spot"), leg_of(exchange, "futures", "SOL_USDT")
    for leg in (first, second):
        assert_whole(fake, exchange, leg, NOW - HOUR, NOW)


@pytest.mark.parametrize("name", KNOWN)
def test_a_market_that_is_gone_is_refused_and_is_no_outage(fake, read, name) -> None:
    exchange = read(name)
    leg = leg_of(exchange, next(iter(KNOWN[name])))
    quote = leg.market.partition(":")[0].rpartition("/")[2]
    fake.truth.begins["BTC_" + quote, str(leg.key.leg)] = NOW + 86_400
    with pytest.raises(Refused) as refused:
        list(exchange.bars(leg, NOW - HOUR, NOW))
    assert refused.value.reach is None


def test_the_pace_of_the_exchange_is_kept_by_the_sleep_that_is_given(read) -> None:
    slept: list[float] = []
    exchange = read("KRAKEN", sleep=slept.append)
    leg = leg_of(exchange, "spot")
    list(exchange.bars(leg, NOW - HOUR, NOW))
    assert 0.5 < sum(slept) <= 1.2


pytest.importorskip("ccxt")

FILES = (
    *("binance", "bitget", "bybit", "coinbase", "deribit", "gate", "hyperliquid", "kraken"),
    *("krakenfutures", "kucoin", "mexc", "okx"),
)
FACTS = {(facts.venue, market): facts for each in KNOWN.values() for market, facts in each.items()}


def ignore(*_: object) -> None:
    pass


class Said:
    """A gateway that answers one body whatever is asked."""

    clock = Clock(fixed_at=1_795_737_600)

    def __init__(self) -> None:
        self.body: object = None

    def answer(self, _: Question) -> Answer:
        return Answer(self.body)


@pytest.fixture(scope="module")
def said() -> Iterator[tuple[Said, str]]:
    gateway = Said()
    with serving(gateway) as at:
        yield gateway, at


def raw_market(symbol: str) -> dict[str, Any]:
    """What ccxt has to know of a market to ask for it and to read what comes."""
    pair, _, settle = symbol.partition(":")
    base, quote = pair.split("/")
    kinds = {"spot": not settle, "swap": bool(settle), "contract": bool(settle)}
    linear = {"linear": settle == quote, "inverse": bool(settle) and settle != quote}
    return {"id": symbol, "symbol": symbol, "base": base, "quote": quote, **kinds, **linear} | {
        "settle": settle or None,
        "baseName": base,
        "option": False,
        "future": False,
        "type": "swap" if settle else "spot",
        "active": True,
        "info": {},
    }


@pytest.mark.real_data
@pytest.mark.parametrize("name", FILES)
def test_raw_answers_are_read_as_their_readme_says(said, real_data, monkeypatch, name) -> None:
    told = json.loads((real_data / "exchanges" / f"{name}.json").read_text())
    samples = [*told.get("fetchOHLCV", ()), *told.get("fetchFundingRateHistory", ())]
    assert samples
    for sample in samples:
        if sample["exchange"] != "coinbase":  # whose other class the toolkit reads
            assert_read(said, sample, monkeypatch)


def assert_read(
    said: tuple[Said, str], sample: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, at = said
    monkeypatch.setenv("RAIL_EXCHANGES_AT", at)
    method, symbol = sample["call"][:2]
    market = Market.FUTURES if ":" in symbol else Market.SPOT
    venue = sample["exchange"]
    both = [it for (each, _), it in FACTS.items() if each == venue]
    facts = {each: FACTS.get((venue, each), both[0]) for each in Market}
    connection = Connection(venue, facts, clock := ExchangeTime(), pause=ignore, keep=ignore)
    listed = raw_market(symbol)
    if venue == "kraken":
        listed["id"] = next(iter(sample["response"]["result"]))
    if method == "fetchFundingRateHistory":
        first = first_of(sample["response"])
        listed["id"] = first.get("symbol") or first.get("instId") or symbol
    connection.ccxt.set_markets([listed])
    gateway.body = sample["response"]
    try:
        if method == "fetchOHLCV":
            rows = connection.ask("fetch_ohlcv", *sample["call"][1:])
            assert [row[:6] for row in rows] == sample["parsed"]
            assert_volume(facts[market], sample, rows)
        else:
            rows = connection.ask("fetch_funding_rate_history", *sample["call"][1:])
            keys = ("timestamp", "fundingRate")
            assert [[row[key] for key in keys] for row in rows] == [
                [row[key] for key in keys] for row in sample["parsed"]
            ]
            rate = facts[market].settled.rate
            assert all(float(row["info"][rate]) for row in rows if rate)
    finally:
        connection.ccxt.session.close()
    assert clock.told_at == 1_795_737_600


def first_of(answer: Any) -> dict[str, Any]:
    """The first object in an answer that is in a list."""
    if isinstance(answer, list):
        return answer[0]
    return next((first_of(each) for each in answer.values() if isinstance(each, (list, dict))), {})


def assert_volume(facts: MarketFacts, sample: dict[str, Any], rows: list[list[Any]]) -> None:
    """The volume in quote lies between those at the lowest and the highest price, or is None."""
    contracts = {"gate", "kucoinfutures", "mexc"} if ":" in sample["call"][1] else set()
    inverse = sample["call"][1].endswith(("USD:BTC", "USD:ETH"))
    for _, _, high, low, _, volume, quote, _ in rows:
        if facts.quote is None or sample["exchange"] == "kucoinfutures":
            assert quote is None
        elif not inverse and sample["exchange"] not in contracts:
            assert low * volume * (1 - 1e-6) <= quote <= high * volume * (1 + 1e-6)
    closed = [row[7] for row in rows]
    if facts.closed[1] and sample["exchange"] == "okx":
        assert closed == [True, True, False]
    else:
        assert not any(closed)
