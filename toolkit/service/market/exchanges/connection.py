"""Connections to exchanges through ccxt, which let no answer pass that isn't one.

What isn't an answer is an `Outage`; what asking again won't change is `Refused`. A connection
belongs to one thread, since ccxt's pace isn't kept across threads.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from toolkit.errors import needs_extra, shown
from toolkit.market import Market
from toolkit.service.market.exchanges import Outage, Refused
from toolkit.service.market.exchanges.facts import Facts

AT = "RAIL_EXCHANGES_AT"
"""Environment: the address of a gateway, asked ``/HOST/PATH`` in place of ``https://HOST/PATH``."""

_HELD = ("candles", "data", "instruments", "rates", "result", "symbols")
"""What an answer that is an object holds, one of them: a list or an object."""


class ExchangeTime:
    """An exchange's clock: the machine's, put right by the Date of each answer.

    It is behind by a second at most and by the way of the answer, and never ahead. ``told_at`` is
    when the last answer was made.
    """

    def __init__(self) -> None:
        self.ahead_s = self.told_at = 0.0

    def now(self) -> float:
        """Return the exchange's time (s): the machine's until it has answered."""
        return time.time() + self.ahead_s

    def hear(self, date: str | None, age: str | None, asked_at: float) -> None:
        """Take the moment of an answer: its Date, or when it was asked for where it has none."""
        try:
            self.told_at = _http_date(date) + (int(age) if age and age.isdigit() else 0)
        except ValueError:
            self.told_at = asked_at
        else:
            self.ahead_s = self.told_at - time.time()


class Checked:
    """A layer over a class of ccxt, ``base``. `fetch` is where an answer is judged."""

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
        """Wait until the exchange's own limit lets the next call through."""
        wait_s = self.rateLimit / 1000 * (1 if cost is None else cost)
        wait_s += self.paced_at - time.monotonic()
        if wait_s > 0:
            self.pause(wait_s)
        self.paced_at = time.monotonic()

    def milliseconds(self) -> int:
        """Return the exchange's time (ms), at which ccxt ends windows."""
        return int(1000 * self.clock.now())

    def seconds(self) -> int:
        """Return the exchange's time (s)."""
        return int(self.clock.now())

    def parse_ohlcv(self, ohlcv: Any, market: Any = None) -> list[Any]:
        """Return ccxt's six columns, the volume in quote or None, and whether the bar is closed."""
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
        """Return rows of columns, with the one that ccxt leaves out."""
        rows: list[Any] = self.base.convert_trading_view_to_ohlcv(self, columns, *names)
        more = columns.get(self.facts[Market.FUTURES].beside)
        return [[*row, each] for row, each in zip(rows, more, strict=True)] if more else rows

    def _retry_after_s(self, told: str | None) -> float | None:
        """Return a wait given in seconds or as a date, None where it is neither."""
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
        made = type(f"Checked_{venue}", (Checked, base), own)
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
    """Return an HTTP date as Unix seconds, or raise `ValueError`."""
    return parsedate_to_datetime(text or "").timestamp()


def _words(answer: object) -> str:
    """Return the first words of an answer, without its tags."""
    return shown(" ".join(re.sub(r"<[^>]*>", " ", str(answer)).split())[:150])


def _innermost(error: BaseException) -> BaseException:
    """Return the reason of an error of a connection, which is wrapped in others' words."""
    held = (getattr(error, "reason", None), *error.args)
    inner = next((each for each in held if isinstance(each, BaseException)), None)
    return error if inner is None else _innermost(inner)


def _field(row: Any, place: int | str | None) -> Any:
    if isinstance(row, Mapping):
        return row.get(place)
    return row[place] if isinstance(place, int) and 0 <= place < len(row) else None
