"""Reading of an exchange: what it lists, its bars and its settlements, window by window.

Each call names both ends of its window. What is missing there is asked for again, since ccxt's own
paging leaves holes.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import pairwise
from typing import Any

from toolkit.errors import ExchangeOutageError as Outage
from toolkit.errors import ExchangeRefusedError as Refused
from toolkit.errors import needs_extra, shown
from toolkit.market import Leg, Market, Symbol
from toolkit.market.venues import canonical, venue_of
from toolkit.service.market.exchanges import (
    PUBLISHED_S,
    BarAnswer,
    Facts,
    LegKey,
    ListedLeg,
    MarketFacts,
    RateAnswer,
    Settled,
    WantedLegs,
    accepted,
    frontier,
    named,
    settled,
)

AT = "RAIL_EXCHANGES_AT"
"""Environment: the address of a gateway that gets ``/HOST/PATH`` for ``https://HOST/PATH``."""

_HELD = ("candles", "data", "instruments", "rates", "result", "symbols")
"""An answer that is an object has a list or an object in one of these fields."""


class ExchangeTime:
    """An exchange's clock: the machine's, corrected by the Date of each answer.

    It is never ahead, and behind by at most a second and the answer's way. ``told_at`` is when the
    last answer was made (s).
    """

    def __init__(self) -> None:
        self.ahead_s = self.told_at = 0.0

    def now(self) -> float:
        """Return the exchange's time (s): the machine's until it has answered."""
        return time.time() + self.ahead_s

    def hear(self, date: str | None, age: str | None, asked_at: float) -> None:
        """Take the moment of an answer: its Date, or the question's if it has none."""
        try:
            self.told_at = _http_date(date) + (int(age) if age and age.isdigit() else 0)
        except ValueError:
            self.told_at = asked_at
        else:
            self.ahead_s = self.told_at - time.time()


class _JudgedVenue:
    """A layer over a class of ccxt, ``base``, that lets no answer pass that isn't one."""

    base: Any
    facts: Facts
    at: str
    clock: ExchangeTime
    pause: Callable[[float], object]
    keep: Callable[..., object]
    rateLimit: float  # noqa: N815 - ccxt's
    paced_at = asked_at = 0.0
    url, is_heard = "", True

    def fetch(self, url: str, *request: Any) -> Any:
        """Return the decoded answer, an object or a list, or raise `Outage` or `Refused`."""
        self.asked_at, self.url, self.is_heard = self.clock.now(), url, False
        there = re.sub(r"^https://", f"{self.at}/", url) if self.at else url
        answer = self.base.fetch(self, there, *request)
        held = map(answer.get, _HELD) if isinstance(answer, dict) else [answer]
        if any(isinstance(each, (dict, list)) for each in held):
            return answer
        raise Outage(f"it answered what was not asked for: {_words(answer)}")

    def on_rest_response(self, code: int, reason: str, *answer: Any) -> str:
        """Return the text of an answer that may be read, or raise `Outage` or `Refused`."""
        headers, text, self.is_heard = answer[2], str(answer[3]).strip(), True
        self.keep(self.clock.now() - self.asked_at, self.url, code, *answer)
        self.clock.hear(headers.get("Date"), headers.get("Age"), self.asked_at)
        told = f"HTTP {code} {reason}: {_words(text)}"
        is_json = text[:1] in {"{", "["}
        is_unknown = (code == 404 and is_json) or (code == 500 and text == "null")
        if code in {403, 451} or is_unknown:  # a market, as Coinbase and Hyperliquid say it
            raise Refused(told)
        if code in {418, 429} or code >= 500:
            raise Outage(told, retry_after_s=self._retry_after_s(headers.get("Retry-After")))
        if code < 300 and not is_json:
            raise Outage(f"{told}, {headers.get('Content-Type')} in place of JSON")
        return text

    def throttle(self, cost: float | None = None) -> None:
        wait_s = self.rateLimit / 1000 * (1 if cost is None else cost)
        wait_s += self.paced_at - time.monotonic()
        if wait_s > 0:
            self.pause(wait_s)
        self.paced_at = time.monotonic()

    def milliseconds(self) -> int:
        """Return the exchange's time (ms), at which ccxt ends windows."""
        return int(1000 * self.clock.now())

    def seconds(self) -> int:
        return int(self.clock.now())

    def parse_ohlcv(self, ohlcv: Any, market: Any = None) -> list[Any]:
        """Return ccxt's six columns, the volume in quote or None, and whether it is closed."""
        row: list[Any] = self.base.parse_ohlcv(self, ohlcv, market)
        if not isinstance(row[0], int):
            raise Outage(f"it answered a row without a time: {_words(ohlcv)}")
        facts = self.facts[Market.SPOT if market["spot"] else Market.FUTURES]
        told = _field(ohlcv, facts.quote)
        quote = None if told is None or row[5] is None else float(told)
        if facts.vwap and quote is not None:
            quote *= row[5]
        place, closed = facts.closed
        return [*row, quote, str(_field(ohlcv, place)).lower() == closed]

    def convert_trading_view_to_ohlcv(self, columns: Any, *names: Any) -> list[Any]:
        """Return columns as rows, with the one that ccxt leaves out."""
        rows: list[Any] = self.base.convert_trading_view_to_ohlcv(self, columns, *names)
        more = columns.get(self.facts[Market.FUTURES].beside)
        return [[*row, each] for row, each in zip(rows, more, strict=True)] if more else rows

    def _retry_after_s(self, told: str | None) -> float | None:
        """Return a wait (s) given in seconds or as a date, None if it is neither."""
        if told and told.isdigit():
            return float(told)
        try:
            return max(_http_date(told) - self.clock.told_at, 0.0)
        except ValueError:
            return None


class Connection:
    """One class of ccxt, as one thread asks it."""

    def __init__(
        self, venue: str, facts: Facts, clock: ExchangeTime, **hooks: Callable[..., object]
    ) -> None:
        with needs_extra("exchanges"):
            import ccxt  # noqa: PLC0415 - half a second, for those alone who read exchanges
        base, at = getattr(ccxt, venue), os.environ.get(AT, "").rstrip("/")
        own = {"base": base, "facts": facts, "at": at, "clock": clock}
        options = {name: it for each in facts.values() for name, it in each.options.items()}
        made = type(f"Checked_{venue}", (_JudgedVenue, base), own)
        # Currencies are of no use here, and a request. A gateway is asked past any proxy.
        given = {"has": {"fetchCurrencies": False}, "requests_trust_env": not at}
        self.ccxt: Any = made({"options": options, **hooks, **given})
        self._errors = ccxt

    def ask(self, method: str, *arguments: object) -> Any:
        """Return what a method of ccxt answers, or raise `Outage` or `Refused` for its errors."""
        try:
            return getattr(self.ccxt, method)(*arguments)
        except self._errors.BaseError as error:
            is_final = isinstance(error, self._errors.ExchangeError) and self.ccxt.is_heard
            kind = Refused if is_final else Outage
            told = error if is_final else _innermost(error.__cause__ or error)
            raise kind(_words(told)) from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise Outage(f"it answered what can't be read: {_words(error)}") from error


def _http_date(text: str | None) -> float:
    return parsedate_to_datetime(text or "").timestamp()


def _words(answer: object) -> str:
    """Return the first words of an answer, without its tags."""
    return shown(" ".join(re.sub(r"<[^>]*>", " ", str(answer)).split())[:150])


def _innermost(error: BaseException) -> BaseException:
    held = (getattr(error, "reason", None), *error.args)
    inner = next((each for each in held if isinstance(each, BaseException)), None)
    return error if inner is None else _innermost(inner)


def _field(row: Any, place: int | str | None) -> Any:
    if isinstance(row, Mapping):
        return row.get(place)
    return row[place] if isinstance(place, int) and 0 <= place < len(row) else None


_HOUR_S, _DAY_S = 3_600, 86_400
_LATE_S = 300
"""The latest stamp of a settlement (s)."""
_MOVES_S = 120
"""How much of an exchange's memory may expire during a question (s)."""
_TOO_OLD = re.compile(r"too long ago|points ago|too old", re.IGNORECASE)
_HOLE_S = 1_800
"""A longer gap at an end of a window (s) is asked for again: it may not be for want of trades."""

Rates = list[tuple[int, Any]]
"""Raw settlements: time (ms) and rate, ascending."""
Legs = list[ListedLeg]


class Exchange:
    """One exchange, as one thread reads it. Windows are ``[start, end)`` (s).

    ``sleep`` (s) keeps the pace that the exchange allows: an event's ``wait`` can end it early.
    ``keep`` gets each raw answer, as in `ExchangeCheck.keep`.
    """

    def __init__(
        self,
        name: str,
        *,
        sleep: Callable[[float], object] = time.sleep,
        keep: Callable[..., object] = lambda *_: None,
    ) -> None:
        self.name = canonical(name.upper())
        self._facts, self._clock = named(self.name), ExchangeTime()
        self._hooks = {"pause": sleep, "keep": keep}
        self._connections: dict[str, Connection] = {}
        self.left_out: tuple[str, ...] = ()

    def now(self) -> float:
        """Return the exchange's time (s): the machine's until it has answered."""
        return self._clock.now()

    def close(self) -> None:
        """Close its connections."""
        for each in self._connections.values():
            each.ccxt.session.close()

    def list(self, wanted: WantedLegs) -> Legs:
        """Return the wanted legs that are listed, in the order of the symbols.

        ``left_out`` then names the others, with the rename that would take them. Raises `Refused`
        if there are none or the exchange doesn't answer from here, `Outage` without an answer that
        can be read.
        """
        found: Legs = []
        self.left_out = ()
        markets = [each for each in wanted.markets if each in self._facts]
        for venue in dict.fromkeys(self._facts[each].venue for each in markets):
            connection = self._connection(venue)
            held = dict(connection.ccxt.markets or {})
            there = [each for each in markets if self._facts[each].venue == venue]
            everything = connection.ask("fetch_markets", self._facts[there[0]].listed)
            for market in there:
                listing = {(it["base"], it["quote"]): it for it in everything if _is(it, market)}
                missing = []
                for symbol in wanted.symbols:
                    key = LegKey(symbol, Leg(self.name, market))
                    if chosen := _listed(listing, key, wanted.renames, self._facts[market]):
                        leg, held[leg.market] = chosen
                        found.append(leg)
                    else:
                        missing.append(symbol)
                if missing:
                    self.left_out += (
                        f"{self.name}.{market} {_without(missing, listing, self.name)}",
                    )
            connection.ccxt.set_markets(held)
        if not found:
            raise Refused("; ".join(self.left_out) or f"{self.name} has no such market")
        return sorted(found, key=lambda leg: wanted.symbols.index(leg.key.symbol))

    def bars(self, leg: ListedLeg, start: int, end: int) -> Iterator[BarAnswer]:
        """Yield the bars that start in the window, in parts, oldest first.

        `Refused` may have a ``reach``, from which on bars can be asked for. After an `Outage` what
        was yielded before holds.
        """
        facts = self._facts[leg.key.leg.market]
        start, end = -(-start // 60) * 60, end // 60 * 60
        while start < end:
            reach = int(self.now()) // 60 * 60 - 60 * facts.reach_rows
            if facts.reach_rows and start <= reach:
                raise self._beyond(reach + _MOVES_S)
            until = min(start + 60 * (facts.rows - 1), end)
            yield from self._window(leg, facts, start, until)
            start = until

    def settlements(self, leg: ListedLeg, start: int, end: int) -> Iterator[RateAnswer]:
        """Yield the settlements of the window, in parts, oldest first; errors as of `bars`."""
        facts = self._facts[leg.key.leg.market].settled
        if facts is None:
            raise Refused(f"{self.name} has no settlements of {leg.market}")
        if facts.reach_s and start <= (reach := int(self.now()) - facts.reach_s):
            raise self._beyond(reach + _MOVES_S)
        by_window = facts.by in {"until", "after"}
        step_s = _HOUR_S * facts.rows - _DAY_S - 2 * _LATE_S if by_window else end - start
        while start < end:
            until, since = min(start + step_s, end), start - _DAY_S - _LATE_S
            if by_window:
                rows, told_at = self._rates(leg, facts, since, until + _LATE_S)
            else:
                rows, told_at = self._pages(leg, facts, since)
            yield settled(rows, start, until, told_at, partial(self._stated_hours, leg, facts))
            start = until

    def _window(
        self, leg: ListedLeg, facts: MarketFacts, start: int, end: int, page: int = 1 << 40
    ) -> Iterator[BarAnswer]:
        """Yield the bars of a window that one call should answer, asking again for what it lacks.

        ``page``: the rows of the largest page seen.
        """
        connection = self._connection(leg.venue)
        # With the minute after it, which shows that the last is closed.
        limit = None if facts.to_now else (end - start) // 60 + 1
        params = {facts.end: 1000 * end + 59_999} if facts.end else {}
        try:
            rows = connection.ask("fetch_ohlcv", leg.market, "1m", 1000 * start, limit, params)
        except Refused as refused:
            raise (self._beyond(end) if _TOO_OLD.search(str(refused)) else refused) from refused
        told_at = self._clock.told_at
        if facts.to_now:
            rows = [row for row in rows if row[0] <= 1000 * end]
        first, last = _answered(rows, start, end, told_at, page)
        if first > start:
            yield from self._window(leg, facts, start, first, len(rows))
        rows = rows if last == end else [row for row in rows if row[0] <= 1000 * last]
        yield accepted(rows, leg, first, last, told_at)
        if last < end:
            yield from self._window(leg, facts, last, end, len(rows))

    def _rates(self, leg: ListedLeg, facts: Settled, start: int, end: int) -> tuple[Rates, float]:
        rows, told_at = self._raw_rates(leg, facts, 1000 * start, {facts.by: 1000 * end})
        rows = [row for row in rows if 1000 * start <= row[0] < 1000 * end]
        if not rows:
            return rows, told_at
        first, last = rows[0][0] // 1000, rows[-1][0] // 1000
        steps = [(later[0] - one[0]) // 1000 for one, later in pairwise(rows)] or [_DAY_S]
        if first - start > steps[0] + _LATE_S:
            rows = self._rates(leg, facts, start, first)[0] + rows
        if min(end, int(told_at) - PUBLISHED_S) - last > steps[-1] + _LATE_S:
            rows += self._rates(leg, facts, last + 1, end)[0]
        return rows, told_at

    def _pages(self, leg: ListedLeg, facts: Settled, start: int) -> tuple[Rates, float]:
        """Return the raw settlements from ``start`` on, from pages that count back from now."""
        if facts.by == "all":
            rows, told_at = self._raw_rates(leg, facts, None, {})
            if len(rows) >= facts.rows and rows[0][0] > 1000 * (start + _DAY_S + _LATE_S):
                raise self._beyond(rows[0][0] // 1000 + _MOVES_S)
            return rows, told_at
        rows, told_at = self._raw_rates(leg, facts, None, {facts.by: 1})
        found, page = dict(rows), 1
        while rows and min(found) > 1000 * start:
            page += 1
            more, _ = self._raw_rates(leg, facts, None, {facts.by: page})
            rows = [row for row in more if row[0] not in found]
            found |= rows
        return sorted(found.items()), told_at

    def _raw_rates(
        self, leg: ListedLeg, facts: Settled, since_ms: int | None, params: dict[str, int]
    ) -> tuple[Rates, float]:
        connection = self._connection(leg.venue)
        limit = None if facts.by == "all" else facts.rows
        told = connection.ask("fetch_funding_rate_history", leg.market, since_ms, limit, params)
        places = [(row["info"], facts.rate) if facts.rate else (row, "fundingRate") for row in told]
        rates = [row.get(name) for row, name in places]
        return list(
            zip((row["timestamp"] for row in told), rates, strict=True)
        ), self._clock.told_at

    def _stated_hours(self, leg: ListedLeg, facts: Settled) -> int:
        if isinstance(facts.stated, int):
            return facts.stated
        connection = self._connection(leg.venue)
        if isinstance(facts.stated, tuple):
            field, unit_s = facts.stated
            told = connection.ask("market", leg.market)["info"][field]
            return round(float(told) * unit_s / _HOUR_S)
        several = facts.stated.endswith("s")  # tells of those alone whose interval was changed
        told = connection.ask(facts.stated, [leg.market] if several else leg.market)
        told = told.get(leg.market, {}) if several else told
        return round(
            float(str(told.get("interval") or venue_of(self.name).interval_hours).rstrip("h"))
        )

    def _connection(self, venue: str) -> Connection:
        if venue not in self._connections:
            facts = {each: it for each, it in self._facts.items() if it.venue == venue}
            self._connections[venue] = Connection(venue, facts, self._clock, **self._hooks)
        return self._connections[venue]

    def _beyond(self, reach: int) -> Refused:
        return Refused(f"beyond what {self.name} gives", reach=reach)


def _answered(
    rows: Sequence[Sequence[Any]], start: int, end: int, told_at: float, page: int
) -> tuple[int, int]:
    """Return the part of the window ``[start, end)`` that an answer covers.

    An end is missing if it has no row for longer than a leg goes without a trade, or if the page
    was full: with as many rows as another, or without a hole.
    """
    inside = [row[0] // 1000 for row in rows if 1000 * start <= row[0] < 1000 * end]
    if not inside:
        return start, end
    first, last = inside[0], inside[-1] + 60
    full = len(rows) >= page or last - first == 60 * len(inside) >= _HOUR_S
    least_s = 60 if full else _HOLE_S
    known_until = frontier(rows, start, end, told_at)
    return (
        first if first - start >= least_s else start,
        last if known_until - last >= least_s else end,
    )


def _is(listed: Mapping[str, Any], market: Market) -> bool:
    perpetual = listed["swap"] and listed["linear"] and listed["settle"] == listed["quote"]
    return listed["active"] is not False and bool(
        listed["spot"] if market is Market.SPOT else perpetual
    )


def _listed(
    listing: Mapping[tuple[str, str], Any],
    key: LegKey,
    renames: Mapping[str, str],
    facts: MarketFacts,
) -> tuple[ListedLeg, Any] | None:
    """Return the listing of a leg: its own quote before a renamed one, one coin before lots."""
    symbol = Symbol.parse(key.symbol)
    renamed = [quote for quote, name in renames.items() if name == symbol.quote]
    factor, funding = None if facts.quote is None else 1.0, facts.settled is not None
    for quote in (symbol.quote, *renamed):
        for base, coins in venue_of(key.leg.exchange).listed_as(symbol.base).items():
            if found := listing.get((base, quote)):
                notes = [f"quoted in {quote}, served as {symbol}"] if quote in renamed else []
                notes += [f"listed as {base}, prices divided by {coins:.0f}"] if coins > 1 else []
                told = (found["symbol"], coins, factor, funding, "; ".join(notes))
                return ListedLeg(key, facts.venue, *told), found
    return None


def _without(missing: Sequence[str], listing: Container[tuple[str, str]], exchange: str) -> str:
    """Say that symbols are not listed, with the rename that would take them."""
    told, quote = f"lists no {', '.join(missing)}", missing[0].rpartition("_")[2]
    coins = [symbol.partition("_")[0] for symbol in missing]
    names = [name for coin in coins for name in venue_of(exchange).listed_as(coin)]
    for other in ("USDT", "USDC", "USD"):
        if any((name, other) in listing for name in names):
            return f"{told}; --rename {other}={quote} takes it in {other}"
    return told


COLUMNS = ("legs", "bars", "back", "rates", "clock", "took")
"""Legs listed; the first one's bars of the last hour, and how far back they go; a day's settlements
of the first perpetual; how far the clock is ahead of this machine's; the longest answer."""

_CLOCKS_AGREE_S = 5


@dataclass(slots=True)
class ExchangeCheck:
    """One exchange's answers: in words by the names of `COLUMNS`, and raw, without cookies."""

    cells: dict[str, str] = field(default_factory=lambda: dict.fromkeys(COLUMNS, "–"))
    to_do: list[str] = field(default_factory=list)
    answers: bool = False
    raw: list[dict[str, Any]] = field(default_factory=list)
    took_s: float = 0.0

    def keep(self, took_s: float, url: str, status: int, *answer: Any) -> None:
        """Keep a raw answer, as `Exchange` hands it over."""
        _, method, headers, text, _, body = answer
        told = {name: each for name, each in headers.items() if "cookie" not in name.lower()}
        line = {"url": url, "method": method, "body": body or "", "status": status}
        self.raw.append({**line, "headers": told, "text": text})
        self.took_s = max(self.took_s, took_s)
        self.cells["took"] = f"{self.took_s:.2f} s"


def check(name: str, wanted: WantedLegs, days: int) -> ExchangeCheck:
    """Ask an exchange for its listing, bars of now and of ``days`` ago, and settlements."""
    found = ExchangeCheck()
    try:
        with contextlib.closing(Exchange(name, keep=found.keep)) as exchange:
            _ask(exchange, wanted, days, found)
        found.answers = True
    except Refused as error:
        told = str(error).removeprefix(f"{name} ")
        country = "it does not serve this country or network: leave it out"
        found.to_do.append(f"{told}; {country}" if told.startswith("HTTP 4") else told)
    except Outage as error:
        found.to_do.append(f"{error}; no network, a proxy between, or an outage: try again later")
    return found


def _ask(exchange: Exchange, wanted: WantedLegs, days: int, found: ExchangeCheck) -> None:
    legs, cells = exchange.list(wanted), found.cells
    found.to_do += exchange.left_out
    now, ahead_s = int(exchange.now()), exchange.now() - time.time()
    cells |= {"legs": f"{len(legs)}", "clock": f"{int(ahead_s)} s", "back": f"{days} d"}
    if abs(ahead_s) > _CLOCKS_AGREE_S:
        found.to_do.append(f"its clock is {ahead_s:.0f} s ahead of this machine's; its own is used")
    bars = exchange.bars(legs[0], now - _HOUR_S, now)
    cells["bars"] = f"{sum(len(each.rows.ts) for each in bars)}"
    start = now - days * _DAY_S
    try:
        next(exchange.bars(legs[0], start, start + _HOUR_S), None)
    except Refused as refused:
        if refused.reach is None:
            raise
        cells["back"] = f"{(now - refused.reach) // _HOUR_S} h"
        found.to_do.append(f"minutes go back {cells['back']}, what is older will be lost")
    if leg := next((each for each in legs if each.funding), None):
        rates = exchange.settlements(leg, now - _DAY_S, now)
        cells["rates"] = f"{sum(len(each.rows.ts) for each in rates)}"
