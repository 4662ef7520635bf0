"""Writing into a store: loads, batches with their ledger entries, and webhook deliveries."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl

from toolkit import commands
from toolkit.errors import StoreError, StoreSourceError
from toolkit.intervals import Interval, clip, difference, union
from toolkit.market import EventFamily, EventLog, Family, Source, Stream
from toolkit.store.file.connection import opened
from toolkit.store.file.engine import refuse_functions
from toolkit.store.file.schema import create_store, opened_for_reading, read_source
from toolkit.store.ledger.contents import write_allowance
from toolkit.store.ledger.coverage import (
    end_gaps,
    record_answers,
    record_asked,
    settle_gaps,
    write_edges,
    write_gaps,
)
from toolkit.store.ledger.ledger import LATE_S, Edge, final_part
from toolkit.store.ledger.streams import (
    add_counts,
    append,
    count_rows,
    highest,
    number_streams,
    run_with,
)
from toolkit.store.reading.frames import frame_of
from toolkit.store.reading.snapshots import insert_snapshots
from toolkit.store.reading.views import make_views
from toolkit.store.store import Store
from toolkit.store.writing.batch import WEBHOOK, Answered, Batch, LoadOrigin
from toolkit.store.writing.events import insert_documents, note_arrivals
from toolkit.store.writing.ingest import Inserted, insert_rows, read_key, write_keys
from toolkit.store.writing.pages import KEPT_DAYS, KeptRecord, keep_pages, packed_record
from toolkit.tables import DELIVERY, LOAD
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS, EventRoute
from toolkit.wire.quota import Allowance

_PARTS = 16
_OF_ORIGIN = ("served_at", "base_url", "schema_hash", "toolkit_version", "profile_hash")


def write_batch(
    connection: duckdb.DuckDBPyConnection,
    load_id: int,
    batch: Batch,
    limits: Limits,
    now_ms: int,
    *,
    logs: Mapping[EventFamily, EventRoute],
) -> Inserted:
    """Write a batch inside the connection's transaction, and return the outcome for its rows.

    ``now_ms`` is the local clock at the commit (ms), ``logs`` are the routes of the event logs.
    """
    total, now = Inserted(), now_ms // 1_000
    streams: list[Stream] = [*batch.edges, *batch.rows, *(gap.of for gap in batch.gaps.values())]
    numbers = number_streams(connection, streams)
    for family in Family:
        frames = [
            pl.concat(pages).with_columns(stream_id=pl.lit(numbers[t], pl.Int32))
            for t, pages in batch.rows.items()
            if t.family is family
        ]
        if frames:
            key, tied = read_key(connection, family), _tied(batch, family, numbers)
            total += insert_rows(
                connection, family, pl.concat(frames), load_id, key=key, tied=tied, committed_at=now
            )
    if batch.documents:
        documents = pl.concat(batch.documents)
        total += insert_documents(connection, documents, load_id, limits, now, routes=logs)
    note_arrivals(connection, batch.came, load_id, now_ms, limits)
    insert_snapshots(connection, [(snapshot, load_id) for snapshot in batch.snapshots], now)
    counted = [(numbers[each.log], each.served_at, 0) for each in batch.snapshots]
    schema = {"stream_id": pl.Int32, "ts": pl.Int64, "revision": pl.Int32}
    add_counts(connection, count_rows(pl.DataFrame(counted, schema=schema, orient="row")))
    total += Inserted(new=len(counted))
    edges = {numbers[stream]: edge for stream, edge in batch.edges.items()}
    _record_answers(connection, batch, numbers, now)
    write_edges(connection, edges, load_id, now)
    write_gaps(connection, batch.gaps.values(), numbers, load_id, now)
    settle_gaps(connection, edges, load_id, now)
    return total


def _record_answers(
    connection: duckdb.DuckDBPyConnection, batch: Batch, numbers: dict[Stream, int], now: int
) -> None:
    """Record what the pages answer for: settled, or provisional where more may still arrive."""
    settled: dict[int, list[Interval]] = {}
    provisional: dict[int, list[Interval]] = {}
    clocks: dict[int, int] = {}
    for stream, answers in batch.answered.items():
        number, edge = numbers[stream], batch.edges[stream]
        plain = union(answer.stretch for answer in answers if answer.is_plain)
        clocks[number] = edge.clock
        parts = [
            (part, answer.open_parts)
            for answer in (*map(Answered, plain), *(a for a in answers if not a.is_plain))
            for whole in difference(
                _in_archive(connection, stream, answer, edge),
                [*_missing(connection, stream, answer), *((x.start, x.end) for x in answer.lost)],
            )
            for part in final_part(whole, edge)
        ]
        settled[number] = [each for part, still in parts for each in difference([part], still)]
        provisional[number] = [each for part, still in parts for each in clip(still, part)]
    told = {numbers[stream]: answers for stream, answers in batch.answered.items()}
    record_answers(connection, settled, provisional, clocks, now, answers=told)


def _in_archive(
    connection: duckdb.DuckDBPyConnection, stream: Stream, answer: Answered, edge: Edge
) -> list[Interval]:
    """Return the part of an answer before the first document that only a stream has brought.

    Such a document, unless older than `LATE_S`, shows that the archive is late.
    """
    if answer.archived is None or not isinstance(stream, EventLog):
        return [answer.stretch]
    first = run_with(
        connection,
        "SELECT min(ts) FROM event e ANTI JOIN archived a ON e.event_id = a.event_id "
        "AND e.event_type IS NOT DISTINCT FROM a.event_type AND e.ts_ms = a.ts_ms "
        "WHERE family = ? AND ts >= ? AND ts < ?",
        [stream.family.value, max(answer.stretch.start, edge.clock - LATE_S), answer.stretch.end],
        archived=answer.archived,
    )[0][0]
    return [answer.stretch] if first is None else clip([answer.stretch], (-(2**62), first))


def _missing(
    connection: duckdb.DuckDBPyConnection, stream: Stream, answer: Answered
) -> list[Interval]:
    """Return the parts of an answer that brought what is not stored, very many of them as one."""
    parts = union(answer.missing)
    if answer.archived is not None and isinstance(stream, EventLog):
        found = run_with(
            connection,
            "SELECT DISTINCT ts FROM archived a ANTI JOIN (SELECT event_id, event_type, ts_ms "
            "FROM event WHERE family = ? AND ts >= ? AND ts <= ?) e ON e.event_id = a.event_id "
            "AND e.event_type IS NOT DISTINCT FROM a.event_type AND e.ts_ms = a.ts_ms",
            [stream.family.value, answer.archived["ts"].min(), answer.archived["ts"].max()],
            archived=answer.archived,
        )
        parts = union([*parts, *((ts, ts + 1) for (ts,) in found)])
    return parts if len(parts) <= _PARTS else [Interval(parts[0].start, parts[-1].end)]


def _tied(batch: Batch, family: Family, numbers: dict[Stream, int]) -> pl.DataFrame | None:
    """Return the times at which one page had several rows, None without any."""
    tied = [(numbers[t], ts) for t, at in batch.tied.items() if t.family is family for ts in at]
    schema = {"stream_id": pl.Int32, "ts": pl.Int64}
    return pl.DataFrame(tied, schema=schema, orient="row") if tied else None


def check_source(path: Path, held: Source, source: Source) -> None:
    """Raise `StoreSourceError` where a file holds another source's data."""
    if held.id != source.id:
        raise StoreSourceError(
            f"{path} holds data of another source ({held.label}), the service is "
            f"{source.label}; name another store, a store never mixes sources",
            path=str(path),
        )


def _load_facts(connection: duckdb.DuckDBPyConnection, load_id: int) -> object:
    """Return what distinguishes a load from every other one, nothing if it is absent."""
    return connection.execute(
        "SELECT served_at, base_url, schema_hash FROM load WHERE load_id = ?", [load_id]
    ).fetchall()


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

    It does not write a file that took the place of its own. The pages of rows are kept for
    ``pages_days`` (days), 0 for not at all.

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
        self._views_made = False
        self._source: Source | None = None
        self._loads: dict[int, object] = {}

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
        same thread, and `StoreSourceError` if the file is of another source than the bound one, or
        not the file that the load began in.
        """
        store = self.store
        if not self._views_made and self._source is None:
            with opened_for_reading(store.path, store.wait_s):
                pass  # it is a store, of this format from now on
        with opened(store.path, writable=True, wait_s=store.wait_s) as connection:
            connection.execute("BEGIN")
            self._check_file(connection, load_id)
            if not self._views_made:
                refuse_functions(connection, store.path)
                make_views(connection)
            yield connection
            connection.execute("COMMIT")
        self._views_made = True

    def _check_file(self, connection: duckdb.DuckDBPyConnection, load_id: int | None) -> None:
        """Raise `StoreSourceError` if another file took the place of the one that is known."""
        path, held = self.store.path, read_source(connection, self.store.path)
        if self._source is not None:
            check_source(path, held, self._source)
        if load_id in self._loads and self._loads[load_id] != _load_facts(connection, load_id):
            raise StoreSourceError(
                f"{path} is not the file that load {load_id} began in, it is another one of "
                f"{held.label}; nothing was written to it: put the first file back",
                path=str(path),
            )

    def bind(self, source: Source) -> None:
        """Make the store for a source, or check that it is this source's.

        Raises `StoreSourceError` where it has another's data.
        """
        if create_store(self.store.path, source):
            self._views_made = True
        else:
            with opened_for_reading(self.store.path, self.store.wait_s) as connection:
                check_source(self.store.path, read_source(connection, self.store.path), source)
        self._source = source

    def start_load(
        self, origin: LoadOrigin, streams: Iterable[Stream] = (), window: Interval | None = None
    ) -> int:
        """Record that a load begins, with its window and streams.

        Returns the load's number.
        """
        with self.writing() as connection:
            load_id = highest(connection, "load_id", "load") + 1
            row = {"load_id": load_id, "started_at": int(time.time())}
            append(connection, LOAD, [row | {name: getattr(origin, name) for name in _OF_ORIGIN}])
            write_allowance(connection, load_id, origin.allowance)
            write_keys(connection, origin.keys)
            if window is not None:
                record_asked(connection, dict.fromkeys(streams, window))
            self._loads[load_id] = _load_facts(connection, load_id)
        self._origins[load_id] = origin
        return load_id

    def ask(self, windows: Mapping[Stream, Interval]) -> None:
        """Record that windows are asked for, one per stream."""
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
        """Record the plan and quota that the service named last during a load, if any."""
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

        ``also`` is called last inside it.
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
        """End the gaps that a killed capture left open. ``at`` is the service's clock (s)."""
        with self.writing() as connection:
            end_gaps(connection, at)


@dataclass(frozen=True, slots=True)
class Delivered:
    """One genuine delivery: its id, and the text of its body if that is not an event document."""

    delivery_id: str
    family: str | None
    document: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """The outcome of a commit of deliveries: new ones, those kept whole among them, and events."""

    deliveries: int
    whole: int
    events: Inserted


def keep_deliveries(
    writer: StoreWriter,
    load_id: int,
    delivered: Sequence[Delivered],
    documents: pl.DataFrame,
    limits: Limits = LIMITS,
) -> Kept:
    """Commit deliveries with the event documents they brought. What is held stays as it is.

    Documents have their own key: a sender that uses an id twice loses no event. They answer for no
    stretch of the logs.
    """
    now_ms = time.time_ns() // 1_000_000
    now = now_ms // 1_000
    rows = [(d.delivery_id, now, d.family, d.document, load_id) for d in delivered]
    arrived = pl.DataFrame(rows, DELIVERY.schema, orient="row").unique(
        "delivery_id", keep="first", maintain_order=True
    )
    with writer.writing(load_id) as connection:
        new = run_with(
            connection,
            "INSERT INTO delivery FROM arrived_deliveries a "
            "ANTI JOIN delivery d USING (delivery_id) RETURNING document IS NOT NULL",
            arrived_deliveries=arrived,
        )
        inserted = insert_documents(
            connection, documents, load_id, limits, now, routes=writer.logs(load_id)
        )
        note_arrivals(connection, [(WEBHOOK, documents)], load_id, now_ms, limits)
    return Kept(len(new), sum(whole for (whole,) in new), inserted)


def read_deliveries(store: Store) -> pl.DataFrame:
    """Return the genuine deliveries, in the order they came: the columns of `DELIVERY`."""
    with store.reading() as connection:
        return frame_of(
            connection, "SELECT * FROM delivery ORDER BY load_id, received_at, delivery_id"
        )
