"""Reading of the store by pages: opened per query, and cached until it changes.

The key is the file's *version*, or for rows and statistics that of the trajectory.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from streamlit import cache_data, cache_resource

from toolkit.charts.view import subject_of
from toolkit.dashboard.widgets import st
from toolkit.errors import EmptyWindowError, StoreLockedError
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.market import (
    EventFamily,
    EventLog,
    Family,
    SnapshotTrajectory,
    Source,
    Stream,
    Trajectory,
)
from toolkit.series.held_prices import HeldPrices
from toolkit.statistics.events import follow_through, study
from toolkit.statistics.families import FAMILIES
from toolkit.statistics.funding.carry_marks import PairPrices
from toolkit.store import Store, clock_stands, event_logs, held_stretches, service_now
from toolkit.store.file.engine import FileVersion, version_of
from toolkit.workspace.selection import Function, Passes, Selection, known_steps

SPREADS = (Family.SPREAD.value, "snapshot-spread")
"""The kinds of stream whose rows are spreads."""

KEEP_S = 600
"""The life of cached readings (s)."""
WAIT_S = 3.0
"""How long a page waits for a writer (s), which needs milliseconds."""

StreamVersion = tuple[int | str | None, ...]
"""What changes with every commit of one stream's rows, see `StoreState.versions`."""


@dataclass(frozen=True)
class StoreState:
    """The state of a store at one version: its source, streams (`Store.catalogue`) and loads.

    ``log_stretches`` are `toolkit.store.held_stretches` of its event logs. ``published`` is the
    address of the publication that the file is a copy of, "" for a store.
    """

    path: Path
    version: FileVersion
    source: Source
    streams: pl.DataFrame
    loads: pl.DataFrame
    log_stretches: pl.DataFrame
    published: str = ""

    @property
    def place(self) -> str:
        """The argument of `toolkit.open`: the path, or the publication's address."""
        return self.published or str(self.path)

    @property
    def logs(self) -> pl.DataFrame:
        """The event logs among the streams."""
        return event_logs(self.streams)

    @cached_property
    def versions(self) -> dict[str, StreamVersion]:
        """The version of each stream, which changes with every commit of its rows alone.

        It is the number of rows, which are only appended, the time of the last request, the first
        load, which identifies the file, and the wire profiles, which `rail store remap` changes.
        """
        first = self.loads.select("started_at", "served_at", "base_url", "schema_hash").tail(1)
        profiles = self.loads["profile_hash"].unique().sort().to_list()
        file = (*(first.row(0) if first.height else ()), *profiles)
        known = self.streams.select("stream", "rows", "revisions", "served_at", "asked_at")
        return {key: (*file, *facts) for key, *facts in known.iter_rows()}

    @property
    def as_of(self) -> int | None:
        """The service's clock (s) at its last answer, None without one."""
        seen = [frame["served_at"] for frame in (self.streams, self.loads)]
        newest = pl.concat([s.cast(pl.Int64) for s in seen]).max()
        return newest if isinstance(newest, int) else None

    @property
    def base_url(self) -> str | None:
        """The service of the last load, None without one."""
        asked = self.loads["base_url"].drop_nulls()
        return asked[0] if asked.len() else None

    def price_keys(self, pair: str, window: Interval) -> tuple[str, ...]:
        """Return the keys of the prices of a funding pair's legs."""
        return self.prices.keys_of(pair, window)

    @cached_property
    def prices(self) -> HeldPrices:
        """The stored prices of the legs of funding pairs."""
        return HeldPrices(Store(self.path, wait_s=WAIT_S))

    def now(self) -> int:
        """Return the service's clock now (s), by its newest answers."""
        return service_now(self.streams, self.loads, self.source, int(time.time()))

    @property
    def clock_stands(self) -> bool:
        """Whether the service's clock stands still, as that of a replay does."""
        return clock_stands(self.streams, self.source)


@cache_data(ttl=KEEP_S, max_entries=4, show_spinner=False)
def read_held(path: Path, version: FileVersion) -> StoreState:
    """Read the state of the store. Raises the errors of `toolkit.store.Store`, uncached."""
    store = Store(path, wait_s=WAIT_S)
    with store.reading():  # one opening for all of it
        streams, logs = _known_streams(store), store.ledger(map(EventLog, EventFamily))
        stretches = held_stretches(logs, event_logs(streams))
        loads, published = store.loads(), store.published
        return StoreState(path, version, store.source, streams, loads, stretches, published)


@cache_resource(ttl=KEEP_S, max_entries=4, show_spinner=False)
def _last_held(path: Path) -> list[StoreState]:
    del path
    return []


def read_newest(path: Path) -> tuple[StoreState, bool]:
    """Read the state of the store, and whether it is an earlier one.

    That is returned while another process locks the file. Raises `StoreLockedError` without an
    earlier one, and the errors of `read_held`.
    """
    last = _last_held(path)
    try:
        held = read_held(path, version_of(path))
    except StoreLockedError:
        if not last:
            raise
        return last[0], True
    last[:] = [held]
    return held, False


def _known_streams(store: Store) -> pl.DataFrame:
    """Read the streams with an answer or rows.

    One delivered by webhook alone has the clock of the newest load, and no delay.
    """
    streams, loads = store.catalogue(), store.loads()
    newest = int(loads["served_at"][0]) if loads.height else 0
    return streams.filter(pl.col("served_at").is_not_null() | (pl.col("rows") > 0)).with_columns(
        pl.col("served_at").fill_null(pl.lit(newest, pl.Int64)), pl.col("delay_s").fill_null(0)
    )


@cache_data(ttl=KEEP_S, max_entries=20, show_spinner="Reading the store")
def read_rows(
    path: Path, key: str, start: int, end: int, *, version: StreamVersion
) -> pl.DataFrame:
    """Read the rows of one key for a window, as `toolkit.statistics.families` prepares them.

    A pair has none if a leg has none in the window.
    """
    del version
    kind, passes = subject_of(key).kind, Passes.of(Store(path, wait_s=WAIT_S))
    try:
        return Selection.as_held(passes, kind, [key], Interval(start, end)).rows()
    except EmptyWindowError:
        none = {"trajectory": pl.String(), "ts": pl.Int64()}
        prices = dict.fromkeys(("buy_price", "sell_price"), pl.Float64())
        ready: pl.DataFrame = FAMILIES[kind].ready(pl.DataFrame(schema={**none, **prices}))
        return ready


def selected(held: StoreState, kind: str, window: Interval, *keys: str) -> Selection:
    """Return the selection of series of a kind, by their keys, over a window."""
    asked = (held.path, kind, keys, *window)
    return _selected(*asked, version=held.version, _streams=held.streams)


@cache_resource(ttl=KEEP_S, max_entries=40, show_spinner=False)
def _selected(
    path: Path,
    kind: str,
    keys: tuple[str, ...],
    start: int,
    end: int,
    *,
    version: FileVersion,
    _streams: pl.DataFrame,
) -> Selection:
    del version
    passes = Passes.of(Store(path, wait_s=WAIT_S))
    steps = known_steps(_streams.filter(kind=kind))
    return Selection.as_held(passes, kind, keys, Interval(start, end), steps)


@cache_data(ttl=KEEP_S, max_entries=20, show_spinner="Reading prices")
def read_leg_prices(
    path: Path,
    pair: str,
    start: int,
    end: int,
    *,
    versions: tuple[StreamVersion, ...],
    _held: HeldPrices,
) -> PairPrices:
    """Read the prices of one funding pair's legs."""
    del path, versions
    return _held.over([pair], Interval(start, end))


@cache_data(ttl=KEEP_S, max_entries=20, show_spinner=False)
def read_polls(
    path: Path, key: str, start: int, end: int, *, version: FileVersion
) -> pl.DataFrame | None:
    """Read `Store.polls` of a series kept from snapshots, else None."""
    del version
    stream = Stream.parse(key)
    if not isinstance(stream, SnapshotTrajectory):
        return None
    return Store(path, wait_s=WAIT_S).polls(stream.of, Interval(start, end))


@cache_data(ttl=KEEP_S, max_entries=20, show_spinner=False)
def read_coverage(
    path: Path, key: str, start: int, end: int, *, version: FileVersion | StreamVersion
) -> pl.DataFrame:
    """Read `Store.coverage` of one key."""
    del version
    return Store(path, wait_s=WAIT_S).coverage(Stream.parse(key), Interval(start, end))


@cache_data(ttl=KEEP_S, max_entries=8, show_spinner="Following the prices")
def measure_following(
    path: Path, events: pl.DataFrame, step_s: int, *, versions: tuple[StreamVersion, ...]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Measure `study` and `follow_through` of events."""
    del versions
    late_s = 4 * step_s  # a path starts, and a price is used, up to three steps later
    around = Interval(events["ts"][0] - 3_600 - late_s, events["ts"][-1] + 7_200 + late_s)
    legs = [Trajectory.parse(key) for key in events["trajectory"].unique().sort()]
    rows = Store(path, wait_s=WAIT_S).scan(legs, around).select("trajectory", "ts", "price")
    prices = rows.collect()
    mean = study(events, prices, after_s=7_200, step_s=step_s)
    return mean, follow_through(events, prices, step_s=step_s)


@cache_data(ttl=KEEP_S, max_entries=20, show_spinner=False)
def read_snapshot(path: Path, kind: str, *, version: FileVersion) -> tuple[int, str] | None:
    """Read the newest snapshot of a kind (symbols, activity, spread, funding): time and text."""
    del version
    kept = Store(path, wait_s=WAIT_S).snapshots(kind, newest=True)
    if kept.is_empty():
        return None
    newest = kept.row(0, named=True)
    return newest["served_at"], newest["document"]


@dataclass(frozen=True, slots=True)
class _Measured:
    """Results of some streams, and the version of each."""

    versions: dict[str, StreamVersion]
    results: pl.DataFrame


@cache_resource(ttl=KEEP_S, max_entries=32, show_spinner=False)
def _kept(path: Path, kind: str, window: Interval, question: str) -> list[_Measured]:
    """Return the cache of a question's newest results."""
    del path, kind, window, question
    return []


def measure_each(
    held: StoreState,
    kind: str,
    window: Interval,
    question: str,
    statistic: Function,
    *,
    versions: dict[str, StreamVersion] | None = None,
    **parameters: Any,
) -> pl.DataFrame:
    """Apply a statistic to every stream of a kind, as `Selection.measured` does.

    Streams whose version has not changed are not read again. ``versions`` restricts the streams.
    """
    if versions is None:
        streams = held.streams.filter(pl.col("rows") > 0, kind=kind)["stream"]
        versions = {key: held.versions[key] for key in streams}
    place = _kept(held.path, kind, window, question)
    known, asked = place[0] if place else None, selected(held, kind, window)
    if known is None or known.versions != versions:
        of_before = {} if known is None else known.versions
        changed = [key for key, version in versions.items() if of_before.get(key) != version]
        same = pl.col("trajectory").is_in(list(versions.keys() - set(changed)))
        parts = [] if known is None else [known.results.filter(same)]
        if changed or known is None:
            now = Selection.as_held(asked.passes, kind, changed, window, asked.steps)
            with st.spinner(Markdown("Measuring")):
                parts += now.in_one_pass(now.analysis(statistic, **parameters))
        known = _Measured(versions, pl.concat(parts).sort("trajectory"))
        place[:] = [known]
    return known.results if asked.polls is None else asked.by_polls(known.results)


@cache_data(ttl=KEEP_S, max_entries=8, show_spinner=False)
def read_asked(
    path: Path, keys: tuple[str, ...], start: int, end: int, *, version: FileVersion
) -> frozenset[str]:
    """Return the spreads that were requested, or answered, in the window."""
    del version
    spreads = [stream for stream in map(Stream.parse, keys) if isinstance(stream, Trajectory)]
    kept = [key for key in keys if key.startswith("snapshot-")]  # each poll asks for all of them
    ledger = Store(path, wait_s=WAIT_S).ledger(spreads, Interval(start, end))
    asked = (s.key for s, known in ledger.items() if known.asked or known.answered)
    return frozenset([*kept, *asked])
