"""Rewriting a store in the order of its keys, while others read and write it.

Rows lie in the file as they came. A store that was loaded by many small polls reads one trajectory
many times slower than a sorted one, and space that was freed stays in the file. So the rows are
copied, sorted, into a new file. What is committed meanwhile is copied after them, until little is
left. That little, and the bookkeeping, are copied while the file is held, and the new file takes
its place. A process that is killed leaves the store as it was.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from toolkit.errors import StoreError
from toolkit.store.file.connection import opened, put_in_place
from toolkit.store.file.engine import DATABASE
from toolkit.store.file.refusals import first_line, full_disk
from toolkit.store.file.schema import draft_of, made
from toolkit.store.ledger.streams import append
from toolkit.store.reading.moment import BOOKS, GROWING, StoreState, owner_column, row_order
from toolkit.store.reading.views import VIEWS
from toolkit.store.store import Store
from toolkit.tables import CHANGES, SERIES, TABLES, Table

_ROWS_OF_A_PART = 122_880
"""How many rows of a table DuckDB keeps together: what it reads at once, or passes over."""

_FEW_ROWS = 50_000
_PASSES = 8
_OURS = {table.name for table in TABLES} | {view.name for view in VIEWS}


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did: the rows that were copied, and the file's size before and after.

    The history of the ledger, which is copied too, is not counted.
    """

    rows: int
    before_bytes: int
    after_bytes: int


def compact(store: Store) -> Compacted:
    """Rewrite a store's file with its rows in the order of their keys, and without free space.

    Loads and readers go on meanwhile. Raises `StoreError` where the disk has no room for a second
    file, no file can be made there, or the file holds tables or views of somebody's own, which
    would be lost. Raises what `Store.reading` raises.
    """
    path = store.path.resolve()
    _refuse_others(store)
    before = path.stat().st_size
    check_free(store, before)
    with rewriting(path), draft_of(path) as draft, contextlib.ExitStack() as copying:
        copy = copying.enter_context(made(draft, {}))
        done = _copy_until_little_is_left(store, copy)
        with opened(path, writable=True, wait_s=store.wait_s) as connection:
            last = _copy_the_rest(store, copy, done)
            copying.close()
            shutil.copymode(path, draft)
            put_in_place(connection, path, draft)
    history = {table.name for table in CHANGES}
    rows = sum(end for name, end in last.ends.items() if name not in history)
    return Compacted(rows, before, path.stat().st_size)


@contextlib.contextmanager
def rewriting(path: Path) -> Iterator[None]:
    """Raise `StoreError` for what keeps the new file from being written or put in its place."""
    try:
        yield
    except (OSError, duckdb.Error) as error:
        raise full_disk(path, error) or StoreError(
            f"{path} cannot be rewritten ({first_line(error)}), and is left as it was; let this "
            f"user make files in {path.parent}",
            path=str(path),
        ) from None


def scattered(store: Store, few_parts: int = 8, times: int = 4) -> tuple[float, float] | None:
    """Return in how many parts of the file a trajectory lies, and in how many once compacted.

    A part is what DuckDB reads at once. Both are means over the trajectories. None where it makes
    no difference: fewer than ``few_parts`` in all, or not ``times`` as many as compacted.
    """
    rows = " UNION ALL ".join(
        f"SELECT stream_id, rowid // {_ROWS_OF_A_PART} AS part, count(*) AS rows "  # noqa: S608 - ours
        f"FROM {table.name} GROUP BY ALL"
        for table in SERIES.values()
    )
    with store.reading() as connection:
        parts, least, held = connection.execute(
            f"SELECT avg(parts), avg(1 + rows // {_ROWS_OF_A_PART}), "  # noqa: S608 - ours
            f"coalesce(sum(rows), 0) // {_ROWS_OF_A_PART} FROM "
            f"(SELECT count(*) AS parts, sum(rows) AS rows FROM ({rows}) GROUP BY stream_id)"
        ).fetchall()[0]
    return None if held < few_parts or parts < times * least else (parts, least)


def _refuse_others(store: Store) -> None:
    """Refuse a file with tables or views of somebody's own: only ours are copied."""
    with store.reading() as connection:
        found = connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = $ours AND NOT internal "
            "UNION SELECT view_name FROM duckdb_views() WHERE database_name = $ours "
            "AND NOT internal",
            {"ours": DATABASE},
        ).fetchall()
    others = sorted(name for (name,) in found if name not in _OURS)
    if others:
        raise StoreError(
            f"{store.path} has tables of your own ({', '.join(others)}), which a rewritten file "
            "would not have; move them to a file of their own",
            path=str(store.path),
        )


def check_free(store: Store, needed: int) -> None:
    """Raise `StoreError` where the disk of a store has less than so many bytes free."""
    free = shutil.disk_usage(store.path.resolve().parent).free
    if free < needed:
        raise StoreError(
            f"{store.path} needs {needed / 1e6:,.0f} MB beside it while it is rewritten, and "
            f"{free / 1e6:,.0f} MB are free; free space in {store.path.resolve().parent}",
            path=str(store.path),
        )


def _copy_until_little_is_left(store: Store, copy: duckdb.DuckDBPyConnection) -> StoreState:
    """Copy the rows, then those that came meanwhile, and return the moment that was reached."""
    moment = StoreState.now(store)
    _copy(moment, {}, copy)
    for _ in range(_PASSES):
        later = StoreState.now(store)
        _check_same_file(store, moment, later)
        if sum(later.ends.values()) - sum(moment.ends.values()) <= _FEW_ROWS:
            break
        _copy(later, moment.ends, copy)
        moment = later
    copy.execute(f"CHECKPOINT {DATABASE}")
    return moment


def _copy_the_rest(store: Store, copy: duckdb.DuckDBPyConnection, done: StoreState) -> StoreState:
    """Copy what is left and the bookkeeping, while nobody else can write."""
    last = StoreState.now(store)
    _check_same_file(store, done, last)
    _copy(last, done.ends, copy)
    for table in BOOKS:
        append(copy, table, last.books[table.name])
    for table in GROWING:
        count = f"SELECT count(*) FROM {table.name}"  # noqa: S608 - ours
        held, copied = last.query(count).item(), copy.execute(count).fetchall()[0][0]
        if held != copied:
            raise StoreError(
                f"{store.path}: {copied:,} of {held:,} rows of {table.name} were copied, so the "
                "file is left as it is; `rail store verify` shows what is wrong with it",
                path=str(store.path),
            )
    return last


def _copy(moment: StoreState, starts: Mapping[str, int], copy: duckdb.DuckDBPyConnection) -> None:
    for table in GROWING:
        start = starts.get(table.name, 0)
        if start < moment.ends[table.name]:
            for part in moment.parts(table, start, unit=_unit(table)):
                append(copy, table, moment.rows(table, part, start))


def _unit(table: Table) -> str:
    """Return how to cut a table: by stream and month where its rows are kept stream by stream."""
    return "month" if row_order(table)[0] == owner_column(table) else "day"


def _check_same_file(store: Store, one: StoreState, other: StoreState) -> None:
    if one.file != other.file:
        raise StoreError(
            f"{store.path} was replaced by another file while it was rewritten; begin again",
            path=str(store.path),
        )
