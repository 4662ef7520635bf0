"""What the pages read of the store: opened per query, kept until the file changes, never held open.

Every cached reading is of one *version* of the file, so that a sync shows at the next look and an
unchanged store is not read twice.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import streamlit as st

from toolkit.dashboard.health_tables import coverage_line
from toolkit.intervals import Interval, clip
from toolkit.market import EventFamily, Family, SnapshotLog, Source, Stream, Trajectory
from toolkit.statistics.spread import summary, time_above, with_spread
from toolkit.store import Ledger, Store, answer_words, clock_offset_s, event_logs
from toolkit.store.schema import read_format
from toolkit.tables import LedgerState

_KEEP_S = 600
_WAIT_S = 3.0
"""A writer lets go within milliseconds. A page that waits longer than this shows why (s)."""

Version = tuple[tuple[int, int], ...]
"""What changes with every commit: time and size of the file and of the log beside it."""


@dataclass(frozen=True, slots=True)
class Held:
    """One look at a store: its source, its streams (`Store.catalogue`) and its loads."""

    path: Path
    version: Version
    source: Source
    streams: pl.DataFrame
    loads: pl.DataFrame

    @property
    def logs(self) -> pl.DataFrame:
        """The event logs among the streams, with their family."""
        return event_logs(self.streams)

    @property
    def as_of(self) -> int | None:
        """The service's clock (s) when it was last asked, None where it never was."""
        seen = [frame["served_at"] for frame in (self.streams, self.loads)]
        newest = pl.concat([s.cast(pl.Int64) for s in seen]).max()
        return newest if isinstance(newest, int) else None

    @property
    def base_url(self) -> str | None:
        """The service that was asked last, None where none was."""
        asked = self.loads["base_url"].drop_nulls()
        return asked[0] if asked.len() else None

    def now(self) -> int:
        """Return the service's clock now (s): the local one and the newest answer's offset."""
        return int(time.time()) + clock_offset_s(self.streams, self.loads)


def store_version(path: Path) -> Version:
    """Return what differs between two states of the file, () where there is no file.

    >>> store_version(Path("nowhere.duckdb"))
    ()
    """
    files = (path, path.with_name(f"{path.name}.wal"))
    stats = [file.stat() for file in files if file.exists()]
    return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)


@st.cache_data(ttl=_KEEP_S, max_entries=4, show_spinner=False)
def read_held(path: Path, version: Version) -> Held:
    """Read what the store holds. Raises the errors of `toolkit.store.Store`, which are not kept."""
    store = Store(path, wait_s=_WAIT_S)
    with store.reading():  # one opening for all of it
        return Held(path, version, store.source, _known_streams(store), store.loads())


def _newest_clock(store: Store) -> int:
    """Return the service's clock (s) at the newest load, 0 without a load."""
    loads = store.loads()
    return int(loads["served_at"][0]) if loads.height else 0


def _known_streams(store: Store) -> pl.DataFrame:
    """Read the streams that were answered for or hold something.

    One that came by webhook alone has the clock of the newest load, and no delay.
    """
    streams = store.catalogue()
    newest = _newest_clock(store)
    return streams.filter(pl.col("served_at").is_not_null() | (pl.col("rows") > 0)).with_columns(
        pl.col("served_at").fill_null(pl.lit(newest, pl.Int64)), pl.col("delay_s").fill_null(0)
    )


@st.cache_data(ttl=_KEEP_S, max_entries=20, show_spinner="Reading the store")
def read_rows(
    path: Path, key: str, family: Family, start: int, end: int, *, version: Version
) -> pl.DataFrame:
    """Read `Store.series` of one trajectory, of a spread with `with_spread`'s columns."""
    del version
    rows = Store(path, wait_s=_WAIT_S).series(Trajectory.parse(key, family), Interval(start, end))
    return with_spread(rows) if family is Family.SPREAD else rows


@st.cache_data(ttl=_KEEP_S, max_entries=20, show_spinner=False)
def read_coverage(
    path: Path, key: str, family: Family, start: int, end: int, *, version: Version
) -> pl.DataFrame:
    """Read `Store.coverage` of one trajectory."""
    del version
    trajectory = Trajectory.parse(key, family)
    return Store(path, wait_s=_WAIT_S).coverage(trajectory, Interval(start, end))


@st.cache_data(ttl=_KEEP_S, max_entries=20, show_spinner="Reading the store")
def read_events(path: Path, start: int, end: int, *, version: Version) -> pl.DataFrame:
    """Read `Store.events` of every family with ``start <= ts < end``, one below the other.

    ``arrival`` is the order within a family, as `toolkit.statistics.events.lifecycles` wants it.
    """
    del version
    store = Store(path, wait_s=_WAIT_S)
    with store.reading():
        return pl.concat([store.events(family, Interval(start, end)) for family in EventFamily])


@st.cache_data(ttl=_KEEP_S, max_entries=20, show_spinner=False)
def read_snapshot(path: Path, kind: str, *, version: Version) -> tuple[int, str] | None:
    """Read the newest snapshot of a kind (symbols, activity, spread, funding): time and text."""
    del version
    kept = Store(path, wait_s=_WAIT_S).snapshots(kind, newest=True)
    if kept.is_empty():
        return None
    newest = kept.row(0, named=True)
    return newest["served_at"], newest["document"]


@st.cache_resource(ttl=_KEEP_S, max_entries=2, show_spinner="Reading the spreads")
def read_spreads(path: Path, start: int, end: int, *, version: Version) -> pl.DataFrame:
    """Read ts (s UTC), spread_log_bps and its basis of every spread. Shared, never changed."""
    del version
    rows = Store(path, wait_s=_WAIT_S).family_series(Family.SPREAD, Interval(start, end))
    return with_spread(rows).select("trajectory", "ts", "spread_log_bps", "spread_basis")


@st.cache_data(ttl=_KEEP_S, max_entries=8, show_spinner="Measuring the spreads")
def measure_spreads(
    path: Path, start: int, end: int, *, version: Version
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Measure `toolkit.statistics.spread.summary` of every spread, and read its newest row."""
    rows = read_spreads(path, start, end, version=version)
    last = rows.drop_nulls("spread_log_bps").group_by("trajectory").last()
    return summary(rows, start, end), last


@st.cache_data(ttl=_KEEP_S, max_entries=32, show_spinner=False)
def measure_above(
    path: Path, start: int, end: int, above_bps: float, *, version: Version
) -> pl.DataFrame:
    """Measure `toolkit.statistics.spread.time_above` of every spread."""
    rows = read_spreads(path, start, end, version=version)
    return time_above(rows, start, end, threshold_bps=above_bps)


@st.cache_data(ttl=_KEEP_S, max_entries=8, show_spinner=False)
def read_asked(
    path: Path, keys: tuple[str, ...], start: int, end: int, *, version: Version
) -> frozenset[str]:
    """Return which of the spreads the store was asked for, or answered about, in the window."""
    del version
    spreads = [Trajectory.parse(key, Family.SPREAD) for key in keys]
    ledger = Store(path, wait_s=_WAIT_S).ledger(spreads, Interval(start, end))
    return frozenset(s.key for s, known in ledger.items() if known.asked or known.answered)


@st.cache_data(ttl=_KEEP_S, max_entries=2, show_spinner="Reading the ledger")
def measure_coverage(path: Path, version: Version) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Return what is known of every stream. The rows of each load. The store's format.

    One row of `coverage_line` for each stream, with its `answer_words`, over the time from its
    first second asked for, or first row, to the service's clock when it was last asked.
    """
    del version
    store = Store(path, wait_s=_WAIT_S)
    lines = []
    with store.reading() as connection:
        ledger, newest = store.ledger(), _newest_clock(store)
        catalogue = store.catalogue().select("stream", "first_ts", "rows")
        for key, first_ts, held in catalogue.iter_rows():
            stream = Stream.parse(key)
            known = ledger.get(stream, Ledger(None))
            window = _known_window(known, first_ts)
            coverage = None
            if known.edge is None:
                coverage = _unanswered(known, newest)
            elif window and not isinstance(stream, SnapshotLog):
                coverage = store.coverage(stream, window)
            answer = answer_words(ledger.get(stream), held)
            lines.append(coverage_line(stream, coverage) | {"answer": answer})
        rows, version_held = store.rows_by_load(), read_format(connection, path)
    return pl.DataFrame(lines, infer_schema_length=None), rows, version_held


def _unanswered(known: Ledger, served_at: int) -> pl.DataFrame | None:
    """Return the coverage of a stream that was asked for and never answered: all is missing."""
    missing = clip(known.asked, (0, served_at))
    if not missing:
        return None
    state = pl.lit(LedgerState.MISSING.value).alias("state")
    return pl.DataFrame(missing, schema=["start_ts", "end_ts"], orient="row").with_columns(state)


def _known_window(known: Ledger, first_ts: int | None) -> Interval | None:
    """Return the time from the first second asked for or held to the last question."""
    if known.edge is None:
        return None
    end = known.edge.served_at
    starts = [part.start for part in (*known.asked[:1], *known.answered[:1])]
    begun = [start for start in (*starts, first_ts) if start is not None and start < end]
    return Interval(min(begun), end) if begun else None
