"""A service's spelling of exchanges, markets and symbols, in both directions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.errors import InputError
from toolkit.market import Leg, Market, Symbol, Trajectory
from toolkit.wire.profile.templates import filled, placeholders, reading


@dataclass(frozen=True, slots=True)
class Spelling:
    """Our names of exchanges, markets and symbols, and the service's for them.

    Each mapping goes from our name to the service's. A name that it does not have is spelled as
    ours: an exchange in ``exchange_case``, a symbol by the template ``symbol`` in ``symbol_case``.
    With a case, names are read in any case. A symbol with nothing between base and quote is not
    read back but by ``symbols``.

    >>> spelled = Spelling({"futures": "PERP"}, exchange_case="lower", symbol="{base}-{quote}")
    >>> spelled.values(Trajectory.parse("BTC_USDT:KRAKEN.futures"))
    {'symbol': 'BTC-USDT', 'base': 'BTC', 'quote': 'USDT', 'exchange': 'kraken', 'market': 'PERP'}
    >>> spelled.our_symbol("BTC-USDT"), spelled.our_exchange("kraken"), spelled.our_market("PERP")
    ('BTC_USDT', 'KRAKEN', 'futures')
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
        """Return the service's words for the parts of a trajectory, by their placeholders."""
        symbol = trajectory.symbol
        found = {"symbol": self._symbol(symbol), "base": symbol.base, "quote": symbol.quote}
        sides = [""] if len(trajectory.legs) == 1 else ["buy.", "sell."]
        for side, leg in zip(sides, trajectory.legs, strict=True):
            found[f"{side}exchange"] = self._exchange(leg.exchange)
            found[f"{side}market"] = self.markets.get(leg.market.value, leg.market.value)
        return found

    def our_symbol(self, text: str) -> str:
        """Return our name of a symbol, the text itself where it is spelled in another way."""
        for ours, theirs in self.symbols.items():
            if text == theirs:
                return ours
        pattern = _pattern(self.symbol)
        match = None if pattern is None else pattern.fullmatch(text)
        if match is None:
            return text
        ours = f"{match['base']}_{match['quote']}"
        return ours.upper() if self.symbol_case else ours

    def our_exchange(self, text: str) -> str:
        """Return our name of an exchange, the text itself where it is spelled in another way."""
        for ours, theirs in self.exchanges.items():
            if text == theirs:
                return ours
        return text.upper() if self.exchange_case else text

    def our_market(self, text: str) -> str:
        """Return our name of a market, the text itself where it is spelled in another way."""
        return next((ours for ours, theirs in self.markets.items() if text == theirs), text)

    def our_word(self, column: str, text: str) -> str:
        """Return our word for the text of a column: a symbol, an exchange, a market, else itself.

        >>> Spelling(markets={"spot": "SPOT"}).our_word("buy_market", "SPOT")
        'spot'
        """
        if column == "symbol":
            return self.our_symbol(text)
        if column.endswith("exchange"):
            return self.our_exchange(text)
        return self.our_market(text) if column.endswith("market") else text

    def our_part(self, column: str, text: str, leg: str | None) -> str | None:
        """Return our word for the part that a column holds of a text, which ``leg`` reads.

        A template without that part leaves the text as it is. None where the text is not of the
        template's form, or a leg of it is not an exchange and a market.

        >>> pair = "{buy_exchange}.{buy_market}>{sell_exchange}.{sell_market}"
        >>> AS_OURS.our_part("sell_market", "KRAKEN.spot>BYBIT.futures", pair)
        'futures'
        >>> AS_OURS.our_part("buy_market", "KRAKEN.spot>BYBIT.futures", "{exchange}.{market}")
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
        """Check that each leg that a template read is one, its exchange in any case."""
        for name, exchange in match.groupdict().items():
            side, is_exchange, _ = name.rpartition("exchange")
            if is_exchange:
                market = self.our_market(match[f"{side}market"])
                try:
                    Leg(self.our_exchange(exchange).upper(), Market(market))
                except ValueError:
                    return False
        return True

    def _symbol(self, symbol: Symbol) -> str:
        if known := self.symbols.get(str(symbol)):
            return known
        theirs = filled(self.symbol, {"base": symbol.base, "quote": symbol.quote})
        return theirs.lower() if self.symbol_case == "lower" else theirs

    def _exchange(self, exchange: str) -> str:
        cased = exchange.lower() if self.exchange_case == "lower" else exchange
        return self.exchanges.get(exchange, cased)


def _pattern(template: str) -> re.Pattern[str] | None:
    """Return what reads a symbol that a template spelled, None where it cannot be read back."""
    return reading(template) if sorted(placeholders(template)) == ["base", "quote"] else None


AS_OURS = Spelling()
"""The spelling of docs/interface.md."""
