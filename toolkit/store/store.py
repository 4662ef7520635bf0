"""The store: one DuckDB file, one source, opened per use."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb
import polars as pl

from toolkit.errors import InputError, StoreError, StoreSourceError
from toolkit.intervals import Interval, union
from toolkit.market import EventFamily, Family, Source, Trajectory
from toolkit.store.batch import Batch, Ledger, LoadOrigin
from toolkit.store.connection import opened
from toolkit.store.events import insert_documents, read_event_ledger, write_event_answers
from toolkit.store.ingest import (
    Inserted,
    insert_answered,
    insert_rows,
    number_trajectories,
    write_edges,
)
from toolkit.store.ledger import Edge, final_part, states, stretches
from toolkit.store.schema import create_store, read_source
from toolkit.tables import SERIES

__all__ = ["Store"]


class Store:
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
        same thread. What is read inside, by this cursor, includes what was written.
        """
        with opened(self.path, writable=True, wait_s=self.wait_s) as connection:
            read_source(connection, self.path)
            connection.execute("BEGIN")
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
                "INSERT INTO load VALUES (?, ?, NULL, ?, ?, ?, ?, NULL)",
                [
                    load_id,
                    int(time.time()),
                    origin.served_at,
                    origin.base_url,
                    origin.schema_hash,
                    origin.toolkit_version,
                ],
            )
        return load_id

    def finish_load(self, load_id: int, findings: Sequence[Mapping[str, object]]) -> None:
        """Record that a load ended well, and what it found."""
        with self.writing() as connection:
            connection.execute(
                "UPDATE load SET finished_at = ?, finding = ? WHERE load_id = ?",
                [int(time.time()), json.dumps(list(findings)) if findings else None, load_id],
            )

    def commit(self, load_id: int, batch: Batch) -> Inserted:
        """Write a batch's rows and their ledger entries in one transaction: all or nothing."""
        total = Inserted()
        with self.writing() as connection:
            numbers = number_trajectories(connection, batch.edges)
            for family in Family:
                frames = [
                    pl.concat(pages).with_columns(trajectory_id=pl.lit(numbers[t], pl.Int32))
                    for t, pages in batch.rows.items()
                    if t.family is family
                ]
                if frames:
                    total += insert_rows(connection, family, pl.concat(frames), load_id)
            final = {
                numbers[t]: [i for answered in batch.answered[t] for i in final_part(answered, e)]
                for t, e in batch.edges.items()
            }
            insert_answered(connection, final, load_id)
            write_edges(connection, {numbers[t]: e for t, e in batch.edges.items()}, load_id)
            if batch.documents:
                total += insert_documents(connection, pl.concat(batch.documents), load_id)
                write_event_answers(connection, batch.event_answered, batch.event_edges, load_id)
        return total

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
        series = " UNION ALL ".join(
            "SELECT trajectory_id, count(*) FILTER (revision = 0) AS rows, "  # noqa: S608 - ours
            "count(*) FILTER (revision > 0) AS revisions, "
            f"min(ts) AS first_ts, max(ts) AS last_ts FROM {table.name} GROUP BY ALL"
            for table in SERIES.values()
        )
        with self.reading() as connection:
            found: pl.DataFrame = connection.sql(
                "SELECT t.key AS trajectory, t.family, coalesce(s.rows, 0) AS rows, "  # noqa: S608 - ours
                "coalesce(s.revisions, 0) AS revisions, first_ts, last_ts, step_s, "
                "retention_s, delay_s, served_at, asked_at "
                f"FROM trajectory t LEFT JOIN ({series}) s USING (trajectory_id) "
                "LEFT JOIN (SELECT * FROM edge QUALIFY row_number() "
                "OVER (PARTITION BY trajectory_id ORDER BY load_id DESC) = 1) e "
                "USING (trajectory_id) ORDER BY t.family, t.key"
            ).pl()
        return found

    def continuity(self) -> pl.DataFrame:
        """One row for each trajectory with rows: where its rows do not follow one another.

        A hole is a spacing of more than 1.5 steps, the step being the commonest spacing (the
        shortest of several as common). Columns:
        trajectory (key), family, holes (count), absent_rows (steps without a row inside the
        holes), longest_hole_s (s, from one row's end to the next row). A hole says that the
        service, asked, had no row there, or that it was never asked: `coverage` tells which.
        """
        series = " UNION ALL ".join(
            f"SELECT trajectory_id, ts FROM {table.name} WHERE revision = 0"  # noqa: S608 - ours
            for table in SERIES.values()
        )
        with self.reading() as connection:
            found: pl.DataFrame = connection.sql(
                "WITH counted AS (SELECT trajectory_id, s, count(*) AS n FROM ("  # noqa: S608 - ours
                "SELECT trajectory_id, ts - lag(ts) OVER (PARTITION BY trajectory_id ORDER BY ts) "
                f"AS s FROM ({series})) GROUP BY ALL), "
                "stepped AS (SELECT trajectory_id, arg_min(s, (-n, s)) FILTER (s IS NOT NULL) "
                "AS step FROM counted GROUP BY ALL), "
                "holed AS (FROM counted JOIN stepped USING (trajectory_id) "
                "SELECT *, s > 1.5 * step AS hole) "
                "SELECT t.key AS trajectory, t.family, "
                "coalesce(sum(n) FILTER (hole), 0)::BIGINT AS holes, "
                "coalesce(sum(n * (round(s / step) - 1)) FILTER (hole), 0)::BIGINT AS absent_rows, "
                "coalesce(max(s - step) FILTER (hole), 0) AS longest_hole_s "
                "FROM holed JOIN trajectory t USING (trajectory_id) "
                "GROUP BY ALL ORDER BY t.family, t.key"
            ).pl()
        return found

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
        params = _named(trajectory) | {"low": low, "high": high}
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

    def ledger(self) -> dict[Trajectory, Ledger]:
        """What is known of every trajectory the store was ever asked to load, in one look."""
        with self.reading() as connection:
            return _ledger(connection)

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
            known = _ledger(connection, trajectory).get(trajectory)
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
                params=_named(trajectory)
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
            found: pl.DataFrame = connection.sql("SELECT * FROM load ORDER BY load_id DESC").pl()
        return found


def _named(trajectory: Trajectory) -> dict[str, object]:
    return {"family": trajectory.family.value, "key": trajectory.key}


def _ledger(
    connection: duckdb.DuckDBPyConnection, only: Trajectory | None = None
) -> dict[Trajectory, Ledger]:
    chosen = "true" if only is None else "family = $family AND key = $key"
    params = {} if only is None else _named(only)
    edges = connection.execute(
        "SELECT family, key, e.served_at, delay_s, retention_s, step_s, tail_ts "  # noqa: S608 - ours
        f"FROM trajectory JOIN edge e USING (trajectory_id) WHERE {chosen} "
        "QUALIFY row_number() OVER (PARTITION BY trajectory_id ORDER BY load_id DESC) = 1",
        params,
    ).fetchall()
    answered = connection.execute(
        "SELECT family, key, list((start_ts, end_ts)) "  # noqa: S608 - ours
        f"FROM coverage JOIN trajectory USING (trajectory_id) WHERE {chosen} GROUP BY ALL",
        params,
    ).fetchall()
    found = {
        Trajectory.parse(key, Family(family)): Ledger(Edge(*edge), [])
        for family, key, *edge in edges
    }
    for family, key, parts in answered:
        found[Trajectory.parse(key, Family(family))].answered.extend(union(parts))
    return found
