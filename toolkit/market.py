"""The vocabulary of the field: symbols, legs, trajectories, plans, units and times.

A *trajectory* is one series through time. A price trajectory is (symbol, leg); a spread
trajectory is (symbol, buy leg, sell leg), its legs ordered as asked, never flipped or sorted.
A *leg* is (exchange, market). Source: machine-rail.md section 1, contract.md "Conventions".
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from enum import StrEnum

from toolkit.errors import InputError

__all__ = [
    "UNIT_FACTORS",
    "EventFamily",
    "Family",
    "Leg",
    "Market",
    "Plan",
    "Source",
    "Symbol",
    "Trajectory",
    "format_ts",
    "parse_ts",
    "unit_factor",
]

_SYMBOL = re.compile(r"(?P<base>[^\s:_/?#&%]+)_(?P<quote>[^\s:_/?#&%]+)")
_EXCHANGE = re.compile(r"[A-Z0-9][A-Z0-9_-]*")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECONDS = range(-62_135_596_800, 253_402_300_800)  # the years 1 to 9999


class Market(StrEnum):
    """Where a leg trades."""

    SPOT = "spot"
    FUTURES = "futures"
    DEX = "dex"


class Family(StrEnum):
    """The kinds of trajectory."""

    PRICE = "price"
    SPREAD = "spread"
    FUNDING = "funding"


class EventFamily(StrEnum):
    """The kinds of detected event: a spread, a pump or dump (splash), a funding dislocation."""

    SPREAD = "spread"
    SPLASH = "splash"
    FUNDING = "funding"


class Plan(StrEnum):
    """Machine plans, from the least to the most."""

    FREE = "free"
    BUILDER = "builder"
    PRO = "pro"

    @property
    def rank(self) -> int:
        """0 for Free, 1 for Builder, 2 for Pro.

        Examples
        --------
        >>> Plan.PRO.rank > Plan.BUILDER.rank
        True
        """
        return list(Plan).index(self)


@dataclass(frozen=True, order=True, slots=True)
class Symbol:
    """A canonical ``BASE_QUOTE`` pair.

    Examples
    --------
    >>> Symbol.parse("BTC_USDT")
    Symbol(base='BTC', quote='USDT')
    >>> str(Symbol("BTC", "USDT"))
    'BTC_USDT'
    """

    base: str
    quote: str

    def __post_init__(self) -> None:
        if _SYMBOL.fullmatch(str(self)) is None:
            raise InputError("symbol", str(self), "BASE_QUOTE, e.g. BTC_USDT")

    @classmethod
    def parse(cls, text: str) -> Symbol:
        """Read ``BASE_QUOTE``; anything else is an `InputError`.

        Examples
        --------
        >>> Symbol.parse("BTCUSDT")
        Traceback (most recent call last):
        toolkit.errors.InputError: symbol: 'BTCUSDT' is not allowed; allowed: BASE_QUOTE, ...
        """
        match = _SYMBOL.fullmatch(text)
        if match is None:
            raise InputError("symbol", text, "BASE_QUOTE, e.g. BTC_USDT")
        return cls(match["base"], match["quote"])

    def __str__(self) -> str:
        return f"{self.base}_{self.quote}"


@dataclass(frozen=True, order=True, slots=True)
class Leg:
    """One side of a trade: an exchange (uppercase, ``DEX-{CHAIN}`` for a DEX) and a market.

    Examples
    --------
    >>> Leg.parse("DEX-ETHEREUM.dex")
    Leg(exchange='DEX-ETHEREUM', market=<Market.DEX: 'dex'>)
    """

    exchange: str
    market: Market

    def __post_init__(self) -> None:
        if _EXCHANGE.fullmatch(self.exchange) is None:
            raise InputError(
                "exchange", self.exchange, "an UPPERCASE name, e.g. BINANCE or DEX-ETHEREUM"
            )
        if self.market not in list(Market):
            raise InputError("market", self.market, ", ".join(Market))
        object.__setattr__(self, "market", Market(self.market))

    @classmethod
    def parse(cls, text: str) -> Leg:
        """Read ``EXCHANGE.market``; anything else is an `InputError`.

        Examples
        --------
        >>> str(Leg.parse("KRAKEN.spot"))
        'KRAKEN.spot'
        """
        exchange, dot, market = text.rpartition(".")
        if not dot:
            raise InputError("leg", text, "EXCHANGE.market, e.g. KRAKEN.spot")
        if market not in list(Market):
            raise InputError("market", market, ", ".join(Market))
        return cls(exchange, Market(market))

    def __str__(self) -> str:
        return f"{self.exchange}.{self.market}"


@dataclass(frozen=True, order=True, slots=True)
class Trajectory:
    """One series: a family, a symbol and its one (price) or two (buy, then sell) legs.

    The text key is the same in the command line, URLs and files.

    Examples
    --------
    >>> one = Trajectory.parse("BTC_USD:KRAKEN.spot")
    >>> two = Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.spot")
    >>> one.family.value, two.family.value
    ('price', 'spread')
    >>> str(two.buy), str(two.sell), two.key
    ('COINBASE.spot', 'KRAKEN.spot', 'BTC_USD:COINBASE.spot:KRAKEN.spot')
    """

    family: Family
    symbol: Symbol
    legs: tuple[Leg, ...]

    def __post_init__(self) -> None:
        wanted = 1 if self.family is Family.PRICE else 2
        if len(self.legs) != wanted:
            raise InputError("legs", self.key, f"{wanted} for a {self.family} trajectory")
        if wanted == 2 and self.legs[0] == self.legs[1]:
            raise InputError("legs", self.key, "two different legs")

    @classmethod
    def price(cls, symbol: str, exchange: str, market: str) -> Trajectory:
        """The price trajectory of one symbol on one leg.

        Examples
        --------
        >>> Trajectory.price("BTC_USD", "KRAKEN", "spot").key
        'BTC_USD:KRAKEN.spot'
        """
        return cls(Family.PRICE, Symbol.parse(symbol), (Leg.parse(f"{exchange}.{market}"),))

    @classmethod
    def spread(cls, symbol: str, buy: str | Leg, sell: str | Leg) -> Trajectory:
        """The spread trajectory that buys on one leg and sells on the other.

        Examples
        --------
        >>> Trajectory.spread("BTC_USD", "COINBASE.spot", "KRAKEN.spot").key
        'BTC_USD:COINBASE.spot:KRAKEN.spot'
        """
        legs = tuple(leg if isinstance(leg, Leg) else Leg.parse(leg) for leg in (buy, sell))
        return cls(Family.SPREAD, Symbol.parse(symbol), legs)

    @classmethod
    def parse(cls, key: str, family: Family | None = None) -> Trajectory:
        """Read a text key: one leg is a price, two legs (buy, sell) are a spread.

        ``family`` is needed only where a key alone does not tell.

        Examples
        --------
        >>> Trajectory.parse("BTC_USD")
        Traceback (most recent call last):
        toolkit.errors.InputError: trajectory: 'BTC_USD' is not allowed; allowed: SYMBOL:...
        """
        parts = key.split(":")
        if len(parts) not in (2, 3) or not all(parts):
            raise InputError(
                "trajectory",
                key,
                "SYMBOL:EXCHANGE.market or SYMBOL:BUY.market:SELL.market, "
                "e.g. BTC_USD:COINBASE.spot:KRAKEN.spot",
            )
        family = family or (Family.PRICE if len(parts) == 2 else Family.SPREAD)
        return cls(family, Symbol.parse(parts[0]), tuple(Leg.parse(part) for part in parts[1:]))

    @property
    def key(self) -> str:
        """The text key, which `parse` reads back."""
        return ":".join([str(self.symbol), *map(str, self.legs)])

    @property
    def buy(self) -> Leg:
        """The first leg: the one bought (a price trajectory's only leg)."""
        return self.legs[0]

    @property
    def sell(self) -> Leg:
        """The last leg: the one sold (a price trajectory's only leg)."""
        return self.legs[-1]

    @property
    def spread_type(self) -> str:
        """The markets, buy first, as on the wire: ``spot/futures``.

        Examples
        --------
        >>> Trajectory.parse("BTC_USDT:BINANCE.spot:BYBIT.futures").spread_type
        'spot/futures'
        """
        return "/".join(leg.market.value for leg in self.legs)

    def __str__(self) -> str:
        return self.key


@dataclass(frozen=True, slots=True)
class Source:
    """Where data comes from, as `/schemas` says it: its kind and its identity.

    Kind is ``live``, ``simulated`` or ``replay``; ``unknown`` where the service does not say.

    Examples
    --------
    >>> Source("simulated", "miniature-1a2b").label
    'SIMULATED market, miniature-1a2b'
    >>> Source("replay", "iaqf-77aa").label
    'Replay of recorded data, iaqf-77aa'
    """

    kind: str
    id: str

    @property
    def label(self) -> str:
        """The source in words, for titles, banners and the head of a table."""
        words = {
            "live": "Live service",
            "simulated": "SIMULATED market",
            "replay": "Replay of recorded data",
        }
        return f"{words.get(self.kind, 'Source not stated')}, {self.id}"

    @property
    def is_simulated(self) -> bool:
        """True where no market ever showed these numbers."""
        return self.kind == "simulated"


UNIT_FACTORS: dict[str, tuple[str, float]] = {
    "fraction": ("ratio", 1.0),
    "percent": ("ratio", 1e-2),
    "bps": ("ratio", 1e-4),
    "s": ("time", 1.0),
    "ms": ("time", 1e-3),
    "hours": ("time", 3600.0),
    "fraction_per_interval": ("funding rate", 1.0),
    "percent_per_8h": ("funding differential", 1.0),
    "quote": ("quote", 1.0),
    "count": ("count", 1.0),
}
"""Each unit of the wire: the dimension it measures, and its size in that dimension's base unit."""


def unit_factor(given: str, wanted: str) -> float:
    """What a number in the unit ``given`` is multiplied by to be in the unit ``wanted``.

    Examples
    --------
    >>> unit_factor("bps", "percent")
    0.01
    >>> unit_factor("percent", "percent")
    1.0
    >>> unit_factor("percent", "quote")
    Traceback (most recent call last):
    toolkit.errors.InputError: unit: 'percent' is not allowed; allowed: ... as 'quote'
    """
    if given == wanted:
        return 1.0
    for unit in (given, wanted):
        if unit not in UNIT_FACTORS:
            raise InputError("unit", unit, ", ".join(UNIT_FACTORS))
    (dimension, size), (wanted_dimension, wanted_size) = UNIT_FACTORS[given], UNIT_FACTORS[wanted]
    if dimension != wanted_dimension:
        raise InputError("unit", given, f"a unit of the same dimension as {wanted!r}")
    return float(f"{size / wanted_size:.12g}")


def parse_ts(text: str | int | dt.datetime | dt.date, *, parameter: str = "time") -> int:
    """Unix seconds (UTC) of an ISO 8601 text, a datetime, a date or Unix seconds.

    A time without a zone is UTC; what `format_ts` writes is read back. A part of a second is
    refused, for nothing here is finer; so is a time outside the years 1 to 9999, as a count of
    milliseconds is.

    Examples
    --------
    >>> parse_ts("2023-03-01"), parse_ts("2023-03-01T00:01Z"), parse_ts(1677628800)
    (1677628800, 1677628860, 1677628800)
    >>> parse_ts("yesterday", parameter="start")
    Traceback (most recent call last):
    toolkit.errors.InputError: start: 'yesterday' is not allowed; allowed: ISO 8601 UTC, ...
    """
    refusal = InputError(
        parameter,
        text,
        "ISO 8601 UTC, e.g. 2023-03-01 or 2023-03-01T12:00:00Z, or whole Unix seconds",
    )
    if isinstance(text, str) and re.fullmatch(r"\d{9,11}", text):
        text = int(text)
    elif isinstance(text, str):
        iso = text[: -len(" UTC")] + "Z" if text.endswith(" UTC") else text
        try:
            text = dt.datetime.fromisoformat(iso)
        except ValueError:
            raise refusal from None
    if isinstance(text, dt.date):
        midnight = dt.datetime(text.year, text.month, text.day, tzinfo=dt.UTC)
        moment = text if isinstance(text, dt.datetime) else midnight
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        text, rest = divmod(zoned - _EPOCH, dt.timedelta(seconds=1))
        if rest:
            raise refusal
    if isinstance(text, bool) or not isinstance(text, int) or text not in _SECONDS:
        raise refusal
    return text


def format_ts(ts: int) -> str:
    """Unix seconds as ``YYYY-MM-DD HH:MM:SS UTC``, without the seconds where they are zero.

    Examples
    --------
    >>> format_ts(1677628800), format_ts(1677628801)
    ('2023-03-01 00:00 UTC', '2023-03-01 00:00:01 UTC')
    """
    if ts not in _SECONDS:
        raise InputError("time", ts, "Unix seconds in the years 1 to 9999")
    moment = dt.datetime.fromtimestamp(ts, tz=dt.UTC).replace(tzinfo=None)
    return moment.isoformat(" ", "minutes" if ts % 60 == 0 else "seconds") + " UTC"
