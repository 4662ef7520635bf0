"""Markets of real exchanges, read from their public endpoints, and the types of their answers.

Times are Unix seconds, UTC, by the exchange's own clock, windows are ``[start, end)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from toolkit.errors import ExchangeOutageError as Outage
from toolkit.errors import ExchangeRefusedError as Refused
from toolkit.market import Leg, Market
from toolkit.service.market.source import Bars, SettledRates

__all__ = ["BarAnswer", "LegKey", "ListedLeg", "Outage", "RateAnswer", "Refused", "Wanted"]


class LegKey(NamedTuple):
    """A leg of a symbol, as the interface writes both: ``("BTC_USDT", BINANCE.spot)``."""

    symbol: str
    leg: Leg


@dataclass(frozen=True, slots=True)
class Wanted:
    """The legs wanted of every exchange.

    ``symbols``: ``BASE_QUOTE``. ``renames``: a quote that an exchange has to the quote in whose
    name its legs are served, ``{"USDC": "USDT"}``. ``markets``: spot, futures (perpetuals), both.
    """

    symbols: tuple[str, ...]
    renames: Mapping[str, str] = field(default_factory=dict)
    markets: tuple[Market, ...] = (Market.SPOT, Market.FUTURES)


@dataclass(frozen=True, slots=True)
class ListedLeg:
    """A wanted leg that an exchange lists.

    ``venue`` and ``market`` are ccxt's class and unified symbol (``binanceusdm``,
    ``BTC/USDT:USDT``). A price is the exchange's divided by ``multiplier`` (1000 of 1000PEPE). A
    bar's volume in quote is ``volume_factor`` times the one that `facts` names, None without any.
    ``funding``: whether settlements can be asked for. ``note``: "quoted in USDC, served as
    BTC_USDT".
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
    without a row had no trade. All that ends by ``known_until`` (s, at most the window's end) is
    known. ``refused``: why rows were left out, and how many.
    """

    rows: Bars
    known_until: int
    refused: Mapping[str, int]


class RateAnswer(NamedTuple):
    """An exchange's answer for the settlements of one window, as `BarAnswer` for bars.

    A settlement at ``known_until`` itself, at most the window's end - 1, is known too. ``missing``:
    when settlements were due (s) by the last interval known, and did not come within 130 s.
    """

    rows: SettledRates
    known_until: int
    refused: Mapping[str, int]
    missing: tuple[int, ...] = ()
