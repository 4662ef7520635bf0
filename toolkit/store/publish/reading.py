"""Reading published files: as a store, or as rows of whole trajectories.

Each file is checked against its SHA-256. The rows of a part equal those of
`toolkit.store.Store.groups` to the last bit, so a statistic of it is the same on any machine.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import duckdb
import polars as pl

from toolkit.errors import InputError, NotAStoreError, StoreError, StoreSourceError
from toolkit.intervals import Ends, Interval
from toolkit.market import Source
from toolkit.store.file.engine import first_line
from toolkit.store.file.file import published_note
from toolkit.store.file.schema import FORMAT_VERSION, made, new_file
from toolkit.store.ledger.streams import append
from toolkit.store.publish.destinations import (
    MANIFEST,
    Bucket,
    Destination,
    Folder,
    manifest_in,
    place_of,
)
from toolkit.store.publish.manifest import Manifest, PublishedFile, digest
from toolkit.store.publish.publication import decoded, manifest_of, pinned_name
from toolkit.store.reading.moment import BOOKS, GROWING
from toolkit.store.reading.scanning import GROUP_ROWS, newest_rows, value_columns
from toolkit.store.store import Store
from toolkit.tables import META, ROWS, STREAM

_BOOKS = {table.name: table for table in BOOKS}
_UNUSED_S = 86_400
"""After how long a cached store of an older manifest is removed (s)."""


def import_store(where: str | os.PathLike[str], path: str | Path) -> Store:
    """Make a store of published files, with all that the published one held.

    ``where`` is the folder or address, or the manifest in it. ``path`` is made only if every file
    is sound. Raises `StoreError` where a file is missing or damaged, or a store is at ``path``
    already, `StoreSourceError` where that one is of another source, `NotAStoreError` without a
    sound manifest, and `StoreVersionError` for another format.
    """
    place = place_of(where)
    manifest = _manifest(place, manifest_in(where))
    store = Store(path)
    if store.path.exists():
        _refuse(store, manifest)
    try:
        _make(store.path, manifest, lambda file: sound(place, file, place.read(file.name)))
    except FileExistsError:
        _refuse(store, manifest)
    return store


def open_published(where: str | os.PathLike[str], cache: Path) -> Store:
    """Return a store to read published files from, which takes no rows.

    It is a copy in the folder ``cache``, made once per manifest. Its ``published`` is the address
    of this publication, which no later one changes. Raises what `import_store` raises.
    """
    place = place_of(where)
    manifest = _manifest(place, manifest_in(where))
    address = place.name if isinstance(place, Bucket) else str(Path(place.name).resolve())
    folder = cache / digest(address.encode())[:16]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{manifest.sha256[:16]}-{FORMAT_VERSION}.duckdb"
    published_note(path).write_text(f"{address}/{pinned_name(manifest)}", encoding="utf-8")
    if not path.exists():
        fetched = Folder(folder / "files") if isinstance(place, Bucket) else None
        with contextlib.suppress(FileExistsError):  # another process has just made it
            _make(path, manifest, lambda file: _fetched(place, fetched, file))
        _forget(folder, path, manifest)
    os.utime(path)
    return Store(path, published=f"{place.name}/{pinned_name(manifest)}")


def _manifest(place: Destination, name: str) -> Manifest:
    manifest = manifest_of(place, name)
    if name not in (MANIFEST, pinned_name(manifest)):
        raise NotAStoreError(f"{place.name}/{name} is another publication than its name says")
    return manifest


def _refuse(store: Store, manifest: Manifest) -> None:
    """Raise: there is a store at the path already, of this source or of another."""
    source = Source(manifest.source.kind, manifest.source.id)
    if store.source.id != source.id:
        raise StoreSourceError(
            f"{store.path} holds data of another source ({store.source.label}), the published "
            f"data is of {source.label}; name another store, a store never mixes sources",
            path=str(store.path),
        )
    raise StoreError(
        f"{store.path} is there already, and an import makes a new store; name another file",
        path=str(store.path),
    )


def sound(place: Destination, file: PublishedFile, content: bytes) -> bytes:
    """Return a file's bytes, or raise where they are not those that were published."""
    if digest(content) != file.sha256:
        where = f"{place.name}/{file.name}"
        raise StoreError(
            f"{where} is damaged: its SHA-256 is not the one in the manifest; publish there again",
            path=where,
        )
    return content


def _fetched(place: Destination, fetched: Folder | None, file: PublishedFile) -> bytes:
    """Return a file's bytes, from the folder of fetched files where it is there and sound."""
    if fetched is None:
        return sound(place, file, place.read(file.name))
    try:
        return sound(fetched, file, fetched.read(file.name))
    except StoreError:
        content = sound(place, file, place.read(file.name))
        fetched.write(file.name, content)
        return content


def _make(path: Path, manifest: Manifest, read: Callable[[PublishedFile], bytes]) -> None:
    """Make the store, or nothing. Raises `FileExistsError` where there is a file by then."""
    books = manifest.books
    numbers = {str(key): int(n) for key, n in books[STREAM.name].select("key", "stream_id").rows()}
    tables = {table.name: table for table in GROWING}
    with new_file(path) as draft, made(draft, manifest.meta) as connection:
        for name, rows in books.items():
            if name != META.name:
                append(connection, _BOOKS[name], rows)
        for file in manifest.files:
            content = read(file)
            try:
                table = tables[file.table]
                append(connection, table, decoded(table, file, content, numbers))
            except (pl.exceptions.PolarsError, ValueError, duckdb.DataError) as error:
                raise StoreError(
                    f"{file.name} cannot be taken in ({first_line(error)}); publish it again",
                    path=file.name,
                ) from None
            os.utime(draft)


def _forget(folder: Path, path: Path, manifest: Manifest) -> None:
    """Remove what older manifests left in the cache: stores unused for a day, and files."""
    for other in folder.glob("*.duckdb"):
        if other != path and time.time() - other.stat().st_mtime > _UNUSED_S:
            other.unlink(missing_ok=True)
            published_note(other).unlink(missing_ok=True)
    named = {file.name for file in manifest.files}
    fetched = Folder(folder / "files")
    for name in fetched.files().keys() - named:
        fetched.remove(name)


Named = tuple[str, tuple[PublishedFile, ...]]
"""A trajectory's key, and its files by month."""


@dataclass(frozen=True, slots=True)
class PublishedPart:
    """Some whole trajectories of a publication, over a window ``[start, end)``.

    ``place`` is where any process finds the files. ``streams`` are sorted by key, each with the
    files that may have rows of the window.
    """

    place: str
    kind: str
    window: Interval
    streams: tuple[Named, ...]

    @property
    def keys(self) -> list[str]:
        """The trajectories."""
        return [key for key, _ in self.streams]

    @property
    def rows(self) -> int:
        """How many rows the files have."""
        return sum(file.rows for _, files in self.streams for file in files)

    def each(self) -> Iterator[PublishedPart]:
        """Yield a part for each of its trajectories."""
        for stream in self.streams:
            yield PublishedPart(self.place, self.kind, self.window, (stream,))

    def read(self) -> pl.DataFrame:
        """Return the rows: trajectory, ts and values, by trajectory and ts, the newest of each ts.

        Raises `StoreError` for a file that is missing or not the one that was published.
        """
        columns = value_columns(self.kind)
        types = ROWS[self.kind].schema
        schema = {"trajectory": pl.String()} | {name: types[name] for name in ("ts", *columns)}
        parts = [pl.DataFrame(schema=schema)]
        parts += [self._read(key, files, columns) for key, files in self.streams if files]
        return pl.concat(parts)

    def _read(self, key: str, files: Iterable[PublishedFile], columns: list[str]) -> pl.DataFrame:
        place = place_of(self.place)
        inside = pl.col("ts").is_between(*self.window, closed="left")
        months = []
        for file in files:
            content = sound(place, file, place.read(file.name))
            try:
                month = pl.read_parquet(io.BytesIO(content), columns=["ts", "revision", *columns])
            except (pl.exceptions.PolarsError, OSError) as error:
                raise StoreError(
                    f"{self.place}/{file.name} cannot be read ({first_line(error)}); "
                    "publish there again",
                    path=self.place,
                ) from None
            months.append(month.filter(inside))
        rows = newest_rows(pl.concat(months).sort("ts", "revision"), "ts")
        return rows.select(pl.lit(key).alias("trajectory"), "ts", *columns)


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """The trajectories of a kind in one publication, in parts of about so many rows.

    ``address`` is that of the publication. There is always a first part.
    """

    address: str
    parts: tuple[PublishedPart, ...]

    @classmethod
    def of(
        cls,
        where: str,
        kind: str,
        window: Ends,
        keys: Iterable[str] | None = None,
        *,
        rows: int | None = None,
    ) -> Self:
        """Find what a publication has of a kind, or of some keys of it, over ``[start, end)``.

        ``rows`` is as in `toolkit.store.Store.groups`. Raises `InputError` for a kind without rows
        of trajectories, and what `import_store` raises of the manifest.
        """
        if kind not in ROWS:
            raise InputError("kind", kind, list(ROWS))
        place = place_of(where)
        name = place.name if isinstance(place, Bucket) else str(Path(place.name).resolve())
        found = manifest_of(place, manifest_in(where))
        window = Interval.of(window)
        wanted = None if keys is None else set(keys)
        files: dict[str, list[PublishedFile]] = {}
        for file in found.files:
            known = file.table == ROWS[kind].name and file.stream is not None
            if known and (wanted is None or file.stream in wanted):
                inside = file.first_ts < window.end and file.last_ts >= window.start
                files.setdefault(str(file.stream), []).extend([file] if inside else [])
        streams = [
            (key, tuple(sorted(files[key], key=lambda each: each.first_ts)))
            for key in sorted(files)
            if files[key]
        ]
        at_most = GROUP_ROWS[kind] if rows is None else rows
        part = partial(PublishedPart, name, kind, window)
        parts = tuple(map(part, _grouped(streams, at_most)))
        return cls(f"{name}/{pinned_name(found)}", parts or (part(()),))


def _grouped(streams: Iterable[Named], rows: int) -> Iterator[tuple[Named, ...]]:
    """Yield neighbours with about so many rows together, or one that has more."""
    group: list[Named] = []
    size = 0
    for stream in streams:
        count = sum(file.rows for file in stream[1])
        if group and size + count > rows:
            yield tuple(group)
            group, size = [], 0
        group.append(stream)
        size += count
    if group:
        yield tuple(group)
