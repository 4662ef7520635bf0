"""A store to read from, and a service to load it from."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self, cast, overload

import polars as pl

from toolkit.cards import Card, Shown
from toolkit.client import Client
from toolkit.errors import InputError, RailError
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
from toolkit.market import (
    EventFamily,
    EventLog,
    Family,
    Pair,
    SnapshotKind,
    SnapshotLog,
    SnapshotTrajectory,
    Stream,
    Trajectory,
    When,
    Window,
    format_ts,
    parse_ts,
)
from toolkit.series import (
    EventSeries,
    FundingSeries,
    PriceSeries,
    RateSeries,
    Series,
    SnapshotSeries,
    SpreadSeries,
    read_series,
)
from toolkit.show.result import Result
from toolkit.statistics.fees.fee_table import NOTIONAL, FeeModel, Style
from toolkit.store import Store
from toolkit.store.publish import Published, publish
from toolkit.store.reading.sql import Parameters
from toolkit.store.writing.writer import check_takes_rows
from toolkit.wire.listing import Listing
from toolkit.workspace.alerts import alert_history, alert_plan
from toolkit.workspace.answers import measured
from toolkit.workspace.events.event_selection import MARGIN_S, open_events, rows_around
from toolkit.workspace.holdings import stream_states
from toolkit.workspace.listed import chosen_streams
from toolkit.workspace.loading import (
    Rules,
    asked_for,
    default_window,
    pace_of,
    since_of,
    wanted_watchlist,
    watched_load,
)
from toolkit.workspace.pairs import Joining, paired
from toolkit.workspace.rail_toml import Watchlist, find_fees
from toolkit.workspace.rail_toml import pages_days as pages_kept
from toolkit.workspace.screening import Screening, remembered
from toolkit.workspace.selection import Function, Passes, Selection, Where

Streams = Stream | str | Iterable[Stream | str]
Pairs = Iterable[Pair | str] | Pair | str
Priced = Trajectory | PriceSeries | str
Fees = FeeModel | str | Path | None
Kept = Trajectory | SnapshotTrajectory | str
Moment = When | None


class Workspace(Shown):
    """A store to read from, and a service to load it from.

    Reading needs no service. A service given as a function is called on first use.

    >>> import tempfile
    >>> import toolkit as tk
    >>> with tempfile.TemporaryDirectory() as folder, tk.open(f"{folder}/s.duckdb") as rail:
    ...     done = rail.sync("BTC_USDT:AURORA.spot:BOREAS.spot", "2h")
    ...     rail.spread("BTC_USDT:AURORA.spot:BOREAS.spot", "2h").summary()["n"].item() > 0
    True
    """

    def __init__(
        self,
        service: Client | Callable[[contextlib.ExitStack], Client],
        store: Store,
        *,
        window: Window | None = None,
        as_of: When | None = None,
        fees: Fees = None,
    ) -> None:
        self.store = store
        self._fees = None if fees is None else find_fees(store.path, fees)
        self._service = service
        self._client = service if isinstance(service, Client) else None
        self._default = default_window(window)
        self._as_of = None if as_of is None else parse_ts(as_of, parameter="as_of")
        self._closing = contextlib.ExitStack()
        self._closed = False

    def __repr__(self) -> str:
        facts = dict(self.card.facts)
        shown = [f"{name} {facts[name]}" for name in ("service", "plan", "reach") if name in facts]
        return f"<{'; '.join([self.card.heading, *shown])}>"

    @property
    def card(self) -> Card:
        """The store as it is now, and what is known of the service. See `Store.card`."""
        held, client = self.store.card, self._client
        service = [] if client is None else list(client.card.facts)
        source = dict([*service, *held.facts]).get("source", "not bound to a source yet")
        at = "none asked yet" if client is None else client.base_url
        facts = [("service", at), *service, *held.facts]
        facts += [] if self.fees is None else [("fees", self.fees.label)]
        facts += [] if self._as_of is None else [("as of", format_ts(self._as_of))]
        shown = [fact for fact in facts if fact[0] != "source"]
        return Card(f"Workspace: {source}, {self.store.path}", shown)

    @property
    def known_at(self) -> int | None:
        """The ``as_of`` of the workspace (s, local clock), None for now."""
        return self._as_of

    @property
    def fees(self) -> FeeModel | None:
        """The fee table given, else that of ``rail.toml``, or None."""
        return find_fees(self.store.path, self._fees)

    @property
    def client(self) -> Client:
        """The client of the service, connected on first use.

        Raises `InputError` if no service has the store's data, and `RailError` after `close`.
        """
        if self._closed:
            raise RailError("this workspace was closed; tk.open() opens another")
        if self._client is None:
            service = self._service
            self._client = service if isinstance(service, Client) else service(self._closing)
        return self._client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and the local service. The store can still be read."""
        self._closed = True
        if self._client is not None:
            self._client.close()
        self._closing.close()

    # -- asking the service ------------------------------------------------------------------------

    def symbols(self, text: str = "") -> Listing:
        """Return the service's symbols, each with its legs. See `Client.symbols`."""
        return self.client.symbols(text)

    def open_events(self, family: EventFamily | str, back: str = "7d") -> pl.DataFrame:
        """Return the events of a log that are open now, storing nothing.

        See `toolkit.workspace.events.event_selection.open_events`.
        """
        return open_events(self.client, family, back).rows

    def sync(
        self,
        streams: Streams,
        start: Moment = None,
        end: Moment = None,
        *,
        again: bool = False,
        workers: int = 4,
        pages_days: float | None = None,
        progress: bool = True,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> LoadResult:
        """Load all of ``[start, end)`` into the store, once. See `toolkit.loader.sync`.

        ``streams`` are streams, keys, patterns (``BTC_USDT:*``, ``funding/*:AURORA.futures:*``) or
        ``watchlist``: see `toolkit.workspace.listed`. ``start`` is a moment, or alone the name of a
        window: ``7d``, ``today``, ``2023-03``. ``end`` defaults to now by the service's clock,
        ``start`` to seven days before. ``again`` reloads stored rows. A bar is shown unless
        ``progress`` is off or ``on_progress`` is given. Pages are kept for ``pages_days`` for `rail
        store remap`, by default as in ``rail.toml``, else 30; 0 keeps none.

        Raises `EmptyWindowError` if trajectories were requested and no stream has a row in the
        window afterwards. The result names refused streams.
        """
        self._check_present()
        check_takes_rows(self.store)
        kept_days = pages_kept(self.store.path, pages_days)
        wanted, window = self._wanted(streams, start, end)
        asked = (self.client, self.store, wanted, window)
        run = partial(sync, *asked, again=again, workers=workers, pages_days=kept_days)
        return watched_load(run, self.client, wanted, window, on_progress, shown=progress)

    def plan(
        self,
        streams: Streams,
        start: Moment = None,
        end: Moment = None,
        *,
        again: bool = False,
        workers: int = 4,
    ) -> PlannedLoad:
        """Return what `sync` would request with the same arguments, without loading anything.

        See `toolkit.loader.PlannedLoad`. Reads the service's schemas and, if needed, its symbols.

        >>> import toolkit as tk
        >>> with tk.open("none.duckdb") as rail:
        ...     rail.plan("BTC_USDT:AURORA.spot", "1h").requests > 0
        True
        """
        wanted, window = self._wanted(streams, start, end)
        return plan_load(self.client, self.store, wanted, window, again=again, workers=workers)

    def follow(
        self,
        streams: Streams | None = None,
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

        ``streams`` are as in `sync`. Default: ``watchlist`` (a `toolkit.workspace.rules.Watchlist`
        or its file), else ``rail.toml``, else the streams of `toolkit.workspace.listed`. Missing
        rows are loaded from ``since`` on (a moment or the name of a window), by default the
        watchlist's. ``once`` loads up to now and ends. Alerts are sent meanwhile: see `alerts`.
        `toolkit.loader.follow` describes the callbacks.
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
        """Return the alerts that `follow` found by ``rail.toml``, newest first.

        See `toolkit.store.writing.alerts.read_alerts` for the columns.
        """
        return alert_history(self.store, self._as_of)

    # -- reading the store -------------------------------------------------------------------------

    def prices(
        self, trajectory: Trajectory | str, start: Moment = None, end: Moment = None
    ) -> PriceSeries:
        """Return the prices of one symbol on one leg. See `series`."""
        found = self._read(Trajectory.parse(trajectory, Family.PRICE), start, end)
        return cast("PriceSeries", found)

    def spread(self, trajectory: Kept, start: Moment = None, end: Moment = None) -> SpreadSeries:
        """Return the spread between two legs, with spread_log_bps and spread_bps. See `series`.

        Positive: long the buy leg and short the sell leg earns it. ``snapshot-spread/…`` gives the
        spread in snapshots, with coverage by polls.
        """
        found = self._read(_kept_or(trajectory, Family.SPREAD), start, end)
        return cast("SpreadSeries", found)

    @overload
    def pair(
        self,
        buy: FundingSeries,
        sell: FundingSeries | Trajectory | str,
        start: Moment = None,
        end: Moment = None,
    ) -> FundingSeries: ...

    @overload
    def pair(
        self,
        buy: Priced,
        sell: Priced,
        start: Moment = None,
        end: Moment = None,
        *,
        fx: Priced | None = None,
        multiplier: float | None = None,
        max_stale_s: int | None = None,
    ) -> SpreadSeries: ...

    def pair(
        self,
        buy: Priced | FundingSeries,
        sell: Priced | FundingSeries,
        start: Moment = None,
        end: Moment = None,
        *,
        fx: Priced | None = None,
        multiplier: float | None = None,
        max_stale_s: int | None = None,
    ) -> SpreadSeries | FundingSeries:
        """Return the spread of two prices, stored here or given as series of any store.

        ``fx`` is the price of one quote in the other, if they differ. Two funding legs
        (``funding/BTC_USDT:A.futures``) give the funding of their pair: type checkers see that for
        a `FundingSeries` only. See `toolkit.series.pair_series`.
        """
        read = partial(self.series, start=start, end=end)
        return paired(read, buy, sell, fx, multiplier=multiplier, max_stale_s=max_stale_s)

    def pairs(
        self,
        pairs: Pairs,
        start: Moment = None,
        end: Moment = None,
        *,
        fx: Trajectory | str | None = None,
        multiplier: float | None = None,
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Join the stored prices of several pairs, and return the rows of all in one frame.

        ``pairs`` are keys such as ``pair/BTC_USD:COINBASE.spot/BTC_USDT:KRAKEN.spot``. ``fx`` is
        for keys without an FX leg, the rest as in `pair`. Pairs come as given, the rows of each by
        ts. The default window is the time that a pair's legs share. A pair with a leg without rows
        in it is left out.

        Raises `InputError` for an invalid pair, `UnknownTrajectoryError` for a leg that is not
        stored, and `EmptyWindowError` if no pair has a row.
        """
        joining, (start, end) = Joining(fx, multiplier, max_stale_s), self._asked(start, end)
        passes = Passes.of(self.store, as_of=self._as_of)
        return Selection.of_pairs(passes, pairs, joining, start=start, end=end).rows()

    @overload
    def funding(
        self, trajectory: SnapshotTrajectory, start: Moment = None, end: Moment = None
    ) -> RateSeries: ...

    @overload
    def funding(
        self, trajectory: Trajectory | str, start: Moment = None, end: Moment = None
    ) -> FundingSeries: ...

    def funding(
        self, trajectory: Kept, start: Moment = None, end: Moment = None
    ) -> FundingSeries | RateSeries:
        """Return the funding of a pair. Its key needs no ``funding/`` here. See `series`.

        A key ``snapshot-funding/…`` gives a `RateSeries`, the rate of one leg in snapshots: type
        checkers see that for a `SnapshotTrajectory` only.
        """
        found = self._read(_kept_or(trajectory, Family.FUNDING), start, end)
        return cast("FundingSeries | RateSeries", found)

    def events(
        self,
        family: EventFamily | str,
        start: Moment = None,
        end: Moment = None,
        *,
        whole: bool = True,
    ) -> EventSeries:
        """Return the documents of an event log: spread, splash or funding. See `series`.

        Without ``whole`` the column ``document``, their text as sent, is absent: it takes most of
        the memory, and statistics do not need it.
        """
        found = self._read(EventLog.of(family), start, end, whole=whole)
        return cast("EventSeries", found)

    def around(
        self, events: EventSeries, *, on: Trajectory | str | None = None, margin_s: int = MARGIN_S
    ) -> pl.LazyFrame:
        """Return the rows of the trajectories in which events opened, and ``margin_s`` either side.

        ``rail.events("splash").study(rows)`` takes them: prices for splash events, spreads,
        settlements, or the rows of ``on``. Pairs stored in the other orientation are turned,
        trajectories not stored are left out: `EmptyWindowError` if all are.
        """
        keys = events.detections()["trajectory"]
        return rows_around(self.store, keys, events.window, margin_s, on=on, as_of=self._as_of)

    def snapshots(
        self, kind: SnapshotKind | str, start: Moment = None, end: Moment = None
    ) -> SnapshotSeries:
        """Return the snapshots of a kind: symbols, activity, spread or funding. See `series`."""
        found = self._read(SnapshotLog.named(kind), start, end)
        return cast("SnapshotSeries", found)

    def series(self, stream: Stream | str, start: Moment = None, end: Moment = None) -> Series:
        """Return the rows of any stream over a window as a series.

        ``start`` is a moment, or alone the name of a window. The default window is all that is
        known. ``pair/…`` gives the spread of two prices. See `toolkit.series.read_series`.
        """
        if str(stream).startswith("pair/"):
            two = Pair.parse(stream)
            return self.pair(two.buy, two.sell, start, end, fx=two.fx)
        return self._read(Stream.parse(stream), start, end)

    # -- statistics of all that is held of a kind --------------------------------------------------

    def measure(
        self,
        function: Function,
        start: Moment = None,
        end: Moment = None,
        *,
        family: Family | str = Family.SPREAD,
        streams: Streams | None = None,
        cluster: Where | None = None,
        plain_text: bool = False,
        **parameters: Any,
    ) -> pl.DataFrame:
        """Apply a statistic to all stored trajectories of a family, some at a time.

        ``function`` is one of `toolkit.statistics` or your own, called with rows of some
        trajectories, ``start`` and ``end`` (s), and the ``parameters``, such as ``enter_bps=50``;
        those of the toolkit that compare series get all trajectories. Rows are as in
        `toolkit.store.Store.groups`, spreads as from `toolkit.statistics.spread.with_spread`,
        funding from before the first settlement. ``prices`` and ``step_s`` are passed if taken and
        known. ``streams`` are keys as in `rail stats`, by default all. A pair stored in the other
        orientation is turned, with a warning. The default window is all that is stored.

        ``cluster`` computes over published data on many processes, with the same result: their
        number, ``local``, the address of a Dask scheduler, or its client. See
        `toolkit.cluster.Cluster`, also for ``plain_text``.

        Raises `EmptyWindowError` if nothing is stored, `UnknownTrajectoryError` for an unknown key,
        `InputError` for keys of two kinds, a family without trajectories, or a cluster over a store
        that is not published, and `ClusterError` if workers fail.
        """
        passes = partial(Passes.of, self.store, cluster, as_of=self._as_of, plain_text=plain_text)
        window = self._asked(start, end)
        return measured(function, passes, window, f"{family}", streams, **parameters)

    @remembered
    def screen(
        self,
        start: Moment = None,
        end: Moment = None,
        *,
        family: Family | str = Family.SPREAD,
        symbols: str | Iterable[str] | None = None,
        exchanges: str | Iterable[str] | None = None,
        types: str | Iterable[str] | None = None,
        exclude_symbols: str | Iterable[str] | None = None,
        pairs: Pairs | None = None,
        where: str | None = None,
        sort: str | None = None,
        top: int | None = None,
        exclude_flags: bool | str | Sequence[str] = False,
        fees: Fees = None,
        notional: float = NOTIONAL,
        style: Style = "taker",
        funding_only: bool = False,
        cluster: Where | None = None,
        plain_text: bool = False,
    ) -> Result:
        """Measure all stored series of a kind in one pass, and rank them by any figure.

        The columns, ``where``, ``sort``, ``top`` and ``exclude_flags`` are those of
        `toolkit.statistics.spread.screen`; by default the widest now is first. ``family`` funding
        has those of `toolkit.statistics.screening.funding_figures`, the largest APR first, and
        ``funding_only`` leaves prices out. Families from snapshots have coverage by polls:
        ``snapshot-spread`` as spreads, ``snapshot-funding`` as
        `toolkit.statistics.screening.rate_figures`, without fees. ``exchanges`` and ``types``
        (``spot/futures``) keep pairs with both legs on these. ``pairs`` are keys ``pair/BUY/SELL``
        or ``pair/BUY/SELL/FX`` in place of stored spreads: see `pairs`. ``fees`` is a fee table or
        its file, by default the workspace's. The default window is the last 7 days stored (for
        pairs, that their legs share), for funding all. ``cluster`` and ``plain_text`` are as in
        `measure`.

        Raises `EmptyWindowError` if nothing is stored, and `InputError` for an unknown condition,
        column or flag, or a symbol, an exchange or a type of no pair.
        """
        chosen = (types, exclude_symbols, pairs)
        asked = Screening(family, symbols, exchanges, None, notional, style, *chosen, funding_only)
        if fees is not None or asked.has_costs:
            table = self.fees if fees is None else find_fees(self.store.path, fees)
            asked = replace(asked, fees=table)
        ranking = asked.ranking(where, sort, top, exclude_flags)
        passes = Passes.of(self.store, cluster, as_of=self._as_of, plain_text=plain_text)
        found = ranking.applied(asked.rows(passes, *self._asked(start, end)))
        return Result.of(found, asked.kind.answer)

    def status(self) -> pl.DataFrame:
        """Return the state of each stream. See `toolkit.workspace.holdings.stream_states`."""
        return stream_states(self.store, as_of=self._as_of)

    def publish(self, where: str | os.PathLike[str], *, keep: str | int | None = None) -> Published:
        """Publish the store as Parquet files and a manifest. See `toolkit.store.publish.publish`.

        ``where`` is a folder or the address of an object store (``s3://bucket/folder``). Earlier
        publications can be read for ``keep`` (``30d``), by default for ever. `toolkit.open` opens
        the result's ``address``.
        """
        self._check_present("a store is published as it is; ask the workspace itself")
        return publish(self.store, where, keep=keep)

    def sql(
        self,
        query: str,
        parameters: Parameters | None = None,
        *,
        at_most: int | None = None,
        within_s: float | None = None,
    ) -> pl.DataFrame:
        """Return the rows of one SELECT over the store's views. See `toolkit.store.Store.sql`."""
        return self.store.sql(
            query, parameters, as_of=self._as_of, at_most=at_most, within_s=within_s
        )

    def as_of(self, when: When) -> Workspace:
        """Return this workspace as it was known at a moment of the local clock. It takes no rows.

        Rows, documents and snapshots are those committed by then. The ledger, and with it gaps,
        status and SQL, is that of the time: `InputError` before its history.
        """
        at = parse_ts(when, parameter="as_of")
        return Workspace(self._service, self.store, window=self._default, as_of=at, fees=self._fees)

    def _check_present(self, reason: str = "a past state takes no rows") -> None:
        if self._as_of is not None:
            raise InputError("as_of", format_ts(self._as_of), f"none: {reason}")

    def _asked(self, start: Moment, end: Moment) -> tuple[When | None, When | None]:
        return self._default if start is None and end is None and self._default else (start, end)

    def _wanted(
        self, streams: Streams, start: Moment, end: Moment
    ) -> tuple[list[Stream], Interval]:
        """Return a load's streams and window, checked before any request."""
        window = asked_for(*self._asked(start, end), lambda: self.client)
        return chosen_streams(streams, self.symbols), window()

    def _read(self, stream: Stream, start: Moment, end: Moment, *, whole: bool = True) -> Series:
        asked = self._asked(start, end)
        return read_series(
            self.store, stream, *asked, as_of=self._as_of, fees=self.fees, whole=whole
        )


def _kept_or(asked: Kept, family: Family) -> Trajectory | SnapshotTrajectory:
    kept = str(asked).startswith(f"snapshot-{family}/")
    return SnapshotTrajectory.parse(asked) if kept else Trajectory.parse(asked, family)
