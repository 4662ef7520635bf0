"""The store: one DuckDB file, one source, opened per use."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import polars as pl

from toolkit.errors import StoreError, StoreSourceError
from toolkit.intervals import Interval, union
from toolkit.market import Family, Source, Trajectory
from toolkit.store.connection import opened
from toolkit.store.ingest import Inserted, insert_answered, insert_rows
from toolkit.store.ledger import Edge, final_part, states
from toolkit.store.schema import create_store, read_source
from toolkit.tables import SERIES

__all__ = ["Batch", "Ledger", "LoadOrigin", "Store"]


@dataclass(frozen=True, slots=True)
class Ledger:
    """What is known of one trajectory: how far the service answered, and which stretches it did."""

    edge: Edge
    answered: list[Interval]


@dataclass(frozen=True, slots=True)
class LoadOrigin:
    """What a load records of itself when it starts."""

    base_url: str
    served_at: int
    schema_hash: str | None
    toolkit_version: str


@dataclass(slots=True)
class Batch:
    """Pages to be committed together: rows, and the stretches they answer for, per trajectory."""

    rows: dict[Trajectory, list[pl.DataFrame]] = field(default_factory=dict)
    answered: dict[Trajectory, list[Interval]] = field(default_factory=dict)
    edges: dict[Trajectory, Edge] = field(default_factory=dict)

    def add(
        self, trajectory: Trajectory, frame: pl.DataFrame, answered: Interval, edge: Edge
    ) -> None:
        """Put one page in."""
        self.rows.setdefault(trajectory, []).append(frame)
        self.answered.setdefault(trajectory, []).append(answered)
        self.edges[trajectory] = edge


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
        """A cursor for reading, for as long as the block lasts; keep the block short.

        Raises `StoreError` where there is no file, `NotAStoreError` where it is something else,
        `StoreLockedError` where another process keeps it open for writing.
        """
        with opened(self.path, writable=False, wait_s=self.wait_s) as connection:
            read_source(connection, self.path)
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor inside one transaction, committed with the block, rolled back with an error."""
        with opened(self.path, writable=True, wait_s=self.wait_s) as connection:
            read_source(connection, self.path)
            connection.execute("BEGIN")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def bind(self, source: Source) -> None:
        """Make the store for a source, or check that it is this source's.

        Raises `StoreSourceError` where it holds another's data.
        """
        if not self.path.exists():
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
            numbers = {t: _number(connection, t) for t in batch.edges}
            for family in Family:
                frames = [
                    frame.with_columns(trajectory_id=pl.lit(numbers[t], pl.Int32))
                    for t, pages in batch.rows.items()
                    if t.family is family
                    for frame in pages
                ]
                if frames:
                    total += insert_rows(connection, family, pl.concat(frames), load_id)
            for trajectory, edge in batch.edges.items():
                number = numbers[trajectory]
                final = [i for a in batch.answered[trajectory] for i in final_part(a, edge)]
                insert_answered(connection, number, final, load_id)
                _write_edge(connection, number, edge, load_id)
        return total

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

        A hole is a spacing of more than 1.5 steps, the step being the commonest spacing. Columns:
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
                f"WITH spaced AS (SELECT trajectory_id, ts - lag(ts) OVER "  # noqa: S608 - ours
                f"(PARTITION BY trajectory_id ORDER BY ts) AS s FROM ({series})), "
                "stepped AS (SELECT trajectory_id, mode(s) AS step FROM spaced GROUP BY ALL) "
                "SELECT t.key AS trajectory, t.family, count(*) FILTER (s > 1.5 * step) AS holes, "
                "coalesce(sum(round(s / step) - 1) FILTER (s > 1.5 * step), 0)::BIGINT "
                "AS absent_rows, "
                "coalesce(max(s - step) FILTER (s > 1.5 * step), 0) AS longest_hole_s "
                "FROM spaced JOIN stepped USING (trajectory_id) JOIN trajectory t "
                "USING (trajectory_id) GROUP BY ALL ORDER BY t.family, t.key"
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
        An unknown trajectory or a window without rows gives a frame without rows. Gaps stay gaps.
        """
        table = SERIES[trajectory.family]
        values = [c.name for c in table.values if c.name not in ("extra", "revision")]
        low, high = start if start is not None else 0, end if end is not None else 2**62
        seen = (
            "true"
            if as_of is None
            else "load_id IN (FROM load SELECT load_id WHERE started_at <= $as_of)"
        )
        params: dict[str, object] = {"key": trajectory.key, "family": trajectory.family.value}
        params |= {"low": low, "high": high} | ({} if as_of is None else {"as_of": as_of})
        with self.reading() as connection:
            found: pl.DataFrame = connection.sql(
                f"SELECT $key AS trajectory, ts, {', '.join(values)} FROM {table.name} "  # noqa: S608 - ours
                "WHERE trajectory_id = (SELECT trajectory_id FROM trajectory "
                "WHERE key = $key AND family = $family) "
                f"AND ts >= $low AND ts < $high AND {seen} "
                "QUALIFY row_number() OVER (PARTITION BY ts ORDER BY revision DESC) = 1 "
                "ORDER BY ts",
                params=params,
            ).pl()
        return found

    def ledger(self) -> dict[Trajectory, Ledger]:
        """What is known of every trajectory the store was ever asked to load, in one look."""
        found: dict[Trajectory, Ledger] = {}
        with self.reading() as connection:
            edges = connection.execute(
                "SELECT family, key, e.served_at, delay_s, retention_s, step_s "
                "FROM trajectory JOIN edge e USING (trajectory_id) "
                "QUALIFY row_number() OVER (PARTITION BY trajectory_id ORDER BY load_id DESC) = 1"
            ).fetchall()
            answered = connection.execute(
                "SELECT family, key, list(start_ts), list(end_ts) "
                "FROM coverage JOIN trajectory USING (trajectory_id) GROUP BY ALL"
            ).fetchall()
        for family, key, *edge in edges:
            found[Trajectory.parse(key, Family(family))] = Ledger(Edge(*edge), [])
        for family, key, starts, ends in answered:
            found[Trajectory.parse(key, Family(family))].answered.extend(
                union(zip(starts, ends, strict=True))
            )
        return found

    def counts(self, start: int, end: int) -> dict[Trajectory, int]:
        """Distinct ts with ``start <= ts < end`` for each trajectory that has any."""
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
        clock at the last load is the edge of what could be known. Raises `StoreError` where the
        trajectory was never asked for.
        """
        window = Interval.checked(start, end)
        known = self.ledger().get(trajectory)
        if known is None:
            raise StoreError(
                f"{self.path} knows nothing of {trajectory.key}; `rail sync {trajectory.key}` asks",
                path=str(self.path),
            )
        step_s = known.edge.step_s or 1
        held = self._held(trajectory, window, step_s, tolerance_s or step_s * 3 // 2)
        found = states(window, known.answered, held, known.edge)
        return pl.DataFrame(
            [(*interval, state.value) for interval, state in found],
            schema={"start_ts": pl.Int64, "end_ts": pl.Int64, "state": pl.String},
            orient="row",
        )

    def _held(
        self, trajectory: Trajectory, window: Interval, step_s: int, tolerance_s: int
    ) -> list[tuple[int, int]]:
        """Stretches of rows no further apart than the tolerance, each to its last row's end."""
        times = self.series(trajectory, window.start - tolerance_s, window.end)["ts"]
        if times.is_empty():
            return []
        frame = pl.DataFrame({"ts": times})
        islands = frame.with_columns(
            island=(pl.col("ts").diff() > tolerance_s).fill_null(value=False).cum_sum()
        )
        ends = islands.group_by("island", maintain_order=True).agg(
            start=pl.col("ts").min(), end=pl.col("ts").max() + step_s
        )
        return list(zip(ends["start"], ends["end"], strict=True))

    def loads(self) -> pl.DataFrame:
        """One row for each load, newest first: the columns of `toolkit.tables.LOAD`."""
        with self.reading() as connection:
            found: pl.DataFrame = connection.sql("SELECT * FROM load ORDER BY load_id DESC").pl()
        return found


def _number(connection: duckdb.DuckDBPyConnection, trajectory: Trajectory) -> int:
    """The trajectory's number in this store, a new one if need be."""
    found = connection.execute(
        "SELECT trajectory_id FROM trajectory WHERE key = ? AND family = ?",
        [trajectory.key, trajectory.family.value],
    ).fetchall()
    if found:
        return int(found[0][0])
    made = connection.execute(
        "INSERT INTO trajectory SELECT coalesce(max(trajectory_id), 0) + 1, ?, ? FROM trajectory "
        "RETURNING trajectory_id",
        [trajectory.family.value, trajectory.key],
    ).fetchall()
    return int(made[0][0])


def _write_edge(
    connection: duckdb.DuckDBPyConnection, number: int, edge: Edge, load_id: int
) -> None:
    connection.execute(
        "DELETE FROM edge WHERE trajectory_id = ? AND load_id = ?", [number, load_id]
    )
    connection.execute(
        "INSERT INTO edge VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            number,
            load_id,
            edge.retention_s,
            edge.delay_s,
            edge.step_s,
            edge.served_at,
            int(time.time()),
        ],
    )
