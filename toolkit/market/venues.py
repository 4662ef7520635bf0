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

    ``aliases``: other names of it. ``coins``: its names of coins that others call otherwise.
    ``lots``: so many coins are one lot where that is before a coin's name, or after it if it is a
    number, and a price is that of the lot. ``lot_coins``: the coins that are listed so.
    ``interval_hours``: how often perpetuals settle where nothing declares it. ``stamped_late_s``: a
    settlement may be stamped so long after its hour. ``cap_per_hour``: the largest rate on either
    side of 0, for an hour. ``baseline_8h``: the rate without a premium, for 8 h. None is not known.
    ``example_fees_bps``: maker, taker and slippage of a fee table that shows the form. ``spot`` and
    ``futures``: how the local service reads them.
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
        """Return what a coin and lots of it may be listed as, with the coins in one, one first.

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
    """Return the interface's name of an exchange, for an alias of it; else the name itself.

    >>> canonical("GATEIO"), canonical("AURORA")
    ('GATE', 'AURORA')
    """
    return _aliases().get(exchange, exchange)


@cache
def _aliases() -> Mapping[str, str]:
    return {alias: name for name, one in venues().items() for alias in one.aliases}


def venue_of(exchange: str) -> Venue:
    """Return the facts of an exchange, by any name of it: those of all where it has no table.

    >>> venue_of("AURORA").interval_hours, venue_of("HYPERLIQUID").interval_hours
    (8.0, 1.0)
    """
    return venues().get(canonical(exchange), venues()["default"])


@cache
def stated(fact: str) -> Mapping[str, Any]:
    """Return a fact of the exchanges that have one of their own, under each of their names.

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
