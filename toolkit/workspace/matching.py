"""Which streams the rules of a watchlist name now, and by which rule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping

from toolkit.client import Client
from toolkit.errors import InputError, StoreError
from toolkit.intervals import Interval
from toolkit.market import SnapshotKind, SnapshotLog, Stream, Trajectory, parse_length
from toolkit.store import Store
from toolkit.store.snapshots import read_snapshots
from toolkit.store.sql import select
from toolkit.wire.listing import (
    Listing,
    funding_trajectories,
    price_trajectories,
    spread_trajectories,
)
from toolkit.workspace.listed import chosen_streams
from toolkit.workspace.rules import Watchlist
from toolkit.workspace.snapshot_tables import (
    funding_rates,
    open_spreads,
    widest_differentials,
)

_SAMPLE_S = 600
_EVENTS = (
    "SELECT DISTINCT symbol, buy_exchange, buy_market, sell_exchange, sell_market "
    "FROM event_documents WHERE family = 'spread' AND ts >= $since AND ts < $now "
    "AND greatest(magnitude_pct, peak_pct) >= $least_pct"
)
_LEGS = ("symbol", "buy_exchange", "buy_market", "sell_exchange", "sell_market")


class Rules:
    """A watchlist over a service and a store.

    A call reads them. ``documents`` are the newest snapshots: a rule of open spreads or of rates
    names nothing without its own. Raises `InputError` for a symbol, an exchange or a pattern of
    which nothing is listed.
    """

    def __init__(self, watchlist: Watchlist, client: Client, store: Store) -> None:
        self.watchlist = watchlist
        self._client = client
        self._store = store

    @property
    def snapshots(self) -> tuple[SnapshotLog, ...]:
        """The snapshots that have to be asked for before the rules can be read."""
        wanted = self.watchlist
        kinds = set(wanted.snapshots)
        if wanted.open_now or wanted.top_open:
            kinds.add(SnapshotKind.SPREAD)
        if wanted.widest_funding:
            kinds.add(SnapshotKind.FUNDING)
        return tuple(SnapshotLog(kind) for kind in SnapshotKind if kind in kinds)

    def __call__(self, documents: Mapping[SnapshotKind, str]) -> dict[Stream, str]:
        """Return the streams that are meant now, each with the rules that name it."""
        found: dict[Stream, list[str]] = {}
        for stream, rule in self._named(documents):
            found.setdefault(stream, []).append(rule)
        return {stream: ", ".join(dict.fromkeys(rules)) for stream, rules in found.items()}

    def lately(self, now: int) -> dict[Stream, tuple[str, int]]:
        """Return what snapshots of the store named in the last ``keep``: the rule, and when (s).

        ``now`` is the service's clock. So a follow that comes back still follows them.
        """
        wanted, found = self.watchlist, dict[Stream, tuple[str, int]]()
        if not self._store.path.exists() or not (
            wanted.open_now or wanted.top_open or wanted.widest_funding
        ):
            return found
        window = Interval(now - wanted.keep_s, now)
        for kind in (SnapshotKind.SPREAD, SnapshotKind.FUNDING):
            try:
                with self._store.reading() as connection:
                    kept = read_snapshots(connection, kind, window, every_s=_SAMPLE_S)
            except StoreError:  # none was made yet
                return found
            for served_at, document in kept.select("served_at", "document").reverse().iter_rows():
                named = self._of_dashboards({kind: document})
                found |= {stream: (rule, served_at) for stream, rule in named}
        return found

    def _named(self, documents: Mapping[SnapshotKind, str]) -> Iterator[tuple[Stream, str]]:
        wanted = self.watchlist
        listing = functools.cache(self._client.symbols)  # asked for once, and only where needed
        for asked in wanted.streams:
            yield from ((s, f"streams {asked}") for s in chosen_streams(asked, listing))
        yield from self._of_market(listing)
        yield from ((s, f"snapshots {s.of}") for s in self.snapshots if s.of in wanted.snapshots)
        yield from self._of_dashboards(documents)
        yield from self._of_events()

    def _of_market(self, listed: Callable[[], Listing]) -> Iterator[tuple[Stream, str]]:
        """Yield what is listed of the symbols, on the exchanges, of the families."""
        wanted = self.watchlist
        fields = ("symbols", "exchanges", "families")
        rule = " and ".join(name for name in fields if getattr(wanted, name))
        if not rule:
            return
        listing = listed()
        exchanges = {leg.exchange for legs in listing.legs.values() for leg in legs}
        _check_listed(f"{wanted.name} symbols", wanted.symbols, map(str, listing.legs))
        _check_listed(f"{wanted.name} exchanges", wanted.exchanges, sorted(exchanges))
        for of in (price_trajectories, spread_trajectories, funding_trajectories):
            for trajectory in of(listing):
                legs = {leg.exchange for leg in trajectory.legs}
                if (
                    (not wanted.symbols or str(trajectory.symbol) in wanted.symbols)
                    and (not wanted.exchanges or legs <= set(wanted.exchanges))
                    and (not wanted.families or trajectory.family in wanted.families)
                ):
                    yield trajectory, rule

    def _of_dashboards(self, documents: Mapping[SnapshotKind, str]) -> Iterator[tuple[Stream, str]]:
        """Yield the pairs that are open now, the widest of them, and rates furthest apart."""
        wanted = self.watchlist
        opened = open_spreads(documents.get(SnapshotKind.SPREAD, "{}")).drop_nulls("opened_at")
        keys = opened["trajectory"].to_list()
        rules = {"open_now": keys if wanted.open_now else []}
        rules[f"top_open {wanted.top_open}"] = keys[: wanted.top_open or 0]
        if wanted.widest_funding:
            rates = funding_rates(documents.get(SnapshotKind.FUNDING, "{}"))
            rules["widest_funding"] = widest_differentials(rates)["trajectory"].to_list()
        for rule, named in rules.items():
            yield from ((Trajectory.parse(key), rule) for key in named)

    def _of_events(self) -> Iterator[tuple[Stream, str]]:
        """Yield the log of spread events, and the pairs of those of the size asked for."""
        wanted = self.watchlist
        if wanted.events_above_pct is None:
            return
        rule = f"events_above_pct {wanted.events_above_pct:g} within {wanted.events_within}"
        yield Stream.parse("events/spread"), rule
        if not self._store.path.exists():
            return
        now = self._client.served_at()
        since = now - parse_length(wanted.events_within, parameter="events_within")
        asked = {"since": since, "now": now + 1, "least_pct": wanted.events_above_pct}
        with self._store.reading() as connection:
            found = select(connection, _EVENTS, asked).select(_LEGS).drop_nulls()
        for symbol, *legs in found.iter_rows():
            yield Trajectory.parse("{}:{}.{}:{}.{}".format(symbol, *legs)), rule


def _check_listed(parameter: str, asked: object, listed: Iterator[str] | list[str]) -> None:
    names = sorted(listed)
    for each in asked if isinstance(asked, tuple) else ():
        if each not in names:
            raise InputError(parameter, each, names)
