"""The store: one DuckDB file, one source, opened per use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import polars as pl

from toolkit import commands
from toolkit.cards import Card, Shown
from toolkit.errors import InputError, StoreError
from toolkit.intervals import EVER, Interval
from toolkit.market import (
    TYPE_ROLES,
    EventFamily,
    EventLog,
    EventRole,
    Family,
    SnapshotKind,
    SnapshotLog,
    Source,
    Stream,
    Trajectory,
)
from toolkit.store.batch import Ledger
from toolkit.store.card import store_card
from toolkit.store.catalogue import (
    CATALOGUE,
    CONTINUITY,
    COUNTS,
    ROWS_BY_LOAD,
    known_as_of,
    limits,
    seen,
)
from toolkit.store.connection import check_use, keep_lean, opened
from toolkit.store.coverage import read_coverage, read_ledger
from toolkit.store.gaps import GAPS
from toolkit.store.lookup import asked_streams, check_known
from toolkit.store.migration import bring_up_to_date
from toolkit.store.schema import read_source
from toolkit.store.sql import Parameters, select
from toolkit.tables import LOAD, SERIES, TIE, CoverageState
from toolkit.wire.limits import LIMITS, Limits


class Store(Shown):
    """One DuckDB file holding one source's trajectories and what is known of their coverage.

    It reads. What writes is `toolkit.store.StoreWriter`. Nothing is opened until it is used, and
    nothing stays open after. ``wait_s`` is how long a use waits for another process that holds the
    file. Its first use brings a store of an older format to this one, beside a copy of it.

    >>> import tempfile
    >>> from toolkit.store import StoreWriter
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(Path(folder.name) / "rail.duckdb")
    >>> StoreWriter(store).bind(Source("replay", "example"))
    >>> store.source
    Source(kind='replay', id='example')
    >>> store.catalogue().height
    0
    >>> folder.cleanup()
    """

    _not_for_users = frozenset({"keep_lean"})

    def __init__(self, path: str | Path, *, wait_s: float = 10.0) -> None:
        check_use(path, wait_s)
        self.path = Path(path)
        self.wait_s = wait_s
        self._up_to_date = False

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    @property
    def card(self) -> Card:
        """What the store holds, for display: a short look that never fails. See `store_card`."""
        return store_card(self)

    @contextlib.contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a cursor on one snapshot for as long as the block lasts. Keep the block short.

        Fetch inside the block: a stream kept beyond it keeps the file open. Blocks of one thread
        nest and share one opening, each with a snapshot of its own.

        Raises `StoreError` where there is no file, `NotAStoreError` where it is something else,
        `StoreLockedError` where another process keeps it open for writing.
        """
        if not self._up_to_date:
            bring_up_to_date(self.path, self.wait_s)
            self._up_to_date = True
        with opened(self.path, writable=False, wait_s=self.wait_s) as connection:
            connection.execute("BEGIN READ ONLY")
            read_source(connection, self.path)
            yield connection

    @property
    def source(self) -> Source:
        """The source of the data that the store holds."""
        with opened(self.path, writable=False, wait_s=self.wait_s) as connection:
            return read_source(connection, self.path)

    def keep_lean(self, limits: Limits = LIMITS) -> None:
        """Keep the memory of this process's further uses of the file small: see `connection`."""
        keep_lean(self.path, limits.buffer_bytes)

    def _rows(self, query: str, **params: object) -> pl.DataFrame:
        with self.reading() as connection:
            found: pl.DataFrame = connection.sql(query, params=params).pl()
        return found

    def sql(self, query: str, parameters: Parameters | None = None) -> pl.DataFrame:
        """Return the rows of one SELECT over the views: prices, spreads and so on (docs/store.md).

        ``parameters`` are the values of ``$name``, or of ``?`` in their order. A column ``time`` is
        a time in UTC without a zone. Rows come in no order but that of an ORDER BY. The query can
        write nothing, and reads no other file and no table. Raises `InputError` for any other
        statement, and for an unknown view or column with the nearest ones.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> from toolkit.store import StoreWriter
        >>> store = Store(Path(folder.name) / "rail.duckdb")
        >>> StoreWriter(store).bind(Source("replay", "example"))
        >>> store.sql("from prices where key = $key", {"key": "BTC_USD:KRAKEN.spot"}).height
        0
        >>> folder.cleanup()
        """
        with self.reading() as connection:
            return select(connection, query, parameters)

    def catalogue(self) -> pl.DataFrame:
        """Return one row for each stream the store knows, sorted by kind and key.

        Columns: stream (key), kind (price, spread, funding, events, snapshot), rows (rows by ts,
        documents or snapshots), revisions (those that changed), first_ts, last_ts (s UTC, null
        without rows), step_s (spacing of the rows as observed), retention_s and delay_s of the plan
        when it was last asked, served_at (the service's clock then, s), asked_at (the local clock
        then, s), answered_until (the end of the latest stretch that was answered, s UTC). The last
        six are null where the service never answered.
        """
        return self._rows(CATALOGUE, asked=CoverageState.ASKED)

    def continuity(self) -> pl.DataFrame:
        """Return one row for each trajectory with rows: where rows do not follow one another.

        A hole is a spacing of more than 1.5 steps, the step being the commonest spacing (the
        shortest of several as common). Columns:
        stream (key), kind, holes (count), absent_rows (steps without a row inside the
        holes), longest_hole_s (s, from one row's end to the next row), tied_rows (rows beyond the
        first of their ts, which count for nothing else here). At a hole the service had no row,
        or it was never asked: `coverage` shows which.
        """
        return self._rows(CONTINUITY)

    def series(
        self,
        trajectory: Trajectory | str,
        window: Interval = EVER,
        *,
        as_of: int | None = None,
        ties: bool = False,
    ) -> pl.DataFrame:
        """Return a trajectory's rows with ``start <= ts < end``, sorted by ts, one row per ts.

        Of several rows that share a ts it is the last: by the declared key, else the one that the
        service listed as newest, else that of the later load. With ``ties`` all of them are given.

        Columns: trajectory (key), ts (s UTC, where the row's interval begins: prices are those at
        its end), then for a price: price, mark_price, volume (quote).
        For a spread: buy_price, sell_price (quote), spread_pct (percent). For funding: buy_rate,
        sell_rate (fraction per interval), buy_interval_hours, sell_interval_hours,
        differential_pct_8h. ``as_of`` (s, local clock) gives the rows as loads begun by then had
        brought them, else the newest revision. A window without rows gives a frame without rows.
        Gaps stay gaps. Raises `UnknownTrajectoryError` for one that was never asked for.
        """
        trajectory = Trajectory.parse(trajectory)
        table = SERIES[trajectory.family]
        values = [c.name for c in table.values if c.name != "extra"]
        found = self._rows(
            f"SELECT $key AS trajectory, ts, {', '.join(values)}, revision // {TIE} AS tie "  # noqa: S608 - ours
            f"FROM {table.name} WHERE stream_id = (SELECT stream_id FROM stream WHERE key = $key) "
            f"AND ts >= $low AND ts < $high AND {seen(as_of)} ORDER BY ts, revision",
            key=trajectory.key,
            **limits(window, as_of),
        )
        if found.is_empty():
            check_known(self, trajectory)
        key = ["ts", "tie"] if ties else "ts"
        return found.unique(key, keep="last", maintain_order=True).drop("tie")

    def family_series(
        self, family: Family, window: Interval, among: Iterable[Trajectory] | None = None
    ) -> pl.DataFrame:
        """Return the rows of a family, or of some of it, with ``start <= ts < end``, in one look.

        Columns and meaning as `series`, one row per ts. Each trajectory's rows are together, sorted
        by ts. All of them are in memory: 3 million spread rows take about 200 MB.
        """
        values = [c.name for c in SERIES[family].values if c.name != "extra"]
        keys_asked = {} if among is None else {"keys": [each.key for each in among]}
        some = f" AND stream_id IN ({_IDS_OF_KEYS})" if keys_asked else ""
        with self.reading():
            rows = self._rows(
                f"SELECT stream_id, ts, {', '.join(values)}, revision "  # noqa: S608 - ours
                f"FROM {SERIES[family].name} WHERE ts >= $low AND ts < $high{some}",
                **limits(window),
                **keys_asked,
            )
            keys = self._rows("SELECT stream_id, key AS trajectory FROM stream")
        rows = rows.sort("stream_id", "ts", "revision")
        if (rows["revision"] > 0).any():
            rows = rows.unique(["stream_id", "ts"], keep="last", maintain_order=True)
        named_rows = keys.join(rows, on="stream_id", maintain_order="right")
        return named_rows.drop("stream_id", "revision")

    def ledger(
        self, streams: Iterable[Stream] | None = None, window: Interval | None = None
    ) -> dict[Stream, Ledger]:
        """Return what is known of streams that were asked for: of all, or of some in a window."""
        asked = None if streams is None else asked_streams(streams)
        with self.reading() as connection:
            return read_ledger(connection, asked, window and Interval.of(window))

    def events(
        self, family: EventFamily | str, window: Interval, *, as_of: int | None = None
    ) -> pl.DataFrame:
        """Return a log's documents with ``start <= ts < end``, oldest first, each once.

        Columns: those of `toolkit.tables.EVENT` but load_id and revision, and ``arrival``, a
        running number in this order. Of one event's documents of one time the closing is last. Of a
        document that changed, the newest revision is given. ``as_of`` is that of `series`. A
        window without documents gives a frame without rows.
        """
        found = self._rows(
            "SELECT * EXCLUDE (revision, load_id) FROM event "  # noqa: S608 - ours
            f"WHERE family = $family AND ts >= $low AND ts < $high AND {seen(as_of)} "
            "QUALIFY row_number() OVER (PARTITION BY schema_id, event_id, event_type, ts_ms "
            "ORDER BY revision DESC) = 1 ORDER BY ts_ms, event_id, "
            "list_contains($closing, list_last(string_split(event_type, '.'))), event_type",
            family=EventLog.of(family).family.value,
            closing=_CLOSING,
            **limits(window, as_of),
        )
        return found.with_row_index("arrival").with_columns(pl.col("arrival").cast(pl.Int64))

    def counts(self, window: Interval) -> dict[Stream, int]:
        """Count rows and documents with ``start <= ts < end`` for each stream that has any."""
        with self.reading() as connection:
            rows = connection.execute(COUNTS, limits(window)).fetchall()
        return {Stream.parse(key): int(count) for key, count in rows}

    def coverage(
        self, stream: Stream, window: Interval, *, tolerance_s: int | None = None
    ) -> pl.DataFrame:
        """Return what is known of every second of the window: one row per stretch, in order.

        Columns: start_ts, end_ts (s UTC, half-open), state (a `LedgerState`). Rows of a trajectory
        further apart than ``tolerance_s`` (1.5 steps) leave an ``empty`` stretch between them. An
        event log holds all that it was answered for: no event is no gap. The service's clock when
        it was last asked is the edge of what could be known. A part of the window gives of its
        seconds what the whole gives. Raises `StoreError` where the service never answered for the
        stream, `InputError` for a tolerance below zero and for snapshots, which are of moments.
        """
        stream = Stream.parse(stream)
        if isinstance(stream, SnapshotLog):
            raise InputError("stream", stream.key, "a trajectory or an event log")
        if tolerance_s is not None and (not isinstance(tolerance_s, int) or tolerance_s < 0):
            raise InputError("tolerance_s", tolerance_s, "whole seconds, zero or more")
        with self.reading() as connection:
            found = read_coverage(connection, stream, Interval.of(window), tolerance_s)
        if found is None:
            raise StoreError(
                f"{self.path} knows nothing of {stream}; "
                f"`{self.command('sync', stream.key)}` asks for it",
                path=str(self.path),
            )
        return found

    def snapshots(
        self, kind: SnapshotKind | str, *, newest: bool = False, as_of: int | None = None
    ) -> pl.DataFrame:
        """Return all of a kind, newest first, or the newest: served_at (s), document, load_id.

        ``as_of`` is that of `series`.
        """
        newest_first = f"ORDER BY served_at DESC, load_id DESC LIMIT {1 if newest else 2**31}"
        query = f"FROM snapshot WHERE kind = $kind AND {seen(as_of)} {newest_first}"
        return self._rows(query, kind=SnapshotLog.named(kind).of.value, **known_as_of(as_of))

    def command(self, *words: str) -> str:
        """Return a command line of `rail` for this store, and for the service it was loaded from.

        >>> import tempfile
        >>> from toolkit.store import StoreWriter
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(f"{folder}/s.duckdb")
        ...     StoreWriter(store).bind(Source("live", "rail"))
        ...     store.command("status") == f"rail status --store {store.path}"
        True
        """
        newest = self.loads()["base_url"].drop_nulls().head(1).to_list()
        return commands.rail(*words, store=self.path, base_url=newest[0] if newest else None)

    def loads(self) -> pl.DataFrame:
        """Return one row for each load, newest first: the columns of `toolkit.tables.LOAD`."""
        return self._rows("SELECT * FROM load ORDER BY load_id DESC").select(LOAD.names)

    def gaps(self) -> pl.DataFrame:
        """Return one row for each time a capture lost a stream, newest first.

        Columns: load_id, gap_id, stream (key), start_ts, end_ts (s, the service's clock. No end
        while it is lost), cause, status (`GapStatus`), repaired_load_id.
        """
        return self._rows(GAPS)

    def rows_by_load(self) -> pl.DataFrame:
        """Return of each load: load_id, rows, asked_at (of the edges that it wrote last, s)."""
        return self._rows(ROWS_BY_LOAD)


_IDS_OF_KEYS = "FROM stream SELECT stream_id WHERE list_contains($keys, key)"
_CLOSING = [word for word, role in TYPE_ROLES.items() if role is EventRole.CLOSES]
