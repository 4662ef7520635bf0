"""Raw answers of exchanges are read as they are known to be read, and no row of a wrong shape."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.other_services.server import Answer, Question, serving
from toolkit.market import Market
from toolkit.service.market.clock import Clock
from toolkit.service.market.exchanges.connection import Connection, ExchangeTime
from toolkit.service.market.exchanges.facts import KNOWN, MarketFacts

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
def test_raw_answers_are_read_as_their_readme_says(
    said: tuple[Said, str], real_data: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
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
