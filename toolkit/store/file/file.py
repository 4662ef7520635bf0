"""The file of a store, opened per use: as it is, or as it was known at a time.

A stream whose key is invalid, doubled, or of another kind than its row shows is hidden, so that all
others can be read. Doubled rows hide their stream in this process once they are read, until the
file changes.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

import duckdb
import polars as pl

from toolkit import commands
from toolkit.cards import Shown
from toolkit.errors import InputError, StoreError
from toolkit.foreign import plain
from toolkit.market import Source, Stream, When, format_ts, parse_ts
from toolkit.store.file.connection import check_use, opened
from toolkit.store.file.engine import DATABASE, FileVersion, keep_lean, version_of
from toolkit.store.file.schema import opened_for_reading, read_source
from toolkit.store.ledger.contents import CATALOGUE
from toolkit.store.ledger.history import (
    COUNTED_STREAM,
    check_history,
    held_nothing,
    history_from,
    show_as_known,
)
from toolkit.store.reading.frames import frame_of
from toolkit.tables import LOAD, CoverageState
from toolkit.wire.limits import LIMITS, Limits

_log = logging.getLogger(__name__)

NOT_READABLE = "not readable"
"""What stands in the place of such a stream."""

_KEPT = 8


class Unreadable(NamedTuple):
    """A stream that cannot be read: its key, its kind as its row says, and why."""

    stream: str
    kind: str
    why: str


_FOUND: dict[Path, tuple[FileVersion, dict[int, Unreadable]]] = {}
"""By file, as of one version of it: the streams by number. The file read last is at the end."""


def fault_of_key(key: str, kind: str) -> str:
    """Return what is wrong with a stream's key, "" for nothing."""
    try:
        sound = Stream.parse(key).kind == kind
    except InputError:
        sound = False
    return "" if sound else f"{plain(key, 80)!r} is not a key of the kind {plain(kind, 40)!r}"


def unreadable(connection: duckdb.DuckDBPyConnection, path: Path) -> dict[int, Unreadable]:
    """Return the streams that cannot be read, by number. The file must be open."""
    version = version_of(path)
    known = _FOUND.pop(path, None)
    if known is None or known[0] != version:
        known = version, dict(_named(connection))
    _FOUND[path] = known
    while len(_FOUND) > _KEPT:
        del _FOUND[next(iter(_FOUND))]
    return known[1]


def mark_doubled(
    connection: duckdb.DuckDBPyConnection, path: Path, key: str, count: int
) -> StoreError:
    """Note that rows of a stream are doubled, and return the error of reading it."""
    found = unreadable(connection, path)
    why = f"{count:,} of its rows are there twice"
    for number, kind in connection.execute(
        f"SELECT stream_id, kind FROM {DATABASE}.main.stream WHERE key = ?",  # noqa: S608 - ours
        [key],
    ).fetchall():
        found[number] = Unreadable(key, kind, why)
        _log.warning("%s: %s is %s and left out: %s", path, key, NOT_READABLE, why)
    return not_readable(path, found[number])


def not_readable(path: Path, stream: Unreadable) -> StoreError:
    """Return the error of reading a stream that cannot be read."""
    return StoreError(
        f"{path}: {plain(stream.stream, 80)} is {NOT_READABLE}: {stream.why}; the other streams "
        "are: `rail store verify` shows what is wrong",
        path=str(path),
    )


def _named(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, Unreadable]]:
    rows = connection.execute(
        "SELECT stream_id, key, kind, count(*) OVER (PARTITION BY key) > 1, "  # noqa: S608 - ours
        f"count(*) OVER (PARTITION BY stream_id) > 1 FROM {DATABASE}.main.stream"
    ).fetchall()
    for number, key, kind, same_key, same_number in rows:
        why = "its key is there twice" if same_key else ""
        why = why or ("its number is there twice" if same_number else fault_of_key(key, kind))
        if why:
            yield number, Unreadable(key, kind, why)


def published_note(store: Path) -> Path:
    """Return the path of the file beside a copy of published data that has its address.

    By it the copy takes no rows, however it is opened.
    """
    return store.with_name(f"{store.name}.published")


class StoreFile(Shown):
    """The file of a `toolkit.store.Store`, and how it is opened."""

    _not_for_users = frozenset({"keep_lean"})

    def __init__(
        self,
        path: str | Path,
        *,
        wait_s: float = 10.0,
        published: str = "",
        as_of: int | None = None,
    ) -> None:
        check_use(path, wait_s)
        self.as_of = as_of
        self.path = Path(path)
        self.wait_s = wait_s
        self.published = published
        if not published:
            with contextlib.suppress(OSError, ValueError):  # none there, or no place for a file
                note = published_note(self.path)
                self.published = note.read_text(encoding="utf-8", errors="replace")

    @property
    def name(self) -> str:
        """The store's name for readers: the address of published data, else its path."""
        return self.published or str(self.path)

    @contextlib.contextmanager
    def reading(self, as_of: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a cursor on one snapshot for as long as the block lasts. Keep the block short.

        Fetch inside the block: a stream kept beyond it keeps the file open. Blocks of one thread
        nest, each with its own snapshot. With ``as_of`` (s, local clock; default the store's) each
        table has what was committed by then.

        Raises `StoreError` without a file, `NotAStoreError` where it is something else,
        `StoreLockedError` where another process writes it.
        """
        with opened_for_reading(self.path, self.wait_s) as connection:
            if found := unreadable(connection, self.path):  # a view takes the place of the table
                connection.execute(
                    "CREATE OR REPLACE TEMP VIEW stream AS FROM "
                    f"{DATABASE}.main.stream WHERE stream_id NOT IN ({', '.join(map(str, found))})"
                )
            if (at := self._then(as_of)) is not None:
                show_as_known(connection, at, hidden=found)
            yield connection

    @contextlib.contextmanager
    def _knowing(self, as_of: int | None) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield what `reading` yields, where the ledger's history reaches back."""
        with self.reading(as_of) as connection:
            check_history(connection, self._then(as_of))
            yield connection

    def _then(self, as_of: int | None) -> int | None:
        """Return the given time, by default the store's own."""
        return self.as_of if as_of is None else as_of

    def known(self, as_of: When, *, parameter: str = "as_of") -> Self:
        """Return the same store as it was known at a time of the local clock.

        Raises `InputError` for a future time and one before `history_from`, `EmptyWindowError` for
        one before the first load.
        """
        at = parse_ts(as_of, parameter=parameter)
        if at > time.time():
            raise InputError(parameter, format_ts(at), "a time that has been, by the local clock")
        with self.reading() as connection:
            begun = connection.execute("SELECT min(started_at) FROM load").fetchall()[0][0]
            if begun is None or begun > at:
                raise held_nothing(self.path, at, begun)
            check_history(connection, at, parameter=parameter)
        return type(self)(self.path, wait_s=self.wait_s, published=self.published, as_of=at)

    def unreadable(self) -> list[Unreadable]:
        """Return the streams that cannot be read: key, kind, and why. A sound store has none.

        No other method returns them. Doubled rows are known once they were read in this process.

        >>> import tempfile
        >>> from toolkit.market import Source
        >>> from toolkit.store import Store, StoreWriter
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(f"{folder}/rail.duckdb")
        ...     StoreWriter(store).bind(Source("replay", "march"))
        ...     store.unreadable()
        []
        """
        with self.reading() as connection:
            return sorted(set(unreadable(connection, self.path).values()))

    @property
    def history_from(self) -> int | None:
        """Since when the ledger is known as of a time (s, local clock), None for since ever.

        A store that was migrated from a format before 7 has its history from then on.
        """
        with self.reading() as connection:
            return history_from(connection)

    @property
    def source(self) -> Source:
        """The source of the store's data."""
        with opened(self.path, writable=False, wait_s=self.wait_s) as connection:
            return read_source(connection, self.path)

    def keep_lean(self, limits: Limits = LIMITS) -> None:
        """Bound the memory of this process's further uses of the file."""
        keep_lean(self.path, limits.buffer_bytes)

    def _rows(self, query: str, as_of: int | None = None, **params: object) -> pl.DataFrame:
        with self.reading(as_of) as connection:
            return frame_of(connection, query, params=params)

    def catalogue(self, *, as_of: int | None = None) -> pl.DataFrame:
        """Return one row per stream the store knows, sorted by kind and key.

        Columns: stream (key), kind (price, spread, funding, events, snapshot), rows (rows by ts,
        documents or snapshots), revisions (those that changed), first_ts, last_ts (s UTC, null
        without rows), step_s (observed spacing of the rows), and as of the last answer, null
        without one: retention_s and delay_s of the plan, served_at (the service's clock, s),
        asked_at (the local clock, s), answered_until (the end of the latest answered stretch, s
        UTC). ``as_of`` is that of `coverage`.
        """
        with self._knowing(as_of) as connection:
            asked = {"asked": CoverageState.ASKED}
            streams = "stream" if self._then(as_of) is None else COUNTED_STREAM
            query = CATALOGUE.format(streams=streams)
            return frame_of(connection, query, params=asked)

    def command(self, *words: str) -> str:
        """Return a command line of `rail` for this store and the service it was loaded from.

        >>> import tempfile
        >>> from toolkit.market import Source
        >>> from toolkit.store import Store, StoreWriter
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(f"{folder}/s.duckdb")
        ...     StoreWriter(store).bind(Source("live", "rail"))
        ...     store.command("status") == f"rail status --store {store.path}"
        True
        """
        newest = self.loads()["base_url"].drop_nulls().head(1).to_list()
        return commands.rail(*words, store=self.name, base_url=newest[0] if newest else None)

    def loads(self, *, as_of: int | None = None) -> pl.DataFrame:
        """Return one row per load, newest first: the columns of `toolkit.tables.LOAD`.

        ``as_of`` (s, local clock) gives those that had begun by then. Of one that had not ended,
        finished_at, finding and quota_left are null.
        """
        return self._rows("SELECT * FROM load ORDER BY load_id DESC", as_of).select(LOAD.names)
