"""Bringing rows into a store from a service, in one call: the half of a workspace that asks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Self

import polars as pl

from toolkit.cards import Shown, some
from toolkit.client import Client
from toolkit.errors import EmptyWindowError, InputError, RailError
from toolkit.intervals import Interval
from toolkit.loader import (
    FollowProgress,
    FollowResult,
    LoadResult,
    PlannedLoad,
    Progress,
    follow,
    plan_load,
    sync,
)
from toolkit.loader.progress import streams_counted
from toolkit.market import (
    EventFamily,
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
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store
from toolkit.store.alerts import read_alerts
from toolkit.store.writer import check_takes_rows
from toolkit.tables import AlertChange
from toolkit.wire.listing import Listing
from toolkit.workspace.alerts import alert_plan
from toolkit.workspace.fee_choice import find_fees
from toolkit.workspace.following import pace_of, since_of, wanted_watchlist
from toolkit.workspace.listed import chosen_streams
from toolkit.workspace.matching import Rules
from toolkit.workspace.open_events import open_events
from toolkit.workspace.progress import Watch, load_progress
from toolkit.workspace.rules import Watchlist
from toolkit.workspace.rules import pages_days as pages_kept

DEFAULT_WINDOW_S = 7 * 86_400
"""What is loaded where no start is given: so much before the end."""


class Loading(Shown):
    """A store, and a service to load it from. See `toolkit.workspace.Workspace`."""

    def __init__(
        self,
        service: Client | Callable[[contextlib.ExitStack], Client],
        store: Store,
        *,
        window: Window | None = None,
        as_of: When | None = None,
        fees: FeeModel | str | Path | None = None,
    ) -> None:
        self.store = store
        self._fees = None if fees is None else find_fees(store.path, fees)
        self._service = service
        self._client = service if isinstance(service, Client) else None
        self._default = _checked_default(window)
        self._as_of = None if as_of is None else parse_ts(as_of, parameter="as_of")
        self._closing = contextlib.ExitStack()
        self._closed = False

    @property
    def known_at(self) -> int | None:
        """The time whose knowledge is read (s, local clock), None for the newest."""
        return self._as_of

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

    def open_events(self, family: EventFamily | str, back: str = "7d") -> pl.DataFrame:
        """Return the events of a log that are open now, of those seen so far back. Nothing is kept.

        The service is asked by its filter of states. See `toolkit.workspace.open_events` for the
        columns.
        """
        return open_events(self.client, family, back).rows

    def sync(
        self,
        streams: Stream | str | Iterable[Stream | str],
        start: When | None = None,
        end: When | None = None,
        *,
        again: bool = False,
        workers: int = 4,
        pages_days: float | None = None,
        progress: bool = True,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> LoadResult:
        """Bring everything of ``[start, end)`` into the store, once. See `toolkit.loader.sync`.

        ``streams`` are one or more trajectories, event logs and snapshots, or their keys. A key
        with a ``*`` (``BTC_USDT:*``, ``funding/*:AURORA.futures:*``) stands for all that match it
        of what the service lists, ``watchlist`` for the symbols with the most legs, see
        `toolkit.workspace.listed`. ``start`` is a moment, or alone the name of a window: ``7d``,
        ``today``, ``yesterday``, ``2023-03``. ``end`` defaults to now by the service's clock,
        ``start`` to seven days before ``end``. A
        notebook and a terminal show a bar, unless ``progress`` is off or ``on_progress`` is given.
        Raises `EmptyWindowError` where trajectories were asked for and the store holds nothing of
        any stream in the window afterwards. Where some streams are refused, the result names them.
        ``again`` asks for all of the window, also for what is held. The pages that rows come from
        are kept for ``pages_days`` (days) for `rail store remap`, by default as ``rail.toml`` has
        it, else 30. 0 keeps none.
        """
        self._check_present()
        check_takes_rows(self.store)
        kept_days = pages_kept(self.store.path, pages_days)
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
                pages_days=kept_days,
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

    def plan(
        self,
        streams: Stream | str | Iterable[Stream | str],
        start: When | None = None,
        end: When | None = None,
        *,
        again: bool = False,
        workers: int = 4,
    ) -> PlannedLoad:
        """Return what `sync` would ask for with the same arguments, without loading anything.

        What is missing of each stream, how many requests that takes, how long under the quota of
        this key, and what leaves the service's archive within 24 hours. Its ``df`` has a row per
        stream: see `toolkit.loader.PlannedLoad`. Asks the service for its schemas and, where it has
        to, its symbols.

        >>> import tempfile
        >>> import toolkit as tk
        >>> with tempfile.TemporaryDirectory() as folder, tk.open(f"{folder}/s.duckdb") as rail:
        ...     done = rail.sync("BTC_USDT:AURORA.spot", "2h")
        ...     rail.plan("BTC_USDT:AURORA.spot", "1h").requests <= 1
        True
        """
        wanted_window = self._window(start, end)
        wanted = chosen_streams(streams, self.symbols)
        window = wanted_window()
        return plan_load(self.client, self.store, wanted, window, again=again, workers=workers)

    def follow(
        self,
        streams: Stream | str | Iterable[Stream | str] | None = None,
        *,
        watchlist: Watchlist | str | Path | None = None,
        since: When | None = None,
        once: bool = False,
        duration_s: float | None = None,
        stop: threading.Event | None = None,
        on_progress: Callable[[FollowProgress], object] | None = None,
        on_note: Callable[[str], object] | None = None,
    ) -> FollowResult:
        """Keep the store current, until ``stop`` is set or for ``duration_s`` (s).

        ``streams`` as in `sync`. Without them the watchlist is followed: a
        `toolkit.workspace.rules.Watchlist` or its file, else ``rail.toml`` beside the store or in
        the working directory, else the streams of `toolkit.workspace.listed`. What the store
        lacks is brought from ``since`` on, a moment or the name of a window, by default as the
        watchlist has it. ``once`` brings everything up to now and ends. See `toolkit.loader.follow`
        for what is waited for, and ``on_progress`` and ``on_note``. The alerts of the ``rail.toml``
        are evaluated and sent meanwhile: see `alerts`.
        """
        self._check_present()
        wanted = wanted_watchlist(self.store, streams, watchlist)
        since_of(wanted, since, lambda: 1)
        alerts, kept_days = alert_plan(self.store.path), pages_kept(self.store.path)
        self.client.discover()
        return follow(
            self.client,
            self.store,
            Rules(wanted, self.client, self.store),
            since=since_of(wanted, since, self.client.served_at),
            once=once,
            duration_s=duration_s,
            stop=stop,
            pace=pace_of(wanted),
            alerts=alerts,
            pages_days=kept_days,
            on_progress=on_progress,
            on_note=on_note,
        )

    def alerts(self) -> pl.DataFrame:
        """Return the history of alerts that `follow` found, newest first.

        One row each time that one opened or was over, with whether it is open now and what became
        of its delivery. See `toolkit.store.alerts.read_alerts` for the columns. The rules are the
        tables ``[[alert]]`` of ``rail.toml``.
        """
        found = read_alerts(self.store)
        if self._as_of is None:
            return found
        known = found.filter(pl.col("recorded_at") <= self._as_of)
        newest = pl.struct("rule", "subject").is_first_distinct()
        return known.with_columns(is_open=newest & (pl.col("change") == AlertChange.OPENED))

    def _check_present(self, reason: str = "a past state takes no rows") -> None:
        """Raise `InputError` where this is a past state."""
        if self._as_of is not None:
            raise InputError("as_of", format_ts(self._as_of), f"none: {reason}")

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
