"""The manifest of published files: what there is, and all of the store that is not a file.

It has no time of its own, so an unchanged store has an unchanged manifest.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec
import polars as pl

from toolkit.errors import NotAStoreError, StoreVersionError
from toolkit.market import Source
from toolkit.store.file.engine import first_line
from toolkit.store.file.schema import FORMAT_VERSION
from toolkit.store.reading.moment import BOOKS, GROWING, StoreState
from toolkit.store.writing.pages import NEWEST
from toolkit.tables import CHANGES, LOAD, META, STREAM

FORMAT = 1
"""The format of the manifest. It counts up when a reader of today could not read it."""

FILE_NAME = re.compile(rf"({'|'.join(table.name for table in GROWING)})/[0-9a-f]{{64}}\.parquet")
"""What files are named: the table, and the SHA-256 of the file."""

_BY_STREAM = tuple(t for t in BOOKS if "stream_id" in t.names and t is not STREAM)
_Row = dict[str, Any]


class PublishedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One Parquet file: the rows of a stream in a month of UTC, or of a table without streams."""

    table: str
    stream: str | None
    month: str
    rows: int
    bytes: int
    sha256: str
    first_ts: int
    last_ts: int

    @property
    def name(self) -> str:
        """Its name below the manifest."""
        return f"{self.table}/{self.sha256}.parquet"


class PublishedSource(msgspec.Struct, frozen=True):
    """The source of the data, with its name in words."""

    kind: str
    id: str
    label: str


class Manifest(msgspec.Struct, frozen=True):
    """Everything of a store: facts, loads, streams with their ledger, and the files of rows.

    ``streams`` are rows of the table `toolkit.tables.STREAM`, each with its ``coverage``, ``edge``
    and ``gap`` rows. ``sha256`` is of all the rest.
    """

    format: int
    store_format: int
    source: PublishedSource
    schema_hash: str | None
    meta: dict[str, str]
    load: list[_Row]
    streams: list[_Row]
    files: list[PublishedFile]
    sha256: str = ""

    @classmethod
    def of(cls, moment: StoreState, files: list[PublishedFile]) -> Manifest:
        """Make the manifest of a store's moment and its files."""
        meta = dict(moment.books[META.name].rows())
        meta.pop(NEWEST, None)  # the pages are left out
        source = Source(meta["source_kind"], meta["source_id"])
        by_stream = {
            table.name: moment.books[table.name].partition_by(
                "stream_id", as_dict=True, include_key=False
            )
            for table in _BY_STREAM
        }
        streams = [
            row
            | {
                name: parts[(row["stream_id"],)].to_dicts() if (row["stream_id"],) in parts else []
                for name, parts in by_stream.items()
            }
            for row in moment.books[STREAM.name].to_dicts()
        ]
        loads = moment.books[LOAD.name].to_dicts()
        hashes = [load["schema_hash"] for load in loads if load["schema_hash"]]
        manifest = cls(
            FORMAT,
            FORMAT_VERSION,
            PublishedSource(source.kind, source.id, source.label),
            hashes[-1] if hashes else None,
            meta,
            loads,
            streams,
            files,
        )
        return msgspec.structs.replace(manifest, sha256=_own_digest(manifest))

    @property
    def books(self) -> dict[str, pl.DataFrame]:
        """The bookkeeping as it was in the store, by table."""
        rows: dict[str, list[_Row]] = {STREAM.name: [], LOAD.name: self.load}
        rows[META.name] = [{"name": name, "value": value} for name, value in self.meta.items()]
        nested = {table.name for table in _BY_STREAM}
        for stream in self.streams:
            rows[STREAM.name].append({k: v for k, v in stream.items() if k not in nested})
            for name in nested:
                of_table = [{"stream_id": stream["stream_id"], **row} for row in stream[name]]
                rows.setdefault(name, []).extend(of_table)
        return {table.name: _frame(rows.get(table.name, []), table.schema) for table in BOOKS}

    @property
    def rows(self) -> int:
        """How many rows its files have, without the history of the ledger."""
        history = {table.name for table in CHANGES}
        return sum(file.rows for file in self.files if file.table not in history)

    @property
    def bytes(self) -> int:
        """How many bytes its files have."""
        return sum(file.bytes for file in self.files)


def _frame(rows: list[_Row], schema: pl.Schema) -> pl.DataFrame:
    """Return rows as a frame of exactly these columns."""
    for row in rows:
        if row.keys() != schema.keys():
            odd = sorted(row.keys() ^ schema.keys())
            raise ValueError(f"columns that are missing or unknown: {', '.join(odd)}")
    return pl.DataFrame(rows, schema=schema, orient="row", strict=True)


def written(manifest: Manifest) -> bytes:
    """Return the bytes of a manifest, one line per stream, load and file."""
    head = msgspec.structs.asdict(manifest)
    lines = []
    for name, value in head.items():
        if isinstance(value, list):
            rows = ",\n".join(f"  {msgspec.json.encode(row).decode()}" for row in value)
            lines.append(f'"{name}": [\n{rows}\n]' if rows else f'"{name}": []')
        else:
            lines.append(f'"{name}": {msgspec.json.encode(value).decode()}')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def read_manifest(content: bytes, where: str) -> Manifest:
    """Read a manifest, whose address is ``where``.

    Raises `NotAStoreError` for anything else, `StoreVersionError` for another format.
    """
    try:
        _refuse_other_formats(msgspec.json.decode(content, type=_Formats), where)
        manifest = msgspec.json.decode(content, type=Manifest)
        fault = _fault(manifest)
        _ = manifest.books
    except _UNREADABLE as error:
        fault = first_line(error)
    if fault:
        raise _no_manifest(where, fault)
    return manifest


def _no_manifest(where: str, fault: str) -> NotAStoreError:
    return NotAStoreError(
        f"{where} is not a manifest of published data, or is damaged ({fault}); "
        "publish there again, or name another",
        path=where,
    )


_UNREADABLE = (
    msgspec.MsgspecError,
    pl.exceptions.PolarsError,
    LookupError,
    OverflowError,
    TypeError,
    ValueError,
)


def _fault(manifest: Manifest) -> str:
    """Return what contradicts itself in a manifest, "" for nothing."""
    meta, source = manifest.meta, manifest.source
    if manifest.sha256 != _own_digest(manifest):
        return "its SHA-256 is not the one of what it has"
    if not all(FILE_NAME.fullmatch(file.name) for file in manifest.files):
        return "a file of another name than its table and SHA-256"
    if (meta["source_kind"], meta["source_id"]) != (source.kind, source.id):
        return "two sources"
    return ""


def _own_digest(manifest: Manifest) -> str:
    return digest(written(msgspec.structs.replace(manifest, sha256="")))


class _Formats(msgspec.Struct):
    """The two numbers that say whether the rest can be read."""

    format: int
    store_format: int

    @property
    def newer(self) -> bool:
        return self.format > FORMAT or self.store_format > FORMAT_VERSION


class _Sourced(msgspec.Struct):
    """What every format of the manifest has."""

    source: PublishedSource


def published_source(content: bytes, where: str) -> PublishedSource:
    """Return the source of a manifest of this format or an older one. Raises as `read_manifest`."""
    try:
        return read_manifest(content, where).source
    except StoreVersionError:
        if msgspec.json.decode(content, type=_Formats).newer:
            raise
    try:
        return msgspec.json.decode(content, type=_Sourced).source
    except msgspec.MsgspecError as error:
        raise _no_manifest(where, first_line(error)) from None


def _refuse_other_formats(formats: _Formats, where: str) -> None:
    held = (formats.format, formats.store_format)
    if held == (FORMAT, FORMAT_VERSION):
        return
    advice = "publish there again with this one, from the store that it was made of"
    raise StoreVersionError(
        f"{where} was published by {'a newer' if formats.newer else 'an older'} toolkit (format "
        f"{held[0]} of a store of format {held[1]}, this one reads {FORMAT} of {FORMAT_VERSION}); "
        f"{'update the toolkit' if formats.newer else advice}",
        path=where,
    )


def digest(content: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()
