"""A store, and a service to load it from: what notebooks and scripts open."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Self, cast

import polars as pl

from toolkit.cards import Card, Shown, some
from toolkit.client import Client
from toolkit.errors import EmptyWindowError, InputError, RailError
from toolkit.intervals import Interval
from toolkit.loader import LoadResult, Progress, sync
from toolkit.loader.progress import streams_counted
from toolkit.market import (
    EventFamily,
    EventLog,
    Family,
    SnapshotKind,
    SnapshotLog,
    Stream,
    Trajectory,
    When,
    Window,
    asked_window,
    format_ts,
    named_window,
    parse_ts,
    window_ends,
)
from toolkit.series import (
    EventSeries,
    FundingSeries,
    PriceSeries,
    Series,
    SnapshotSeries,
    SpreadSeries,
    read_series,
)
from toolkit.store import Store
from toolkit.store.sql import Parameters
from toolkit.wire.listing import Listing
from toolkit.workspace.holdings import stream_states
from toolkit.workspace.local import simulated_service
from toolkit.workspace.progress import Watch, load_progress
from toolkit.workspace.selection import chosen_streams
from toolkit.workspace.settings import LOCAL_KEY, Settings, store_path

DEFAULT_WINDOW_S = 7 * 86_400
"""What is loaded where no start is given: so much before the end."""


class Workspace(Shown):
    """A store to read from, and a service to load it from.

    Reading needs no service. Where the service is given as a function, that is called when
    something is asked of it for the first time.

    >>> import tempfile
    >>> import toolkit as tk
    >>> with tempfile.TemporaryDirectory() as folder, tk.open(f"{folder}/s.duckdb") as rail:
    ...     done = rail.sync("BTC_USDT:AURORA.spot:BOREAS.spot", "2h")
    ...     rail.spread("BTC_USDT:AURORA.spot:BOREAS.spot", "1h").summary()["n"].item() > 50
    True
    """

    def __init__(
        self,
        service: Client | Callable[[contextlib.ExitStack], Client],
        store: Store,
        *,
        window: Window | None = None,
        as_of: When | None = None,
    ) -> None:
        self.store = store
        self._service = service
        self._client = service if isinstance(service, Client) else None
        self._default = _checked_default(window)
        self._as_of = None if as_of is None else parse_ts(as_of, parameter="as_of")
        self._closing = contextlib.ExitStack()
        self._closed = False

    @property
    def client(self) -> Client:
        """The client of the service, which is reached for here if it was not before.

        Raises `InputError` where no service can be asked for the store's data, and `RailError`
        after `close`.
        """
        if self._closed:
            raise RailError("this workspace was closed; tk.open() opens another")
        if self._client is None:
            self._client = self._open_service()
        return self._client

    def _open_service(self) -> Client:
        if isinstance(self._service, Client):
            return self._service
        return self._service(self._closing)

    def __repr__(self) -> str:
        facts = dict(self.card.facts)
        shown = [f"{name} {facts[name]}" for name in ("service", "plan", "reach") if name in facts]
        return f"<{'; '.join([self.card.heading, *shown])}>"

    @property
    def card(self) -> Card:
        """The store as it is now, and the service as far as it was asked. See `Store.card`."""
        held = self.store.card
        service = [] if self._client is None else list(self._client.card.facts)
        source = dict([*service, *held.facts]).get("source", "not bound to a source yet")
        facts = [("service", "none asked yet")]
        if self._client is not None:
            facts = [("service", self._client.base_url), *service]
        facts += held.facts
        if self._as_of is not None:
            facts.append(("as of", format_ts(self._as_of)))
        return Card(
            f"Workspace: {source}, {self.store.path}",
            [fact for fact in facts if fact[0] != "source"],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections, and of the local service. What is held can still be read."""
        self._closed = True
        if self._client is not None:
            self._client.close()
        self._closing.close()

    # -- asking the service ------------------------------------------------------------------------

    def symbols(self, text: str = "") -> Listing:
        """Return the symbols that the service lists, each with its legs. See `Client.symbols`."""
        return self.client.symbols(text)

    def sync(
        self,
        streams: Stream | str | Iterable[Stream | str],
        start: When | None = None,
        end: When | None = None,
        *,
        again: bool = False,
        workers: int = 4,
        progress: bool = True,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> LoadResult:
        """Bring everything of ``[start, end)`` into the store, once. See `toolkit.loader.sync`.

        ``streams`` are one or more trajectories, event logs and snapshots, or their keys. A key
        with a ``*`` (``BTC_USDT:*``, ``funding/*:AURORA.futures:*``) stands for all that match it
        of what the service lists, ``watchlist`` for the symbols with the most legs, see
        `toolkit.workspace.watchlist`. ``start`` is a moment, or alone the name of a window: ``7d``,
        ``today``, ``yesterday``, ``2023-03``. ``end`` defaults to now by the service's clock,
        ``start`` to seven days before ``end``. A
        notebook and a terminal show a bar, unless ``progress`` is off or ``on_progress`` is given.
        Raises `EmptyWindowError` where trajectories were asked for and the store holds nothing of
        any stream in the window afterwards. Where some streams are refused, the result names them.
        ``again`` asks for all of the window, also for what is held.
        """
        if self._as_of is not None:
            raise InputError("as_of", format_ts(self._as_of), "none: a past state takes no rows")
        wanted_window = self._window(start, end)
        wanted = chosen_streams(streams, self.symbols)
        window = wanted_window()
        with _watched(streams_counted(wanted), progress, on_progress) as watch:
            result = sync(
                self.client,
                self.store,
                wanted,
                window,
                again=again,
                workers=workers,
                on_progress=watch.show,
            )
            if len(result.silent) == len(set(wanted)) and any(
                isinstance(stream, Trajectory) for stream in wanted
            ):
                raise EmptyWindowError(
                    f"nothing in {window} for {some(wanted)}: the service has no row there "
                    f"(its clock reads {format_ts(self.client.served_at())})"
                )
            watch.result = result
        return result

    def _window(self, start: When | None, end: When | None) -> Callable[[], Interval]:
        """Check the window at once. What is returned asks the service for its clock if needed."""
        low, high = self._asked(start, end)

        def now() -> int:
            self.client.discover()
            return self.client.served_at()

        def default() -> tuple[int, int]:
            until = now() if high is None else parse_ts(high, parameter="end")
            return until - DEFAULT_WINDOW_S, until

        asked_window(low, high, now=lambda: 1, default=lambda: (0, 1))
        return lambda: Interval.checked(*asked_window(low, high, now=now, default=default))

    def _asked(self, start: When | None, end: When | None) -> tuple[When | None, When | None]:
        """Return the window asked for, or this workspace's own where none is."""
        if start is None and end is None and self._default is not None:
            return self._default
        return start, end

    # -- reading the store -------------------------------------------------------------------------

    def prices(
        self, trajectory: Trajectory | str, start: When | None = None, end: When | None = None
    ) -> PriceSeries:
        """Return the prices of one symbol on one leg. See `series`."""
        found = self._read(Trajectory.parse(trajectory, Family.PRICE), start, end)
        return cast("PriceSeries", found)

    def spread(
        self, trajectory: Trajectory | str, start: When | None = None, end: When | None = None
    ) -> SpreadSeries:
        """Return the spread between two legs, with spread_log_bps and spread_bps. See `series`.

        Positive: long the buy leg and short the sell leg earns it.
        """
        found = self._read(Trajectory.parse(trajectory, Family.SPREAD), start, end)
        return cast("SpreadSeries", found)

    def funding(
        self, trajectory: Trajectory | str, start: When | None = None, end: When | None = None
    ) -> FundingSeries:
        """Return the funding of a pair. Its key needs no ``funding/`` here. See `series`."""
        found = self._read(Trajectory.parse(trajectory, Family.FUNDING), start, end)
        return cast("FundingSeries", found)

    def events(
        self, family: EventFamily | str, start: When | None = None, end: When | None = None
    ) -> EventSeries:
        """Return the documents of an event log: spread, splash or funding. See `series`."""
        found = self._read(EventLog.of(family), start, end)
        return cast("EventSeries", found)

    def snapshots(
        self, kind: SnapshotKind | str, start: When | None = None, end: When | None = None
    ) -> SnapshotSeries:
        """Return the snapshots of a kind: symbols, activity, spread or funding. See `series`."""
        found = self._read(SnapshotLog.named(kind), start, end)
        return cast("SnapshotSeries", found)

    def series(
        self, stream: Stream | str, start: When | None = None, end: When | None = None
    ) -> Series:
        """Return the rows of any stream over a window, as a series that knows what it is.

        ``start`` is a moment, or alone the name of a window: ``7d``, ``yesterday``, ``2023-03``.
        Without a start or an end it is all that is known. See `toolkit.series.read_series` for a
        key that is not held or held the other way round.
        """
        return self._read(Stream.parse(stream), start, end)

    def _read(self, stream: Stream, start: When | None, end: When | None) -> Series:
        return read_series(self.store, stream, *self._asked(start, end), as_of=self._as_of)

    def status(self) -> pl.DataFrame:
        """Return what is held of each stream, how complete it is and how old.

        See `toolkit.workspace.holdings.stream_states` for the columns.
        """
        return stream_states(self.store)

    def sql(self, query: str, parameters: Parameters | None = None) -> pl.DataFrame:
        """Return what one SELECT over the store's views finds. See `toolkit.store.Store.sql`."""
        return self.store.sql(query, parameters)

    def as_of(self, when: When) -> Workspace:
        """Return this workspace as it was known at a moment of the local clock. It takes no rows.

        Rows, documents and snapshots are those of the loads begun by then.
        """
        at = parse_ts(when, parameter="as_of")
        return Workspace(self._service, self.store, window=self._default, as_of=at)


def open_workspace(
    store: str | Path | None = None,
    *,
    window: Window | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    allow_http: bool = False,
) -> Workspace:
    """Open a store, to read it and to load into it.

    ``base_url`` and ``api_key`` default to ``RAIL_BASE_URL`` and ``RAIL_API_KEY``, ``store`` to
    ``RAIL_STORE`` or ``rail.duckdb``. ``window`` is what is read and loaded where no start and no
    end are given: the name of a window (``7d``, ``2023-03``), or a start and an end. ``allow_http``
    as in `Settings.read`.

    Nothing is asked of a service before something has to be. Without an address that is a local
    service on a SIMULATED market, started then, one per process, ended with it. A store of another
    source is never loaded from it: that needs an address.
    """
    held = Store(store_path(store))
    if base_url or os.environ.get("RAIL_BASE_URL"):
        settings = Settings.read(base_url=base_url, api_key=api_key, allow_http=allow_http)
        return Workspace(settings.client(), held, window=window)
    return Workspace(lambda closing: _local_client(held, closing), held, window=window)


def _local_client(store: Store, closing: contextlib.ExitStack) -> Client:
    """Return a client of the local service, unless the store has another kind of source."""
    if store.path.exists() and (source := store.source).kind != "simulated":
        raise InputError(
            "base_url",
            None,
            f"the address of the service whose data {store.path} holds ({source.label})",
            advice="give tk.open(base_url=...) or set RAIL_BASE_URL",
        )
    client = Client(closing.enter_context(simulated_service()), LOCAL_KEY)
    client.discover()  # it is there for certain, and so its name and reach can be shown
    return client


def _checked_default(window: Window | None) -> tuple[When, When | None] | None:
    """Return a default window as a start and an end, or raise `InputError` for what is none."""
    if window is None:
        return None
    start, end = window_ends(window)
    if end is None and named_window(start, 0) is None:
        raise InputError("window", window, "7d, today, yesterday, 2023-03, or (start, end)")
    low, high = asked_window(start, end, now=lambda: 1, default=lambda: (0, 1))
    if end is not None:
        Interval.checked(low, high)
    return start, end


@contextlib.contextmanager
def _watched(
    title: str, progress: bool, on_progress: Callable[[Progress], object] | None
) -> Iterator[Watch]:
    """Yield the caller's own watch where there is one, else a bar where one can be shown."""
    if on_progress or not progress:
        yield Watch(on_progress)
    else:
        with load_progress(title) as watch:
            yield watch
