"""Lookup of a key among a store's streams: as it is, or with the legs swapped."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import pairwise

import polars as pl

from toolkit.errors import InputError, StoreError, UnknownTrajectoryError, nearest
from toolkit.intervals import Interval, clip, difference
from toolkit.market import (
    Family,
    SnapshotTrajectory,
    Stream,
    Trajectory,
    When,
    asked_window,
    swapped,
)
from toolkit.store.file.file import StoreFile, not_readable
from toolkit.store.ledger.contents import service_now
from toolkit.store.ledger.streams import numbers_of
from toolkit.store.writing.batch import Ledger


def held_trajectory(store: StoreFile, wanted: Trajectory) -> Trajectory:
    """Return a trajectory as the store knows it: itself, or the same pair the other way round.

    Raises `UnknownTrajectoryError` with the nearest ones where neither was ever asked for.
    """
    with store.reading() as connection:
        known = numbers_of(connection, {wanted, wanted.swapped})
    if not known:
        raise _not_held(store, wanted, store.catalogue())
    return wanted if wanted in known else wanted.swapped


def check_known(store: StoreFile, wanted: Trajectory | SnapshotTrajectory) -> None:
    """Raise `UnknownTrajectoryError` for a trajectory that the store was never asked for."""
    known = store.catalogue()
    if known.filter(kind=wanted.kind, stream=wanted.key).is_empty():
        raise _not_held(store, wanted, known)


def _not_held(
    store: StoreFile, wanted: Trajectory | SnapshotTrajectory, known: pl.DataFrame
) -> UnknownTrajectoryError | StoreError:
    """Return the error of a trajectory that cannot be read, or is not held."""
    for each in store.unreadable():
        if each.stream == wanted.key:
            return not_readable(store.path, each)
    every = known["stream"].to_list()
    same_legs = [key for key in every if key.rpartition("/")[2] == wanted.legs_key]
    of_kind = known.filter(kind=wanted.kind)["stream"].to_list()
    return UnknownTrajectoryError(
        wanted.key,
        [*same_legs, *nearest(wanted.key, of_kind, 3)][:3],
        where=f"held by {store.name}",
        advice=_joined_advice(store, wanted, every) or sync_advice(store, wanted.key),
    )


def _joined_advice(
    store: StoreFile, wanted: Trajectory | SnapshotTrajectory, all_keys: Collection[str]
) -> str:
    """Say how to join a pair from its legs, "" where one is not held."""
    if wanted.kind == Family.FUNDING and len(wanted.legs) == 2:
        legs = tuple(f"{Family.FUNDING}/{wanted.symbol}:{leg}" for leg in wanted.legs)
        return f"both its legs are: rail.pair{legs}" if set(legs) <= set(all_keys) else ""
    prices = [f"{wanted.symbol}:{leg}" for leg in wanted.legs] if wanted.kind == "spread" else [""]
    if not set(prices) <= set(all_keys):
        return ""
    joins = store.command("stats", "spread", f"pair/{'/'.join(prices)}")
    return f"both its prices are: `{joins}`, in Python rail.pair{tuple(prices)}"


def pair_advice(store: StoreFile, *words: str) -> str:
    """Say how ``rail`` with these words joins two prices of one symbol, "" without such."""
    prices = store.catalogue().filter(pl.col("rows") > 0, kind="price")["stream"].sort()
    for two in pairwise(prices):
        if two[0].partition(":")[0] == two[1].partition(":")[0]:
            joins = store.command(*words, f"pair/{'/'.join(two)}")
            return f"`{joins}` joins two of its prices"
    return ""


def sync_advice(store: StoreFile, *words: str, does: str = "loads it") -> str:
    """Say which `rail sync` brings what is not held, or why none does.

    >>> import tempfile
    >>> from toolkit.market import Source
    >>> from toolkit.store import Store, StoreWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/s.duckdb")
    ...     StoreWriter(store).bind(Source("own", "rows"))
    ...     sync_advice(store, "A_B:X.spot")
    "it takes no service's data: `rail import` adds rows of your own"
    """
    if store.published:
        return (
            "published data takes no rows: load it into the store that it is published from, and "
            "publish again"
        )
    if store.source.kind == "own":
        return "it takes no service's data: `rail import` adds rows of your own"
    return f"`{store.command('sync', *words)}` {does}"


def soonest_losses(ledger: Mapping[Stream, Ledger], within_s: int) -> dict[Stream, int]:
    """Return how soon (s, by stream) the archive drops what was asked for and not answered."""
    found: dict[Stream, int] = {}
    for stream, known in ledger.items():
        edge = known.edge
        oldest = edge.reachable_from if edge else None
        if edge is None or oldest is None:
            continue
        soon = clip(known.asked, (oldest, min(oldest + within_s, edge.served_at)))
        if parts := difference(soon, known.answered):
            found[stream] = max(0, parts[0].start - oldest)
    return found


def service_clock(store: StoreFile) -> int:
    """Return what the service's clock shows now (s), by its newest answer and the local clock."""
    with store.reading():
        return service_now(store.catalogue(), store.loads(), store.source, int(time.time()))


def chosen_window(
    store: StoreFile,
    start: When | None,
    end: When | None,
    everything: Callable[[], Interval],
    *,
    names: tuple[str, str] = ("start", "end"),
    lately_s: int | None = None,
) -> Interval:
    """Return the window asked for, as `toolkit.market.asked_window` reads it by a service's clock.

    Without a start and an end it is that of ``everything``, or the last ``lately_s`` of it.
    ``names`` are those of the parameters.
    """

    def default() -> Interval:
        return everything().last(lately_s if start is None and end is None else None)

    now = lambda: service_clock(store)  # noqa: E731 - asked for where it is needed
    return Interval.checked(*asked_window(start, end, now=now, default=default, names=names))


def asked_streams(streams: Iterable[Stream | str]) -> list[Stream]:
    """Return the streams of a list of keys or streams. Raise `InputError` for a text."""
    if isinstance(streams, str | Stream) or not isinstance(streams, Iterable):
        raise InputError("streams", streams, "a list of keys, e.g. ['events/spread']")
    return [Stream.parse(each) for each in streams]


def held_key(key: str, held: Collection[str]) -> str | None:
    """Return the key under which the store holds a pair, either way round, or None.

    >>> held_key("funding/A_B:Y.futures:X.futures", ["funding/A_B:X.futures:Y.futures"])
    'funding/A_B:X.futures:Y.futures'
    """
    return next((either for either in (key, swapped(key)) if either in held), None)
