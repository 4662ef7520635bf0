"""What to load when nobody has named anything: a few symbols, all that can be asked about them."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.client import Client
from toolkit.errors import EmptyWindowError, InputError
from toolkit.market import (
    EventFamily,
    EventLog,
    Family,
    Leg,
    Market,
    SnapshotKind,
    SnapshotLog,
    Stream,
    Symbol,
    Trajectory,
)
from toolkit.wire.listing import Listing
from toolkit.workspace.snapshot_tables import (
    funding_rates,
    open_spreads,
    widest_differentials,
)


def watchlist(listing: Listing, *, symbols: int = 5) -> tuple[Stream, ...]:
    """Return the streams of the symbols with the most legs, and those of the whole market.

    Of symbols with equally many legs the first by name are taken. Of each symbol: every leg's
    price, the spread of every leg over the first spot leg (the first of all where none is spot),
    the funding of every futures leg over the first. Of the market: the three event logs and the
    snapshots. Raises `EmptyWindowError` where nothing is listed.

    >>> legs = tuple(map(Leg.parse, ("AURORA.futures", "BOREAS.futures", "BOREAS.spot")))
    >>> found = watchlist(Listing({Symbol("BTC", "USDT"): legs}, False))
    >>> [stream.key for stream in found if stream.kind in ("spread", "funding")]
    ['BTC_USDT:BOREAS.spot:AURORA.futures', 'BTC_USDT:BOREAS.spot:BOREAS.futures',
     'funding/BTC_USDT:AURORA.futures:BOREAS.futures']
    """
    if symbols < 1:
        raise InputError("symbols", symbols, "1 or more")
    if not listing.legs:
        raise EmptyWindowError("the service lists no symbol, so there is nothing to watch")
    most = sorted(listing.legs, key=lambda symbol: (-len(listing.legs[symbol]), str(symbol)))
    return (
        *(t for s in most[:symbols] for t in _trajectories(s, listing.legs[s])),
        *map(EventLog, EventFamily),
        *map(SnapshotLog, SnapshotKind),
    )


def _trajectories(symbol: Symbol, listed: tuple[Leg, ...]) -> Iterator[Trajectory]:
    legs = sorted(listed)
    yield from (Trajectory(Family.PRICE, symbol, (leg,)) for leg in legs)
    first = next((leg for leg in legs if leg.market is Market.SPOT), legs[0])
    others = (leg for leg in legs if leg != first)
    yield from (Trajectory(Family.SPREAD, symbol, (first, leg)) for leg in others)
    futures = [leg for leg in legs if leg.market is Market.FUTURES]
    yield from (Trajectory(Family.FUNDING, symbol, (futures[0], leg)) for leg in futures[1:])


def front_page(client: Client) -> tuple[Trajectory, ...]:
    """Return the trajectories that the service's dashboards show now: what Overview would list.

    These are the open spreads, the widest first, and of each symbol the two legs whose funding
    rates are furthest apart. Items that are not understood are left out.
    """
    spreads, rates = (client.snapshot(kind).decode() for kind in ("spread", "funding"))
    opened = open_spreads(spreads).drop_nulls("opened_at")["key"]
    apart = widest_differentials(funding_rates(rates))["key"]
    return tuple(Trajectory.parse(key) for key in (*opened, *apart))
