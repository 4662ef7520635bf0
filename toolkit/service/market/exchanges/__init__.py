"""Markets of real exchanges, read from their public endpoints, and the types of their answers.

Times are Unix seconds, UTC, by the exchange's own clock, windows are ``[start, end)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from toolkit.errors import InputError
from toolkit.market import Leg, Market
from toolkit.market.venues import canonical, venues
from toolkit.service.market.source import Bars, SettledRates


class LegKey(NamedTuple):
    """A leg of a symbol, as the interface writes both: ``("BTC_USDT", BINANCE.spot)``."""

    symbol: str
    leg: Leg


@dataclass(frozen=True, slots=True)
class WantedLegs:
    """The legs wanted of every exchange.

    ``symbols``: ``BASE_QUOTE``. ``renames``: quotes of an exchange by the quote that they are
    served as, ``{"USDC": "USDT"}``. ``markets``: spot, futures (perpetuals), or both.
    """

    symbols: tuple[str, ...]
    renames: Mapping[str, str] = field(default_factory=dict)
    markets: tuple[Market, ...] = (Market.SPOT, Market.FUTURES)


@dataclass(frozen=True, slots=True)
class ListedLeg:
    """A wanted leg that an exchange lists.

    ``venue`` and ``market``: ccxt's class and unified symbol (``binanceusdm``, ``BTC/USDT:USDT``).
    ``multiplier`` divides the exchange's prices (1000 of 1000PEPE). ``volume_factor`` multiplies
    the raw volume in quote, None without any. ``funding``: whether settlements can be read.
    ``note``: "quoted in USDC, served as BTC_USDT".
    """

    key: LegKey
    venue: str
    market: str
    multiplier: float
    volume_factor: float | None
    funding: bool
    note: str = ""


class BarAnswer(NamedTuple):
    """An exchange's answer for one window: the bars that start inside it.

    ``rows``: accepted bars, ascending, price at the bar's end, volume in quote or NaN. A minute
    without a row had no trade. Everything that ends by ``known_until`` (s, at most the window's
    end) is known. ``refused``: why rows were left out, and how many.
    """

    rows: Bars
    known_until: int
    refused: Mapping[str, int]


class RateAnswer(NamedTuple):
    """An exchange's answer for the settlements of one window, as `BarAnswer` for bars.

    A settlement at ``known_until`` itself (at most the window's end - 1) is known too. ``missing``:
    when settlements were due (s) by the last known interval, and did not come within 130 s.
    """

    rows: SettledRates
    known_until: int
    refused: Mapping[str, int]
    missing: tuple[int, ...] = ()


class Settled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How settlements are read: ``rows`` per call, of the last ``reach_s`` (0: of all).

    ``by``: ``until`` or ``after`` is the parameter of a window's end, ``all`` comes at once, any
    other is the parameter of a page's number. ``stated``: a contract's interval (h), or the field
    of the listing with its unit (s), or ccxt's method. ``rate``: the raw field, if not the one that
    ccxt takes.
    """

    by: str
    rows: int
    stated: int | str | tuple[str, float]
    reach_s: int = 0
    rate: str = ""


class MarketFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the spot market or the perpetuals of an exchange are read.

    ``venue``: ccxt's class, made with ``options``, its listing read with ``listed``. ``rows``:
    minutes per call. ``end``: the parameter of a window's end, "" if ``rows`` implies it.
    ``to_now``: any window is answered up to now. ``reach_rows``: how many minutes back bars go, 0
    for all. ``quote``: where a raw bar has its volume in quote, or with ``vwap`` its average price.
    ``beside``: the column that ccxt leaves out. ``closed``: where and how a raw bar is marked as
    closed.
    """

    venue: str
    rows: int
    end: str = "until"
    reach_rows: int = 0
    to_now: bool = False
    quote: int | str | None = None
    vwap: bool = False
    beside: str = ""
    closed: tuple[int, str] = (-1, "")
    options: dict[str, Any] = {}
    listed: dict[str, Any] = {}
    settled: Settled | None = None


Facts = dict[Market, MarketFacts]
KNOWN: Mapping[str, Facts] = {
    name: msgspec.convert(told, Facts)
    for name, one in venues().items()
    if (told := {market: it for market in Market if (it := getattr(one, market, None))})
}
"""The markets of each exchange, by its name in the interface."""


def named(name: str) -> Facts:
    """Return the facts of an exchange by any of its names in any case, or raise `InputError`."""
    if (known := canonical(name.upper())) not in KNOWN:
        raise InputError("exchange", known, KNOWN)
    return KNOWN[known]
