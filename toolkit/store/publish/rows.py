"""Rows of published trajectories, read from their files: by any process on any machine.

A part is some whole trajectories. Its rows are those that `toolkit.store.Store.groups` gives of
them, to the last bit, so that a statistic of a part is the same wherever it is computed.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import polars as pl

from toolkit.errors import InputError, StoreError
from toolkit.intervals import Ends, Interval
from toolkit.store.file.refusals import first_line
from toolkit.store.publish.manifest import PublishedFile, read_manifest
from toolkit.store.publish.places import Bucket, manifest_in, place_of
from toolkit.store.publish.publications import pinned_name
from toolkit.store.publish.reading import sound
from toolkit.store.reading.scanning import GROUP_ROWS, newest_rows, value_columns
from toolkit.tables import ROWS

Named = tuple[str, tuple[PublishedFile, ...]]
"""A trajectory's key, and its files by month."""


@dataclass(frozen=True, slots=True)
class PublishedPart:
    """Some whole trajectories of a publication, over a window ``[start, end)``.

    ``place`` is where the files are, for any process that can reach it. ``streams`` are sorted by
    key, each with the files that may have rows of the window.
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
        of trajectories, and what `toolkit.store.publish.import_store` raises of the manifest.
        """
        if kind not in ROWS:
            raise InputError("kind", kind, list(ROWS))
        place = place_of(where)
        name = place.name if isinstance(place, Bucket) else str(Path(place.name).resolve())
        manifest_name = manifest_in(where)
        found = read_manifest(place.read(manifest_name), f"{place.name}/{manifest_name}")
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
        parts = tuple(
            PublishedPart(name, kind, window, group) for group in _grouped(streams, at_most)
        )
        return cls(
            f"{name}/{pinned_name(found)}", parts or (PublishedPart(name, kind, window, ()),)
        )


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
