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
from toolkit.store.ledger.catalogue import CONTINUITY, COUNTS, ROWS_BY_LOAD, limits
from toolkit.store.ledger.coverage import GAPS, read_coverage, read_ledger
from toolkit.store.ledger.history import seen
from toolkit.store.reading.frames import frame_of
from toolkit.store.reading.lookup import asked_streams, check_known, sync_advice
from toolkit.store.reading.scanning import Asked, doubled, scan_of
from toolkit.store.reading.snapshots import poll_coverage, read_polls, read_snapshots
from toolkit.store.reading.sql import Parameters, in_utc, values_of
from toolkit.store.reading.sql_process import ask
from toolkit.store.writing.batch import ARCHIVE, Ledger
from toolkit.store.writing.events import ARRIVALS, OPENED
from toolkit.tables import ROWS, SERIES, SNAPSHOT_SERIES, TIE

_WAIT_S = 0.5


def store_card(store: Store) -> Card:
    """Show source, trajectories, rows, first and last time, size and last load of a store.

    A display neither waits for a load under way nor fails: a store that is missing, locked or no
    store is a fact like the others.

    >>> import tempfile
    >>> from toolkit.store import Store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(store_card(Store(f"{folder}/rail.duckdb")))
    Store .../rail.duckdb
      holds  nothing yet: the first load makes the file
    """
    heading = f"Store {store.path}"
    try:
        if not store.path.exists():
            return Card(heading, [("holds", "nothing yet: the first load makes the file")])
        return Card(heading, _facts(type(store)(store.path, wait_s=_WAIT_S)))
    except (RailError, OSError) as error:
        return Card(heading, [("not read", str(error))])


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
    """Return a total, and its parts by kind where there is one: 3 (2 price, 1 spread)."""
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
    """One DuckDB file holding one source's trajectories and what is known of their coverage.

    It reads. What writes is `toolkit.store.StoreWriter`. Nothing is opened until it is used, and
    nothing stays open after. ``wait_s`` is how long a use waits for another process that holds the
    file. Its first use brings a store of the format before to this one, beside a copy of it.
    ``published`` is the manifest that the file is a copy of: such a store takes no rows. With
    ``as_of`` (s, local clock) each method without one of its own reads as of then: see `known`.

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
        """What the store holds, for display: a short look that never fails. See `store_card`."""
        return store_card(self)

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

        Another process runs it (`toolkit.store.reading.sql_process`), with a quarter of the memory.
        ``parameters`` are the values of ``$name``, or of ``?`` in their order. A column ``time`` is
        a time in UTC, as in a series' ``df``. A length of time is a Duration, or a text in a column
        where one has months. Other types that polars lacks are text. Rows come in no order but that
        of an ORDER BY. The query can write nothing, and reads no other file and no table. ``as_of``
        is that of `coverage`. Rows beyond ``at_most`` are not read. Raises `InputError` for any
        other statement, for an unknown view or column with the nearest ones, for times outside of
        the years 1 to 9999, and for a query that takes longer than ``within_s`` (s) or more memory,
        `StoreError` where the file fails.

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
        self._bring_up_to_date()
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
        """Return one row for each trajectory with rows: where rows do not follow one another.

        A hole is a spacing of more than 1.5 steps, the step being the commonest spacing (the
        shortest of several as common). Columns:
        stream (key), kind, holes (count), absent_rows (steps without a row inside the
        holes), longest_hole_s (s, from one row's end to the next row), tied_rows (rows beyond the
        first of their ts, which count for nothing else here). At a hole the service had no row,
        or it was never asked: `coverage` shows which. ``as_of`` is that of `series`.
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

        Of several rows that share a ts it is the last: by the declared key, else the one that the
        service listed as newest, else that of the later load. With ``ties`` all of them are given.

        Columns: trajectory (key), ts (s UTC, where the row's interval begins: prices are those at
        its end), then for a price: price, mark_price, volume (quote). For a spread: buy_price,
        sell_price (quote), spread_pct (percent). For funding: buy_rate, sell_rate (fraction per
        interval), buy_interval_hours, sell_interval_hours, differential_pct_8h. Kept from
        snapshots, where ts is the service's clock at the answer: of a spread also opened_at (s
        UTC), of a rate rate (fraction per interval), interval_hours and next_funding_time (s UTC).
        ``as_of`` (s, local clock) gives the rows as committed by then, else the newest revision. A
        window without rows gives a frame without rows. Gaps stay gaps. Raises
        `UnknownTrajectoryError` for one that was never asked for.
        """
        stream = Stream.parse(trajectory)
        if not isinstance(stream, SnapshotTrajectory):
            stream = Trajectory.parse(stream)
        table = ROWS[stream.kind]
        values = [c.name for c in table.values if c.name != "extra"]
        query = (
            f"SELECT $key AS trajectory, ts, {', '.join(values)}, revision "  # noqa: S608 - ours
            f"FROM {table.name} WHERE stream_id = (SELECT stream_id FROM stream WHERE key = $key) "
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
        """Return rows of many trajectories as a LazyFrame, of the state that the store is in now.

        ``asked`` is a family or its name, or trajectories of one family. Columns, window and
        ``as_of`` are those of `series`, one row per ts. Each trajectory's rows are together, sorted
        by ts, the trajectories by key. Those without a row in the window are absent. Nothing is
        read before it is collected, and then only the columns that are used. Conditions on the
        trajectory and the window are read no further than they hold. The streaming engine takes
        the rows of `groups`. Rows that come later are not in it.

        Raises `InputError` for what is neither, `UnknownTrajectoryError` for a trajectory that was
        never asked for. Collecting fails where the file was exchanged since.

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

        A frame has about ``rows`` rows, or one trajectory where that has more. None is 300,000,
        of funding 150,000. There is always a first one. The file is open while one is read,
        and closed between two. All are of the state that the store is in now, whatever is
        written meanwhile. `toolkit.statistics.passes` applies statistics to them.
        """
        scan = scan_of(self, asked, window, self._then(as_of))
        return scan.groups(scan.streams(), rows)

    def ledger(
        self,
        streams: Iterable[Stream] | None = None,
        window: Ends | None = None,
        *,
        as_of: int | None = None,
    ) -> dict[Stream, Ledger]:
        """Return what is known of streams that were asked for: of all, or of some in a window.

        ``as_of`` is that of `coverage`. It does not know how late a stream was once.
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
        ``arrival``, a running number in this order. Of one event's documents of one time the
        closing is last. Of a document that changed, the newest revision is given. ``as_of`` is that
        of `series`. A window without documents gives a frame without rows. Without ``whole`` there
        is no column ``document``, which takes most of the memory.
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
        It is made for `toolkit.statistics.events.channels`.
        """
        return self._rows(ARRIVALS, family=EventLog.of(family).family.value, **limits(window))

    def channels_open(self) -> pl.DataFrame:
        """Return when channels other than the archive were open: one row per run and family.

        Columns: channel, family, start_ts and end_ts (s, UTC, half-open): from the first document
        that a run brought to its last. The archive is held where the ledger says so.
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
        further apart than ``tolerance_s`` (1.5 steps) leave an ``empty`` stretch between them. An
        event log holds all that it was answered for: having no event does not make a gap. The
        service's clock when it was last asked is the edge of what could be known. A part of the
        window gives of its seconds what the whole gives. A series kept from snapshots is ``held``
        from each answer to the next one due, whether the answer shows its pair or not, and the rest
        is ``unrecoverable``. ``as_of`` (s, local clock) gives what was known by the commits of that
        second, as this method gave it then. Raises `StoreError` where the service never answered
        for the stream by then, `InputError` for a tolerance below zero, for snapshots, which are of
        moments, and for an ``as_of`` before `history_from`.
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
        """Return those of a kind with ``start <= served_at < end``, newest first, or the newest.

        Only those are read. Without a window it is every one of all time, which may be many. The
        ends of the window may be text: ``("2026-11-01", "2026-11-02")``.

        Columns: kind, served_at (s UTC, the service's clock at the answer), document, load_id.
        A document is the answer as it came. Of a spread or funding answer, whose items are kept as
        rows, it is the same JSON value. ``as_of`` is that of `series`.
        """
        of = SnapshotLog.named(kind).of
        with self.reading() as connection:
            return read_snapshots(connection, of, window, newest=newest, as_of=as_of)

    def polls(
        self, kind: SnapshotKind | str, window: Ends = EVER, *, as_of: int | None = None
    ) -> pl.DataFrame:
        """Return the times in the window at which a list of spreads or rates came, oldest first.

        Columns: ts (s UTC, the service's clock at the answer), period_s (s, how long after it the
        next was due: as set, else the commonest spacing, or null). ``as_of`` is that of `series`.
        """
        with self.reading(as_of) as connection:
            return read_polls(connection, SnapshotLog.named(kind).of, window)

    def gaps(self, *, as_of: int | None = None) -> pl.DataFrame:
        """Return one row for each time a capture lost a stream, newest first.

        Columns: load_id, gap_id, stream (key), start_ts, end_ts (s, the service's clock. No end
        while it is lost), cause, status (`GapStatus`), repaired_load_id. Last come the stretches
        that the service's own source lost, with its reason: their status is ``lost``, their load_id
        and gap_id are null. ``as_of`` is that of `coverage`.
        """
        with self._knowing(as_of) as connection:
            return frame_of(connection, GAPS)

    def rows_by_load(self) -> pl.DataFrame:
        """Return of each load: load_id, rows, asked_at (of the edges that it wrote last, s)."""
        return self._rows(ROWS_BY_LOAD)


_CLOSING = [word for word, role in TYPE_ROLES.items() if role is EventRole.CLOSES]
