"""The store: one DuckDB file, one source, opened per use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from toolkit.cards import Card, duration
from toolkit.errors import InputError, RailError, StoreError
from toolkit.intervals import EVER, Ends, Interval
from toolkit.market import (
    TYPE_ROLES,
    EventFamily,
    EventLog,
    EventRole,
    SnapshotKind,
    SnapshotLog,
    SnapshotTrajectory,
    Stream,
    Trajectory,
    format_ts,
)
from toolkit.store.file.file import StoreFile, mark_doubled
from toolkit.store.file.schema import opened_for_reading
from toolkit.store.ledger.contents import CONTINUITY, COUNTS, ROWS_BY_LOAD, limits
from toolkit.store.ledger.coverage import GAPS, read_coverage, read_ledger
from toolkit.store.ledger.history import seen
from toolkit.store.reading.frames import frame_of
from toolkit.store.reading.lookup import asked_streams, check_known, sync_advice
from toolkit.store.reading.scanning import Asked, doubled, scan_of, scanning, value_columns
from toolkit.store.reading.snapshots import poll_coverage, read_polls, read_snapshots
from toolkit.store.reading.sql import Parameters, in_utc, values_of
from toolkit.store.reading.sql_process import ask
from toolkit.store.writing.batch import ARCHIVE, Ledger
from toolkit.store.writing.events import ARRIVALS, OPENED
from toolkit.tables import ROWS, SERIES, SNAPSHOT_SERIES, TIE

_WAIT_S = 0.5


def _facts(store: Store) -> list[tuple[str, str]]:
    with store.reading():
        source, streams, loads = store.source, store.catalogue(), store.loads()
    logs = streams.filter(kind="events")
    snapshots = int(streams.filter(kind="snapshot")["rows"].sum())
    series = streams.filter(pl.col("kind").is_in(list(SERIES)))
    kept = streams.filter(pl.col("kind").is_in(list(SNAPSHOT_SERIES)))
    facts = [
        ("source", source.label),
        ("trajectories", _counted(series, pl.len())),
        ("rows", _counted(series, pl.col("rows").sum())),
        ("events", _counted(logs.with_columns(kind="stream"), pl.col("rows").sum())),
        ("snapshots", f"{snapshots:,}" if snapshots else "none"),
        *([("kept from them", _counted(kept, pl.len()))] if kept.height else []),
        ("between", _between(pl.concat([series, logs]))),
        ("size", f"{store.path.stat().st_size / 1e6:,.1f} MB"),
    ]
    return [*facts, ("last load", _last_load(loads.row(0, named=True) if loads.height else None))]


def _counted(streams: pl.DataFrame, what: pl.Expr) -> str:
    """Return a total with its parts by kind: 3 (2 price, 1 spread)."""
    parts = streams.group_by("kind", maintain_order=True).agg(what.alias("count"))
    named = ", ".join(f"{count:,} {kind.removeprefix('events/')}" for kind, count in parts.rows())
    total = sum(parts["count"].to_list())
    return f"{total:,} ({named})" if total else "none"


def _between(streams: pl.DataFrame) -> str:
    first, last = streams["first_ts"].min(), streams["last_ts"].max()
    if not isinstance(first, int) or not isinstance(last, int):
        return "–"
    return f"first {format_ts(first)}, last {format_ts(last)}"


def _last_load(load: dict[str, Any] | None) -> str:
    if load is None:
        return "none"
    begun, ended = load["started_at"], load["finished_at"]
    how = "not finished" if ended is None else f"finished within {duration(ended - begun + 1)}"
    return f"begun {format_ts(begun)}, {how}"


class Store(StoreFile):
    """One DuckDB file with one source's trajectories and what is known of their coverage.

    It reads, `toolkit.store.StoreWriter` writes. The file is open only while it is used. ``wait_s``
    is how long a use waits for another process that holds it. ``published`` is the manifest that
    the file is a copy of: such a store takes no rows. With ``as_of`` (s, local clock) methods read
    as of then: see `known`.

    >>> import tempfile
    >>> from toolkit.market import Source
    >>> from toolkit.store import StoreWriter
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(f"{folder.name}/rail.duckdb")
    >>> StoreWriter(store).bind(Source("replay", "example"))
    >>> store.source
    Source(kind='replay', id='example')
    >>> store.catalogue().height
    0
    >>> folder.cleanup()
    """

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    @property
    def card(self) -> Card:
        """The source, trajectories, rows, first and last time, size and last load of a store.

        It never waits for a load under way and never fails: a store that is missing, locked or
        damaged is shown as such.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print(Store(f"{folder}/rail.duckdb").card)
        Store .../rail.duckdb
          holds  nothing yet: the first load makes the file
        """
        heading = f"Store {self.path}"
        try:
            if not self.path.exists():
                return Card(heading, [("holds", "nothing yet: the first load makes the file")])
            return Card(heading, _facts(type(self)(self.path, wait_s=_WAIT_S)))
        except (RailError, OSError) as error:
            return Card(heading, [("not read", str(error))])

    def sql(
        self,
        query: str,
        parameters: Parameters | None = None,
        *,
        as_of: int | None = None,
        at_most: int | None = None,
        within_s: float | None = None,
    ) -> pl.DataFrame:
        """Return the rows of one SELECT over the views: prices, spreads and so on (docs/store.md).

        Another process runs it with a quarter of the memory, and can neither write nor read other
        files or tables. ``parameters`` are the values of ``$name``, or of ``?`` in order. A column
        ``time`` is UTC. An interval is a Duration, or text in a column where one has months. Other
        types that polars lacks are text. Rows have no order without ORDER BY. ``as_of`` is that of
        `coverage`. Rows beyond ``at_most`` are not read. Raises `InputError` for any other
        statement, an unknown view or column, times outside the years 1 to 9999, and a query that
        takes more than ``within_s`` (s) or too much memory, `StoreError` where the file fails.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> from toolkit.market import Source
        >>> from toolkit.store import StoreWriter
        >>> store = Store(f"{folder.name}/rail.duckdb")
        >>> StoreWriter(store).bind(Source("replay", "example"))
        >>> store.sql("from prices where trajectory = $leg", {"leg": "BTC_USD:KRAKEN.spot"}).height
        0
        >>> folder.cleanup()
        """
        with opened_for_reading(self.path, self.wait_s):
            pass  # the other process migrates nothing
        found = ask(
            self.path,
            str(query),
            values_of(parameters),
            as_of=self._then(as_of),
            at_most=at_most,
            within_s=within_s,
            wait_s=self.wait_s,
        )
        return in_utc(found)

    def continuity(self, *, as_of: int | None = None) -> pl.DataFrame:
        """Return one row per trajectory with rows: where rows do not follow one another.

        A hole is a spacing of more than 1.5 steps, a step the commonest spacing, the shortest of
        several as common. Columns: stream (key), kind, holes (count), absent_rows (steps without a
        row inside the holes), longest_hole_s (s, from one row's end to the next row), tied_rows
        (rows beyond the first of their ts, not counted elsewhere). `coverage` shows whether the
        service had no row at a hole or was never asked. ``as_of`` is that of `series`.
        """
        return self._rows(CONTINUITY, as_of)

    def series(
        self,
        trajectory: Trajectory | SnapshotTrajectory | str,
        window: Ends = EVER,
        *,
        as_of: int | None = None,
        ties: bool = False,
    ) -> pl.DataFrame:
        """Return a trajectory's rows with ``start <= ts < end``, sorted by ts, one row per ts.

        Of several rows with one ts it is the last: by the declared key, else the one that the
        service listed as newest, else that of the later load. With ``ties`` all are returned.

        Columns: trajectory (key), ts (s UTC, where the row's interval begins: prices are those at
        its end), then for a price: price, mark_price, volume (quote). For a spread: buy_price,
        sell_price (quote), spread_pct (percent). For funding: buy_rate, sell_rate (fraction per
        interval), buy_interval_hours, sell_interval_hours, differential_pct_8h. Kept from
        snapshots, where ts is the service's clock at the answer: of a spread also opened_at (s
        UTC), of a rate rate (fraction per interval), interval_hours and next_funding_time (s UTC).
        ``as_of`` (s, local clock) gives the rows committed by then. A window without rows gives an
        empty frame. Gaps stay gaps. Raises `UnknownTrajectoryError` for one that was never asked
        for.
        """
        stream = Stream.parse(trajectory)
        if not isinstance(stream, SnapshotTrajectory):
            stream = Trajectory.parse(stream)
        values = ", ".join(value_columns(stream.kind))
        query = (
            f"SELECT $key AS trajectory, ts, {values}, revision FROM {ROWS[stream.kind].name} "  # noqa: S608 - ours
            "WHERE stream_id = (SELECT stream_id FROM stream WHERE key = $key) "
            f"AND ts >= $low AND ts < $high AND {seen(as_of)} ORDER BY ts, revision"
        )
        with self.reading() as connection:
            found = frame_of(connection, query, params={"key": stream.key, **limits(window)})
            if count := doubled(found, "ts", "revision"):
                raise mark_doubled(connection, self.path, stream.key, count)
        if found.is_empty():
            check_known(self, stream)
        found = found.with_columns(tie=pl.col("revision") // TIE).drop("revision")
        key = ["ts", "tie"] if ties else "ts"
        return found.unique(key, keep="last", maintain_order=True).drop("tie")

    def scan(self, asked: Asked, window: Ends = EVER, *, as_of: int | None = None) -> pl.LazyFrame:
        """Return rows of many trajectories as a LazyFrame, of the store's present state.

        ``asked`` is a family or its name, or trajectories of one family. Columns, window and
        ``as_of`` are those of `series`, one row per ts. Trajectories are sorted by key, the rows of
        each by ts. Those without a row are absent. Collecting reads only the columns used, and the
        rows that conditions on trajectory and window allow. Later rows are not in it.

        Raises `InputError` for any other ``asked``, `UnknownTrajectoryError` for a trajectory that
        was never asked for. Collecting fails if the file was exchanged since.

        >>> import tempfile
        >>> from toolkit.market import Source
        >>> from toolkit.store import StoreWriter
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(f"{folder}/rail.duckdb")
        ...     StoreWriter(store).bind(Source("replay", "example"))
        ...     store.scan("spread").filter(pl.col("buy_price") > 1).collect().height
        0
        """
        return scan_of(self, asked, window, self._then(as_of)).lazy()

    def groups(
        self,
        asked: Asked,
        window: Ends = EVER,
        *,
        as_of: int | None = None,
        rows: int | None = None,
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows of `scan`, some whole trajectories at a time, so that memory stays flat.

        A frame has about ``rows`` rows (default 300,000, of funding 150,000), or one larger
        trajectory. There is always a first frame. The file is closed between two. All are of the
        store's state at the call. `toolkit.statistics.passes` applies statistics to them.
        """
        with scanning(self, asked, window, self._then(as_of)) as (scan, connection):
            streams = scan.counted(connection)
        return scan.groups(streams, rows)

    def ledger(
        self,
        streams: Iterable[Stream] | None = None,
        window: Ends | None = None,
        *,
        as_of: int | None = None,
    ) -> dict[Stream, Ledger]:
        """Return what is known of all streams that were asked for, or of some in a window.

        ``as_of`` is that of `coverage`. It does not know how late a stream was then.
        """
        asked = None if streams is None else asked_streams(streams)
        with self._knowing(as_of) as connection:
            return read_ledger(connection, asked, window and Interval.of(window))

    def events(
        self,
        family: EventFamily | str,
        window: Ends,
        *,
        as_of: int | None = None,
        whole: bool = True,
    ) -> pl.DataFrame:
        """Return a log's documents with ``start <= ts < end``, oldest first, each once.

        Columns: those of `toolkit.tables.EVENT` but revision, load_id and committed_at, and
        ``arrival``, a running number. Of one event's documents of one time the closing is last. Of
        a document that changed, the newest revision is returned. ``as_of`` is that of `series`. A
        window without documents gives an empty frame. Without ``whole`` the large column
        ``document`` is left out.
        """
        left_out = "revision, load_id, committed_at" + ("" if whole else ", document")
        found = self._rows(
            f"SELECT * EXCLUDE ({left_out}) FROM event "  # noqa: S608 - ours
            f"WHERE family = $family AND ts >= $low AND ts < $high AND {seen(as_of)} "
            "QUALIFY row_number() OVER (PARTITION BY schema_id, event_id, event_type, ts_ms "
            "ORDER BY revision DESC) = 1 ORDER BY ts_ms, event_id, "
            "list_contains($closing, list_last(string_split(event_type, '.'))), event_type",
            family=EventLog.of(family).family.value,
            closing=_CLOSING,
            **limits(window),
        )
        return found.with_row_index("arrival").with_columns(pl.col("arrival").cast(pl.Int64))

    def arrivals(self, family: EventFamily | str, window: Ends) -> pl.DataFrame:
        """Return when the documents of a log with ``start <= ts < end`` came by each channel.

        One row per document and channel, oldest first: family, schema_id, event_id, event_type,
        ts_ms (ms, when it happened), channel, arrived_ms (ms, local clock, when it came first) and
        n_deliveries. The channels are archive, socket and webhook. Messages of a socket have the
        time when they came, others that of their commit. n_deliveries is how often a document came,
        of the archive in the page that brought it first. Of documents from before format 10 it is
        null and the channel is webhook, or service where a socket and the archive are not told
        apart. Of those only the first arrival is known, by the second, and null before format 6.
        """
        return self._rows(ARRIVALS, family=EventLog.of(family).family.value, **limits(window))

    def channels_open(self) -> pl.DataFrame:
        """Return when channels other than the archive were open: one row per run and family.

        Columns: channel, family, start_ts and end_ts (s, UTC, half-open): from the first document
        of a run to its last. The ledger has when the archive was answered for.
        """
        return self._rows(OPENED, archive=ARCHIVE)

    def counts(self, window: Ends) -> dict[Stream, int]:
        """Count rows and documents with ``start <= ts < end`` for each stream that has any."""
        with self.reading() as connection:
            rows = connection.execute(COUNTS, limits(window)).fetchall()
        return {Stream.parse(key): int(count) for key, count in rows}

    def coverage(
        self,
        stream: Stream,
        window: Ends,
        *,
        tolerance_s: int | None = None,
        as_of: int | None = None,
    ) -> pl.DataFrame:
        """Return what is known of every second of the window: one row per stretch, in order.

        Columns: start_ts, end_ts (s UTC, half-open), state (a `LedgerState`). Rows of a trajectory
        further apart than ``tolerance_s`` (default 1.5 steps) leave an ``empty`` stretch. An event
        log is ``held`` wherever it was answered for: no event is not a gap. Nothing is known after
        the service's clock at the last question. A series kept from snapshots is ``held`` from each
        answer to the next one due, whether or not it shows the pair, else ``unrecoverable``.
        ``as_of`` (s, local clock) gives what was known by the commits of that second. Raises
        `StoreError` where the service never answered for the stream by then, `InputError` for a
        tolerance below zero, for snapshots, which are of moments, and for an ``as_of`` before
        `history_from`.
        """
        stream = Stream.parse(stream)
        if isinstance(stream, SnapshotLog):
            raise InputError("stream", stream.key, "a trajectory or an event log")
        if tolerance_s is not None and (not isinstance(tolerance_s, int) or tolerance_s < 0):
            raise InputError("tolerance_s", tolerance_s, "whole seconds, zero or more")
        asked = Interval.of(window)
        with self._knowing(as_of) as connection:
            if isinstance(stream, SnapshotTrajectory):
                found = poll_coverage(connection, stream, asked, tolerance_s)
            else:
                found = read_coverage(connection, stream, asked, tolerance_s)
        if found is None:
            raise StoreError(
                f"{self.name} knows nothing of {stream}; "
                + sync_advice(self, stream.key, does="asks for it"),
                path=str(self.path),
            )
        return found

    def snapshots(
        self,
        kind: SnapshotKind | str,
        window: Ends = EVER,
        *,
        newest: bool = False,
        as_of: int | None = None,
    ) -> pl.DataFrame:
        """Return a kind's snapshots with ``start <= served_at < end``, newest first, or the newest.

        The ends of the window may be text: ``("2026-11-01", "2026-11-02")``.

        Columns: kind, served_at (s UTC, the service's clock at the answer), document (the answer as
        it came, or the same JSON value where its items are kept as rows), load_id. ``as_of`` is
        that of `series`.
        """
        of = SnapshotLog.named(kind).of
        with self.reading() as connection:
            return read_snapshots(connection, of, window, newest=newest, as_of=as_of)

    def polls(
        self, kind: SnapshotKind | str, window: Ends = EVER, *, as_of: int | None = None
    ) -> pl.DataFrame:
        """Return the times in the window at which a list of spreads or rates came, oldest first.

        Columns: ts (s UTC, the service's clock at the answer), period_s (s, until the next was due:
        as set, else the commonest spacing, or null). ``as_of`` is that of `series`.
        """
        with self.reading(as_of) as connection:
            return read_polls(connection, SnapshotLog.named(kind).of, window)

    def gaps(self, *, as_of: int | None = None) -> pl.DataFrame:
        """Return one row per loss of a stream in a capture, newest first.

        Columns: load_id, gap_id, stream (key), start_ts, end_ts (s, the service's clock. No end
        while it is lost), cause, status (`GapStatus`), repaired_load_id. Last come the stretches
        that the service's own source lost, with its reason: status ``lost``, load_id and gap_id
        null. ``as_of`` is that of `coverage`.
        """
        with self._knowing(as_of) as connection:
            return frame_of(connection, GAPS)

    def rows_by_load(self) -> pl.DataFrame:
        """Return for each load: load_id, rows, asked_at (of the edges that it wrote last, s)."""
        return self._rows(ROWS_BY_LOAD)


_CLOSING = [word for word, role in TYPE_ROLES.items() if role is EventRole.CLOSES]
