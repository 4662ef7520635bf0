"""Published data: Parquet files named by their content, and a manifest that makes them a store."""

from toolkit.store.publish.destinations import is_published
from toolkit.store.publish.publication import Published, publications, publish
from toolkit.store.publish.reading import PublishedPart, PublishedRows, import_store, open_published

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
