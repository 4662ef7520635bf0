"""The field's names: markets, exchanges, symbols, legs, events, plans, sources and units."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType

from toolkit.errors import InputError
from toolkit.foreign import NAME_LONGEST, is_name, plain

_SYMBOL = re.compile(r"(?P<base>[^\s:_/?#&%]+)_(?P<quote>[^\s:_/?#&%]+)")
_SYMBOLS = f"BASE_QUOTE, printable and up to {NAME_LONGEST} characters, e.g. BTC_USDT"
_EXCHANGE = re.compile(r"[A-Z0-9][A-Z0-9_-]*")
_BY_CCXT = "exchanges-by-ccxt-"
_SHOWN = 100
"""Characters of a refused name that its error shows."""


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
    """The kinds of event: a spread, a pump or dump (splash), a funding dislocation."""

    SPREAD = "spread"
    SPLASH = "splash"
    FUNDING = "funding"


class EventRole(StrEnum):
    """What a document does to its event."""

    OPENS = "opens"
    UPDATES = "updates"
    CLOSES = "closes"


TYPE_ROLES: Mapping[str, EventRole] = MappingProxyType(
    {
        "opened": EventRole.OPENS,
        "pump": EventRole.OPENS,
        "dump": EventRole.OPENS,
        "updated": EventRole.UPDATES,
        "closed": EventRole.CLOSES,
        "faded": EventRole.CLOSES,
    }
)
"""By the last part of the event type: ``spread.opened`` opens an event."""

LIFECYCLE_ROLES: Mapping[str, EventRole] = MappingProxyType(
    {"open": EventRole.UPDATES, "closed": EventRole.CLOSES}
)
"""By the lifecycle, for a document with an event type of another ending."""


class Plan(StrEnum):
    """Machine plans, from the least to the most."""

    FREE = "free"
    BUILDER = "builder"
    PRO = "pro"

    @property
    def rank(self) -> int:
        """0 for Free, 1 for Builder, 2 for Pro.

        >>> Plan.PRO.rank > Plan.BUILDER.rank
        True
        """
        return list(Plan).index(self)


@dataclass(frozen=True, order=True, slots=True)
class Symbol:
    """A canonical ``BASE_QUOTE`` pair: printable, up to 64 characters, no dash at its start.

    >>> Symbol.parse("BTC_USDT")
    Symbol(base='BTC', quote='USDT')
    >>> str(Symbol("BTC", "USDT"))
    'BTC_USDT'
    """

    base: str
    quote: str

    def __post_init__(self) -> None:
        if _SYMBOL.fullmatch(str(self)) is None or not is_name(str(self)):
            raise InputError("symbol", str(self)[:_SHOWN], _SYMBOLS)

    @classmethod
    def parse(cls, text: str) -> Symbol:
        """Read ``BASE_QUOTE``. Anything else is an `InputError`.

        >>> Symbol.parse("BTCUSDT")
        Traceback (most recent call last):
        toolkit.errors.InputError: symbol: 'BTCUSDT' is not allowed; allowed: BASE_QUOTE, ...
        """
        match = _SYMBOL.fullmatch(text)
        if match is None:
            raise InputError("symbol", text[:_SHOWN], _SYMBOLS)
        return cls(match["base"], match["quote"])

    def __str__(self) -> str:
        return f"{self.base}_{self.quote}"


@dataclass(frozen=True, order=True, slots=True)
class Leg:
    """One side of a trade: an exchange (uppercase, ``DEX-{CHAIN}`` for a DEX) and a market.

    >>> Leg.parse("DEX-ETHEREUM.dex")
    Leg(exchange='DEX-ETHEREUM', market=<Market.DEX: 'dex'>)
    """

    exchange: str
    market: Market

    def __post_init__(self) -> None:
        if _EXCHANGE.fullmatch(self.exchange) is None or not is_name(self.exchange):
            upper = self.exchange.upper()
            usable = _EXCHANGE.fullmatch(upper) is not None and is_name(upper)
            raise InputError(
                "exchange",
                self.exchange[:_SHOWN],
                f"an UPPERCASE name of up to {NAME_LONGEST} characters, e.g. DEX-ETHEREUM",
                advice=f"nearest: {upper}" if usable else "",
            )
        if self.market not in list(Market):
            raise InputError("market", self.market, Market)
        object.__setattr__(self, "market", Market(self.market))

    @classmethod
    def parse(cls, text: str) -> Leg:
        """Read ``EXCHANGE.market``. Anything else is an `InputError`.

        >>> str(Leg.parse("KRAKEN.spot"))
        'KRAKEN.spot'
        """
        exchange, dot, market = text.rpartition(".")
        if not dot:
            raise InputError("leg", text, "EXCHANGE.market, e.g. KRAKEN.spot")
        if market not in list(Market):
            raise InputError("market", market, Market)
        return cls(exchange, Market(market))

    def __str__(self) -> str:
        return f"{self.exchange}.{self.market}"


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of data, as `/schemas` names it: kind and identity.

    Kind is ``live``, ``simulated`` or ``replay``, ``unknown`` if not named, ``several`` for rows
    joined from more than one, ``own`` for the analyst's rows.

    >>> Source("simulated", "seed-7-1a2b").label
    'SIMULATED market, seed-7-1a2b'
    >>> Source("replay", "iaqf-77aa").label
    'Replay of recorded data, iaqf-77aa'
    >>> Source("live", "exchanges-by-ccxt-1a2b3c4d").label
    'Live exchanges, by ccxt, 1a2b3c4d'
    """

    kind: str
    id: str

    @property
    def label(self) -> str:
        """The source in words."""
        if self.by_ccxt:
            return f"Live exchanges, by ccxt, {plain(self.id.removeprefix(_BY_CCXT), 80)}"
        words = {
            "live": "Live service",
            "simulated": "SIMULATED market",
            "replay": "Replay of recorded data",
            "several": "Several sources",
            "own": "Own data",
        }
        return f"{words.get(self.kind, 'Source not stated')}, {plain(self.id, 80)}"

    @property
    def by_ccxt(self) -> bool:
        """Whether a local service read it from exchanges.

        >>> Source("live", "rail").by_ccxt, Source("live", "exchanges-by-ccxt-1a2b3c4d").by_ccxt
        (False, True)
        """
        return self.kind == "live" and self.id.startswith(_BY_CCXT)


_RATIOS = {"fraction": Fraction(1), "percent": Fraction(1, 100), "bps": Fraction(1, 10_000)}
_HOURS = {"hour": 1, "8h": 8, "day": 24, "year": 8_760}
_UNITS = (
    "quote, count, hours, s, ms, us, ns, iso; fraction, percent, bps, alone or followed by "
    "_per_interval, _per_hour, _per_8h, _per_day or _per_year"
)

UNIT_FACTORS: dict[str, tuple[str, Fraction]] = {
    **{ratio: ("ratio", size) for ratio, size in _RATIOS.items()},
    **{f"{ratio}_per_interval": ("rate of an interval", size) for ratio, size in _RATIOS.items()},
    **{
        f"{ratio}_per_{period}": ("rate", size / hours)
        for ratio, size in _RATIOS.items()
        for period, hours in _HOURS.items()
    },
    "s": ("time", Fraction(1)),
    "ms": ("time", Fraction(1, 10**3)),
    "us": ("time", Fraction(1, 10**6)),
    "ns": ("time", Fraction(1, 10**9)),
    "iso": ("time", Fraction(1, 10**3)),
    "hours": ("time", Fraction(3600)),
    "quote": ("quote", Fraction(1)),
    "count": ("count", Fraction(1)),
}
"""Each unit of the wire: the dimension it measures, and its size in that dimension's base unit.

A year has 365 days. ``iso`` is a time as ISO 8601 text, which is read to the millisecond.
"""


def unit_factor(given: str, wanted: str) -> float:
    """Return the factor from the unit ``given`` to the unit ``wanted``.

    >>> unit_factor("bps", "percent")
    0.01
    >>> unit_factor("fraction_per_hour", "percent_per_8h")
    800.0
    >>> unit_factor("percent", "quote")
    Traceback (most recent call last):
    toolkit.errors.InputError: unit: 'percent' is not allowed; allowed: ... as 'quote'
    """
    if given == wanted:
        return 1.0
    for unit in (given, wanted):
        if unit not in UNIT_FACTORS:
            raise InputError("unit", unit, _UNITS)
    (dimension, size), (wanted_dimension, wanted_size) = UNIT_FACTORS[given], UNIT_FACTORS[wanted]
    if dimension != wanted_dimension:
        raise InputError("unit", given, f"a unit of the same dimension as {wanted!r}")
    return float(size / wanted_size)
