"""Streams: what can be loaded, each with one text key that reads back.

=========================================  ======================================================
key                                        stream
=========================================  ======================================================
``BTC_USDT:KRAKEN.spot``                   price of one symbol on one leg
``BTC_USDT:COINBASE.spot:KRAKEN.spot``     spread: buy on the first leg, sell on the second
``funding/BTC_USDT:X.futures:Y.futures``   funding: long the first leg, short the second
``funding/BTC_USDT:X.futures``             funding of one leg, which is short: own rows only
``events/spread``                          log of detected events: spread, splash or funding
``snapshot/symbols``                       snapshots: symbols, activity, spread or funding
``snapshot-spread/BTC_USDT:X.spot:Y.dex``  one spread, from the snapshots of all spreads
``snapshot-funding/BTC_USDT:X.futures``    one leg's rate, from the snapshots of all rates
=========================================  ======================================================

``pair/`` names a `Pair` of any two prices, which is not a stream of a service.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Self, TypeVar

from toolkit.errors import InputError, nearest
from toolkit.market.names import EventFamily, Family, Leg, Symbol
from toolkit.market.venues import venue_of

_Member = TypeVar("_Member", bound=StrEnum)
_FUNDING = "funding/"
_TRAJECTORIES = (
    "SYMBOL:EXCHANGE.market, SYMBOL:BUY.market:SELL.market or funding/SYMBOL:BUY.market:SELL.market"
    ", e.g. BTC_USD:COINBASE.spot:KRAKEN.spot"
)
_STREAMS = (
    f"{_TRAJECTORIES}; events/FAMILY, e.g. events/spread; snapshot/KIND; "
    "snapshot-spread/SYMBOL:BUY.market:SELL.market; snapshot-funding/SYMBOL:EXCHANGE.market"
)
_FORMS = {
    Family.PRICE: "for a price one leg, SYMBOL:EXCHANGE.market",
    Family.SPREAD: "for a spread two legs, SYMBOL:BUY.market:SELL.market",
    Family.FUNDING: "for funding two legs, SYMBOL:BUY.market:SELL.market, "
    "or of own rows one, funding/SYMBOL:EXCHANGE.market",
}
_PAIR = "pair/SYMBOL:EXCHANGE.market/SYMBOL:EXCHANGE.market, and the FX leg after a third /"
_READ_BY = {
    "price": "rail.prices",
    "spread": "rail.spread",
    "funding": "rail.funding",
    "events": "rail.events",
    "snapshot": "rail.snapshots",
    "snapshot-spread": "rail.spread",
    "snapshot-funding": "rail.funding",
}
"""By kind of stream: the method of a workspace that reads it."""


class Stream:
    """Anything that can be loaded: a `Trajectory`, an `EventLog` or a `SnapshotLog`.

    A `SnapshotTrajectory` comes with its snapshots. Equal keys are equal streams.

    >>> Stream.parse("events/splash")
    EventLog(family=<EventFamily.SPLASH: 'splash'>)
    >>> Stream.parse("funding/BTC_USDT:BINANCE.futures:BYBIT.futures").kind
    'funding'
    """

    __slots__ = ()

    @staticmethod
    def parse(key: str | Stream) -> Stream:
        """Read any stream's key. Anything else is an `InputError`. A stream is read as its key.

        >>> Stream.parse("snapshot/spread") == SnapshotLog(SnapshotKind.SPREAD)
        True
        >>> Stream.parse("pair/BTC_USD:KRAKEN.spot/BTC_USDT:KRAKEN.spot")
        Traceback (most recent call last):
        toolkit.errors.InputError: stream: 'pair/...' is not allowed; allowed: what can be asked
        for; its prices are streams: rail.pair(buy, sell) and `rail stats spread` join them
        """
        return _stream(_text("stream", key))

    @property
    def kind(self) -> str:
        """Price, spread, funding, events, snapshot, snapshot-spread or snapshot-funding."""
        raise NotImplementedError

    @property
    def key(self) -> str:
        """The text key, which `parse` reads back."""
        raise NotImplementedError

    def matches(self, patterns: Iterable[str], *, either_way: bool = False) -> bool:
        """Check its key against keys and patterns (``*`` for any text).

        With ``either_way`` the key with swapped legs may match too.

        >>> pair = Stream.parse("BTC_USD:A.spot:B.spot")
        >>> pair.matches(["BTC_USD:B.*"]), pair.matches(["BTC_USD:B.*"], either_way=True)
        (False, True)
        """
        keys = {self.key, self.swapped.key} if either_way else {self.key}
        return any(fnmatchcase(key, pattern) for pattern in patterns for key in keys)

    @property
    def swapped(self) -> Self:
        """The same with two legs swapped, else itself."""
        return self

    def __str__(self) -> str:
        return self.key


class _OfLegs(Stream):
    """A stream of one symbol on one leg, or on two, the first bought."""

    __slots__ = ()
    symbol: Symbol
    legs: tuple[Leg, ...]

    def _check_legs(self, wanted: int, kind: str) -> None:
        if len(self.legs) != wanted:
            form = "two legs, SYMBOL:BUY.market:SELL.market" if wanted == 2 else "one leg"
            raise InputError("legs", self.key, f"for {kind} {form}")
        if wanted == 2 and self.legs[0] == self.legs[1]:
            raise InputError("legs", self.key, "two different legs")

    @property
    def swapped(self) -> Self:
        """The same with its legs swapped."""
        mine: Any = self
        other: Self = replace(mine, legs=self.legs[::-1])
        return other

    @property
    def legs_key(self) -> str:
        """The symbol and the legs, without the prefix.

        >>> Trajectory.parse("funding/BTC_USDT:X.futures:Y.futures").legs_key
        'BTC_USDT:X.futures:Y.futures'
        """
        return ":".join([str(self.symbol), *map(str, self.legs)])

    @property
    def buy(self) -> Leg:
        """The first leg: the one bought (of a price or a rate the only leg)."""
        return self.legs[0]

    @property
    def sell(self) -> Leg:
        """The last leg: the one sold (of a price or a rate the only leg)."""
        return self.legs[-1]

    @property
    def sides(self) -> dict[str, Leg]:
        """The legs by side: two are buy and sell, one alone is sell.

        >>> list(Trajectory.parse("funding/A_B:X.futures").sides)
        ['sell']
        """
        return dict(zip(("buy", "sell")[-len(self.legs) :], self.legs, strict=True))

    @property
    def spread_type(self) -> str:
        """The markets, buy first, as on the wire: ``spot/futures``.

        >>> Trajectory.parse("BTC_USDT:BINANCE.spot:BYBIT.futures").spread_type
        'spot/futures'
        """
        return "/".join(leg.market.value for leg in self.legs)


@dataclass(frozen=True, order=True, slots=True)
class Trajectory(_OfLegs):
    """One series: a family, a symbol and its one (price) or two (buy, then sell) legs.

    Funding of one leg, for own rows only, is that of a position short that leg, hedged elsewhere.

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
        if self.family is not Family.FUNDING or len(self.legs) != 1:
            self._check_legs(1 if self.family is Family.PRICE else 2, self.family)

    @classmethod
    def price(cls, symbol: str, exchange: str, market: str) -> Trajectory:
        """Return the price trajectory of one symbol on one leg.

        >>> Trajectory.price("BTC_USD", "KRAKEN", "spot").key
        'BTC_USD:KRAKEN.spot'
        """
        return cls(Family.PRICE, Symbol.parse(symbol), (Leg.parse(f"{exchange}.{market}"),))

    @classmethod
    def spread(cls, symbol: str, buy: str | Leg, sell: str | Leg) -> Trajectory:
        """Return the spread trajectory that buys on one leg and sells on the other.

        >>> Trajectory.spread("BTC_USD", "COINBASE.spot", "KRAKEN.spot").key
        'BTC_USD:COINBASE.spot:KRAKEN.spot'
        """
        legs = tuple(leg if isinstance(leg, Leg) else Leg.parse(leg) for leg in (buy, sell))
        return cls(Family.SPREAD, Symbol.parse(symbol), legs)

    @classmethod
    def parse(cls, key: str | Stream, family: Family | None = None) -> Trajectory:
        """Read a trajectory's key: one leg is a price, two legs (buy, sell) are a spread.

        ``funding/`` before a funding key is optional with that ``family``. A key of another family
        is an `InputError`.

        >>> Trajectory.parse("BTC_USDT:X.futures:Y.futures", Family.FUNDING).key
        'funding/BTC_USDT:X.futures:Y.futures'
        >>> Trajectory.parse("BTC_USD")
        Traceback (most recent call last):
        toolkit.errors.InputError: trajectory: 'BTC_USD' is not allowed; allowed: SYMBOL:...
        """
        key = _text("trajectory", key)
        of_funding = key.startswith(_FUNDING)
        parts = key.removeprefix(_FUNDING).split(":")
        if (other := key.partition("/")[0]) in ("events", "snapshot", *_SNAPSHOT_LEGS):
            raise InputError("trajectory", key, _TRAJECTORIES, advice=_of_another(other))
        if len(parts) not in (2, 3) or not all(parts) or "/" in "".join(parts):
            raise InputError("trajectory", key, _TRAJECTORIES)
        named = Family.PRICE if len(parts) == 2 else Family.SPREAD
        named = Family.FUNDING if of_funding else named
        if family not in (None, named) and (family, named) != (Family.FUNDING, Family.SPREAD):
            raise InputError("trajectory", key, _FORMS[family], advice=_of_another(named))
        symbol = Symbol.parse(parts[0])
        return cls(family or named, symbol, tuple(Leg.parse(part) for part in parts[1:]))

    @property
    def kind(self) -> str:
        """The family: price, spread or funding."""
        return self.family.value

    @property
    def key(self) -> str:
        """The text key, which `parse` reads back."""
        return (_FUNDING if self.family is Family.FUNDING else "") + self.legs_key


@dataclass(frozen=True, order=True, slots=True)
class EventLog(Stream):
    """The log of one family of detected events.

    >>> EventLog(EventFamily.SPREAD).key
    'events/spread'
    """

    family: EventFamily

    @classmethod
    def of(cls, family: EventLog | EventFamily | str) -> EventLog:
        """Return the log of a family, by name or key. Another is an `InputError`.

        >>> EventLog.of("pump")
        Traceback (most recent call last):
        toolkit.errors.InputError: event family: 'pump' is not allowed; allowed: spread, ...
        """
        return cls(_member("event family", family, EventFamily, "events/"))

    @property
    def kind(self) -> str:
        """Always ``events``."""
        return "events"

    @property
    def key(self) -> str:
        """The text key, which `Stream.parse` reads back."""
        return f"events/{self.family}"


class SnapshotKind(StrEnum):
    """What the service shows as of one moment."""

    SYMBOLS = "symbols"
    ACTIVITY = "activity"
    SPREAD = "spread"
    FUNDING = "funding"


@dataclass(frozen=True, order=True, slots=True)
class SnapshotLog(Stream):
    """The snapshots of one kind, one answer per request.

    >>> SnapshotLog(SnapshotKind.ACTIVITY).key
    'snapshot/activity'
    """

    of: SnapshotKind

    @classmethod
    def named(cls, kind: SnapshotLog | SnapshotKind | str) -> SnapshotLog:
        """Return the snapshots of a kind, by name or key. Another is an `InputError`.

        >>> SnapshotLog.named("snapshot/symbols") == SnapshotLog.named("symbols")
        True
        """
        return cls(_member("snapshot", kind, SnapshotKind, "snapshot/"))

    @property
    def kind(self) -> str:
        """Always ``snapshot``."""
        return "snapshot"

    @property
    def key(self) -> str:
        """The text key, which `Stream.parse` reads back."""
        return f"snapshot/{self.of}"


_SNAPSHOT_LEGS = {"snapshot-spread": 2, "snapshot-funding": 1}
"""The kinds of series kept from snapshots, each with its number of legs."""


@dataclass(frozen=True, order=True, slots=True)
class SnapshotTrajectory(_OfLegs):
    """One series from snapshots: a spread, or the funding rate of one leg.

    It has a row per snapshot with it, its legs in the snapshot's order.

    >>> kept = SnapshotTrajectory.parse("snapshot-funding/BTC_USDT:BYBIT.futures")
    >>> kept.log.key, kept.legs_key
    ('snapshot/funding', 'BTC_USDT:BYBIT.futures')
    """

    of: SnapshotKind
    symbol: Symbol
    legs: tuple[Leg, ...]

    def __post_init__(self) -> None:
        wanted = _SNAPSHOT_LEGS.get(self.kind)
        if wanted is None:
            raise InputError("snapshot", self.of, "spread or funding: others are not series")
        self._check_legs(wanted, self.kind)

    @classmethod
    def parse(cls, key: str | Stream) -> SnapshotTrajectory:
        """Read the key of a series from snapshots. Anything else is an `InputError`.

        >>> SnapshotTrajectory.parse("snapshot-spread/BTC_USD:X.spot:X.spot")
        Traceback (most recent call last):
        toolkit.errors.InputError: legs: ... is not allowed; allowed: two different legs
        """
        key = _text("stream", key)
        kind, _, rest = key.partition("/")
        parts = rest.split(":")
        if kind not in _SNAPSHOT_LEGS or len(parts) < 2 or not all(parts) or "/" in rest:
            raise InputError("stream", key, _STREAMS)
        legs = tuple(map(Leg.parse, parts[1:]))
        return cls(SnapshotKind(kind.removeprefix("snapshot-")), Symbol.parse(parts[0]), legs)

    @property
    def kind(self) -> str:
        """``snapshot-spread`` or ``snapshot-funding``."""
        return f"snapshot-{self.of}"

    @property
    def key(self) -> str:
        """The text key, which `Stream.parse` reads back."""
        return f"{self.kind}/{self.legs_key}"

    @property
    def family(self) -> Family:
        """Spread or funding: what a row is."""
        return Family(self.of.value)

    @property
    def log(self) -> SnapshotLog:
        """The snapshots that the series is from."""
        return SnapshotLog(self.of)


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
            raise InputError("pair", key, _PAIR)
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


def swapped(key: str) -> str:
    """Return the key with the pair's legs swapped; of one leg, the key itself.

    >>> swapped("funding/A_B:X.futures:Y.futures")
    'funding/A_B:Y.futures:X.futures'
    """
    symbol, *legs = key.split(":")
    return ":".join((symbol, *reversed(legs)))


def _member(parameter: str, given: object, members: type[_Member], prefix: str) -> _Member:
    text = str(given).removeprefix(prefix) if isinstance(given, str | Stream) else given
    if text not in list(members):
        raise InputError(parameter, text, members)
    return members(str(text))


def _text(parameter: str, given: object) -> str:
    if not isinstance(given, str | Stream):
        one = "one key, a text or its object; of a list, one at a time"
        raise InputError(parameter, given, one)
    return str(given)


def _of_another(kind: str) -> str:
    return f"this is a key of {kind}: {_READ_BY[kind]}() reads it"


@lru_cache(16_384)  # a page reads the keys of a thousand streams several times
def _stream(key: str) -> Stream:
    prefix, slash, rest = key.partition("/")
    if prefix == "pair" and slash:
        joins = "rail.pair(buy, sell) and `rail stats spread` join them"
        advice = f"its prices are streams: {joins}"
        raise InputError("stream", key, "what can be asked for", advice=advice)
    if prefix == "events" and slash:
        return EventLog.of(rest)
    if prefix == "snapshot" and slash:
        return SnapshotLog.named(rest)
    if prefix in _SNAPSHOT_LEGS and slash:
        return SnapshotTrajectory.parse(key)
    if not (rest if slash else prefix).count(":") or (slash and prefix != Family.FUNDING):
        logs = [*map(EventLog, EventFamily), *map(SnapshotLog, SnapshotKind)]
        near = nearest(key, [log.key for log in logs]) if slash else []
        raise InputError("stream", key, _STREAMS, advice=f"nearest: {near[0]}" if near else "")
    return Trajectory.parse(key)
