"""Writing into a store: loads, what they bring, and what was asked for.

Whoever asks questions needs `toolkit.store.Store` alone. The loader, the captures and the webhook
receiver write.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import duckdb

from toolkit import commands
from toolkit.errors import StoreError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Source, Stream
from toolkit.store.file.connection import opened
from toolkit.store.file.engine import refuse_functions
from toolkit.store.file.identity import FileIdentity, check_source
from toolkit.store.file.migration import bring_up_to_date
from toolkit.store.file.schema import create_store
from toolkit.store.ledger.catalogue import write_allowance
from toolkit.store.ledger.coverage import record_asked
from toolkit.store.ledger.gaps import end_gaps
from toolkit.store.reading.views import make_views
from toolkit.store.store import Store
from toolkit.store.writing.batch import Batch, LoadOrigin
from toolkit.store.writing.commit import write_batch
from toolkit.store.writing.ingest import Inserted, write_keys
from toolkit.store.writing.pages import KEPT_DAYS, KeptRecord, keep_pages, packed_record
from toolkit.wire.allowance import Allowance
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS, EventRoute


def check_takes_rows(store: Store) -> None:
    """Raise `StoreError` for a copy of published data, which nobody writes to."""
    if store.published:
        make = commands.rail("import", store.published, store=Path("rail.duckdb"))
        raise StoreError(
            f"{store.published} is published data, which takes no rows; "
            f"`{make}` makes a store of it",
            path=store.published,
        )


class StoreWriter:
    """The writing half of a store, for one load or one capture.

    It remembers the source that it bound the store to and the loads that it began. So it notices
    where another file took the store's place, and writes nothing into that one. The pages that rows
    were read from are kept for ``pages_days`` (days), 0 for not at all.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> writer = StoreWriter(Store(f"{folder.name}/rail.duckdb"))
    >>> writer.bind(Source("replay", "example"))
    >>> writer.start_load(LoadOrigin("http://127.0.0.1:1", 1_678_400_000, None, "0.1.0"))
    1
    >>> writer.finish_load(1, [])
    >>> writer.store.loads()["load_id"].to_list()
    [1]
    >>> folder.cleanup()
    """

    def __init__(self, store: Store, *, pages_days: float = KEPT_DAYS) -> None:
        check_takes_rows(store)
        self.store = store
        self._pages_days = pages_days
        self._origins: dict[int, LoadOrigin] = {}
        self._up_to_date = False
        self._views_made = False
        self._file = FileIdentity(store.path)

    @property
    def keeps_pages(self) -> bool:
        """Whether the pages that rows come from are kept."""
        return self._pages_days > 0

    def logs(self, load_id: int) -> Mapping[EventFamily, EventRoute]:
        """Return the routes of the event logs by which a load reads documents."""
        origin = self._origins.get(load_id)
        return origin.logs if origin else BUILT_IN_EVENTS

    def __repr__(self) -> str:
        return f"StoreWriter({self.store!r})"

    @contextlib.contextmanager
    def writing(self, load_id: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a cursor inside one transaction, committed with the block, dropped with an error.

        Raises what `Store.reading` raises, `StoreLockedError` at once inside another use of the
        same thread, and `StoreSourceError` where the file is of another source than the one this
        object was bound to, or is not the file that the load began in. The first time the file's
        views are made anew. What is read inside, by this
        cursor, includes what was written.
        """
        store = self.store
        if not self._up_to_date:
            bring_up_to_date(store.path, store.wait_s)
            self._up_to_date = True
        with opened(store.path, writable=True, wait_s=store.wait_s) as connection:
            connection.execute("BEGIN")
            self._file.check(connection, load_id)
            if not self._views_made:
                refuse_functions(connection, store.path)
                make_views(connection)
            yield connection
            connection.execute("COMMIT")
        self._views_made = True

    def bind(self, source: Source) -> None:
        """Make the store for a source, or check that it is this source's.

        Raises `StoreSourceError` where it holds another's data.
        """
        create_store(self.store.path, source)
        check_source(self.store.path, self.store.source, source)
        self._file.source = source

    def start_load(
        self, origin: LoadOrigin, streams: Iterable[Stream] = (), window: Interval | None = None
    ) -> int:
        """Record that a load begins and which window of which streams it asks for.

        Returns the load's number.
        """
        with self.writing() as connection:
            newest = connection.execute("SELECT coalesce(max(load_id), 0) FROM load").fetchall()
            load_id = int(newest[0][0]) + 1
            connection.execute(
                "INSERT INTO load (load_id, started_at, served_at, base_url, schema_hash, "
                "toolkit_version, profile_hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    load_id,
                    int(time.time()),
                    origin.served_at,
                    origin.base_url,
                    origin.schema_hash,
                    origin.toolkit_version,
                    origin.profile_hash,
                ],
            )
            write_allowance(connection, load_id, origin.allowance)
            write_keys(connection, origin.keys)
            if window is not None:
                record_asked(connection, dict.fromkeys(streams, window))
            self._file.keep(connection, load_id)
        self._origins[load_id] = origin
        return load_id

    def ask(self, windows: Mapping[Stream, Interval]) -> None:
        """Record that windows are asked for, of each stream its own."""
        with self.writing() as connection:
            record_asked(connection, windows)

    def finish_load(self, load_id: int, findings: Sequence[Mapping[str, object]]) -> None:
        """Record that a load ended well, and what it found."""
        with self.writing(load_id) as connection:
            connection.execute(
                "UPDATE load SET finished_at = ?, finding = ? WHERE load_id = ?",
                [int(time.time()), json.dumps(list(findings)) if findings else None, load_id],
            )

    def keep_allowance(self, load_id: int, allowance: Allowance | None) -> None:
        """Record the plan and quota that the service named last during a load, if it named any."""
        if allowance is not None:
            with self.writing(load_id) as connection:
                write_allowance(connection, load_id, allowance)

    def commit(
        self,
        load_id: int,
        batch: Batch,
        limits: Limits = LIMITS,
        *,
        also: Callable[[duckdb.DuckDBPyConnection], object] | None = None,
    ) -> Inserted:
        """Write a batch's rows and their ledger entries in one transaction: all or nothing.

        ``also`` is called last inside it, and what it writes is committed with them.
        """
        pages = batch.pages if self.keeps_pages else []
        packed = packed_record(pages)
        with self.writing(load_id) as connection:
            now_ms = time.time_ns() // 1_000_000  # one time for all of it
            inserted = write_batch(
                connection, load_id, batch, limits, now_ms, logs=self.logs(load_id)
            )
            if also is not None:
                also(connection)
            if pages:
                origin = self._origins[load_id]
                record = KeptRecord(
                    load_id, now_ms // 1_000, origin.schema_hash, origin.schemas, packed
                )
                keep_pages(connection, self.store.path, record, self._pages_days)
            return inserted

    def end_gaps(self, at: int) -> None:
        """End the gaps that a killed capture left without an end. ``at``: the service's clock."""
        with self.writing() as connection:
            end_gaps(connection, at)
