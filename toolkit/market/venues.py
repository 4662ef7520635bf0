"""Facts of single exchanges: ``venues.toml``, one table per exchange."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from toolkit.fields import read_toml, typed

_FILE = Path(__file__).with_name("venues.toml")
_LEAST_LISTED = 1_000


class Venue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The facts of an exchange.

    ``aliases``: its other names. ``coins``: its own names of coins. ``lots``: this many coins are
    one lot if the key is before a coin's name, or after it if it is a number; a price is that of
    the lot. ``lot_coins``: the coins listed so. ``interval_hours``: between settlements of
    perpetuals, unless declared. ``stamped_late_s``: the longest delay of a settlement's stamp.
    ``cap_per_hour``: the largest hourly rate on either side of 0. ``baseline_8h``: the rate per 8 h
    without a premium. None: unknown. ``example_fees_bps``: maker, taker and slippage of an example
    fee table. ``spot``, ``futures``: how the local service reads them.
    """

    lots: dict[str, float]
    lot_coins: frozenset[str]
    interval_hours: float
    baseline_8h: float
    example_fees_bps: tuple[float, float, float]
    aliases: tuple[str, ...] = ()
    coins: dict[str, str] = {}
    stamped_late_s: int = 0
    cap_per_hour: float | None = None
    spot: dict[str, Any] | None = None
    futures: dict[str, Any] | None = None

    def lot(self, name: str) -> tuple[str, float]:
        """Return the coin in the name of a base, and how many of it one unit is.

        A lot that begins with a letter is one of ``lot_coins`` alone: kHYPE is another coin.

        >>> [venue_of("HYPERLIQUID").lot(name) for name in ("kPEPE", "kHYPE", "SHIB1000")]
        [('PEPE', 1000.0), ('kHYPE', 1.0), ('SHIB', 1000.0)]
        """
        found = _lots(tuple(self.lots)).fullmatch(name)
        coin, lot = name, None
        if found is not None and not (found["first"] and found["last"]):
            coin, lot = found["coin"], found["first"] or found["last"]
        if lot and not lot[0].isdigit() and coin not in self.lot_coins:
            coin, lot = name, None
        return self.coins.get(coin, coin), self.lots[lot] if lot else 1.0

    def listed_as(self, coin: str) -> Mapping[str, float]:
        """Return the names that a coin and lots of it may be listed under, with the coins in one.

        >>> list(venue_of("BYBIT").listed_as("PEPE"))[:3], venue_of("BYBIT").listed_as("BTC")
        (['PEPE', '1000PEPE', 'PEPE1000'], {'BTC': 1.0})
        """
        lots = self.lots.items() if coin in self.lot_coins else ()
        names = {name: n for lot, n in lots for name in (f"{lot}{coin}", f"{coin}{lot}")}
        return {coin: 1.0} | {name: n for name, n in names.items() if n >= _LEAST_LISTED}


@cache
def _lots(lots: tuple[str, ...]) -> re.Pattern[str]:
    longest = sorted(lots, key=len, reverse=True)
    first, last = "|".join(longest), "|".join(filter(str.isdigit, longest))
    return re.compile(f"(?P<first>{first})?(?P<coin>.+?)(?P<last>{last})?")


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return read_toml(_FILE, "venues", "one table per exchange")[1]


@cache
def venues() -> Mapping[str, Venue]:
    """Return the exchanges that have a table.

    >>> venues()["OKX"].aliases
    ('OKEX',)
    """
    check = typed(Venue, "the keys that market/venues.py names, each of its type")
    default = _tables()["default"]
    return {
        name: check(
            f"venues.{name}", default | row | {"lots": default["lots"] | row.get("lots", {})}
        )
        for name, row in _tables().items()
    }


def canonical(exchange: str) -> str:
    """Return the interface's name of an exchange's alias, else the name itself.

    >>> canonical("GATEIO"), canonical("AURORA")
    ('GATE', 'AURORA')
    """
    return _aliases().get(exchange, exchange)


@cache
def _aliases() -> Mapping[str, str]:
    return {alias: name for name, one in venues().items() for alias in one.aliases}


def venue_of(exchange: str) -> Venue:
    """Return the facts of an exchange, by any of its names, else the default ones.

    >>> venue_of("AURORA").interval_hours, venue_of("HYPERLIQUID").interval_hours
    (8.0, 1.0)
    """
    return venues().get(canonical(exchange), venues()["default"])


@cache
def stated(fact: str) -> Mapping[str, Any]:
    """Return a fact of the exchanges with their own, by each of their names.

    >>> stated("cap_per_hour")
    {'HYPERLIQUID': 0.04}
    """
    own = [(name, venues()[name]) for name, row in _tables().items() if fact in row]
    return {
        each: getattr(one, fact)
        for name, one in own
        if name != "default"
        for each in (name, *one.aliases)
    }
