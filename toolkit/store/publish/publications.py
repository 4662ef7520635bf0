"""The publications of one place: which there are, and which are removed by age.

Each has a manifest of its own, named by its SHA-256, which nothing replaces. So code, a report or
another machine names the data that it read, and reads it again later.
"""

from __future__ import annotations

import os
import time

import polars as pl

from toolkit.store.publish.manifest import FILE_NAME, Manifest, read_manifest
from toolkit.store.publish.places import MANIFEST, PINNED, Destination, place_of


def pinned_name(manifest: Manifest) -> str:
    """Return the name of a manifest that no later publication replaces."""
    return f"manifests/{manifest.sha256}.json"


def publications(where: str | os.PathLike[str]) -> pl.DataFrame:
    """Return one row for each publication that a place still has, the newest first.

    Columns: address (what `toolkit.open` takes), published_at (s UTC, when it was first written),
    newest (whether it is the one that the place itself is read as), rows, files, bytes (of its
    files) and last_ts (s UTC, the newest row). A place without any gives no row. Raises
    `NotAStoreError` for a manifest that is damaged, and `StoreVersionError` for one of another
    format.
    """
    place = place_of(where)
    held = place.files()
    newest = _manifest(place, MANIFEST).sha256 if MANIFEST in held else ""
    rows = []
    for name in filter(PINNED.fullmatch, held):
        manifest = _manifest(place, name)
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

    ``newest`` is the name of the manifest that stays in any case. Manifests go first: whoever reads
    one that is there finds its files. Returns the number of files removed, manifests left out.
    """
    held, limit = place.files(), time.time() - keep_s
    pinned = [name for name in held if PINNED.fullmatch(name)]
    kept = [name for name in pinned if name == newest or held[name].written_at >= limit]
    for name in sorted(set(pinned) - set(kept)):
        place.remove(name)
    named = {file.name for name in kept for file in _manifest(place, name).files}
    unnamed = [name for name in held if FILE_NAME.fullmatch(name) and name not in named]
    for name in unnamed:
        place.remove(name)
    return len(unnamed)


def _manifest(place: Destination, name: str) -> Manifest:
    return read_manifest(place.read(name), f"{place.name}/{name}")
