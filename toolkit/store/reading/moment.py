"""A store as it is at one moment, read part by part.

A long read would keep writers of other processes out. So one short look notes the bookkeeping and
how far the other tables reach, and each part is read in its own opening. This is exact, since those
tables only grow. A compaction, which numbers them anew, is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import polars as pl

from toolkit.errors import StoreError
from toolkit.store.reading.frames import frame_of
from toolkit.store.store import Store
from toolkit.tables import ALERTS, CHANGES, COVERAGE, EDGE, GAP, LOAD, META, STREAM, TABLES, Table

BOOKS = (META, STREAM, LOAD, COVERAGE, EDGE, GAP, *ALERTS)
"""The bookkeeping: small tables, whose rows are changed and replaced. Alerts are not published."""

GROWING = tuple(table for table in TABLES if table not in BOOKS)
"""The tables that only grow: rows, documents, snapshots, deliveries and the ledger's history."""

PART_ROWS = 1_000_000
"""How many rows are read at once, unless one stream has more in a month or all have in a day."""

_TIMES = ("ts", "served_at", "received_at")


def time_column(table: Table) -> str:
    """Return the column with the time of a row (s)."""
    if table in CHANGES:
        return "committed_at"
    return next(name for name in _TIMES if name in table.names)


def owner_column(table: Table) -> str | None:
    """Return the column with a row's stream, None for rows without one."""
    if "stream_id" in table.names:
        return "stream_id"
    return table.key[0] if len(table.key) > 1 else None


def row_order(table: Table) -> list[str]:
    """Return the columns by which rows are sorted: the order they are kept in, then the key."""
    return list(dict.fromkeys((*table.order, *table.key)))


@dataclass(frozen=True, slots=True)
class RowRange:
    """The rows of some streams, or of all, with ``low <= time < high``."""

    owners: tuple[int | str, ...] | None
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class StoreState:
    """A store's contents at one moment: ``books`` by table, and the end of each growing table."""

    store: Store
    file: int
    books: Mapping[str, pl.DataFrame]
    ends: Mapping[str, int]

    @classmethod
    def now(cls, store: Store) -> Self:
        """Look at a store. Raises what `Store.reading` raises."""
        with store.reading() as connection:
            books: dict[str, pl.DataFrame] = {
                table.name: frame_of(
                    connection,
                    f"SELECT {', '.join(table.names)} FROM {table.name} "  # noqa: S608 - ours
                    f"ORDER BY {', '.join(table.key)}",
                )
                for table in BOOKS
            }
            ends = {
                table.name: int(
                    connection.execute(
                        f"SELECT coalesce(max(rowid) + 1, 0) FROM {table.name}"  # noqa: S608 - ours
                    ).fetchall()[0][0]
                )
                for table in GROWING
            }
            return cls(store, store.path.stat().st_ino, books, ends)

    def query(self, sql: str, params: Mapping[str, object] | None = None) -> pl.DataFrame:
        """Run one query in an opening of its own, over the very file that was looked at."""
        with self.store.reading() as connection:
            if self.store.path.stat().st_ino != self.file:
                raise StoreError(
                    f"{self.store.path} was replaced by another file while it was read; "
                    "begin again",
                    path=str(self.store.path),
                )
            return frame_of(connection, sql, params=params or {})

    def parts(self, table: Table, start: int = 0, *, unit: str = "month") -> Iterator[RowRange]:
        """Cut a table's contents into parts of about `PART_ROWS`, stream after stream.

        ``unit`` is "month", or "day" for parts of all streams together. ``start`` is the first row.
        """
        if start >= self.ends[table.name]:
            return
        time = time_column(table)
        owner = (owner_column(table) or "NULL") if unit == "month" else "NULL"
        at = f"make_timestamp({time} * 1000000)"
        counts = self.query(
            f"SELECT {owner} AS owner, epoch(date_trunc('{unit}', {at}))::BIGINT AS low, "  # noqa: S608 - ours
            f"count(*) AS rows FROM {table.name} "
            f"WHERE rowid >= {start} AND rowid < {self.ends[table.name]} GROUP BY ALL ORDER BY ALL"
        )
        step = "1mo" if unit == "month" else "1d"
        high = pl.from_epoch("low").dt.offset_by(step).dt.epoch("s")
        yield from _parts(counts.with_columns(high=high))

    def rows(self, table: Table, part: RowRange, start: int = 0) -> pl.DataFrame:
        """Return a part's rows, in the order of `row_order`."""
        time, owner = time_column(table), owner_column(table)
        params: dict[str, object] = {"low": part.low, "high": part.high}
        some = ""
        if part.owners is not None:
            some = f"AND {owner} BETWEEN $first AND $last AND list_contains($owners, {owner})"
            params |= {"first": part.owners[0], "last": part.owners[-1]}
            params["owners"] = list(part.owners)
        found = self.query(
            f"SELECT {', '.join(table.names)} FROM {table.name} WHERE rowid >= {start} "  # noqa: S608 - ours
            f"AND rowid < {self.ends[table.name]} AND {time} >= $low AND {time} < $high {some}",
            params,
        )
        return sorted_rows(table, found)


def sorted_rows(table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows so that the same rows are always in the same order, also those that share a key."""
    order = row_order(table)
    found = rows.sort(order)
    same = pl.all().eq_missing(pl.all().shift(1))
    if found.select(table.key).select(pl.all_horizontal(same)).to_series()[1:].any():
        found = rows.sort([*order, *(name for name in table.names if name not in order)])
    return found


def _parts(counts: pl.DataFrame) -> Iterator[RowRange]:
    """Group streams that have few rows, and cut one that has many. ``counts`` is in their order."""
    together: list[tuple[int | str | None, int, int, int]] = []
    owner: Any
    for (owner,), cells in counts.group_by("owner", maintain_order=True):
        rows, low, high = int(cells["rows"].sum()), int(cells["low"][0]), int(cells["high"][-1])
        if together and (owner is None or sum(each[1] for each in together) + rows > PART_ROWS):
            yield _joined(together)
            together = []
        if rows <= PART_ROWS:
            together.append((owner, rows, low, high))
            continue
        for _, n, low, high in cells.select("owner", "rows", "low", "high").rows():
            if together and sum(each[1] for each in together) + n > PART_ROWS:
                yield _joined(together)
                together = []
            together.append((owner, n, low, high))
        yield _joined(together)
        together = []
    if together:
        yield _joined(together)


def _joined(cells: list[tuple[int | str | None, int, int, int]]) -> RowRange:
    owners = tuple(dict.fromkeys(owner for owner, *_ in cells if owner is not None))
    low, high = min(cell[2] for cell in cells), max(cell[3] for cell in cells)
    return RowRange(owners or None, low, high)
