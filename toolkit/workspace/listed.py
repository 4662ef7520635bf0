"""Streams named by keys, patterns of keys, or the watchlist."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence

from toolkit.errors import EmptyWindowError, InputError
from toolkit.market import (
    EventFamily,
    EventLog,
    Family,
    Leg,
    Market,
    Pair,
    SnapshotKind,
    SnapshotLog,
    Stream,
    Symbol,
    Trajectory,
)
from toolkit.store import Store
from toolkit.wire.listing import (
    Listing,
    funding_trajectories,
    price_trajectories,
    spread_trajectories,
)
from toolkit.workspace.snapshot_tables import funding_rates, open_spreads, widest_differentials


def watchlist(listing: Listing, *, symbols: int = 5) -> tuple[Stream, ...]:
    """Return the streams of the symbols with the most legs, and of the whole market.

    Per symbol: all prices, spreads over the first spot leg (else the first leg), funding over the
    first futures leg; then event logs and snapshots. Ties go by name. Raises `EmptyWindowError` if
    nothing is listed.

    >>> legs = tuple(map(Leg.parse, ("AURORA.futures", "BOREAS.futures", "BOREAS.spot")))
    >>> found = watchlist(Listing({Symbol("BTC", "USDT"): legs}, False))
    >>> [stream.key for stream in found if stream.kind in ("spread", "funding")]
    ['BTC_USDT:BOREAS.spot:AURORA.futures', 'BTC_USDT:BOREAS.spot:BOREAS.futures',
    'funding/BTC_USDT:AURORA.futures:BOREAS.futures']
    """
    if symbols < 1:
        raise InputError("symbols", symbols, "1 or more")
    most = sorted(
        filter(listing.legs.get, listing.legs),
        key=lambda symbol: (-len(listing.legs[symbol]), str(symbol)),
    )
    if not most:
        raise EmptyWindowError("the service lists no leg of a symbol, so there is nothing to watch")
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


def front_page(store: Store) -> tuple[Trajectory, ...]:
    """Return the trajectories on the page Overview, by a store's newest snapshots.

    Open spreads come first, widest first, then each symbol's widest funding pair. Raises
    `EmptyWindowError` without a snapshot of spreads or funding.
    """
    spreads, rates = (_newest(store, kind) for kind in (SnapshotKind.SPREAD, SnapshotKind.FUNDING))
    opened = open_spreads(spreads).drop_nulls("opened_at")["trajectory"]
    apart = widest_differentials(funding_rates(rates))["trajectory"]
    return tuple(Trajectory.parse(key) for key in (*opened, *apart))


def _newest(store: Store, kind: SnapshotKind) -> str:
    documents = store.snapshots(kind, newest=True)["document"].to_list()
    if not documents:
        raise EmptyWindowError(f"{store.path} holds no snapshot/{kind}")
    return str(documents[0])


WATCHLIST = "watchlist"
"""The name of the streams of `watchlist` among keys."""
_NEAREST = f"nearest: {WATCHLIST}"


def chosen_streams(
    asked: Stream | str | Iterable[Stream | str], listing: Callable[[], Listing]
) -> list[Stream]:
    """Return the streams named, each once, in the order given.

    A pattern with ``*`` names all matching keys, pairs in alphabetical orientation unless only the
    other matches. ``watchlist`` names those of `watchlist`, a pair's key its prices. ``listing`` is
    called at most once. Raises `InputError` for an invalid key, no key, and a pattern without a
    match.

    >>> legs = (Leg.parse("X.futures"), Leg.parse("Y.futures"))
    >>> listed = lambda: Listing({Symbol("BTC", "USD"): legs}, False)
    >>> [stream.key for stream in chosen_streams("BTC_USD:Y*", listed)]
    ['BTC_USD:Y.futures', 'BTC_USD:Y.futures:X.futures']
    """
    read = read_keys(asked)
    if not read:
        raise InputError("streams", read, "one key or more, a pattern such as BTC_USDT:*")
    listed = listing() if any(map(_of_listed, read)) else Listing({}, False)
    found: dict[Stream, None] = {}
    for each in read:
        found |= dict.fromkeys(_meant(each, listed))
    return list(found)


def read_keys(asked: Stream | str | Iterable[Stream | str]) -> list[Stream | str]:
    """Parse keys, except patterns and ``watchlist``. A pair's key gives its prices.

    >>> [str(leg) for leg in read_keys("pair/BTC_USD:X.spot/BTC_USD:Y.spot")]
    ['BTC_USD:X.spot', 'BTC_USD:Y.spot']
    """
    several = [asked] if isinstance(asked, Stream | str) else asked
    if not isinstance(several, Iterable):
        raise InputError("streams", asked, "one key or more, a pattern such as BTC_USDT:*")
    several = list(several)
    for each in several:
        if isinstance(each, str) and each != WATCHLIST == each.strip().lower():
            raise InputError("streams", each, "a key, a pattern or watchlist", advice=_NEAREST)
    return [read for each in several for read in _read(each)]


def _read(asked: Stream | str) -> Sequence[Stream | str]:
    if isinstance(asked, Stream | str) and str(asked).startswith("pair/"):
        return Pair.parse(asked).prices
    return [asked if _of_many(asked) else Stream.parse(asked)]


def _of_many(asked: Stream | str) -> bool:
    return isinstance(asked, str) and (asked == WATCHLIST or "*" in asked)


def _of_listed(asked: Stream | str) -> bool:
    return isinstance(asked, str) and not asked.startswith(("events/", "snapshot/"))


def _meant(asked: Stream | str, listed: Listing) -> Iterable[Stream]:
    if isinstance(asked, Stream):
        return [asked]
    if asked == WATCHLIST:
        return watchlist(listed)
    found = list(_matching(asked, listed))
    if not found:
        symbols = [str(symbol) for symbol in listed.legs]
        near = difflib.get_close_matches(asked.split(":")[0].split("/")[-1], symbols, n=3)
        raise InputError(
            "streams",
            asked,
            "a pattern that matches something listed",
            advice=f"nearest symbols: {', '.join(near)}" if near else "",
        )
    return found


def _matching(pattern: str, listed: Listing) -> Iterator[Stream]:
    paired = [*spread_trajectories(listed), *funding_trajectories(listed)]
    for trajectory in [*price_trajectories(listed), *paired]:
        either = (trajectory, trajectory.swapped)
        yield from [each for each in either if each.matches([pattern])][:1]
    logs = (*map(EventLog, EventFamily), *map(SnapshotLog, SnapshotKind))
    yield from (log for log in logs if log.matches([pattern]))
