"""The store: one DuckDB file, one source, opened per use."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb
import polars as pl

from toolkit.cards import Card, Shown
from toolkit.errors import InputError, StoreError, StoreSourceError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, Source, Trajectory
from toolkit.store.batch import Batch, Ledger, LoadOrigin
from toolkit.store.card import store_card
from toolkit.store.catalogue import (
    named,
    read_catalogue,
    read_continuity,
    read_event_catalogue,
    read_ledger,
    read_rows_by_load,
    write_allowance,
)
from toolkit.store.commit import write_batch
from toolkit.store.connection import opened
from toolkit.store.events import read_event_ledger
from toolkit.store.gaps import end_gaps, read_gaps
from toolkit.store.ingest import (
    Inserted,
)
from toolkit.store.ledger import states, stretches
from toolkit.store.schema import create_store, load_columns, migrate, read_source
from toolkit.tables import SERIES
from toolkit.wire.allowance import Allowance

__all__ = ["Store"]


class Store(Shown):
    """One DuckDB file holding one source's trajectories and what is known of their coverage.

    Nothing is opened until it is used, and nothing stays open after. ``wait_s`` is how long a use
    waits for another process that holds the file.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(Path(folder.name) / "rail.duckdb")
    >>> store.bind(Source("replay", "example"))
    >>> store.source
    Source(kind='replay', id='example')
    >>> store.catalogue().height
    0
    >>> folder.cleanup()
    """

    def __init__(self, path: str | Path, *, wait_s: float = 10.0) -> None:
        self.path = Path(path)
        self.wait_s = wait_s

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    @property
    def card(self) -> Card:
        """What the store holds, for display: a short look that never fails; see `store_card`."""
        return store_card(self)

    @contextlib.contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor on one snapshot for as long as the block lasts; keep the block short.

        Fetch inside the block: a stream kept beyond it keeps the file open. Blocks of one thread
        nest and share one opening, each with a snapshot of its own.

        Raises `StoreError` where there is no file, `NotAStoreError` where it is something else,
        `StoreLockedError` where another process keeps it open for writing.
        """
        with opened(self.path, writable=False, wait_s=self.wait_s) as connection:
            connection.execute("BEGIN READ ONLY")
            read_source(connection, self.path)
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor inside one transaction, committed with the block, dropped with an error.

        Raises what `reading` raises, and `StoreLockedError` at once inside another use of the
        same thread. What is read inside, by this cursor, includes what was written. A store of an
        older format is brought to this one first.
        """
        with opened(self.path, writable=True, wait_s=self.wait_s) as connection:
            connection.execute("BEGIN")
            migrate(connection, self.path)
            yield connection
            connection.execute("COMMIT")

    def bind(self, source: Source) -> None:
        """Make the store for a source, or check that it is this source's.

        Raises `StoreSourceError` where it holds another's data.
        """
        create_store(self.path, source)
        held = self.source
        if held.id != source.id:
            raise StoreSourceError(
                f"{self.path} holds data of another source ({held.label}), the service is "
                f"{source.label}; name another store, a store never mixes sources",
                path=str(self.path),
            )

    @property
    def source(self) -> Source:
        """The source whose data the store holds."""
        with opened(self.path, writable=False, wait_s=self.wait_s) as connection:
            return read_source(connection, self.path)

    # -- writing -----------------------------------------------------------------------------------

    def start_load(self, origin: LoadOrigin) -> int:
        """Record that a load begins; gives its number."""
        with self.writing() as connection:
            newest = connection.execute("SELECT coalesce(max(load_id), 0) FROM load").fetchall()
            load_id = int(newest[0][0]) + 1
            connection.execute(
                "INSERT INTO load (load_id, started_at, served_at, base_url, schema_hash, "
                "toolkit_version) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    load_id,
                    int(time.time()),
                    origin.served_at,
                    origin.base_url,
                    origin.schema_hash,
                    origin.toolkit_version,
                ],
            )
            write_allowance(connection, load_id, origin.allowance)
        return load_id

    def finish_load(self, load_id: int, findings: Sequence[Mapping[str, object]]) -> None:
        """Record that a load ended well, and what it found."""
        with self.writing() as connection:
            connection.execute(
                "UPDATE load SET finished_at = ?, finding = ? WHERE load_id = ?",
                [int(time.time()), json.dumps(list(findings)) if findings else None, load_id],
            )

    def keep_allowance(self, load_id: int, allowance: Allowance | None) -> None:
        """Record the plan and quota that the service told last during a load, if it told any."""
        if allowance is not None:
            with self.writing() as connection:
                write_allowance(connection, load_id, allowance)

    def commit(self, load_id: int, batch: Batch) -> Inserted:
        """Write a batch's rows and their ledger entries in one transaction: all or nothing."""
        with self.writing() as connection:
            return write_batch(connection, load_id, batch)

    def end_gaps(self, at: int) -> None:
        """End the gaps that a killed capture left without an end; ``at``: the service's clock."""
        with self.writing() as connection:
            end_gaps(connection, at)

    def keep_snapshot(self, load_id: int, kind: str, served_at: int, document: bytes) -> None:
        """Keep one answer whole, as it stood at ``served_at`` (s, the service's clock)."""
        with self.writing() as connection:
            connection.execute(
                "INSERT INTO snapshot VALUES (?, ?, ?, ?)",
                [kind, served_at, document.decode(), load_id],
            )

    # -- reading -----------------------------------------------------------------------------------

    def catalogue(self) -> pl.DataFrame:
        """One row for each trajectory the store knows, sorted by family and key.

        Columns: trajectory (key), family, rows (distinct ts), revisions (rows that changed),
        first_ts, last_ts (s UTC, null without rows), step_s (spacing of the rows as observed),
        retention_s and delay_s of the plan at the last load, served_at (the service's clock then,
        s), asked_at (the local clock then, s).
        """
        with self.reading() as connection:
            return read_catalogue(connection)

    def continuity(self) -> pl.DataFrame:
        """One row for each trajectory with rows: where its rows do not follow one another.

        A hole is a spacing of more than 1.5 steps, the step being the commonest spacing (the
        shortest of several as common). Columns:
        trajectory (key), family, holes (count), absent_rows (steps without a row inside the
        holes), longest_hole_s (s, from one row's end to the next row). A hole says that the
        service, asked, had no row there, or that it was never asked: `coverage` tells which.
        """
        with self.reading() as connection:
            return read_continuity(connection)

    def event_catalogue(self) -> pl.DataFrame:
        """One row for each event log the store knows, sorted by family.

        Columns: family, documents (distinct ones), first_ts, last_ts (s UTC, null without
        documents), retention_s and delay_s of the plan at the last load, served_at (the service's
        clock then, s), asked_at (the local clock then, s).
        """
        with self.reading() as connection:
            return read_event_catalogue(connection)

    def series(
        self,
        trajectory: Trajectory,
        start: int | None = None,
        end: int | None = None,
        *,
        as_of: int | None = None,
    ) -> pl.DataFrame:
        """A trajectory's rows with ``start <= ts < end``, sorted by ts, one row a ts.

        Columns: trajectory (key), ts (s UTC), then for a price: price, mark_price, volume (quote);
        for a spread: buy_price, sell_price (quote), spread_pct (percent). ``as_of`` (s, local
        clock) gives the rows as loads begun by then had brought them; else the newest revision.
        An unknown trajectory or a window without rows gives a frame without rows; a window whose
        end is not after its start is an `InputError`. Gaps stay gaps.
        """
        table = SERIES[trajectory.family]
        values = [c.name for c in table.values if c.name != "extra"]
        low = -(2**62) if start is None else start
        high = 2**62 if end is None else end
        Interval.checked(low, high)
        seen = (
            "true"
            if as_of is None
            else "load_id IN (FROM load SELECT load_id WHERE started_at <= $as_of)"
        )
        params = named(trajectory) | {"low": low, "high": high}
        params |= {} if as_of is None else {"as_of": as_of}
        with self.reading() as connection:
            found: pl.DataFrame = connection.sql(
                f"SELECT $key AS trajectory, ts, {', '.join(values)} FROM {table.name} "  # noqa: S608 - ours
                "WHERE trajectory_id = (SELECT trajectory_id FROM trajectory "
                "WHERE key = $key AND family = $family) "
                f"AND ts >= $low AND ts < $high AND {seen} ORDER BY ts, revision",
                params=params,
            ).pl()
        return found.unique("ts", keep="last", maintain_order=True)

    def family_series(self, family: Family, start: int, end: int) -> pl.DataFrame:
        """The rows of every trajectory of a family with ``start <= ts < end``, in one look.

        Columns and meaning as `series`; each trajectory's rows stand together, sorted by ts. All of
        them are in memory: 3 million spread rows take about 200 MB.
        """
        Interval.checked(start, end)
        values = [c.name for c in SERIES[family].values if c.name != "extra"]
        with self.reading() as connection:
            rows: pl.DataFrame = connection.sql(
                f"SELECT trajectory_id, ts, {', '.join(values)}, revision "  # noqa: S608 - ours
                f"FROM {SERIES[family].name} WHERE ts >= $low AND ts < $high",
                params={"low": start, "high": end},
            ).pl()
            keys: pl.DataFrame = connection.sql(
                "SELECT trajectory_id, key AS trajectory FROM trajectory"
            ).pl()
        rows = rows.sort("trajectory_id", "ts", "revision")
        if (rows["revision"] > 0).any():
            rows = rows.unique(["trajectory_id", "ts"], keep="last", maintain_order=True)
        named_rows = keys.join(rows, on="trajectory_id", maintain_order="right")
        return named_rows.drop("trajectory_id", "revision")

    def ledger(self) -> dict[Trajectory, Ledger]:
        """What is known of every trajectory the store was ever asked to load, in one look."""
        with self.reading() as connection:
            return read_ledger(connection)

    def event_ledger(self) -> dict[EventFamily, Ledger]:
        """What is known of every event log the store was ever asked to load."""
        with self.reading() as connection:
            return read_event_ledger(connection)

    def events(self, family: EventFamily, start: int, end: int) -> pl.DataFrame:
        """A log's documents with ``start <= ts < end``, oldest first, each once, newest revision.

        Columns: those of `toolkit.tables.EVENT` but load_id and revision, and ``arrival``, a
        running number in this order. A window without documents gives a frame without rows.
        """
        Interval.checked(start, end)
        with self.reading() as connection:
            found: pl.DataFrame = connection.sql(
                "SELECT * EXCLUDE (revision, load_id) FROM event "
                "WHERE family = $family AND ts >= $low AND ts < $high "
                "QUALIFY row_number() OVER (PARTITION BY schema_id, event_id, event_type, ts_ms "
                "ORDER BY revision DESC) = 1 ORDER BY ts_ms, event_id, event_type",
                params={"family": family.value, "low": start, "high": end},
            ).pl()
        return found.with_row_index("arrival").with_columns(pl.col("arrival").cast(pl.Int64))

    def event_counts(self, start: int, end: int) -> dict[EventFamily, int]:
        """Documents with ``start <= ts < end`` for each event log that has any."""
        with self.reading() as connection:
            rows = connection.execute(
                "SELECT family, count(*) FROM event WHERE revision = 0 AND ts >= ? AND ts < ? "
                "GROUP BY family",
                [start, end],
            ).fetchall()
        return {EventFamily(family): int(count) for family, count in rows}

    def counts(self, start: int, end: int) -> dict[Trajectory, int]:
        """Distinct ts with ``start <= ts < end`` for each trajectory that has any."""
        Interval.checked(start, end)
        found: dict[Trajectory, int] = {}
        with self.reading() as connection:
            for family, table in SERIES.items():
                rows = connection.execute(
                    f"SELECT key, count(*) FILTER (revision = 0) FROM {table.name} "  # noqa: S608 - ours
                    "JOIN trajectory USING (trajectory_id) WHERE ts >= ? AND ts < ? GROUP BY key",
                    [start, end],
                ).fetchall()
                found |= {Trajectory.parse(key, family): int(count) for key, count in rows}
        return found

    def coverage(
        self, trajectory: Trajectory, start: int, end: int, *, tolerance_s: int | None = None
    ) -> pl.DataFrame:
        """What is known of every second of ``[start, end)``: one row a stretch, in order.

        Columns: start_ts, end_ts (s UTC, half-open), state (a `LedgerState`). Rows further apart
        than ``tolerance_s`` (1.5 steps) leave an ``empty`` stretch between them. The service's
        clock at the last load is the edge of what could be known. A part of the window says of
        its seconds what the whole says. Raises `StoreError` where the trajectory was never asked
        for, `InputError` for a window that is empty or a tolerance below zero.
        """
        window = Interval.checked(start, end)
        if tolerance_s is not None and tolerance_s < 0:
            raise InputError("tolerance_s", tolerance_s, "whole seconds, zero or more")
        with self.reading() as connection:
            known = read_ledger(connection, trajectory).get(trajectory)
            if known is None:
                raise StoreError(
                    f"{self.path} knows nothing of the {trajectory.family} trajectory "
                    f"{trajectory.key}; `rail sync` asks for it",
                    path=str(self.path),
                )
            step_s = known.edge.step_s or 1
            apart_s = step_s * 3 // 2 if tolerance_s is None else tolerance_s
            reach_s = max(apart_s, step_s)
            times = connection.sql(
                f"SELECT ts FROM {SERIES[trajectory.family].name} "  # noqa: S608 - ours
                "JOIN trajectory USING (trajectory_id) WHERE family = $family AND key = $key "
                "AND ts >= $low AND ts < $high",
                params=named(trajectory)
                | {"low": window.start - reach_s, "high": window.end + reach_s},
            ).pl()["ts"]
        found = states(window, known.answered, stretches(times, step_s, apart_s), known.edge)
        return pl.DataFrame(
            [(*interval, state.value) for interval, state in found],
            schema={"start_ts": pl.Int64, "end_ts": pl.Int64, "state": pl.String},
            orient="row",
        )

    def snapshots(self, kind: str) -> pl.DataFrame:
        """The kept answers of a kind, newest first: kind, served_at (s), document, load_id."""
        with self.reading() as connection:
            found: pl.DataFrame = connection.sql(
                "SELECT * FROM snapshot WHERE kind = $kind ORDER BY served_at DESC, load_id DESC",
                params={"kind": kind},
            ).pl()
        return found

    def loads(self) -> pl.DataFrame:
        """One row for each load, newest first: the columns of `toolkit.tables.LOAD`."""
        with self.reading() as connection:
            columns = load_columns(connection, self.path)
            found: pl.DataFrame = connection.sql(
                f"SELECT {columns} FROM load ORDER BY load_id DESC"  # noqa: S608 - ours
            ).pl()
        return found

    def gaps(self) -> pl.DataFrame:
        """One row each time a capture lost a stream, newest first.

        Columns: load_id, gap_id, stream (price, spread or funding; of an event log: spread events
        and so on), key (the trajectory's, null for an event log), start_ts, end_ts (s, the
        service's clock; no end while it is lost), cause, status (`GapStatus`), repaired_load_id.
        """
        with self.reading() as connection:
            return read_gaps(connection)

    def rows_by_load(self) -> pl.DataFrame:
        """How many rows (or documents) each load brought: load_id, rows; without those of none."""
        with self.reading() as connection:
            return read_rows_by_load(connection)
