"""Publishing a store: one Parquet file per stream and month, and a manifest that names them.

A file is named by its content, so unchanged ones are there already, and readers of an older
manifest lose none. Only the manifest is replaced, at the end: a killed process leaves what was
published before. A copy of it, named by its SHA-256, is never replaced, so that a report can name
its data.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from toolkit.errors import NotAStoreError, StoreError, StoreSourceError
from toolkit.market import Source, parse_length
from toolkit.store.publish.destinations import MANIFEST, PINNED, Destination, place_of
from toolkit.store.publish.manifest import (
    FILE_NAME,
    Manifest,
    PublishedFile,
    digest,
    published_source,
    read_manifest,
    written,
)
from toolkit.store.reading.moment import GROWING, StoreState, owner_column, time_column
from toolkit.store.store import Store
from toolkit.tables import STREAM, Table


def pinned_name(manifest: Manifest) -> str:
    """Return the name of a manifest that no later publication replaces."""
    return f"manifests/{manifest.sha256}.json"


def publications(where: str | os.PathLike[str]) -> pl.DataFrame:
    """Return one row per publication that a place still has, the newest first.

    Columns: address (for `toolkit.open`), published_at (s UTC, first written), newest (whether the
    place itself is read as it), rows, files, bytes (of its files) and last_ts (s UTC, the newest
    row). An empty place has no row. Raises `NotAStoreError` for a damaged manifest, and
    `StoreVersionError` for one of another format.
    """
    place = place_of(where)
    held = place.files()
    newest = manifest_of(place, MANIFEST).sha256 if MANIFEST in held else ""
    rows = []
    for name in filter(PINNED.fullmatch, held):
        manifest = manifest_of(place, name)
        last_ts = max((file.last_ts for file in manifest.files), default=None)
        rows.append(
            {
                "address": f"{place.name}/{name}",
                "published_at": held[name].written_at,
                "newest": manifest.sha256 == newest,
                "rows": manifest.rows,
                "files": len(manifest.files),
                "bytes": manifest.bytes,
                "last_ts": last_ts,
            }
        )
    return pl.DataFrame(rows, schema=_SCHEMA).sort(
        "newest", "published_at", "address", descending=[True, True, False]
    )


_SCHEMA = {
    "address": pl.String,
    "published_at": pl.Int64,
    "newest": pl.Boolean,
    "rows": pl.Int64,
    "files": pl.Int64,
    "bytes": pl.Int64,
    "last_ts": pl.Int64,
}


def expire(place: Destination, keep_s: int, newest: str) -> int:
    """Remove publications written longer ago than ``keep_s``, and files that no other one names.

    The manifest ``newest`` stays. Manifests go first: whoever reads one finds its files. Returns
    the number of files removed, without manifests.
    """
    held, limit = place.files(), time.time() - keep_s
    pinned = [name for name in held if PINNED.fullmatch(name)]
    kept = [name for name in pinned if name == newest or held[name].written_at >= limit]
    for name in sorted(set(pinned) - set(kept)):
        place.remove(name)
    named = {file.name for name in kept for file in manifest_of(place, name).files}
    unnamed = [name for name in held if FILE_NAME.fullmatch(name) and name not in named]
    for name in unnamed:
        place.remove(name)
    return len(unnamed)


def manifest_of(place: Destination, name: str) -> Manifest:
    """Read a manifest by its name in a place. Raises as `read_manifest`."""
    return read_manifest(place.read(name), f"{place.name}/{name}")


_ROWS_OF_A_GROUP = 65_536
_MONTH = "month of the file"
_KEY_OF = {"family": "events/", "kind": "snapshot/"}


@dataclass(frozen=True, slots=True)
class Published:
    """The contents of a publication, and what of it had to be written.

    ``address`` is that of this publication, which no later one changes. ``uploaded_bytes`` includes
    the two copies of a changed manifest. ``removed_files`` are of older publications.
    """

    where: str
    address: str
    rows: int
    files: int
    bytes: int
    uploaded_files: int
    uploaded_bytes: int
    kept_files: int
    kept_bytes: int
    removed_files: int = 0


def publish(
    store: Store, where: str | os.PathLike[str], *, keep: str | int | None = None
) -> Published:
    """Publish a store as it is now, to a folder or the address of an object store.

    ``keep`` is for how long earlier publications can still be read, such as ``30d``: older ones are
    removed, with the files that no other names. None keeps all. Raises `InputError` for a ``keep``
    that is not a length of time, `StoreSourceError` where another source is published there, and
    `StoreError` where the place cannot be written.
    """
    keep_s = None if keep is None else parse_length(keep, parameter="keep")
    place = place_of(where)
    held = place.files()
    before = place.read(MANIFEST) if MANIFEST in held else b""
    _check_source(place, before, store.source)
    moment = StoreState.now(store)
    files, kept, uploaded = [], 0, 0
    for file, content in published_files(moment):
        files.append(file)
        if file.name in held and held[file.name].bytes == file.bytes:
            kept += 1
        else:
            place.write(file.name, content)
            uploaded += file.bytes
    manifest = Manifest.of(moment, files)
    content, pinned = written(manifest), pinned_name(manifest)
    if pinned not in held:
        place.write(pinned, content)
        uploaded += len(content)
    if content != before:
        place.write(MANIFEST, content)
        uploaded += len(content)
    whole = manifest.bytes + 2 * len(content)
    return Published(
        place.name,
        f"{place.name}/{pinned}",
        manifest.rows,
        len(files),
        whole,
        len(files) - kept,
        uploaded,
        kept,
        whole - uploaded,
        0 if keep_s is None else expire(place, keep_s, pinned),
    )


def _check_source(place: Destination, content: bytes, source: Source) -> None:
    """Raise where the place has the data of another source, or something else under that name."""
    if not content:
        return
    where = f"{place.name}/{MANIFEST}"
    try:
        held = published_source(content, where)
    except NotAStoreError as error:
        raise NotAStoreError(
            f"{error}; nothing was written: move that file away to publish there", path=where
        ) from None
    if held.id != source.id:
        raise StoreSourceError(
            f"{place.name} has published data of another source ({held.label}), the store is of "
            f"{source.label}; name another place",
            path=place.name,
        )


def published_files(moment: StoreState) -> Iterator[tuple[PublishedFile, bytes]]:
    """Yield each file of a store and its bytes: table by table, stream by stream, by month."""
    keys = dict(moment.books[STREAM.name].select("stream_id", "key").rows())
    for table in GROWING:
        time, owner = time_column(table), owner_column(table)
        month = pl.from_epoch(time).dt.strftime("%Y-%m").alias(_MONTH)
        by = [_MONTH] if owner is None else [owner, _MONTH]
        for part in moment.parts(table):
            rows = moment.rows(table, part).with_columns(month)
            pieces = rows.partition_by(by, as_dict=True, maintain_order=True)
            for found, piece in sorted(pieces.items()):
                stream = None if owner is None else _key(owner, found[0], keys)
                yield _file(table, stream, str(found[-1]), piece)


def _key(owner: str, value: object, keys: dict[object, str]) -> str:
    """Return a stream's key."""
    if owner != "stream_id":
        return f"{_KEY_OF[owner]}{value}"
    if value not in keys:
        raise StoreError(f"rows of a stream {value} that is unknown; see `rail store verify`")
    return keys[value]


def _file(
    table: Table, stream: str | None, month: str, rows: pl.DataFrame
) -> tuple[PublishedFile, bytes]:
    named = rows.select(table.names)
    if stream is not None:
        named = named.drop("stream_id", strict=False)
        named = named.select(pl.lit(stream).alias("stream"), pl.all())
    content = encoded(named)
    times = rows[time_column(table)]
    first, last = int(times.min()), int(times.max())  # type: ignore[arg-type]  # never empty
    sha256 = digest(content)
    entry = PublishedFile(table.name, stream, month, rows.height, len(content), sha256, first, last)
    return entry, content


def encoded(rows: pl.DataFrame) -> bytes:
    """Return rows as Parquet. The same rows give the same bytes, in one version of polars."""
    file = io.BytesIO()
    rows.rechunk().write_parquet(
        file, compression="zstd", compression_level=3, row_group_size=_ROWS_OF_A_GROUP
    )
    return file.getvalue()


def decoded(
    table: Table, file: PublishedFile, content: bytes, numbers: dict[str, int]
) -> pl.DataFrame:
    """Return a file's rows, with the ``numbers`` of streams. Raises `ValueError` for other rows."""
    rows = pl.read_parquet(io.BytesIO(content))
    owner = owner_column(table)
    if owner is not None:
        if "stream" not in rows.columns or (rows["stream"] != file.stream).any():
            raise ValueError("rows of another stream")
        number = pl.lit(numbers.get(file.stream or ""), pl.Int32)
        rows = rows.drop("stream")
        rows = rows.with_columns(stream_id=number) if owner == "stream_id" else rows
    if set(rows.columns) != set(table.names):
        raise ValueError("other columns")
    rows = rows.select(table.names)
    if rows.schema != table.schema:
        raise ValueError("columns of other types")
    months = rows.select(pl.from_epoch(time_column(table)).dt.strftime("%Y-%m")).to_series()
    if rows.height != file.rows or (months != file.month).any():
        raise ValueError("other rows than the manifest names")
    return rows
