"""Rows of many trajectories, some of these at a time: memory does not grow with their number.

The file is opened anew for each group, so that writers get their turn. All groups are of the state
at the scan. A compaction with later rows, or a group without the rows counted then, is an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from toolkit.errors import InputError, StoreError
from toolkit.intervals import Ends, Interval
from toolkit.market import Family, SnapshotTrajectory, Source, Stream, Trajectory
from toolkit.store.file.file import StoreFile, mark_doubled
from toolkit.store.file.schema import read_source
from toolkit.store.ledger.contents import limits
from toolkit.store.ledger.history import AS_NOW, seen
from toolkit.store.ledger.streams import count, numbers_of
from toolkit.store.reading.frames import frame_of
from toolkit.store.reading.lookup import check_known
from toolkit.tables import ROWS

GROUP_ROWS: dict[str, int] = dict.fromkeys(ROWS, 300_000) | {Family.FUNDING.value: 150_000}
"""Rows of a group, or one trajectory where that has more. Of funding they need the most memory."""

Asked = Family | str | Stream | Iterable[Stream | str]
"""A kind (a family, snapshot-spread, snapshot-funding), a stream of one or its key, or several."""

_IDS_OF_KEYS = "FROM stream SELECT stream_id WHERE list_contains($keys, key)"
_KEYS = f"a kind ({', '.join(ROWS)}), or streams of one kind"


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows to be read: of which trajectories, window, columns and state of the store.

    ``keys`` None is every stream of the kind. ``held`` is how many rows the table had, and ``file``
    the number of its file.
    """

    store: StoreFile
    source: Source
    file: int
    held: int
    kind: str
    keys: tuple[str, ...] | None
    window: Interval
    as_of: int | None
    columns: tuple[str, ...]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """The columns with their types: trajectory, ts and values."""
        types = ROWS[self.kind].schema
        return {"trajectory": pl.String()} | {name: types[name] for name in ("ts", *self.columns)}

    def streams(self) -> pl.DataFrame:
        """Count the rows of each trajectory that has any: trajectory, stream_id, rows, by key."""
        with self.store.reading() as connection:
            self._check_same(connection)
            return self.counted(connection)

    def counted(self, connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
        """Return what `streams` returns, over an open connection."""
        keys = {} if self.keys is None else {"keys": list(self.keys)}
        some = f" AND stream_id IN ({_IDS_OF_KEYS})" if keys else ""
        return frame_of(
            connection,
            f"WITH held AS (SELECT stream_id, count(*) AS rows FROM {self._table} "  # noqa: S608 - ours
            f"WHERE {self._condition}{some} GROUP BY stream_id) SELECT key AS trajectory, "
            "stream_id, held.rows FROM held JOIN stream USING (stream_id) ORDER BY key",
            params=self._parameters | keys,
        )

    def groups(self, streams: pl.DataFrame, rows: int | None = None) -> Iterator[pl.DataFrame]:
        """Yield whole trajectories with about so many rows together, by key and ts."""
        if streams.is_empty():
            yield pl.DataFrame(schema=self.schema)
            return
        at_most = GROUP_ROWS[self.kind] if rows is None else rows
        numbered = streams.with_columns(group=pl.col("rows").cum_sum() // at_most)
        for part in numbered.partition_by("group", maintain_order=True):
            yield self._read(part)

    def lazy(self) -> pl.LazyFrame:
        """Return a LazyFrame of the rows, which reads no other columns and trajectories."""
        return register_io_source(self._source, schema=self.schema, explain_name="STORE")

    def _source(
        self,
        columns: list[str] | None,
        condition: pl.Expr | None,
        rows: int | None,
        _batch_rows: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Read what polars asks for: some columns, the rows of a condition, the first rows."""
        parts = [] if condition is None else _parts(condition)
        wanted = list(self.schema) if columns is None else columns
        used = {*wanted, *(name for part in parts for name in part.meta.root_names())}
        scan = replace(self, columns=tuple(name for name in self.columns if name in used))
        for part in parts:
            scan = replace(scan, window=_narrowed(scan.window, part))
        streams = scan.streams()
        for part in parts:
            if set(part.meta.root_names()) == {"trajectory"}:
                streams = streams.filter(part)
        for group in scan.groups(streams, None if rows is None else 1):
            found = group if condition is None else group.filter(condition)
            found = found if rows is None else found.head(rows)
            yield found.select(wanted)
            if rows is not None and (rows := rows - found.height) == 0:
                return

    def _check_same(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Raise where the rows with numbers below ``held`` may be others by now."""
        same = read_source(connection, self.store.path) == self.source
        if same and self.store.path.stat().st_ino != self.file:
            same = count(connection, self._table) == self.held
        if not same:
            raise self._exchanged()

    def _exchanged(self) -> StoreError:
        return StoreError(
            f"{self.store.path} was exchanged or written anew while it was read; read it again",
            path=str(self.store.path),
        )

    @property
    def _table(self) -> str:
        return f"{AS_NOW}{ROWS[self.kind].name}"

    @property
    def _condition(self) -> str:
        return f"rowid < $held AND ts >= $low AND ts < $high AND {seen(self.as_of)}"

    @property
    def _parameters(self) -> dict[str, object]:
        low, high = self.window
        return {"held": self.held, "low": low, "high": high}

    def _read(self, streams: pl.DataFrame) -> pl.DataFrame:
        """Read the rows of some trajectories: the newest per ts."""
        numbers = ", ".join(map(str, streams["stream_id"]))
        names = ", ".join(("stream_id", "ts", "revision", *self.columns))
        with self.store.reading() as connection:
            self._check_same(connection)
            rows = frame_of(
                connection,
                f"SELECT {names} FROM {self._table} "  # noqa: S608 - ours
                f"WHERE stream_id IN ({numbers}) AND {self._condition}",
                params=self._parameters,
            )
        if rows.height != streams["rows"].sum():
            raise self._exchanged()
        ids = streams["stream_id"].to_numpy()
        places = np.zeros(ids.max() + 1, np.int64)
        places[ids] = np.arange(len(ids))
        rows = rows.with_columns(pl.Series("place", places[rows["stream_id"].to_numpy()]))
        later, beyond = pl.col("ts").diff() > 0, pl.col("place").diff()
        if not rows.select(((beyond > 0) | ((beyond == 0) & later)).all()).item():
            rows = rows.sort("place", "ts", "revision")
            if doubled(rows, "place", "ts", "revision"):
                rows = self._without_doubled(rows, streams)
            rows = newest_rows(rows, "place", "ts")
        key = streams["trajectory"].gather(rows["place"]).alias("trajectory")
        return rows.select(key, "ts", *self.columns)

    def _without_doubled(self, rows: pl.DataFrame, streams: pl.DataFrame) -> pl.DataFrame:
        """Leave out trajectories of which rows are doubled, and note them as not readable."""
        found = [
            (place, doubled(of, "ts", "revision"))
            for (place,), of in rows.partition_by("place", as_dict=True).items()
        ]
        out = [(place, count) for place, count in found if count]
        with self.store.reading() as connection:
            for place, count in out:
                mark_doubled(connection, self.store.path, streams["trajectory"][place], count)
        return rows.filter(~pl.col("place").is_in([place for place, _ in out]))


def scan_of(store: StoreFile, asked: Asked, window: Ends, as_of: int | None) -> Scan:
    """Return a scan of a store's present state. Raises as `Store.scan`."""
    with scanning(store, asked, window, as_of) as (scan, _):
        return scan


@contextlib.contextmanager
def scanning(
    store: StoreFile, asked: Asked, window: Ends, as_of: int | None
) -> Iterator[tuple[Scan, duckdb.DuckDBPyConnection]]:
    """Yield what `scan_of` returns, with its connection still open."""
    kind, streams = _asked(asked)
    window = Interval.of(window)
    limits(window)
    seen(as_of)
    with store.reading() as connection:
        file, held = store.path.stat().st_ino, count(connection, f"{AS_NOW}{ROWS[kind].name}")
        known = {} if streams is None else numbers_of(connection, streams)
        for stream in streams or ():
            if stream not in known:
                check_known(store, stream)
        source = read_source(connection, store.path)
        keys = None if streams is None else tuple(each.key for each in streams)
        columns = tuple(value_columns(kind))
        yield Scan(store, source, file, held, kind, keys, window, as_of, columns), connection


def value_columns(kind: str) -> list[str]:
    """Return the columns of a kind's rows that are values, without ``extra``."""
    return [each.name for each in ROWS[kind].values if each.name != "extra"]


def doubled(rows: pl.DataFrame, *key: str) -> int:
    """Count rows whose key equals the row before, of rows sorted by a key that no two may share."""
    same = (pl.col(name) == pl.col(name).shift(1) for name in key)
    return int(rows.select(pl.all_horizontal(same).sum()).item())


def newest_rows(rows: pl.DataFrame, *key: str) -> pl.DataFrame:
    """Return the last row per key, of rows sorted by key and ``revision``."""
    if not (rows["revision"] > 0).any():
        return rows
    same = (pl.col(name) == pl.col(name).shift(-1) for name in key)
    return rows.filter(~pl.all_horizontal(same).fill_null(value=False))


def _asked(asked: Asked) -> tuple[str, list[Trajectory | SnapshotTrajectory] | None]:
    """Return the kind and its streams, None for all."""
    if isinstance(asked, str) and asked in ROWS:
        return str(asked), None
    if isinstance(asked, str | Stream):
        asked = [asked]
    if not isinstance(asked, Iterable):
        raise InputError("asked", asked, _KEYS)
    named = [each if isinstance(each, Stream) else Stream.parse(each) for each in asked]
    found = [each for each in named if isinstance(each, Trajectory | SnapshotTrajectory)]
    kinds = {each.kind for each in named}
    if len(kinds) != 1 or len(found) != len(named):
        shown = ", ".join(each.key for each in named[:3]) or "nothing"
        raise InputError("asked", shown, _KEYS)
    return kinds.pop(), list(dict.fromkeys(found))


def _parts(condition: pl.Expr) -> list[pl.Expr]:
    """Split a condition at its ANDs."""
    parts = condition.meta.pop()[::-1]
    if len(parts) == 2 and (parts[0] & parts[1]).meta.eq(condition):
        return [each for part in parts for each in _parts(part)]
    return [condition]


def _narrowed(window: Interval, part: pl.Expr) -> Interval:
    """Return the part of a window in which a condition can hold, all of it if that is unclear."""
    terms = part.meta.pop()[::-1]
    values = [term for term in terms if term.meta.is_literal()]
    numbers = [pl.select(value).item() for value in values]
    if len(terms) - len(values) != 1 or not numbers or not all(type(n) is int for n in numbers):
        return window
    ts, first, low = pl.col("ts"), values[0], numbers[0]
    if len(values) == 1:
        forms = [
            (ts >= first, (low, window.end)),
            (ts > first, (low + 1, window.end)),
            (ts < first, (window.start, low)),
            (ts <= first, (window.start, low + 1)),
            (ts == first, (low, low + 1)),
        ]
    else:
        last, high = values[1], numbers[1]
        forms = [
            (ts.is_between(first, last), (low, high + 1)),
            (ts.is_between(first, last, closed="left"), (low, high)),
            (ts.is_between(first, last, closed="right"), (low + 1, high + 1)),
            (ts.is_between(first, last, closed="none"), (low + 1, high)),
        ]
    for form, (start, end) in forms:
        if form.meta.eq(part):
            return Interval(max(start, window.start), min(end, window.end))
    return window
