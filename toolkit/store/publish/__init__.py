"""Published data: Parquet files named by their content, and a manifest that makes them a store."""

from toolkit.store.publish.places import is_published
from toolkit.store.publish.publication import Published, publish
from toolkit.store.publish.publications import publications
from toolkit.store.publish.reading import import_store, open_published
from toolkit.store.publish.rows import PublishedPart, PublishedRows

__all__ = [
    "Published",
    "PublishedPart",
    "PublishedRows",
    "import_store",
    "is_published",
    "open_published",
    "publications",
    "publish",
]
