"""A client, a store and the loader in one hand: what notebooks and the command line open."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Self

import polars as pl

from toolkit.cards import Card, Shown, some
from toolkit.client import Client
from toolkit.errors import EmptyWindowError
from toolkit.intervals import EVER, Interval
from toolkit.loader import LoadResult, Progress, sync
from toolkit.loader.progress import streams_counted
from toolkit.market import (
    EventFamily,
    EventLog,
    Family,
    Stream,
    Trajectory,
    When,
    format_ts,
    parse_ts,
)
from toolkit.statistics import spread as spread_statistics
from toolkit.store import Store, held_trajectory
from toolkit.workspace.local import simulated_service
from toolkit.workspace.progress import Watch, load_progress
from toolkit.workspace.settings import LOCAL_KEY, Settings, store_path

DEFAULT_WINDOW_S = 7 * 86_400
"""What is loaded where no start is given: so much before the end."""


class Workspace(Shown):
    """One service and one store: load from the one, read from the other.

    >>> import tempfile
    >>> import toolkit as tk
    >>> with tempfile.TemporaryDirectory() as folder, tk.open(f"{folder}/s.duckdb") as rail:
    ...     done = rail.sync("BTC_USDT:AURORA.spot:BOREAS.spot")
    ...     rail.spread("BTC_USDT:AURORA.spot:BOREAS.spot").columns
    ['trajectory', 'ts', 'buy_price', 'sell_price', 'spread_pct', 'spread_log_bps', 'spread_bps',
     'spread_basis']
    """

    def __init__(
        self, client: Client, store: Store, *, closing: contextlib.ExitStack | None = None
    ) -> None:
        self.client = client
        self.store = store
        self._closing = closing or contextlib.ExitStack()
        self._closing.callback(client.close)

    def __repr__(self) -> str:
        told = dict(self.client.card.facts)
        return (
            f"Workspace({told['source']}; plan {told['plan']}; reach {told['reach']}; "
            f"store {self.store.path})"
        )

    @property
    def card(self) -> Card:
        """The service as far as it was asked, and the store as it is now. See `Store.card`."""
        service, held = self.client.card, self.store.card
        source, *others = service.facts
        facts = [("service", self.client.base_url), *others]
        facts += [fact for fact in held.facts if fact != source]
        return Card(f"Workspace: {source[1]}, into {self.store.path}", facts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections, and stop the local service if this workspace started it."""
        self._closing.close()

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

        ``streams`` are one or more trajectories, event logs and snapshots, or their keys.
        ``end`` defaults to now by the service's clock, ``start`` to seven days before ``end``. A
        notebook and a terminal show a bar, unless ``progress`` is off or ``on_progress`` is given.
        Raises `EmptyWindowError` where trajectories were asked for and the store holds nothing of
        any stream in the window afterwards. Where some streams are refused, the result names them.
        ``again`` asks for all of the window, also for what is held.
        """
        several = [streams] if isinstance(streams, Stream | str) else streams
        wanted = [Stream.parse(each) for each in several]
        window = self._window(start, end)
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

    def _window(self, start: When | None, end: When | None) -> Interval:
        if end is None:
            self.client.discover()
        high = self.client.served_at() if end is None else parse_ts(end, parameter="end")
        low = high - DEFAULT_WINDOW_S if start is None else parse_ts(start, parameter="start")
        return Interval.checked(low, high)

    def events(self, family: EventFamily | str, start: When, end: When) -> pl.DataFrame:
        """Return a log's documents with ``start <= ts < end``. See `Store.events`."""
        return self.store.events(EventLog.of(family).family, _held_window(start, end))

    def spread(
        self, trajectory: Trajectory | str, start: When | None = None, end: When | None = None
    ) -> pl.DataFrame:
        """Return a spread trajectory's rows from the store, with spread_log_bps and spread_bps.

        Positive: long the buy leg and short the sell leg earns it. See `series` for a key that is
        not held, `Store.series` for the other columns, and
        `toolkit.statistics.spread.with_spread` for the nulls.
        """
        wanted = Trajectory.parse(trajectory, Family.SPREAD)
        return spread_statistics.with_spread(self.series(wanted, start, end))

    def funding(
        self, trajectory: Trajectory | str, start: When | None = None, end: When | None = None
    ) -> pl.DataFrame:
        """Return a funding trajectory's rows from the store. Its key needs no ``funding/`` here.

        See `Store.series` for the columns.
        """
        return self.series(Trajectory.parse(trajectory, Family.FUNDING), start, end)

    def series(
        self, trajectory: Trajectory | str, start: When | None = None, end: When | None = None
    ) -> pl.DataFrame:
        """Return a trajectory's rows with ``start <= ts < end``. See `Store.series`.

        A pair that is held the other way round is turned, with a warning that names it. Raises
        `UnknownTrajectoryError` with the nearest keys where the store holds neither.
        """
        wanted = Trajectory.parse(trajectory)
        held = held_trajectory(self.store, wanted)
        rows = self.store.series(held, _held_window(start, end))
        if held == wanted:
            return rows
        warnings.warn(
            f"{wanted.key} is held as {held.key}: legs and signs are turned", stacklevel=2
        )
        return spread_statistics.turned(rows, wanted.key)


def open_workspace(
    store: str | Path | None = None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    allow_http: bool = False,
) -> Workspace:
    """Open a workspace. Without an address it starts a local service on a SIMULATED market.

    ``base_url`` and ``api_key`` default to ``RAIL_BASE_URL`` and ``RAIL_API_KEY``, ``store`` to
    ``RAIL_STORE`` or ``rail.duckdb``. ``allow_http`` as in `Settings.read`.
    """
    if base_url or os.environ.get("RAIL_BASE_URL"):
        settings = Settings.read(base_url=base_url, api_key=api_key, allow_http=allow_http)
        return Workspace(settings.client(), Store(store_path(store)))
    closing = contextlib.ExitStack()
    base_url = closing.enter_context(simulated_service())
    client = Client(base_url, LOCAL_KEY)
    client.discover()  # it is there for certain, and so its name and reach can be shown
    return Workspace(client, Store(store_path(store)), closing=closing)


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


def _held_window(start: When | None, end: When | None) -> Interval:
    """Return the window. Without a start or an end it is open on that side."""
    low = EVER.start if start is None else parse_ts(start, parameter="start")
    high = EVER.end if end is None else parse_ts(end, parameter="end")
    return Interval.checked(low, high)
