"""Maintenance of a store's file: verification, a copy, and a rewrite in the order of its keys.

A store of many small polls reads slower than a sorted one, and keeps freed space. So a compaction
copies the rows, sorted, into a new file, then what was committed meanwhile, and puts it in the old
one's place. A killed process leaves the store as it was.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from toolkit.errors import StoreError
from toolkit.store.file.connection import opened, put_in_place
from toolkit.store.file.engine import DATABASE, first_line, full_disk
from toolkit.store.file.file import StoreFile, fault_of_key
from toolkit.store.file.schema import back_up, draft_of, made
from toolkit.store.ledger.history import held_counts, known_ledger
from toolkit.store.ledger.streams import append
from toolkit.store.reading.moment import BOOKS, GROWING, StoreState, owner_column, row_order
from toolkit.store.reading.views import VIEWS
from toolkit.store.store import Store
from toolkit.store.writing.pages import back_up_pages, faults_of_pages
from toolkit.tables import (
    CHANGES,
    EVENT,
    LOAD,
    SERIES,
    STREAM,
    TABLES,
    TIE,
    CoverageState,
)

_ROWS_OF_A_PART = 122_880
"""How many rows of a table DuckDB keeps together: what it reads at once, or passes over."""

_FEW_ROWS = 50_000
_PASSES = 8
_OURS = {table.name for table in TABLES} | {view.name for view in VIEWS}


@dataclass(frozen=True, slots=True)
class Compacted:
    """The rows that a compaction copied, and the file's size before and after.

    The history of the ledger, which is copied too, is not counted.
    """

    rows: int
    before_bytes: int
    after_bytes: int


def compact(store: Store) -> Compacted:
    """Rewrite a store's file with its rows in the order of their keys, and without free space.

    Loads and readers go on. Raises `StoreError` without room for a second file, where no file can
    be made, for a file with somebody's own tables or views, and what `Store.reading` raises.
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
    """Raise `StoreError` where the new file cannot be written or put in its place."""
    try:
        yield
    except (OSError, duckdb.Error) as error:
        raise full_disk(path, error) or StoreError(
            f"{path} cannot be rewritten ({first_line(error)}), and is left as it was; let this "
            f"user make files in {path.parent}",
            path=str(path),
        ) from None


def scattered(store: Store, few_parts: int = 8, times: int = 4) -> tuple[float, float] | None:
    """Return in how many parts of the file a trajectory lies, now and once compacted.

    Both are means over the trajectories. None where it makes no difference: fewer than
    ``few_parts`` in all, or not ``times`` as many as compacted.
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
    """Copy the rows, then those that came meanwhile, and return the moment reached."""
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
            # by stream and month where rows are kept stream by stream
            unit = "month" if row_order(table)[0] == owner_column(table) else "day"
            for part in moment.parts(table, start, unit=unit):
                append(copy, table, moment.rows(table, part, start))


def _check_same_file(store: Store, one: StoreState, other: StoreState) -> None:
    if one.file != other.file:
        raise StoreError(
            f"{store.path} was replaced by another file while it was rewritten; begin again",
            path=str(store.path),
        )


def back_up_store(store: StoreFile, target: str | Path) -> int:
    """Copy a store to a new file, as it was between two commits, and return the copy's bytes.

    Somebody's own tables are copied too. Writers wait. Raises `StoreError` where that file exists
    or cannot be made, and what `Store.reading` raises.
    """
    copy = Path(target)
    if copy.exists() or copy.is_symlink():
        raise StoreError(f"{copy} is there already; name a new file", path=str(copy))
    if not copy.resolve().parent.is_dir():
        raise StoreError(
            f"{copy.resolve().parent} is not a directory; make it first", path=str(copy)
        )
    with store.reading():
        pass  # it is there, and of this format
    with opened(store.path, writable=True, wait_s=store.wait_s) as connection:
        back_up(connection, store.path, copy, "name a place where this user may write")
        back_up_pages(store.path, copy)
    return copy.stat().st_size


_Found = list[tuple[object, ...]]
_Ask = Callable[[str], _Found]
_SHOWN = 3


def verify(store: Store) -> list[str]:
    """Return each fault of a store, in words. A sound store has none.

    All of every table is read, so DuckDB finds blocks with a wrong checksum. Tables and columns are
    those of this format, keys are unique, revisions without a gap, loads and streams known,
    counters right, stretches of the ledger not empty and apart, its history leads to its present
    state, and the pages can be read. Loads go on between two queries. Raises what `Store.reading`
    raises.
    """

    def ask(sql: str) -> _Found:
        with store.reading() as connection:
            connection.execute("DROP VIEW IF EXISTS temp.main.stream")  # it hides what is wrong
            return connection.execute(sql).fetchall()

    ask("SELECT 1")
    if found := list(_unreadable(ask)) or list(_breaches(ask)):
        return found
    with store.reading() as connection:
        return faults_of_pages(connection, store.path)


def _unreadable(ask: _Ask) -> Iterator[str]:
    """Yield tables that differ from this format's, or cannot be read to the end."""
    columns: dict[str, list[tuple[object, ...]]] = {}
    ours = f"NOT internal AND database_name = '{DATABASE}' AND schema_name = 'main'"
    facts = "table_name, column_name, data_type, is_nullable"
    ordered = "ORDER BY table_name, column_index"
    for table, *column in ask(f"SELECT {facts} FROM duckdb_columns() WHERE {ours} {ordered}"):  # noqa: S608 - ours
        columns.setdefault(str(table), []).append(tuple(column))
    for table in TABLES:
        if columns.get(table.name) != [(c.name, c.type, c.nullable) for c in table.columns]:
            yield f"{table.name}: the table is missing or has other columns"
            continue
        try:
            ask(f"SELECT bit_xor(hash({', '.join(table.names)})) FROM {table.name}")  # noqa: S608 - ours
        except (duckdb.Error, StoreError) as error:
            yield f"{table.name}: cannot be read to its end ({first_line(error)})"
            return


def _laws() -> Iterator[tuple[str, str]]:
    """Yield each law: what a breach of it is called, and the query that finds its rows."""
    for table in TABLES:
        key = ", ".join(table.key)
        query = f"SELECT {key} FROM {table.name} GROUP BY ALL HAVING count(*) > 1"  # noqa: S608 - ours
        yield f"{table.name}: several rows share a key", query
    for table in (*SERIES.values(), EVENT):
        others = ", ".join(name for name in table.key if name != "revision")
        query = (
            f"SELECT {others}, min(revision % {TIE}), max(revision % {TIE}) FROM {table.name} "  # noqa: S608 - ours
            f"GROUP BY {others}, revision // {TIE} "
            f"HAVING min(revision % {TIE}) <> 0 OR max(revision % {TIE}) <> count(*) - 1"
        )
        yield f"{table.name}: revisions are missing", query
    for table in TABLES:
        for column in table.names:
            known = LOAD if column.endswith("load_id") else STREAM
            if column in ("load_id", "repaired_load_id", "stream_id") and table is not known:
                query = (
                    f"SELECT DISTINCT t.{column} FROM {table.name} t WHERE t.{column} IS NOT NULL "  # noqa: S608 - ours
                    f"AND t.{column} NOT IN (SELECT {known.name}_id FROM {known.name})"
                )
                yield f"{table.name}: rows of no {known.name} that is known", query
    query = (
        f"WITH held AS ({held_counts(lambda table: table.name)}) "  # noqa: S608 - ours
        "SELECT key, s.rows, s.revisions, coalesce(h.rows, 0), coalesce(h.revisions, 0) "
        "FROM stream s LEFT JOIN held h USING (key) WHERE s.rows <> coalesce(h.rows, 0) "
        "OR s.revisions <> coalesce(h.revisions, 0) "
        "OR s.first_ts IS DISTINCT FROM h.first_ts OR s.last_ts IS DISTINCT FROM h.last_ts"
    )
    yield "stream: counters differ from what is held (key, counted, then held)", query
    states = ", ".join(f"'{state.value}'" for state in CoverageState)
    query = (
        "SELECT stream_id, state, start_ts, end_ts FROM coverage WHERE start_ts >= end_ts "  # noqa: S608 - ours
        f"OR state NOT IN ({states})"
    )
    yield "coverage: stretches of no length or of an unknown state", query
    query = (
        "SELECT stream_id, state, start_ts, end_ts FROM (SELECT *, max(end_ts) OVER "  # noqa: S608 - ours
        f"(PARTITION BY stream_id, state = '{CoverageState.ASKED}' ORDER BY start_ts, end_ts "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM coverage) "
        "WHERE before > start_ts"
    )
    yield "coverage: stretches that overlap", query
    for name, query in known_ledger().items():
        both = f"(({query}) EXCEPT FROM {name}) UNION ALL (FROM {name} EXCEPT ({query}))"
        yield f"{name}: its history leads to other rows", both
    query = "SELECT key FROM stream GROUP BY key HAVING count(*) > 1"
    yield "stream: keys that are there twice", query
    query = "SELECT family, event_id, ts_ms, ts FROM event WHERE ts <> ts_ms // 1000"
    yield "event: ts and ts_ms differ", query


def _breaches(ask: _Ask) -> Iterator[str]:
    """Yield one fault per law that is broken: how many rows break it, and the first of them."""
    for fault, query in _laws():
        if rows := ask(query):
            first = "; ".join(", ".join(map(str, row)) for row in sorted(rows, key=str)[:_SHOWN])
            yield f"{fault}: {len(rows):,} ({first}{'; …' if len(rows) > _SHOWN else ''})"
    for key, kind in ask("SELECT key, kind FROM stream ORDER BY key"):
        if fault := fault_of_key(str(key), str(kind)):
            yield f"stream: {fault}"
