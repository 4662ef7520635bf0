"""A pair of any two price streams, and the conversion of one price into the other's terms."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.errors import InputError
from toolkit.market.names import Family, Leg, Symbol
from toolkit.market.streams import Stream, Trajectory
from toolkit.market.venues import venue_of

_FORM = "pair/SYMBOL:EXCHANGE.market/SYMBOL:EXCHANGE.market, and the FX leg after a third /"


@dataclass(frozen=True, slots=True)
class Pair(Stream):
    """Two price streams, buy and sell, and the FX price that converts one quote to the other.

    >>> two = Pair.parse("pair/BTC_USD:COINBASE.spot/BTC_USDT:KRAKEN.spot/USDT_USD:KRAKEN.spot")
    >>> str(two.sell), two.fx_divides
    ('BTC_USDT:KRAKEN.spot', True)
    >>> Pair.of("BTC_USD:COINBASE.spot", "BTC_USDT:KRAKEN.spot")
    Traceback (most recent call last):
    toolkit.errors.InputError: fx: nothing is given; allowed: a price of USDT in USD or of ...
    """

    buy: Trajectory
    sell: Trajectory
    fx: Trajectory | None = None

    def __post_init__(self) -> None:
        if self.buy == self.sell:
            raise InputError("legs", self.key, "two different price streams")
        quotes = {self.buy.symbol.quote, self.sell.symbol.quote}
        if len(quotes) == 1:
            if self.fx is not None:
                quote = self.buy.symbol.quote
                raise InputError("fx", self.fx.key, f"none: both legs are quoted in {quote}")
            return
        fx = None if self.fx is None else self.fx.symbol
        if fx is None or {fx.base, fx.quote} != quotes:
            one, other = sorted(quotes)
            allowed = f"a price of {other} in {one} or of {one} in {other}, for the quotes differ"
            example = f"e.g. {other}_{one}:{self.sell.buy}, in a key after a third /"
            raise InputError("fx", self.fx and self.fx.key, allowed, advice=example)

    @classmethod
    def of(
        cls, buy: Trajectory | str, sell: Trajectory | str, fx: Trajectory | str | None = None
    ) -> Pair:
        """Read the keys of the legs. Any but a price's is an `InputError`."""
        first, second = (Trajectory.parse(each, Family.PRICE) for each in (buy, sell))
        return cls(first, second, None if fx is None else Trajectory.parse(fx, Family.PRICE))

    @classmethod
    def parse(cls, key: str | Stream, fx: Trajectory | str | None = None) -> Pair:
        """Read a pair's key. Anything else is an `InputError`.

        ``fx`` is the FX leg if the quotes differ and the key has none.
        """
        prefix, *legs = str(key).split("/")
        if prefix != "pair" or len(legs) not in (2, 3):
            raise InputError("pair", key, _FORM)
        if fx is not None and len(legs) == 2:
            quotes = {Trajectory.parse(leg, Family.PRICE).symbol.quote for leg in legs}
            legs += [str(fx)] * (len(quotes) - 1)
        return cls.of(*legs)

    @property
    def prices(self) -> tuple[Trajectory, ...]:
        """The price streams: buy, sell, and the FX leg if there is one."""
        return tuple(leg for leg in (self.buy, self.sell, self.fx) if leg is not None)

    @property
    def kind(self) -> str:
        """Always ``pair``."""
        return "pair"

    @property
    def family(self) -> Family:
        """Always a spread."""
        return Family.SPREAD

    @property
    def symbol(self) -> Symbol:
        """That of the leg sold, in whose quote both prices are."""
        return self.sell.symbol

    @property
    def legs(self) -> tuple[Leg, Leg]:
        """The leg bought and the leg sold."""
        return self.buy.buy, self.sell.buy

    @property
    def legs_key(self) -> str:
        """The legs, without the prefix and the FX leg."""
        return f"{self.buy} / {self.sell}"

    @property
    def key(self) -> str:
        """The text key, which `parse` reads back."""
        return "/".join(["pair", *(leg.key for leg in self.prices)])

    @property
    def fx_divides(self) -> bool:
        """Whether the buy price is divided by the FX price, rather than multiplied."""
        return self.fx is not None and self.fx.symbol.quote == self.buy.symbol.quote

    def coins(self, multiplier: float | None = None) -> tuple[float, float]:
        """Return how many coins one unit of each leg is. Prices are divided by them.

        Without ``multiplier`` `toolkit.market.venues` reads them from names. Raises `InputError` if
        these give two different coins.

        >>> Pair.of("PEPE_USDT:X.spot", "1000PEPE_USDT:Y.futures").coins()
        (1.0, 1000.0)
        """
        if multiplier is not None:
            return 1.0, multiplier
        venues = [venue_of(leg.exchange) for leg in self.legs]
        named = [leg.symbol.base for leg in (self.buy, self.sell)]
        bases = [each.coins.get(base, base) for each, base in zip(venues, named, strict=True)]
        if bases[0] == bases[1]:
            return 1.0, 1.0
        (buy_coin, buy), (sell_coin, sell) = (
            each.lot(base) for each, base in zip(venues, named, strict=True)
        )
        if buy_coin == bases[1]:
            return buy, 1.0
        if sell_coin == bases[0]:
            return 1.0, sell
        if buy_coin == sell_coin:
            return buy, sell
        allowed = f"a number: how many {bases[0]} one {bases[1]} is, 1 where they are the same coin"
        raise InputError("multiplier", None, allowed)
