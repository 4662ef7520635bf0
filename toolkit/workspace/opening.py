"""A store, and a service to load it from: what notebooks and scripts open."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast, overload

import polars as pl

from toolkit.cards import Card
from toolkit.client import Client
from toolkit.errors import InputError
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
    pair_series,
    read_series,
)
from toolkit.statistics.fees.fee_table import FeeModel
from toolkit.store import Store
from toolkit.store.publish import Published, is_published, open_published, publish
from toolkit.store.sql import Parameters
from toolkit.wire.secrets import Secret
from toolkit.workspace.event_rows import MARGIN_S, rows_around
from toolkit.workspace.exchanges import ExchangeChoice, archive_beside
from toolkit.workspace.holdings import stream_states
from toolkit.workspace.local import exchanges_service, simulated_service
from toolkit.workspace.measuring import Measuring
from toolkit.workspace.pairs import Joining
from toolkit.workspace.passes import Passes
from toolkit.workspace.places import cache_folder
from toolkit.workspace.selection import Selection
from toolkit.workspace.settings import LOCAL_KEY, Settings, store_path


class Workspace(Measuring):
    """A store to read from, and a service to load it from.

    Reading needs no service. Where the service is given as a function, that is called when
    something is asked of it for the first time.

    >>> import tempfile
    >>> import toolkit as tk
    >>> with tempfile.TemporaryDirectory() as folder, tk.open(f"{folder}/s.duckdb") as rail:
    ...     done = rail.sync("BTC_USDT:AURORA.spot:BOREAS.spot", "2h")
    ...     rail.spread("BTC_USDT:AURORA.spot:BOREAS.spot", "2h").summary()["n"].item() > 0
    True
    """

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
        if self.fees is not None:
            facts.append(("fees", self.fees.label))
        if self._as_of is not None:
            facts.append(("as of", format_ts(self._as_of)))
        return Card(
            f"Workspace: {source}, {self.store.path}",
            [fact for fact in facts if fact[0] != "source"],
        )

    # -- reading the store -------------------------------------------------------------------------

    def prices(
        self, trajectory: Trajectory | str, start: When | None = None, end: When | None = None
    ) -> PriceSeries:
        """Return the prices of one symbol on one leg. See `series`."""
        found = self._read(Trajectory.parse(trajectory, Family.PRICE), start, end)
        return cast("PriceSeries", found)

    def spread(
        self,
        trajectory: Trajectory | SnapshotTrajectory | str,
        start: When | None = None,
        end: When | None = None,
    ) -> SpreadSeries:
        """Return the spread between two legs, with spread_log_bps and spread_bps. See `series`.

        Positive: long the buy leg and short the sell leg earns it. A key that begins with
        ``snapshot-spread/`` gives what snapshots showed of a pair, with coverage by polls.
        """
        found = self._read(_kept_or(trajectory, Family.SPREAD), start, end)
        return cast("SpreadSeries", found)

    @overload
    def pair(
        self,
        buy: FundingSeries,
        sell: FundingSeries | Trajectory | str,
        start: When | None = None,
        end: When | None = None,
    ) -> FundingSeries: ...

    @overload
    def pair(
        self,
        buy: Trajectory | PriceSeries | str,
        sell: Trajectory | PriceSeries | str,
        start: When | None = None,
        end: When | None = None,
        *,
        fx: Trajectory | PriceSeries | str | None = None,
        multiplier: float | None = None,
        max_stale_s: int | None = None,
    ) -> SpreadSeries: ...

    def pair(
        self,
        buy: Trajectory | PriceSeries | FundingSeries | str,
        sell: Trajectory | PriceSeries | FundingSeries | str,
        start: When | None = None,
        end: When | None = None,
        *,
        fx: Trajectory | PriceSeries | str | None = None,
        multiplier: float | None = None,
        max_stale_s: int | None = None,
    ) -> SpreadSeries | FundingSeries:
        """Return the spread of any two prices, held here or given as series of any store.

        ``fx`` is the price of one quote in the other, where they differ. Nothing is stored. See
        `toolkit.statistics.spread.pair` and `toolkit.series.pair_series`. Of the funding of two
        single legs, such as ``funding/BTC_USDT:VENDOR.futures``, it is the funding of their pair.
        Type checkers see that of a `FundingSeries` alone.
        """
        if all(_is_funding(leg) for leg in (buy, sell)):
            settled = [
                leg if isinstance(leg, FundingSeries) else self.funding(str(leg), start, end)
                for leg in (buy, sell)
            ]
            return pair_series(*settled)
        rate = None if fx is None else _price_key(fx)
        two = Pair.of(_price_key(buy), _price_key(sell), rate)
        two.coins(multiplier)
        legs = [
            leg if isinstance(leg, PriceSeries) else self.prices(_price_key(leg), start, end)
            for leg in (buy, sell, fx)
            if leg is not None
        ]
        return pair_series(*legs, multiplier=multiplier, max_stale_s=max_stale_s)

    def pairs(
        self,
        pairs: Iterable[Pair | str] | Pair | str,
        start: When | None = None,
        end: When | None = None,
        *,
        fx: Trajectory | str | None = None,
        multiplier: float | None = None,
        max_stale_s: int | None = None,
    ) -> pl.DataFrame:
        """Join the prices of several pairs that are held, to the rows of all pairs in one frame.

        Give it to any function of `toolkit.statistics.spread`. ``pairs`` are keys such as
        ``pair/BTC_USD:COINBASE.spot/BTC_USDT:KRAKEN.spot``, and the rest is as in `pair`. ``fx`` is
        for the keys that lack an FX leg, and ``multiplier`` for all of them. The pairs come as they
        are given, the rows of each by ts. Without a start or an end the window reaches from the
        first to the last second that all legs of a pair hold. A pair of which a leg has no row in
        the window is left out.

        Raises `InputError` for what makes no pair, `UnknownTrajectoryError` for a leg that is not
        held, and `EmptyWindowError` where no pair has a row.
        """
        passes = Passes.of(self.store, as_of=self._as_of)
        joining = Joining(fx, multiplier, max_stale_s)
        start, end = self._asked(start, end)
        return Selection.of_pairs(passes, pairs, joining, start=start, end=end).rows()

    @overload
    def funding(
        self, trajectory: SnapshotTrajectory, start: When | None = None, end: When | None = None
    ) -> RateSeries: ...

    @overload
    def funding(
        self, trajectory: Trajectory | str, start: When | None = None, end: When | None = None
    ) -> FundingSeries: ...

    def funding(
        self,
        trajectory: Trajectory | SnapshotTrajectory | str,
        start: When | None = None,
        end: When | None = None,
    ) -> FundingSeries | RateSeries:
        """Return the funding of a pair. Its key needs no ``funding/`` here. See `series`.

        A key that begins with ``snapshot-funding/`` gives a `RateSeries`: the rate of one leg as
        snapshots showed it. Type checkers see that of a `SnapshotTrajectory` alone.
        """
        found = self._read(_kept_or(trajectory, Family.FUNDING), start, end)
        return cast("FundingSeries | RateSeries", found)

    def events(
        self,
        family: EventFamily | str,
        start: When | None = None,
        end: When | None = None,
        *,
        whole: bool = True,
    ) -> EventSeries:
        """Return the documents of an event log: spread, splash or funding. See `series`.

        Without ``whole`` the column ``document`` is absent, their text as sent: no statistic reads
        it, and it takes most of the memory.
        """
        found = self._read(EventLog.of(family), start, end, whole=whole)
        return cast("EventSeries", found)

    def around(
        self,
        events: EventSeries,
        *,
        on: Trajectory | str | None = None,
        margin_s: int = MARGIN_S,
    ) -> pl.LazyFrame:
        """Return the rows of the trajectories in which events opened, and ``margin_s`` either side.

        Of splash events these are the prices of their legs, of spread events the spreads, of
        funding events the settlements. With ``on`` they are the rows of that trajectory. What to
        ask of them: ``pumps.study(rail.around(pumps))`` with ``pumps = rail.events("splash")``, and
        more in `toolkit.statistics.events`.

        A pair that is held the other way round is turned. Trajectories that are not held are
        absent, and their events count as unknown there. Raises `EmptyWindowError` where none is
        held.
        """
        keys = events.detections()["trajectory"]
        return rows_around(self.store, keys, events.window, margin_s, on=on, as_of=self._as_of)

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
        key that is not held or held the other way round. The key of a pair of two prices gives
        their spread, as `pair` does.
        """
        if str(stream).startswith("pair/"):
            two = Pair.parse(stream)
            return self.pair(two.buy, two.sell, start, end, fx=two.fx)
        return self._read(Stream.parse(stream), start, end)

    def _read(
        self, stream: Stream, start: When | None, end: When | None, *, whole: bool = True
    ) -> Series:
        asked = self._asked(start, end)
        return read_series(
            self.store, stream, *asked, as_of=self._as_of, fees=self.fees, whole=whole
        )

    def status(self) -> pl.DataFrame:
        """Return what is held of each stream, how complete it is and how old.

        See `toolkit.workspace.holdings.stream_states` for the columns. Raises `InputError` for a
        workspace as of a time before the store kept the history of its ledger, as does `sql`.
        """
        return stream_states(self.store, as_of=self._as_of)

    def publish(self, where: str | os.PathLike[str], *, keep: str | int | None = None) -> Published:
        """Publish the store as Parquet files and a manifest. See `toolkit.store.publish.publish`.

        ``where`` is a folder or the address of an object store (``s3://bucket/folder``). What is
        there already and did not change is not written again. ``keep`` is for how long earlier
        publications can be read (``30d``), None for ever. The ``address`` of the result opens this
        one by `toolkit.open`, whatever is published later.
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
        """Return what one SELECT over the store's views finds. See `toolkit.store.Store.sql`."""
        return self.store.sql(
            query, parameters, as_of=self._as_of, at_most=at_most, within_s=within_s
        )

    def as_of(self, when: When) -> Workspace:
        """Return this workspace as it was known at a moment of the local clock. It takes no rows.

        Rows, documents and snapshots are those that were committed by then, also inside a load or a
        capture that went on. Of what was loaded before store format 6 the commit is not known: it
        counts from the start of its load, and a note on the series names loads that went on. The
        ledger, and with it gaps, status and SQL, is what the store knew then. Of a store that
        was brought up from a format before 7 that is known from then on: before, `gaps`, `status`
        and `sql` raise `InputError`, and a note on the series has the time.
        """
        at = parse_ts(when, parameter="as_of")
        return Workspace(self._service, self.store, window=self._default, as_of=at, fees=self._fees)


def _price_key(leg: Trajectory | Series | str) -> str:
    return leg.stream.key if isinstance(leg, Series) else str(leg)


def _is_funding(leg: Trajectory | Series | str) -> bool:
    return _price_key(leg).startswith("funding/")


def _kept_or(
    asked: Trajectory | SnapshotTrajectory | str, family: Family
) -> Trajectory | SnapshotTrajectory:
    """Read the key of a trajectory of a family, or of a series of that kept from snapshots."""
    if str(asked).startswith(f"snapshot-{family}/"):
        return SnapshotTrajectory.parse(asked)
    return Trajectory.parse(asked, family)


def open_workspace(
    store: str | Path | None = None,
    *,
    window: Window | None = None,
    base_url: str | None = None,
    api_key: str | Secret | None = None,
    allow_http: bool = False,
    profile: str | Path | None = None,
    fees: FeeModel | str | Path | None = None,
    exchanges: str | Iterable[str] | None = None,
    symbols: str | Iterable[str] | None = None,
    renames: Mapping[str, str] | None = None,
) -> Workspace:
    """Open a store, to read it and to load into it.

    ``base_url`` and ``api_key`` default to ``RAIL_BASE_URL`` and ``RAIL_API_KEY``, ``store`` to
    ``RAIL_STORE`` or ``rail.duckdb``. ``window`` is what is read and loaded where no start and no
    end are given: the name of a window (``7d``, ``2023-03``), or a start and an end. ``allow_http``
    as in `Settings.read`. ``profile`` is the file of the service's wire profile, as `rail doctor`
    drafts it, by default the one that ``RAIL_PROFILE`` names. ``fees`` is a fee table or its file.
    Without it, it is the one that ``rail.toml`` names: see `Workspace.fees`.

    Nothing is asked of a service before something has to be. Without an address that is a local
    service on a SIMULATED market, started then, one per process, ended with it. A store of another
    source is never loaded from it: that needs an address.

    With ``exchanges`` (``["binance", "okx"]``, or ``"usual"`` for five of them) that local service
    reads real ones, without an account: ``symbols`` (by default five) of the last 7 days, then on.
    What they answered stays beside the store, in ``STORE.exchanges.duckdb``, and the same call goes
    on from there. ``renames`` lets legs of another quote be compared: ``{"USDC": "USDT"}``.

    ``store`` may also name published data: a folder, an address, or the ``manifest.json`` in it. It
    is read like a store and takes no rows. A copy of it is kept in the user's cache.
    """
    api_key = Secret(api_key) if api_key else None
    held = named_store(store)
    choice = None if exchanges is None else ExchangeChoice.read(exchanges, symbols, renames)
    others = {"base_url": base_url} if choice else {"symbols": symbols, "renames": renames}
    for name, given in others.items():
        if given is not None:
            raise InputError(
                name, str(given), f"none {'beside' if choice else 'without'} exchanges"
            )
    if not choice and (base_url or os.environ.get("RAIL_BASE_URL")):
        settings = Settings.read(
            base_url=base_url, api_key=api_key, allow_http=allow_http, profile=profile
        )
        return Workspace(settings.client(), held, window=window, fees=fees)
    if profile is not None:
        raise InputError("profile", str(profile), "none without the service's address (base_url)")
    return Workspace(
        lambda closing: _local_client(held, choice, closing), held, window=window, fees=fees
    )


def named_store(store: str | Path | None = None) -> Store:
    """Return the store of a path, as `open_workspace` takes it: a store, or published data."""
    if is_published(store):
        return open_published(store, cache_folder())
    return Store(store_path(store))


def _local_client(
    store: Store, choice: ExchangeChoice | None, closing: contextlib.ExitStack
) -> Client:
    """Return a client of the local service, unless the store has another kind of source."""
    if choice:
        service = exchanges_service(choice, archive_beside(store.path))
    elif store.path.exists() and (source := store.source).kind != "simulated":
        by_ccxt = "give tk.open(exchanges=...) as before"
        by_address = "give tk.open(base_url=...) or set RAIL_BASE_URL"
        raise InputError(
            "base_url",
            None,
            f"the address of the service whose data {store.path} holds ({source.label})",
            advice=by_ccxt if source.by_ccxt else by_address,
        )
    else:
        service = simulated_service()
    client = Client(closing.enter_context(service), LOCAL_KEY)
    client.discover()  # it is there for certain, and so its name and reach can be shown
    return client
