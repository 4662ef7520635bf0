"""What the markets behind the fake did: any minute of any leg, from a seed, without a state.

Every figure is a whole number of ticks or lots, so that its decimal text reads back to the same
float. Only products and sums make it, which give the same bits on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

HOUR_S = 3_600

# Base: price in the middle (quote), its decimals, and a lot as a number of units 10 ** -decimals.
COINS = {
    "BTC": (60_000, 1, 5),
    "ETH": (2_500, 2, 4),
    "SOL": (150, 3, 3),
    "XRP": (0.6, 4, 1),
    "DOGE": (0.12, 5, 0),
    "PEPE": (1.05e-5, 10, 0),
    "ADA": (0.45, 4, 1),
    "AVAX": (28, 3, 2),
    "LINK": (14, 3, 2),
    "LTC": (80, 2, 3),
}
MAJORS = ("BTC", "ETH", "SOL", "XRP", "DOGE")
OKX_CONTRACTS = {"BTC": "0.01", "ETH": "0.1", "XRP": "100", "DOGE": "1000", "PEPE": "10000000"}
GATE_CONTRACTS = {"BTC": "0.0001", "ETH": "0.01", "XRP": "10", "DOGE": "10", "PEPE": "10000"}
KUCOIN_CONTRACTS = {"BTC": "0.001", "ETH": "0.01", "SOL": "0.1", "XRP": "10", "DOGE": "100"}


@dataclass(frozen=True)
class Listing:
    """A leg of an exchange as it lists it.

    A price of it is that of ``multiplier`` coins (1000PEPE). ``contract`` is how many of those one
    contract is, "" where volume isn't counted in contracts. ``hours`` between settlements, None on
    a spot market.
    """

    exchange: str
    base: str
    quote: str
    hours: int | None = None
    multiplier: int = 1
    contract: str = ""

    @property
    def symbol(self) -> str:
        return f"{self.base}_{self.quote}"

    @property
    def leg(self) -> str:
        return f"{self.exchange}.{'spot' if self.hours is None else 'futures'}"

    @property
    def price_decimals(self) -> int:
        return COINS[self.base][1] - (len(str(self.multiplier)) - 1)

    @property
    def lot(self) -> tuple[int, int]:
        """The lot in units of the base as the exchange counts it: mantissa, decimals."""
        if not self.contract:
            return 1, COINS[self.base][2]
        whole, _, part = self.contract.partition(".")
        return int(whole + part), len(part)


def _listings() -> Iterator[Listing]:
    thousand = {"PEPE": 1_000}
    for exchange, contracts, spot, quote, hours, multipliers, bases in (
        ("BINANCE", {}, ("USDT",), "USDT", 8, thousand, COINS),
        ("BYBIT", {}, ("USDT",), "USDT", 8, thousand, COINS),
        ("OKX", OKX_CONTRACTS, ("USDT",), "USDT", 8, {}, COINS),
        ("KRAKEN", {}, ("USD", "USDT"), "USD", 1, {}, COINS),
        ("COINBASE", {}, ("USD", "USDT"), "", 0, {}, COINS),
        ("HYPERLIQUID", {}, ("USDC",), "USDC", 1, thousand, COINS),
        ("GATE", GATE_CONTRACTS, ("USDT",), "USDT", 8, {}, COINS),
        ("KUCOIN", KUCOIN_CONTRACTS, ("USDT",), "USDT", 8, {}, MAJORS),
        ("BITGET", {}, ("USDT",), "USDT", 8, {}, MAJORS),
        ("DERIBIT", {}, ("USDC",), "USDC", 1, {}, ("BTC", "ETH", "SOL")),
        ("MEXC", GATE_CONTRACTS, ("USDT",), "USDT", 8, {}, MAJORS),
    ):
        for base in bases:
            yield from (Listing(exchange, base, each) for each in spot)
            if quote:
                contract = contracts.get(base, "1") if contracts else ""
                multiplier = multipliers.get(base, 1)
                yield Listing(exchange, base, quote, hours, multiplier, contract)


LISTINGS = tuple(_listings())


class Minutes(NamedTuple):
    """Minutes of one leg: ``ts`` (s) of their start, prices in ticks, ``lots`` 0 without a trade.

    A minute without a trade has the close before it in all its prices.
    """

    ts: Ints
    open: Ints
    high: Ints
    low: Ints
    close: Ints
    vwap: Ints
    lots: Ints
    trades: Ints


class Bar(NamedTuple):
    """A minute with trades: prices in quote for one coin, ``volume`` in coins."""

    ts: int
    open: float
    high: float
    low: float
    close: float
    volume: float
    quote_volume: float
    vwap: float
    trades: int


class Settlement(NamedTuple):
    """A settlement: ``ts`` on the hour (s), the rate, the hours since the one before."""

    ts: int
    rate: float
    interval_hours: int


@dataclass(frozen=True)
class Truth:
    """The markets of a seed. ``begins``, ``ends`` (s) and ``hours`` are by symbol and leg.

    ``hours`` names changes of the interval: ``{("SOL_USDT", "OKX.futures"): [(ts, 4)]}`` settles
    every 4 h after ``ts``. A dollar, a USDT and a USDC are worth the same here.
    """

    seed: int = 1
    begins: Mapping[tuple[str, str], int] = field(default_factory=dict)
    ends: Mapping[tuple[str, str], int] = field(default_factory=dict)
    hours: Mapping[tuple[str, str], Sequence[tuple[int, int]]] = field(default_factory=dict)

    @classmethod
    def eventful(cls, start: int, seed: int = 1) -> Truth:
        """Return markets of which, from ``start`` (s, a whole day), a leg comes, one goes, and one
        settles more often."""
        return cls(
            seed,
            begins={("DOGE_USDT", "BYBIT.futures"): start + 12 * HOUR_S},
            ends={("XRP_USDT", "OKX.spot"): start + 30 * HOUR_S},
            hours={("SOL_USDT", "OKX.futures"): [(start + 24 * HOUR_S, 4)]},
        )

    def listing(self, symbol: str, leg: object) -> Listing:
        """Return what an exchange lists, also where it quotes another dollar than ``symbol``."""
        found = [each for each in LISTINGS if each.leg == str(leg)]
        exact = [each for each in found if each.symbol == symbol]
        base = symbol.partition("_")[0]
        return (exact or [each for each in found if each.base == base])[0]

    def span(self, listing: Listing) -> tuple[int, int]:
        """Return when a leg begins and ends (s)."""
        key = (listing.symbol, listing.leg)
        return self.begins.get(key, 0), self.ends.get(key, 1 << 40)

    def minutes(self, listing: Listing, start: int, end: int) -> Minutes:
        """Return every minute of ``[start, end)`` in which a leg is open."""
        begins, ends = self.span(listing)
        first, last = -(-max(start, begins) // 60), -(-min(end, ends) // 60)
        back = min(300, first - begins // 60)
        n = np.arange(first - back - 1, max(last, first), dtype=np.int64)
        key = _key(self.seed, listing.leg, listing.base)
        close = self._ticks(listing, n)
        quiet = _uniform(_key(0, listing.leg), np.zeros(1, np.int64))[0] * 0.03 + 0.002
        traded = _uniform(key + 1, n) >= quiet
        traded[:2] = True
        last_traded = np.maximum.accumulate(np.where(traded, np.arange(len(n)), 0))
        held = close[last_traded]
        opened = np.where(traded, np.concatenate((close[:1], close[:-1])), held)
        wick = np.where(traded, close * _uniform(key + 2, n) * 0.0004, 0.0).astype(np.int64)
        high, low = np.maximum(opened, held) + wick, np.minimum(opened, held) - wick // 2
        u = _uniform(key + 3, n)
        mantissa, decimals = listing.lot
        coins = mantissa * listing.multiplier / 10**decimals
        most = max(int(400_000 / (COINS[listing.base][0] * coins)), 3)
        lots = np.where(traded, 1 + (u * u * most).astype(np.int64), 0)
        trades = np.where(traded, 1 + (u * 900).astype(np.int64), 0)
        vwap = (opened + high + low + held) // 4
        columns = (60 * n, opened, high, low, held, vwap, lots, trades)
        return Minutes(*(each[back + 1 :] for each in columns))

    def bars(self, symbol: str, leg: object, start: int, end: int) -> list[Bar]:
        """Return the minutes of ``[start, end)`` that had trades, as an analyst has to see them."""
        listing = self.listing(symbol, leg)
        minutes = self.minutes(listing, start, end)
        return [
            Bar(
                int(row.ts),
                *(float(text) / listing.multiplier for text in row.prices),
                float(row.volume) * listing.multiplier,
                float(row.quote),
                float(row.vwap) / listing.multiplier,
                row.trades,
            )
            for row in written(listing, minutes)
            if row.trades
        ]

    def settlements(self, symbol: str, leg: object, start: int, end: int) -> list[Settlement]:
        """Return the settlements of ``[start, end)``."""
        told = self.settled(self.listing(symbol, leg), start, end)
        return [Settlement(ts, float(rate), hours) for ts, rate, hours in told]

    def settled(self, listing: Listing, start: int, end: int) -> list[tuple[int, str, int]]:
        """Return the settlements of ``[start, end)``: ts (s), the rate as text, the interval."""
        begins, ends = self.span(listing)
        first = -(-max(start, begins + 1) // HOUR_S) * HOUR_S
        hourly = ((ts, self.interval_hours(listing, ts)) for ts in range(first, end, HOUR_S))
        due = [(ts, h) for ts, h in hourly if ts < ends and ts % (h * HOUR_S) == 0]
        n = np.array([ts // HOUR_S for ts, _ in due], dtype=np.int64)
        key = _key(self.seed, listing.leg, listing.base, "rate")
        x = 0.6 * _noise(key, n, 96) + 0.4 * _noise(key + 1, n, 8) + 0.15
        return [
            (ts, decimal(int(30_000 * each * hours / 8), 8), hours)  # units of 1e-8
            for (ts, hours), each in zip(due, x.tolist(), strict=True)
        ]

    def interval_hours(self, listing: Listing, ts: int) -> int:
        """Return the interval in force just before ``ts``."""
        hours = listing.hours or 0
        for since, changed in self.hours.get((listing.symbol, listing.leg), ()):
            hours = changed if since < ts else hours
        return hours

    def _ticks(self, listing: Listing, n: Ints) -> Ints:
        """Return the price (ticks) at the end of minutes: what all exchanges do, and the leg."""
        market, own = _key(self.seed, listing.base), _key(self.seed, listing.leg, listing.base)
        x = 0.05 * _noise(market, n, 4_320) + 0.015 * _noise(market + 1, n, 480)
        x += 0.004 * _noise(market + 2, n, 60) + 0.0006 * _noise(market + 3, n, 3)
        x += _bump(market + 4, n, block=360, chance=0.7, least=0.025, rise=3, fall=45)
        x += 0.0006 * _noise(own, n, 20) + 0.0002 * _noise(own + 5, n, 1)
        x += _bump(own + 6, n, block=240, chance=0.3, least=0.012, rise=2, fall=12)
        middle, decimals, _ = COINS[listing.base]
        return np.rint(middle * 10.0**decimals * (1.0 + x)).astype(np.int64)


class Row(NamedTuple):
    """A minute in decimal text: of ``multiplier`` coins, and of lots where there are contracts."""

    ts: int
    open: str
    high: str
    low: str
    close: str
    volume: str
    quote: str
    vwap: str
    contracts: str
    trades: int

    @property
    def prices(self) -> tuple[str, str, str, str]:
        return self.open, self.high, self.low, self.close


def written(listing: Listing, minutes: Minutes) -> Iterator[Row]:
    """Write minutes of a leg as its exchange does."""
    d, (mantissa, lot_decimals) = listing.price_decimals, listing.lot
    for ts, opened, high, low, close, vwap, lots, trades in zip(
        *(each.tolist() for each in minutes), strict=True
    ):
        yield Row(
            ts,
            *(decimal(each, d) for each in (opened, high, low, close)),
            decimal(lots * mantissa, lot_decimals),
            decimal(lots * mantissa * vwap, lot_decimals + d),
            decimal(vwap if trades else 0, d),
            str(lots),
            trades,
        )


def decimal(units: int, decimals: int) -> str:
    """Write ``units * 10 ** -decimals`` exactly.

    >>> decimal(-105, 4), decimal(7, 0)
    ('-0.0105', '7')
    """
    if not decimals:
        return str(units)
    text = str(abs(units)).rjust(decimals + 1, "0")
    return f"{'-' * (units < 0)}{text[:-decimals]}.{text[-decimals:]}"


@lru_cache(maxsize=4096)
def _key(*parts: object) -> int:
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=7).digest(), "big")


def _uniform(key: int, n: Ints) -> Floats:
    """Return a number of [0, 1) for each of ``n``: splitmix64."""
    z = n.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) * 2.0**-64


def _noise(key: int, n: Ints, period: int) -> Floats:
    """Return a smooth path of [-1, 1) with a value of its own every ``period``."""
    at, f = n // period, (n % period) / period
    before, after = 2.0 * _uniform(key, at) - 1.0, 2.0 * _uniform(key, at + 1) - 1.0
    return before + (after - before) * (f * f * (3.0 - 2.0 * f))


def _bump(
    key: int, n: Ints, *, block: int, chance: float, least: float, rise: int, fall: int
) -> Floats:
    """Return moves of ``least`` to twice it, at most one a block: ``rise`` up, ``fall`` back."""
    at, within = n // block, n % block
    begins = (_uniform(key + 11, at) * (block - rise - fall)).astype(np.int64)
    t = within - begins
    shape = np.clip(np.minimum(t / rise, 1.0 - (t - rise) / fall), 0.0, 1.0)
    size = least * (1.0 + _uniform(key + 12, at)) * np.sign(_uniform(key + 13, at) - 0.5)
    return np.where(_uniform(key + 14, at) < chance, shape * size, 0.0)
