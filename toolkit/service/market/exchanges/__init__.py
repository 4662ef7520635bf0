"""Markets of real exchanges, read from their public endpoints: answers, and the rows accepted.

Times are Unix seconds, UTC, by the exchange's own clock, windows are ``[start, end)``. Which rows
are accepted, and up to when all are known, depends on the answer and its time alone, so reading at
any moment gives the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np

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


SETTLES_S = 4
"""How long an exchange may change a bar after its end (s)."""

PUBLISHED_S = 130
"""How long a due settlement is waited for (s); the latest seen came after 111 s."""

HOUR_S = 3_600
_OFF_S = 300
_INTERVALS = (1, 2, 4, 6, 8, 12, 24)


def frontier(rows: Iterable[Sequence[Any]], start: int, end: int, told_at: float) -> int:
    """Return up to when the bars of ``[start, end)`` are known from an answer made at ``told_at``.

    That is the last whole minute 4 s ago or more, if a later row or the exchange's mark shows that
    the bar before it is closed, else the minute before.
    """
    last = int(min(end, told_at - SETTLES_S)) // 60 * 60
    shown = any(row[0] >= 1000 * last or (row[7] and row[0] == 1000 * (last - 60)) for row in rows)
    if not shown and last + 60 > told_at - SETTLES_S:
        last -= 60
    return max(last, start)


def accepted(
    rows: Sequence[Sequence[Any]], leg: ListedLeg, start: int, end: int, told_at: float
) -> BarAnswer:
    """Return the bars of ``[start, end)`` in raw rows: time (ms), prices, volumes, closed or not.

    A bar without volume had no trade and is left out. A price that is null, not finite or not above
    0 is refused, as are a time that is not a whole minute and rows outside the window, except right
    after it. Of two rows of one minute, the later one counts.
    """
    known_until, refused = frontier(rows, start, end, told_at), Counter[str]()
    bars: dict[int, tuple[float, float]] = {}
    for ts_ms, _, _, _, close, volume, quote, *_ in rows:
        ts = ts_ms // 1000
        if ts < start or ts >= end or ts + 60 > known_until:
            refused["a row outside of the window"] += ts < start or ts > end + 60
        elif ts_ms % 60_000:
            refused["a time that is not a whole minute"] += 1
        elif fault := _fault(close, "price") or ("a price of 0 or less" if close <= 0 else ""):
            refused[fault] += 1
        else:
            bars.pop(ts, None)
            if volume != 0 and quote != 0:
                bars[ts] = close / leg.multiplier, _volume(quote, leg.volume_factor)
    if not rows and end - start > 86_400:
        refused["no row in a window of more than a day"] += 1
    price, volumes = np.array([bars[ts] for ts in sorted(bars)]).reshape(-1, 2).T
    found = Bars(np.array(sorted(bars), dtype=np.int64), price, 60, volume=volumes)
    return BarAnswer(found, known_until, +refused)


def settled(
    rows: Sequence[tuple[int, Any]],
    start: int,
    end: int,
    told_at: float,
    stated_hours: Callable[[], int],
) -> RateAnswer:
    """Return the settlements of ``[start, end)`` in raw rows: time (ms) and rate, in any order.

    Rows before ``start`` (24 h are enough) serve for intervals alone. Times are rounded to the
    hour. An interval is the distance to the settlement before, or the stated one if there is none
    within 24 h.
    """
    faults: list[tuple[int, str]] = []
    rates: dict[int, float] = {}
    for ts_ms, rate in rows:
        ts = round(ts_ms / 1000 / HOUR_S) * HOUR_S
        is_off = abs(ts_ms / 1000 - ts) > _OFF_S
        if fault := "a settlement off the hour" if is_off else _fault(rate, "rate"):
            faults.append((ts, fault))
        else:
            rates[ts] = float(rate)
    ordered = sorted(rates)
    hours: dict[int, int] = {}
    for before, ts in zip([None, *ordered], ordered, strict=False):
        distance = 0 if before is None else (ts - before) // HOUR_S
        hours[ts] = _interval(distance, hours.get(before or 0), stated_hours, ts >= start)
    known_until, missing = min(end - 1, int(told_at)), []
    if ordered:
        due = ordered[-1] + (step := hours[ordered[-1]] * HOUR_S)
        while due <= known_until and due + PUBLISHED_S <= told_at:
            missing += [due] if due >= start else []
            due += step
        known_until = min(known_until, due - 1)
    kept = [ts for ts in ordered if start <= ts <= known_until]
    at, interval = np.array([[ts, hours[ts]] for ts in kept], dtype=np.int64).reshape(-1, 2).T
    found = SettledRates(at, np.array([rates[ts] for ts in kept], dtype=float), interval)
    refused = Counter(fault for ts, fault in faults if start <= ts <= known_until)
    return RateAnswer(found, known_until, refused, tuple(missing))


def _volume(quote: float | None, factor: float | None) -> float:
    if quote is None or factor is None or not 0 < quote < math.inf:
        return math.nan
    return quote * factor


def _fault(value: object, what: str) -> str:
    """Return what is wrong with a number, "" if it is finite."""
    if value is None:
        return f"a null {what}"
    try:
        return "" if math.isfinite(float(str(value))) else f"a {what} that is not finite"
    except ValueError:
        return f"a {what} that is not a number"


def _interval(
    distance: int, before: int | None, stated_hours: Callable[[], int], wanted: bool
) -> int:
    """Return the interval of a settlement (h) at a distance from the one before (h, 0 unknown).

    A distance that is not an interval is a gap: the interval before it goes on.
    """
    if distance in _INTERVALS:
        return distance
    if not 0 < distance < 24:
        return stated_hours() if wanted else 0
    if before and distance % before == 0:
        return before
    return max(each for each in _INTERVALS if each < distance)
