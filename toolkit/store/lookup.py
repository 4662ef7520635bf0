"""Finding what a key asks for among what a store holds: as it is, or with the legs swapped."""

from __future__ import annotations

import difflib
import time
from collections.abc import Sequence

from toolkit.errors import UnknownTrajectoryError
from toolkit.market import Family, Trajectory
from toolkit.store.catalogue import clock_offset_s
from toolkit.store.store import Store


def held_trajectory(store: Store, wanted: Trajectory) -> Trajectory:
    """Return a trajectory as the store knows it: itself, or the same pair the other way round.

    Raises `UnknownTrajectoryError` with the nearest that are held, where neither was ever asked
    for.
    """
    known = store.catalogue()
    keys = known.filter(kind=wanted.kind)["stream"].to_list()
    paired = wanted.family is not Family.PRICE
    key = held_key(wanted.key, keys) if paired else next(filter(wanted.key.__eq__, keys), None)
    if key is not None:
        return Trajectory.parse(key)
    raise UnknownTrajectoryError(
        wanted.key,
        difflib.get_close_matches(wanted.key, keys, n=3, cutoff=0.5),
        where=f"held by {store.path}",
        advice=f"`{store.command('sync', wanted.key)}` loads it",
    )


def service_clock(store: Store) -> int:
    """Return what the service's clock shows now (s), by its newest answer and the local clock."""
    with store.reading():
        return int(time.time()) + clock_offset_s(store.catalogue(), store.loads())


def held_key(key: str, held: Sequence[str]) -> str | None:
    """Return the key under which the store holds a pair, either way round, or None.

    >>> held_key("funding/A_B:Y.futures:X.futures", ["funding/A_B:X.futures:Y.futures"])
    'funding/A_B:X.futures:Y.futures'
    """
    return next((either for either in (key, swapped(key)) if either in held), None)


def swapped(key: str) -> str:
    """Return the key of the same pair the other way round.

    >>> swapped("funding/A_B:X.futures:Y.futures")
    'funding/A_B:Y.futures:X.futures'
    """
    symbol, buy, sell = key.rsplit(":", 2)
    return f"{symbol}:{sell}:{buy}"
