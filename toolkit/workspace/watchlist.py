"""What to load by default: a few symbols, and everything that can be asked about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.errors import EmptyWindowError, InputError
from toolkit.market import EventFamily, Family, Leg, Market, Symbol, Trajectory
from toolkit.wire.listing import Listing, funding_trajectories

__all__ = ["Watchlist"]

_SYMBOLS = 5


@dataclass(frozen=True, slots=True)
class Watchlist:
    """Trajectories, event logs and snapshots that are loaded together."""

    trajectories: tuple[Trajectory, ...]
    events: tuple[EventFamily, ...] = tuple(EventFamily)
    snapshots: tuple[str, ...] = ("symbols", "activity", "spread", "funding")

    @classmethod
    def default(cls, listing: Listing, *, symbols: int = _SYMBOLS) -> Watchlist:
        """Choose the symbols with the most legs, by name where they have equally many.

        Of each: every leg's price, the spread of every leg over the first spot leg (the first of
        all where none is spot), the funding of every pair of futures legs. Of the market: the
        three event logs and the snapshots. `EmptyWindowError` where nothing is listed.

        Examples
        --------
        >>> legs = tuple(map(Leg.parse, ("AURORA.futures", "BOREAS.futures", "BOREAS.spot")))
        >>> found = Watchlist.default(Listing({Symbol("BTC", "USDT"): legs}, False))
        >>> [trajectory.key for trajectory in found.trajectories if len(trajectory.legs) == 2]
        ['BTC_USDT:BOREAS.spot:AURORA.futures', 'BTC_USDT:BOREAS.spot:BOREAS.futures',
         'funding/BTC_USDT:AURORA.futures:BOREAS.futures']
        """
        if symbols < 1:
            raise InputError("symbols", symbols, "1 or more")
        if not listing.legs:
            raise EmptyWindowError("the service lists no symbol, so there is nothing to watch")
        most = sorted(listing.legs, key=lambda symbol: (-len(listing.legs[symbol]), str(symbol)))
        return cls(tuple(t for s in most[:symbols] for t in _trajectories(s, listing.legs[s])))


def _trajectories(symbol: Symbol, listed: tuple[Leg, ...]) -> Iterator[Trajectory]:
    legs = sorted(listed)
    yield from (Trajectory(Family.PRICE, symbol, (leg,)) for leg in legs)
    first = next((leg for leg in legs if leg.market is Market.SPOT), legs[0])
    others = (leg for leg in legs if leg != first)
    yield from (Trajectory(Family.SPREAD, symbol, (first, leg)) for leg in others)
    yield from funding_trajectories(Listing({symbol: listed}, False))
