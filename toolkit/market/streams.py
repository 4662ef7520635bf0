"""Streams: everything that can be asked for, each with one text key that reads back.

=========================================  ======================================================
key                                        stream
=========================================  ======================================================
``BTC_USDT:KRAKEN.spot``                   price of one symbol on one leg
``BTC_USDT:COINBASE.spot:KRAKEN.spot``     spread: buy on the first leg, sell on the second
``funding/BTC_USDT:X.futures:Y.futures``   funding: long the first leg, short the second
``events/spread``                          log of detected events: spread, splash or funding
``snapshot/symbols``                       snapshots: symbols, activity, spread or funding
=========================================  ======================================================

The prefixes ``snapshot-spread/``, ``snapshot-funding/`` and ``pair/``, and ``funding/`` with one
leg, are reserved: they are refused until they mean something.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from toolkit.errors import InputError, nearest
from toolkit.market.names import EventFamily, Family, Leg, Symbol

_Member = TypeVar("_Member", bound=StrEnum)
_RESERVED = ("snapshot-spread", "snapshot-funding", "pair")
_FUNDING = "funding/"
_TRAJECTORIES = (
    "SYMBOL:EXCHANGE.market, SYMBOL:BUY.market:SELL.market or funding/SYMBOL:BUY.market:SELL.market"
    ", e.g. BTC_USD:COINBASE.spot:KRAKEN.spot"
)
_STREAMS = f"{_TRAJECTORIES}; events/FAMILY, e.g. events/spread; snapshot/KIND"
_FORMS = {
    Family.PRICE: "for a price one leg, SYMBOL:EXCHANGE.market",
    Family.SPREAD: "for a spread two legs, SYMBOL:BUY.market:SELL.market",
    Family.FUNDING: "for funding two legs, SYMBOL:BUY.market:SELL.market",
}
_READ_BY = {
    "price": "rail.prices",
    "spread": "rail.spread",
    "funding": "rail.funding",
    "events": "rail.events",
    "snapshot": "rail.snapshots",
}
"""By kind of stream: the method of a workspace that reads it."""


class Stream:
    """Anything that can be asked for: a `Trajectory`, an `EventLog` or a `SnapshotLog`.

    Two streams are equal where their keys are.

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
        toolkit.errors.InputError: stream: 'pair/...' is not allowed; allowed: ... not built yet
        """
        key = _text("stream", key)
        prefix, slash, rest = key.partition("/")
        if prefix in _RESERVED and slash:
            raise InputError("stream", key, f"a built kind of stream; {prefix}/ is not built yet")
        if prefix == "events" and slash:
            return EventLog.of(rest)
        if prefix == "snapshot" and slash:
            return SnapshotLog.named(rest)
        if not (rest if slash else prefix).count(":") or (slash and prefix != Family.FUNDING):
            logs = [*map(EventLog, EventFamily), *map(SnapshotLog, SnapshotKind)]
            near = nearest(key, [log.key for log in logs]) if slash else []
            raise InputError("stream", key, _STREAMS, advice=f"nearest: {near[0]}" if near else "")
        return Trajectory.parse(key)

    @property
    def kind(self) -> str:
        """What is asked for: price, spread, funding, events or snapshot."""
        raise NotImplementedError

    @property
    def key(self) -> str:
        """The text key, which `parse` reads back."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.key


@dataclass(frozen=True, order=True, slots=True)
class Trajectory(Stream):
    """One series: a family, a symbol and its one (price) or two (buy, then sell) legs.

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
        wanted = 1 if self.family is Family.PRICE else 2
        if len(self.legs) != wanted:
            form = "two legs, SYMBOL:BUY.market:SELL.market" if wanted == 2 else "one leg"
            raise InputError("legs", self.key, f"for {self.family} {form}")
        if wanted == 2 and self.legs[0] == self.legs[1]:
            raise InputError("legs", self.key, "two different legs")

    @classmethod
    def price(cls, symbol: str, exchange: str, market: str) -> Trajectory:
        """Give the price trajectory of one symbol on one leg.

        >>> Trajectory.price("BTC_USD", "KRAKEN", "spot").key
        'BTC_USD:KRAKEN.spot'
        """
        return cls(Family.PRICE, Symbol.parse(symbol), (Leg.parse(f"{exchange}.{market}"),))

    @classmethod
    def spread(cls, symbol: str, buy: str | Leg, sell: str | Leg) -> Trajectory:
        """Give the spread trajectory that buys on one leg and sells on the other.

        >>> Trajectory.spread("BTC_USD", "COINBASE.spot", "KRAKEN.spot").key
        'BTC_USD:COINBASE.spot:KRAKEN.spot'
        """
        legs = tuple(leg if isinstance(leg, Leg) else Leg.parse(leg) for leg in (buy, sell))
        return cls(Family.SPREAD, Symbol.parse(symbol), legs)

    @classmethod
    def parse(cls, key: str | Stream, family: Family | None = None) -> Trajectory:
        """Read a trajectory's key: one leg is a price, two legs (buy, sell) are a spread.

        A key of funding begins with ``funding/``. Where ``family`` is funding the prefix may be
        left out. A key of another family than the one asked for is an `InputError`. A trajectory
        is read as its key.

        >>> Trajectory.parse("BTC_USDT:X.futures:Y.futures", Family.FUNDING).key
        'funding/BTC_USDT:X.futures:Y.futures'
        >>> Trajectory.parse("BTC_USD")
        Traceback (most recent call last):
        toolkit.errors.InputError: trajectory: 'BTC_USD' is not allowed; allowed: SYMBOL:...
        """
        key = _text("trajectory", key)
        of_funding = key.startswith(_FUNDING)
        parts = key.removeprefix(_FUNDING).split(":")
        if (other := key.partition("/")[0]) in ("events", "snapshot"):
            raise InputError("trajectory", key, _TRAJECTORIES, advice=_of_another(other))
        if len(parts) not in (2, 3) or not all(parts) or "/" in "".join(parts):
            raise InputError("trajectory", key, _TRAJECTORIES)
        if of_funding and len(parts) == 2:
            raise InputError("trajectory", key, "two legs; funding of one leg is not built yet")
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

    @property
    def legs_key(self) -> str:
        """The symbol and the legs, without the prefix of the family.

        >>> Trajectory.parse("funding/BTC_USDT:X.futures:Y.futures").legs_key
        'BTC_USDT:X.futures:Y.futures'
        """
        return ":".join([str(self.symbol), *map(str, self.legs)])

    @property
    def buy(self) -> Leg:
        """The first leg: the one bought (a price trajectory's only leg)."""
        return self.legs[0]

    @property
    def sell(self) -> Leg:
        """The last leg: the one sold (a price trajectory's only leg)."""
        return self.legs[-1]

    @property
    def spread_type(self) -> str:
        """The markets, buy first, as on the wire: ``spot/futures``.

        >>> Trajectory.parse("BTC_USDT:BINANCE.spot:BYBIT.futures").spread_type
        'spot/futures'
        """
        return "/".join(leg.market.value for leg in self.legs)


@dataclass(frozen=True, order=True, slots=True)
class EventLog(Stream):
    """The log of one family of detected events.

    >>> EventLog(EventFamily.SPREAD).key
    'events/spread'
    """

    family: EventFamily

    @classmethod
    def of(cls, family: EventLog | EventFamily | str) -> EventLog:
        """Return the log of a family given by name or by key. Another is an `InputError`.

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
    """What the service can be asked for as it is at one moment."""

    SYMBOLS = "symbols"
    ACTIVITY = "activity"
    SPREAD = "spread"
    FUNDING = "funding"


@dataclass(frozen=True, order=True, slots=True)
class SnapshotLog(Stream):
    """The snapshots of one kind, one answer per moment asked.

    >>> SnapshotLog(SnapshotKind.ACTIVITY).key
    'snapshot/activity'
    """

    of: SnapshotKind

    @classmethod
    def named(cls, kind: SnapshotLog | SnapshotKind | str) -> SnapshotLog:
        """Return the snapshots of a kind given by name or by key. Another is an `InputError`.

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
