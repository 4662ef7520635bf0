"""Loading and following for a workspace: window, watchlist, progress, and own rows."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path

import polars as pl

from toolkit.cards import some
from toolkit.client import Client
from toolkit.errors import EmptyWindowError, InputError, StoreError
from toolkit.intervals import Interval
from toolkit.loader import LoadResult, Pace, Progress, Since
from toolkit.loader.sync.progress import streams_counted
from toolkit.market import (
    Family,
    SnapshotKind,
    SnapshotLog,
    Source,
    Stream,
    Trajectory,
    When,
    Window,
    asked_window,
    format_ts,
    named_window,
    parse_length,
    parse_ts,
    window_ends,
)
from toolkit.series import EventSeries, Series
from toolkit.store import Batch, Edge, Inserted, LoadOrigin, Store, StoreWriter
from toolkit.store.reading.snapshots import read_snapshots
from toolkit.store.reading.sql import select
from toolkit.tables import SERIES
from toolkit.wire.listing import (
    Listing,
    funding_trajectories,
    price_trajectories,
    spread_trajectories,
)
from toolkit.workspace.listed import chosen_streams
from toolkit.workspace.progress import Watch, load_progress
from toolkit.workspace.rail_toml import Watchlist, find_watchlist
from toolkit.workspace.snapshot_tables import funding_rates, open_spreads, widest_differentials

DEFAULT_WINDOW_S = 7 * 86_400
"""The length of a load without a start."""
_SAMPLE_S = 600
_EVENTS = (
    "SELECT DISTINCT symbol, buy_exchange, buy_market, sell_exchange, sell_market "
    "FROM event_documents WHERE family = 'spread' AND ts >= $since AND ts < $now "
    "AND greatest(magnitude_pct, peak_pct) >= $least_pct"
)
_LEGS = ("symbol", "buy_exchange", "buy_market", "sell_exchange", "sell_market")


def default_window(window: Window | None) -> tuple[When, When | None] | None:
    """Return a workspace's window as a start and an end, or raise `InputError`.

    >>> default_window("7d")
    ('7d', None)
    """
    if window is None:
        return None
    start, end = window_ends(window)
    if end is None and named_window(start, 0) is None:
        raise InputError("window", window, "7d, today, yesterday, 2023-03, or (start, end)")
    low, high = asked_window(start, end, now=lambda: 1, default=lambda: (0, 1))
    if end is not None:
        Interval.checked(low, high)
    return start, end


def asked_for(
    start: When | None, end: When | None, client: Callable[[], Client]
) -> Callable[[], Interval]:
    """Check a load's window, and return a function that computes it by the service's clock.

    >>> asked_for("2026-11-01", "2026-11-02", lambda: None)()
    Interval(start=1793491200, end=1793577600)
    """

    def now() -> int:
        client().discover()
        return client().served_at()

    def default() -> tuple[int, int]:
        until = now() if end is None else parse_ts(end, parameter="end")
        return until - DEFAULT_WINDOW_S, until

    asked_window(start, end, now=lambda: 1, default=lambda: (0, 1))
    return lambda: Interval.checked(*asked_window(start, end, now=now, default=default))


def watched_load(
    run: Callable[..., LoadResult],
    client: Client,
    wanted: Sequence[Stream],
    window: Interval,
    on_progress: Callable[[Progress], object] | None,
    *,
    shown: bool,
) -> LoadResult:
    """Run a `toolkit.loader.sync`, with a bar if ``shown`` and without ``on_progress``.

    Raises `EmptyWindowError` if trajectories were requested and no stream has a row afterwards.
    """
    own = on_progress or not shown
    watched = nullcontext(Watch(on_progress)) if own else load_progress(streams_counted(wanted))
    with watched as watch:
        result = run(on_progress=watch.show)
        rows = any(isinstance(stream, Trajectory) for stream in wanted)
        if rows and len(result.silent) == len(set(wanted)):
            raise EmptyWindowError(
                f"nothing in {window} for {some(wanted)}: the service has no row there "
                f"(its clock reads {format_ts(client.served_at())})"
            )
        watch.result = result
    return result


def since_of(watchlist: Watchlist, given: When | None, now: Callable[[], int]) -> Since:
    """Return the start of a follow: a moment or a window's name, else the watchlist's.

    >>> since_of(Watchlist(), "1h", lambda: 3_660)
    Since(ts=60, back_s=None)
    """
    if given is None:
        return Since(back_s=watchlist.back_s)
    names = ("since", "end")
    return Since(asked_window(given, None, now=now, default=lambda: (0, 1), names=names)[0])


def pace_of(watchlist: Watchlist) -> Pace:
    """Return the intervals of a follow of a watchlist."""
    names = ("sweep_s", "poll_s", "rules_s", "keep_s")
    return Pace(**{name: getattr(watchlist, name) for name in names})


def wanted_watchlist(
    store: Store,
    streams: Stream | str | Iterable[Stream | str] | None = None,
    watchlist: Watchlist | str | Path | None = None,
) -> Watchlist:
    """Return the watchlist of some streams, the one given, or that of ``rail.toml``.

    >>> wanted_watchlist(Store("rail.duckdb"), "events/splash").streams
    ('events/splash',)
    """
    if streams is not None:
        several = [streams] if isinstance(streams, Stream | str) else list(streams)
        return Watchlist.of([s.key if isinstance(s, Stream) else s for s in several])
    if isinstance(watchlist, Watchlist):
        return watchlist
    return find_watchlist(store.path, watchlist)


def named_streams(client: Client, store: Store, watchlist: Watchlist) -> dict[Stream, str]:
    """Return the streams that a watchlist names now, with their rules. Nothing is stored."""
    client.discover()
    rules = Rules(watchlist, client, store)
    return rules({log.of: client.snapshot(log.of).decode() for log in rules.snapshots})


class Rules:
    """A watchlist over a service and a store.

    A call takes the newest snapshots. Raises `InputError` for a symbol, exchange or pattern that
    nothing listed matches.
    """

    def __init__(self, watchlist: Watchlist, client: Client, store: Store) -> None:
        self.watchlist = watchlist
        self._client = client
        self._store = store

    @property
    def snapshots(self) -> tuple[SnapshotLog, ...]:
        """The snapshots that the rules need."""
        wanted = self.watchlist
        kinds = set(wanted.snapshots)
        if wanted.open_now or wanted.top_open:
            kinds.add(SnapshotKind.SPREAD)
        if wanted.widest_funding:
            kinds.add(SnapshotKind.FUNDING)
        return tuple(SnapshotLog(kind) for kind in SnapshotKind if kind in kinds)

    def __call__(self, documents: Mapping[SnapshotKind, str]) -> dict[Stream, str]:
        """Return the streams that rules name now, with their rules."""
        found: dict[Stream, list[str]] = {}
        for stream, rule in self._named(documents):
            found.setdefault(stream, []).append(rule)
        return {stream: ", ".join(dict.fromkeys(rules)) for stream, rules in found.items()}

    def lately(self, now: int) -> dict[Stream, tuple[str, int]]:
        """Return the streams in stored snapshots of the last ``keep``: rule, and when (s).

        ``now`` is the service's clock. A restarted follow continues with them.
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
                if wanted.of_market(trajectory):
                    yield trajectory, rule

    def _of_dashboards(self, documents: Mapping[SnapshotKind, str]) -> Iterator[tuple[Stream, str]]:
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


def keep_own(series: Series, path: Path, name: str | None = None) -> Inserted:
    """Write a series of `toolkit.series.own_series` to a store of one's own data.

    The default ``name`` of its source is the file's. Repeated rows are stored once, changed values
    become revisions. Raises `StoreSourceError` for a store of another source.

    >>> import tempfile
    >>> from toolkit.series import own_series
    >>> frame = pl.DataFrame({"ts": [1_700_000_000, 1_700_000_060], "price": [2.0, 3.0]})
    >>> mine = own_series(frame, "BTC_USD:VENDOR.spot")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.duckdb"
    ...     keep_own(mine, path).new, keep_own(mine, path).repeated
    (2, 2)
    """
    stream = Stream.parse(series.stream)
    writer = StoreWriter(Store(path))
    writer.bind(Source("own", name or path.stem))
    now, by = int(time.time()), version("machine-rail-toolkit")
    origin = LoadOrigin(f"file:{series.source.id}", now, None, by)
    load_id = writer.start_load(origin, [stream], series.window)
    batch = Batch()
    add_own(batch, series, now)
    done = writer.commit(load_id, batch)
    writer.finish_load(load_id, [])
    return done


def add_own(batch: Batch, series: Series, read_at: int) -> None:
    """Add a series of `own_series`, read at a time (s), to a batch."""
    edge = Edge(read_at, step_s=series.origin.step_s, tail_ts=series.window.end)
    if isinstance(series, EventSeries):
        batch.add_documents(series.stream, series.rows.drop("arrival"), series.window, edge)
        return
    stream = Trajectory.parse(series.stream)
    names = [each.name for each in SERIES[Family(stream.kind)].values if each.name != "extra"]
    rows = series.rows.select("ts", *names, extra=pl.lit(None, pl.String))
    batch.add(stream, rows, series.window, edge)
