"""A store as the format before this one had it."""

from __future__ import annotations

import duckdb

from toolkit.store import Store
from toolkit.store.file.schema import OLDEST_VERSION


def make_older(store: Store) -> None:
    """Bring a store back to the format that is migrated: without what a source says it lost."""
    with duckdb.connect(str(store.path)) as connection:
        for table in ("coverage", "coverage_change"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN why")
        connection.execute(
            "UPDATE meta SET value = ? WHERE name = 'format_version'", [str(OLDEST_VERSION)]
        )
