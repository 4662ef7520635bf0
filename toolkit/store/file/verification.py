"""Verification of a store: each of its laws checked in the file, and each breach named.

One query per law, each in an opening of its own, so that loads go on between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import duckdb

from toolkit.errors import StoreError
from toolkit.store.file.engine import DATABASE
from toolkit.store.file.readable import fault_of_key
from toolkit.store.file.refusals import first_line
from toolkit.store.ledger.history import held_rows, known_ledger
from toolkit.store.store import Store
from toolkit.store.writing.pages import faults_of_pages
from toolkit.tables import COVERAGE, EVENT, LOAD, SERIES, STREAM, TABLES, TIE, CoverageState

_Found = list[tuple[object, ...]]
_SHOWN = 3


class _Ask(Protocol):
    def __call__(self, sql: str) -> _Found: ...


def verify(store: Store) -> list[str]:
    """Return each fault of a store, in words. A sound store has none.

    Every byte of every table is read, so DuckDB finds blocks whose checksum is wrong. Then: the
    tables and columns are those of this format, no two rows share a key, revisions follow one
    another, each row is of a known load and stream, the counters of the streams are what is held,
    the stretches of the ledger have a length and do not overlap, and the history of the ledger
    leads to what it is now. The pages kept beside the store can be read. Rows may be in any order:
    reading sorts them, and `rail store compact` keeps them sorted. Raises what `Store.reading`
    raises.
    """

    def ask(sql: str) -> _Found:
        with store.reading() as connection:
            connection.execute("DROP VIEW IF EXISTS temp.main.stream")  # it hides what is wrong
            return connection.execute(sql).fetchall()

    ask("SELECT 1")
    if found := faults_of(ask):
        return found
    with store.reading() as connection:
        return faults_of_pages(connection, store.path)


def faults_of(ask: _Ask) -> list[str]:
    """Return the faults that queries of one store find."""
    found = list(_unreadable(ask))
    return found or [fault for law in _LAWS for fault in law(ask)]


def _unreadable(ask: _Ask) -> Iterator[str]:
    """Yield tables that are not as this format has them, or cannot be read to the end."""
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


def _keys(ask: _Ask) -> Iterator[str]:
    for table in TABLES:
        key = ", ".join(table.key)
        yield from _named(
            ask(f"SELECT {key} FROM {table.name} GROUP BY ALL HAVING count(*) > 1"),  # noqa: S608 - ours
            f"{table.name}: several rows share a key",
        )


def _revisions(ask: _Ask) -> Iterator[str]:
    for table in (*SERIES.values(), EVENT):
        others = ", ".join(name for name in table.key if name != "revision")
        yield from _named(
            ask(
                f"SELECT {others}, min(revision % {TIE}), max(revision % {TIE}) FROM {table.name} "  # noqa: S608 - ours
                f"GROUP BY {others}, revision // {TIE} "
                f"HAVING min(revision % {TIE}) <> 0 OR max(revision % {TIE}) <> count(*) - 1"
            ),
            f"{table.name}: revisions are missing",
        )


def _references(ask: _Ask) -> Iterator[str]:
    """Yield rows of loads and streams that the store does not know."""
    for table in TABLES:
        for column in table.names:
            known = LOAD if column.endswith("load_id") else STREAM
            if table is known or column not in ("load_id", "repaired_load_id", "stream_id"):
                continue
            of = column.removeprefix("repaired_")
            yield from _named(
                ask(
                    f"SELECT DISTINCT t.{column} FROM {table.name} t WHERE t.{column} IS NOT NULL "  # noqa: S608 - ours
                    f"AND t.{column} NOT IN (SELECT {of} FROM {known.name})"
                ),
                f"{table.name}: rows of no {known.name} that is known",
            )


def _counters(ask: _Ask) -> Iterator[str]:
    """Yield streams whose counters differ from what is held."""
    held = held_rows(lambda table: table.name)
    yield from _named(
        ask(
            "WITH held AS (SELECT key, count(*) FILTER (revision = 0) AS rows, "  # noqa: S608 - ours
            "count(*) FILTER (revision > 0) AS revisions, min(ts) AS first_ts, "
            f"max(ts) AS last_ts FROM ({held}) GROUP BY key) "
            "SELECT key, s.rows, s.revisions, coalesce(h.rows, 0), coalesce(h.revisions, 0) "
            "FROM stream s LEFT JOIN held h USING (key) WHERE s.rows <> coalesce(h.rows, 0) "
            "OR s.revisions <> coalesce(h.revisions, 0) "
            "OR s.first_ts IS DISTINCT FROM h.first_ts OR s.last_ts IS DISTINCT FROM h.last_ts"
        ),
        "stream: counters differ from what is held (key, counted, then held)",
    )


def _ledger(ask: _Ask) -> Iterator[str]:
    """Yield stretches without a length, and those that overlap another of their kind."""
    names = [state.value for state in CoverageState]
    known = ", ".join(f"'{name}'" for name in names)
    yield from _named(
        ask(
            f"SELECT stream_id, state, start_ts, end_ts FROM coverage WHERE start_ts >= end_ts "  # noqa: S608 - ours
            f"OR state NOT IN ({known})"
        ),
        f"{COVERAGE.name}: stretches of no length or of an unknown state",
    )
    yield from _named(
        ask(
            "SELECT stream_id, state, start_ts, end_ts FROM (SELECT *, max(end_ts) OVER "  # noqa: S608 - ours
            f"(PARTITION BY stream_id, state = '{CoverageState.ASKED}' ORDER BY start_ts, end_ts "
            "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM coverage) "
            "WHERE before > start_ts"
        ),
        f"{COVERAGE.name}: stretches that overlap",
    )


def _history(ask: _Ask) -> Iterator[str]:
    """Yield tables of the ledger that are not what their history leads to."""
    for name, query in known_ledger().items():
        yield from _named(
            ask(f"(({query}) EXCEPT FROM {name}) UNION ALL (FROM {name} EXCEPT ({query}))"),
            f"{name}: its history leads to other rows",
        )


def _streams(ask: _Ask) -> Iterator[str]:
    """Yield streams whose key is none, is of another kind, or is there twice."""
    for key, kind in ask("SELECT key, kind FROM stream ORDER BY key"):
        if fault := fault_of_key(str(key), str(kind)):
            yield f"stream: {fault}"
    yield from _named(
        ask("SELECT key FROM stream GROUP BY key HAVING count(*) > 1"),
        "stream: keys that are there twice",
    )


def _times(ask: _Ask) -> Iterator[str]:
    yield from _named(
        ask("SELECT family, event_id, ts_ms, ts FROM event WHERE ts <> ts_ms // 1000"),
        "event: ts and ts_ms differ",
    )


_LAWS = (_keys, _revisions, _references, _counters, _ledger, _history, _streams, _times)


def _named(rows: _Found, fault: str) -> Iterator[str]:
    """Yield one fault for all rows of a breach, with how many there are and the first of them."""
    if rows:
        first = "; ".join(", ".join(map(str, row)) for row in sorted(rows, key=str)[:_SHOWN])
        yield f"{fault}: {len(rows):,} ({first}{'; …' if len(rows) > _SHOWN else ''})"
