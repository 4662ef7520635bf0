"""The service's pages of trajectories, kept beside the store to read rows from again.

They are in a SQLite file such as ``rail.duckdb.pages``, one record per commit, written before the
store's commit, which notes its number. A record of a higher number is of a killed process, and goes
at the next commit.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import duckdb
import msgspec
import zstandard

from toolkit.errors import StoreError
from toolkit.intervals import Interval
from toolkit.market import Trajectory
from toolkit.store.file.engine import full_disk
from toolkit.store.ledger.streams import read_fact, write_fact
from toolkit.wire.exchange import Response

KEPT_DAYS = 30
"""How long pages are kept after they came, unless another number is given (days)."""

MOST_BYTES = 4 * 2**30
"""How large the pages of a store may be together, as they are kept. The oldest go first."""

NEWEST = "newest_pages"
"""The fact of the store that has the number of its newest record of pages."""

_DAY_S = 86_400
_SMALL_BYTES = 65_536
_COMPRESSION = zstandard.ZstdCompressionParameters(
    strategy=zstandard.STRATEGY_FAST, window_log=17, hash_log=12, min_match=6, write_checksum=True
)
"""Of zstd. A page repeats what is near in it: so it takes less time and room than by level 1."""

_LENGTH_BYTES = 4
_WAIT_S = 10.0
_TABLES = """
PRAGMA auto_vacuum = INCREMENTAL;
CREATE TABLE IF NOT EXISTS record (
    record_id INTEGER PRIMARY KEY, load_id INTEGER, load_started_at INTEGER, committed_at INTEGER,
    schema_hash TEXT, bytes INTEGER, pages BLOB
);
CREATE INDEX IF NOT EXISTS sizes ON record (committed_at, bytes);
CREATE TABLE IF NOT EXISTS schemas (schema_hash TEXT PRIMARY KEY, document BLOB);
"""


@dataclass(frozen=True, slots=True)
class KeptPage:
    """An answer to a question for rows of a trajectory. Of its rows those in ``window`` count."""

    of: Trajectory
    window: Interval
    answer: Response


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """The packed pages of one commit (s, local clock), with its load and `/schemas` document."""

    load_id: int
    committed_at: int
    schema_hash: str | None
    schemas: bytes | None
    packed: bytes

    @property
    def pages(self) -> Iterator[KeptPage]:
        """The pages, in the order in which they came. Raises `StoreError` for damaged ones."""
        try:
            for part in _parts(_inflated(self.packed)):
                head, body = _parts(part if part[:1] == b"\0" else _inflated(part))
                page = msgspec.json.decode(head, type=_Head)
                answer = Response(page.status, {}, body, page.of)
                yield KeptPage(Trajectory.parse(page.of), Interval(page.start, page.end), answer)
        except (OSError, ValueError, zstandard.ZstdError) as error:
            raise StoreError(f"the pages of load {self.load_id} are damaged ({error})") from None


class _Head(msgspec.Struct):
    of: str
    start: int
    end: int
    status: int


def packed_page(page: KeptPage) -> bytes:
    """Pack a page. A large one is compressed at once, small ones together at their commit."""
    head = _Head(page.of.key, *page.window, page.answer.status)
    whole = _framed(msgspec.json.encode(head), page.answer.body)
    return whole if len(whole) < _SMALL_BYTES else _deflated(whole)


def pages_path(store: Path) -> Path:
    """Return where the pages of a store are."""
    return store.with_name(f"{store.name}.pages")


def keep_pages(
    connection: duckdb.DuckDBPyConnection, store: Path, record: KeptRecord, kept_days: float
) -> None:
    """Keep the pages of a commit, inside its transaction, and drop what is too old or too much.

    Raises `StoreError` where the file beside the store cannot be written.
    """
    newest = _newest(connection)
    started_at = connection.execute(
        "SELECT started_at FROM load WHERE load_id = ?", [record.load_id]
    ).fetchall()[0][0]
    with _opened(store) as pages:
        pages.executescript(_TABLES)
        pages.execute("BEGIN IMMEDIATE")
        pages.execute("DELETE FROM record WHERE record_id > ?", [newest])
        facts = (newest + 1, record.load_id, started_at, record.committed_at, record.schema_hash)
        row = [*facts, len(record.packed), record.packed]
        pages.execute("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        if record.schemas is not None and record.schema_hash is not None:
            values = [record.schema_hash, record.schemas]
            pages.execute("INSERT OR IGNORE INTO schemas VALUES (?, ?)", values)
        _drop_old(pages, kept_days)
        pages.execute("COMMIT")
        pages.execute("PRAGMA incremental_vacuum").fetchall()
    write_fact(connection, NEWEST, str(newest + 1))


def _drop_old(pages: sqlite3.Connection, kept_days: float) -> None:
    oldest = int(time.time() - kept_days * _DAY_S)
    dropped = pages.execute("DELETE FROM record WHERE committed_at < ?", [oldest]).rowcount
    if pages.execute("SELECT sum(bytes) FROM record").fetchone()[0] > MOST_BYTES:
        dropped += pages.execute(
            "DELETE FROM record WHERE record_id IN (SELECT record_id FROM (SELECT record_id, "
            "sum(bytes) OVER (ORDER BY record_id DESC) AS held FROM record) WHERE held > ?)",
            [MOST_BYTES],
        ).rowcount
    if dropped:
        used = "SELECT schema_hash FROM record WHERE schema_hash IS NOT NULL"
        pages.execute(f"DELETE FROM schemas WHERE schema_hash NOT IN ({used})")  # noqa: S608 - ours


def read_pages(connection: duckdb.DuckDBPyConnection, store: Path) -> Iterator[KeptRecord]:
    """Yield the records of a store's commits, oldest first, without records of another file.

    ``connection`` reads the store at the path ``store``. Raises `StoreError` if the pages cannot be
    read.
    """
    if not pages_path(store).exists():
        return
    newest = _newest(connection)
    loads = dict(connection.execute("SELECT load_id, started_at FROM load").fetchall())
    with _opened(store) as pages:
        pages.executescript(_TABLES)
        found = pages.execute(
            "SELECT load_id, load_started_at, committed_at, schema_hash, document, pages "
            "FROM record LEFT JOIN schemas USING (schema_hash) "
            "WHERE record_id <= ? ORDER BY record_id",
            [newest],
        )
        for load_id, started_at, *rest in found:
            if loads.get(load_id) == started_at:
                yield KeptRecord(load_id, *rest)


def back_up_pages(store: Path, copy: Path) -> None:
    """Copy the pages of a store, if it has any, to beside its copy."""
    if pages_path(store).exists():
        with _opened(store) as pages, _opened(copy) as target:
            pages.backup(target)


def faults_of_pages(connection: duckdb.DuckDBPyConnection, store: Path) -> list[str]:
    """Return what is wrong with the pages of a store, in words. Every byte is read."""
    name, of = pages_path(store).name, 0
    try:
        for record in read_pages(connection, store):
            of += sum(1 for _ in record.pages)
    except StoreError as error:
        return [f"{name}: cannot be read beyond page {of:,} ({error})"]
    return []


@contextlib.contextmanager
def _opened(store: Path) -> Iterator[sqlite3.Connection]:
    """Yield the file of a store's pages, made for this user alone if missing."""
    path = pages_path(store)
    try:
        path.touch(0o600)
        with contextlib.closing(
            sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
        ) as pages:
            yield pages
    except (OSError, sqlite3.Error) as error:
        raise full_disk(path, error) or StoreError(
            f"{path}, which has the pages that {store.name} was loaded from, cannot be used "
            f"({error}); repair it or move it away: the store itself is whole",
            path=str(path),
        ) from None


def _newest(connection: duckdb.DuckDBPyConnection) -> int:
    return int(read_fact(connection, NEWEST) or 0)


def packed_record(pages: Sequence[bytes]) -> bytes:
    """Pack the pages of a commit into one stream."""
    return _deflated(_framed(*pages))


def _framed(*parts: bytes) -> bytes:
    lengths = (len(part).to_bytes(_LENGTH_BYTES, "big") for part in parts)
    return b"".join(chain.from_iterable(zip(lengths, parts, strict=True)))


def _parts(whole: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(whole):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(whole[at:start], "big")
        yield whole[start:at]


def _deflated(whole: bytes) -> bytes:
    return zstandard.ZstdCompressor(compression_params=_COMPRESSION).compress(whole)


def _inflated(packed: bytes) -> bytes:
    stream = zstandard.ZstdDecompressor().decompressobj()
    whole = stream.decompress(packed)
    if not stream.eof:
        raise ValueError("they are cut")
    return whole
