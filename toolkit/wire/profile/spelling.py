"""A service's spelling of names, requests and times, in both directions.

A template such as ``{symbol}|{exchange}:{market}`` has names in braces as placeholders.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import msgspec

from toolkit.errors import InputError
from toolkit.market import Leg, Market, Trajectory, unit_factor

_PLACEHOLDER = re.compile(r"\{([a-z_.]+)\}")


def placeholders(template: str) -> list[str]:
    """Return the names in the braces of a template.

    >>> placeholders("{symbol}|{buy.exchange}")
    ['symbol', 'buy.exchange']
    """
    return _PLACEHOLDER.findall(template)


def filled(template: str, values: Mapping[str, object]) -> str:
    """Fill a template's placeholders.

    >>> filled("{symbol}|{exchange}", {"symbol": "A_B", "exchange": "X"})
    'A_B|X'
    """
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), template)


def filled_query(ask: Mapping[str, str], values: Mapping[str, object]) -> dict[str, object]:
    """Return a request's parameters, without those whose placeholder has no value.

    >>> filled_query({"before": "{end_time}", "page": "{cursor}"}, {"end_time": 60, "cursor": None})
    {'before': '60'}
    """
    return {
        name: filled(template, values)
        for name, template in ask.items()
        if all(values[place] is not None for place in placeholders(template))
    }


def check_templates(where: str, ask: Mapping[str, str], known: Collection[str]) -> None:
    """Raise `InputError` for an unknown placeholder, and for stray braces.

    >>> check_templates("ask", {"key": "{symbl}"}, ["symbol"])
    Traceback (most recent call last):
    toolkit.errors.InputError: ask: '{symbl}' is not allowed; allowed: a template of {symbol}
    """
    for template in ask.values():
        unknown = [place for place in placeholders(template) if place not in known]
        if unknown or set("{}") & set(_PLACEHOLDER.sub("", template)):
            names = ", ".join(f"{{{name}}}" for name in known)
            raise InputError(where, template, f"a template of {names}")


@functools.lru_cache(maxsize=64)
def reading(template: str) -> re.Pattern[str] | None:
    """Return a pattern that reads a filled template, None if two values may run together.

    >>> reading("{exchange}:{market}").fullmatch("KRAKEN:spot").groupdict()
    {'exchange': 'KRAKEN', 'market': 'spot'}
    >>> reading("{base}{quote}") is None
    True
    """
    parts = _PLACEHOLDER.split(template)
    if len(parts) < 3 or not all(parts[2:-1:2]) or len(set(parts[1::2])) < len(parts) // 2:
        return None
    for at, part in enumerate(parts):
        parts[at] = f"(?P<{part.replace('.', '_')}>.+?)" if at % 2 else re.escape(part)
    return re.compile("".join(parts))


@dataclass(frozen=True, slots=True)
class Spelling:
    """Our names of exchanges, markets and symbols, and the service's for them.

    Mappings go from our name to the service's. Other names are as ours, an exchange in
    ``exchange_case``, a symbol by the template ``symbol`` in ``symbol_case``. With a case, names
    are read in any. A symbol with nothing between base and quote is read only by ``symbols``.

    >>> spelled = Spelling({"futures": "PERP"}, exchange_case="lower", symbol="{base}-{quote}")
    >>> spelled.values(Trajectory.parse("BTC_USDT:KRAKEN.futures"))
    {'symbol': 'BTC-USDT', 'base': 'BTC', 'quote': 'USDT', 'exchange': 'kraken', 'market': 'PERP'}
    """

    markets: Mapping[str, str] = field(default_factory=dict)
    exchanges: Mapping[str, str] = field(default_factory=dict)
    symbols: Mapping[str, str] = field(default_factory=dict)
    exchange_case: str = ""
    symbol_case: str = ""
    symbol: str = "{base}_{quote}"

    def __post_init__(self) -> None:
        allowed = "{base} and {quote}, e.g. {base}-{quote}"
        if sorted(placeholders(self.symbol)) != ["base", "quote"]:
            raise InputError("spelling.symbol", self.symbol, allowed)
        for name, said in (("markets", self.markets), ("exchanges", self.exchanges)):
            twice = [word for word in said.values() if list(said.values()).count(word) > 1]
            if twice:
                raise InputError(f"spelling.{name}", twice[0], "a word of its own for each name")
        for market in self.markets:
            if market not in list(Market):
                raise InputError("spelling.markets", market, Market)

    def values(self, trajectory: Trajectory) -> dict[str, str]:
        """Return the service's words for the parts of a trajectory, by placeholder."""
        symbol = trajectory.symbol
        found = {"base": symbol.base, "quote": symbol.quote}
        theirs = filled(self.symbol, found)
        cased = theirs.lower() if self.symbol_case == "lower" else theirs
        found = {"symbol": self.symbols.get(str(symbol)) or cased, **found}
        sides = [""] if len(trajectory.legs) == 1 else ["buy.", "sell."]
        for side, leg in zip(sides, trajectory.legs, strict=True):
            exchange = leg.exchange
            cased = exchange.lower() if self.exchange_case == "lower" else exchange
            found[f"{side}exchange"] = self.exchanges.get(exchange, cased)
            found[f"{side}market"] = self.markets.get(leg.market.value, leg.market.value)
        return found

    def our_symbol(self, text: str) -> str:
        """Return our name of a symbol. Other text is unchanged."""
        if ours := _known(self.symbols, text):
            return ours
        pattern = reading(self.symbol)
        match = None if pattern is None else pattern.fullmatch(text)
        if match is None:
            return text
        ours = f"{match['base']}_{match['quote']}"
        return ours.upper() if self.symbol_case else ours

    def our_exchange(self, text: str) -> str:
        """Return our name of an exchange. Other text is unchanged."""
        return _known(self.exchanges, text) or (text.upper() if self.exchange_case else text)

    def our_market(self, text: str) -> str:
        """Return our name of a market. Other text is unchanged."""
        return _known(self.markets, text) or text

    def our_word(self, column: str, text: str) -> str:
        """Return our word for a text of a column: symbol, exchange or market, else itself.

        >>> Spelling(markets={"spot": "SPOT"}).our_word("buy_market", "SPOT")
        'spot'
        """
        if column == "symbol":
            return self.our_symbol(text)
        if column.endswith("exchange"):
            return self.our_exchange(text)
        return self.our_market(text) if column.endswith("market") else text

    def our_part(self, column: str, text: str, leg: str | None) -> str | None:
        """Return our word for the part of a text that a column holds and ``leg`` reads.

        A template without that part leaves the text unchanged. None if the text does not match, or
        its leg is not an exchange and a market.

        >>> pair = "{buy_exchange}.{buy_market}>{sell_exchange}.{sell_market}"
        >>> AS_OURS.our_part("sell_market", "KRAKEN.spot>BYBIT.futures", pair)
        'futures'
        """
        pattern = reading(leg or "")
        parts = pattern.groupindex if pattern else {}
        part = column if column in parts else column.rpartition("_")[2]
        if pattern is None or part not in parts:
            return self.our_word(column, text)
        match = pattern.fullmatch(text)
        if part == "symbol":
            return self.our_symbol(match["symbol"] if match else text)
        return self.our_word(part, match[part]) if match and self._has_legs(match) else None

    def _has_legs(self, match: re.Match[str]) -> bool:
        """Check that each leg read is one, its exchange in any case."""
        for name, exchange in match.groupdict().items():
            side, is_exchange, _ = name.rpartition("exchange")
            if is_exchange:
                market = self.our_market(match[f"{side}market"])
                try:
                    Leg(self.our_exchange(exchange).upper(), Market(market))
                except ValueError:
                    return False
        return True


def _known(names: Mapping[str, str], text: str) -> str:
    return next((ours for ours, theirs in names.items() if theirs == text), "")


AS_OURS = Spelling()
"""The spelling of docs/interface.md."""


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def clock_value(ts: int, clock: str) -> int | str:
    """Return a time (Unix s) in a service's unit, or as ISO 8601 text.

    >>> clock_value(60, "s"), clock_value(60, "ms"), clock_value(60, "iso")
    (60, 60000, '1970-01-01T00:01:00Z')
    """
    if clock == "iso":
        return dt.datetime.fromtimestamp(ts, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return round(ts * unit_factor("s", clock))


def iso_ms(text: str) -> int:
    """Read ISO 8601 text as Unix milliseconds, in UTC without a zone.

    Raises `msgspec.DecodeError` for other text.

    >>> iso_ms("1970-01-01T00:01:00.5Z"), iso_ms("1970-01-01 00:01")
    (60500, 60000)
    """
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise msgspec.DecodeError(f"{text!r:.40} is not a time in ISO 8601") from None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return (zoned - _EPOCH) // dt.timedelta(milliseconds=1)
