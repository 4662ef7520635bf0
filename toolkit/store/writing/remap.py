"""Deriving a store's contents anew, under another profile, from what the service once sent.

Rows of trajectories are read again from the pages kept beside the store, columns of event documents
from their bytes. All is done in a copy, which takes the store's place at the end, so a killed
process leaves the store as it was.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import msgspec
import polars as pl

from toolkit.cards import counted, some
from toolkit.errors import StoreError
from toolkit.intervals import EVER, Interval
from toolkit.market import EventFamily, Family, Trajectory
from toolkit.store.file.connection import opened, put_in_place
from toolkit.store.file.engine import DATABASE
from toolkit.store.file.maintenance import check_free, rewriting
from toolkit.store.file.schema import back_up, draft_of
from toolkit.store.ledger.history import held_counts
from toolkit.store.ledger.streams import count, highest, number_streams, run_with
from toolkit.store.reading.moment import StoreState
from toolkit.store.store import Store
from toolkit.store.writing.ingest import insert_rows, read_key, write_keys
from toolkit.store.writing.pages import KeptPage, KeptRecord, read_pages
from toolkit.store.writing.writer import check_takes_rows
from toolkit.tables import BROUGHT, EVENT, SERIES, SNAPSHOT, SNAPSHOT_SERIES
from toolkit.wire.event_log import read_documents
from toolkit.wire.history_page import check_needed, put_together
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.profile import Profile
from toolkit.wire.profile.spelling import clock_value
from toolkit.wire.profile.user_profile import UserProfile, assumed_profile, profile_in_force
from toolkit.wire.rows.rows import broken_key, kept, read_history_page

_DOCUMENTS = 50_000
_AS_IT_CAME = {"family", "document", "revision", *BROUGHT}
_READ = [name for name in EVENT.names if name not in _AS_IT_CAME]
_SNAPSHOTS = (SNAPSHOT, *SNAPSHOT_SERIES.values())
_OF_SNAPSHOTS = " UNION ".join(f"SELECT load_id FROM {table.name}" for table in _SNAPSHOTS)  # noqa: S608 - ours
_OF_ROWS = " UNION ".join(
    f"SELECT load_id FROM {table.name}"  # noqa: S608 - ours
    for table in (*SERIES.values(), EVENT)
)
_KEY = [name for name in EVENT.key if name != "revision"]


@dataclass(frozen=True, slots=True)
class Remapped:
    """The rows, pages and documents that a remap read anew, and how many have another value."""

    pages: int
    rows: int
    changed_rows: int
    documents: int
    changed_documents: int


def remap(store: Store, users: UserProfile | None) -> Remapped:
    """Read the rows and event documents of a store anew under a user's profile, None for none.

    The rows are those that a load under this profile would have brought, with their load and commit
    time, and all loads have its hash. The ledger stays, and so do snapshots: those of another
    profile get a load of their own with its hash.

    Raises `StoreError`, and leaves the store as it was, where rows have no page any more or other
    times under this profile (it names the trajectories and the stretch), a document would have no
    time, something was committed meanwhile, or the disk is full. Raises `WireError` where the pages
    cannot be read under this profile.
    """
    check_takes_rows(store)
    path = store.path.resolve()
    before = StoreState.now(store)
    check_free(store, path.stat().st_size)
    with rewriting(path), draft_of(path) as draft:
        with opened(path, writable=True, wait_s=store.wait_s) as connection:
            back_up(connection, path, draft, "the store is left as it was")
        with opened(draft, writable=True) as copy:
            copy.execute("BEGIN")
            done = _derived(copy, store, users)
            copy.execute("COMMIT")
        with opened(path, writable=True, wait_s=store.wait_s) as connection:
            now = StoreState.now(store)
            same = all(now.books[name].equals(frame) for name, frame in before.books.items())
            if not (same and before.ends == now.ends and before.file == now.file):
                raise StoreError(
                    f"{store.path} was written to meanwhile, and is left as it is; stop what loads "
                    "or follows, and begin again",
                    path=str(store.path),
                )
            shutil.copymode(path, draft)
            put_in_place(connection, path, draft)
    return done


def _derived(
    connection: duckdb.DuckDBPyConnection, store: Store, users: UserProfile | None
) -> Remapped:
    """Derive everything anew in a copy of the store's file."""
    limits = users.limits if users else LIMITS
    late: pl.DataFrame = connection.sql("SELECT stream_id, late_s FROM stream").pl()
    connection.execute(f"USE {DATABASE}")
    for table in SERIES.values():
        connection.execute(f"ALTER TABLE {table.name} RENAME TO old_{table.name}")
        connection.execute(table.ddl)
    pages = _read_rows(connection, store.path, users, limits)
    _check_complete(connection, store)
    rows, changed = 0, 0
    for table in SERIES.values():
        names = ", ".join(["stream_id", "ts", *(column.name for column in table.values)])
        rows += count(connection, f"{table.name} WHERE revision = 0")
        others = f"SELECT {names} FROM {table.name} EXCEPT SELECT {names} FROM old_{table.name}"  # noqa: S608 - ours
        changed += count(connection, f"({others})")
        connection.execute(f"DROP TABLE old_{table.name}")
    documents = _read_events(connection, store.path, assumed_profile(users, limits))
    connection.execute(
        "UPDATE stream SET rows = h.rows, revisions = h.revisions, first_ts = h.first_ts, "  # noqa: S608 - ours
        f"last_ts = h.last_ts FROM ({held_counts(lambda table: table.name)}) h "
        "WHERE stream.key = h.key"
    )
    update = "UPDATE stream SET late_s = l.late_s FROM late l WHERE stream.stream_id = l.stream_id"
    run_with(connection, update, late=late)
    under = users.hash if users else None
    _set_snapshots_apart(connection, under)
    connection.execute(
        f"UPDATE load SET profile_hash = ? WHERE load_id NOT IN ({_OF_SNAPSHOTS})",  # noqa: S608 - ours
        [under],
    )
    return Remapped(pages, rows, changed, *documents)


def _read_rows(
    connection: duckdb.DuckDBPyConnection, store: Path, users: UserProfile | None, limits: Limits
) -> int:
    """Insert the rows of all pages, one commit after another. Return the number of pages."""
    profiles: dict[str | None, Profile] = {}
    judged: set[Trajectory] = set()
    number = 0
    for record in read_pages(connection, store):
        under = record.schema_hash
        if under not in profiles:
            why = "the service had none"
            profiles[under] = profile_in_force(users, limits, record.schemas or why)
        routes = profiles[under].histories
        write_keys(connection, {family: route.row_key for family, route in routes.items()})
        pages = list(record.pages)
        number += len(pages)
        _insert(connection, record, pages, profiles[under], judged)
    return number


def _insert(
    connection: duckdb.DuckDBPyConnection,
    record: KeptRecord,
    pages: Sequence[KeptPage],
    profile: Profile,
    judged: set[Trajectory],
) -> None:
    """Insert the rows of one commit. ``judged``: trajectories that have what statistics need."""
    numbers = number_streams(connection, (page.of for page in pages))
    frames: dict[Family, list[pl.DataFrame]] = {}
    tied: dict[Family, set[tuple[int, int]]] = {}
    for page in pages:
        route = profile.histories[page.of.family].named(page.of)
        raw = read_history_page(route, page.of, page.answer)
        if page.of not in judged and not raw.frame.is_empty():
            check_needed(route, raw.frame, page.answer)
            judged.add(page.of)
        inside = pl.col("ts").is_between(*page.window, closed="left")
        number = numbers[page.of]
        frame = kept(raw.frame).filter(inside).with_columns(stream_id=pl.lit(number, pl.Int32))
        frames.setdefault(page.of.family, []).append(frame)
        times = broken_key(route, raw.frame)[0]
        tied.setdefault(page.of.family, set()).update((number, ts) for ts in times)
    for family, parts in frames.items():
        rows = pl.concat(parts)
        schema = {"stream_id": pl.Int32, "ts": pl.Int64}
        at = pl.DataFrame(list(tied[family]), schema=schema, orient="row")
        insert_rows(
            connection,
            family,
            put_together(rows, ("stream_id", "ts")) if profile.histories[family].row_leg else rows,
            record.load_id,
            key=read_key(connection, family),
            tied=at if at.height else None,
            committed_at=record.committed_at,
        )


def _check_complete(connection: duckdb.DuckDBPyConnection, store: Store) -> None:
    """Raise `StoreError` where a time that was held was not derived again."""
    lost = " UNION ALL ".join(
        f"(SELECT DISTINCT stream_id, ts FROM old_{table.name} "  # noqa: S608 - ours
        f"EXCEPT SELECT stream_id, ts FROM {table.name})"
        for table in SERIES.values()
    )
    found = connection.execute(
        f"SELECT key, min(ts), max(ts) + 1, count(*) FROM ({lost}) JOIN stream USING (stream_id) "  # noqa: S608 - ours
        "GROUP BY key ORDER BY key"
    ).fetchall()
    if found:
        named = [f"{key} {Interval(*ends)} ({counted(n, 'row')})" for key, *ends, n in found]
        key, *ends = found[0][:3]
        start, end = (str(clock_value(ts, "iso")) for ts in ends)
        again = store.command("sync", "--again", key, "--start", start, "--end", end)
        raise StoreError(
            f"{store.path}: no page is kept that has these rows under this profile: {some(named)}; "
            f"nothing was changed; `{again}` asks for the first of them anew",
            path=str(store.path),
        )


def _read_events(
    connection: duckdb.DuckDBPyConnection, path: Path, profile: Profile
) -> tuple[int, int]:
    """Read the columns of all documents anew. Return how many there are, and how many changed."""
    number = changed = 0
    end = count(connection, "event")
    for start in range(0, end, _DOCUMENTS):
        held: pl.DataFrame = connection.sql(
            "SELECT rowid AS row, * FROM event WHERE rowid >= $start AND rowid < $end "
            "ORDER BY rowid",
            params={"start": start, "end": start + _DOCUMENTS},
        ).pl()
        for (family,), part in held.partition_by("family", as_dict=True).items():
            items = [msgspec.Raw(document.encode()) for document in part["document"]]
            frame, _ = read_documents(profile.events[EventFamily(family)], items, EVER, [])
            if frame.height < part.height:
                raise StoreError(
                    f"{path}: {part.height - frame.height:,} documents of events/{family} have no "
                    "time under this profile; nothing was changed",
                    path=str(path),
                )
            other = [frame[name].ne_missing(part[name]) for name in _READ]
            fresh = frame.select(part["row"], *_READ).filter(pl.any_horizontal(other))
            number, changed = number + frame.height, changed + fresh.height
            values = ", ".join(f"{name} = f.{name}" for name in _READ)
            update = f"UPDATE event SET {values} FROM fresh f WHERE event.rowid = f.row"  # noqa: S608 - ours
            run_with(connection, update, fresh=fresh)
    if changed:
        connection.execute(
            "UPDATE event SET revision = n.revision FROM (SELECT rowid AS row, CAST(row_number() "  # noqa: S608 - ours
            f"OVER (PARTITION BY {', '.join(_KEY)} ORDER BY load_id, committed_at, revision) - 1 "
            "AS INTEGER) AS revision FROM event) n WHERE event.rowid = n.row"
        )
    return number, changed


def _set_snapshots_apart(connection: duckdb.DuckDBPyConnection, under: str | None) -> None:
    """Give what snapshots brought under another profile a load of its own, with that one's hash."""
    found = connection.execute(
        f"SELECT load_id FROM load WHERE load_id IN ({_OF_SNAPSHOTS}) "  # noqa: S608 - ours
        f"AND load_id IN ({_OF_ROWS}) AND profile_hash IS DISTINCT FROM ? ORDER BY load_id",
        [under],
    ).fetchall()
    for number, (load_id,) in enumerate(found, highest(connection, "load_id", "load") + 1):
        connection.execute(
            "INSERT INTO load SELECT * REPLACE (? AS load_id) FROM load WHERE load_id = ?",
            [number, load_id],
        )
        for table in _SNAPSHOTS:
            connection.execute(
                f"UPDATE {table.name} SET load_id = ? WHERE load_id = ?",  # noqa: S608 - ours
                [number, load_id],
            )
