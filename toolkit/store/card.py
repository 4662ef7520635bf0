"""What a store says of itself: read in one short look, and said too where it cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from toolkit.cards import Card, duration
from toolkit.errors import RailError
from toolkit.market import format_ts

if TYPE_CHECKING:
    from toolkit.store.store import Store

__all__ = ["store_card"]

_WAIT_S = 0.5


def store_card(store: Store) -> Card:
    """Source, trajectories, rows, first and last time, size and last load of a store.

    A display neither waits for a load under way nor fails: a store that is missing, locked or no
    store is a fact like the others.

    Examples
    --------
    >>> import tempfile
    >>> from toolkit.store import Store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(store_card(Store(f"{folder}/rail.duckdb")))
    Store .../rail.duckdb
      holds  nothing yet: the first load makes the file
    """
    heading = f"Store {store.path}"
    try:
        if not store.path.exists():
            return Card(heading, [("holds", "nothing yet: the first load makes the file")])
        return Card(heading, _facts(type(store)(store.path, wait_s=_WAIT_S)))
    except (RailError, OSError) as error:
        return Card(heading, [("not read", str(error))])


def _facts(store: Store) -> list[tuple[str, str]]:
    with store.reading():
        source, series, logs = store.source, store.catalogue(), store.event_catalogue()
        loads = store.loads()
    facts = [
        ("source", source.label),
        ("trajectories", _counted(series, "len")),
        ("rows", _counted(series, "rows")),
        ("events", _counted(logs.rename({"documents": "rows"}), "rows")),
        ("between", _between(series, logs)),
        ("size", f"{store.path.stat().st_size / 1e6:,.1f} MB"),
    ]
    return [*facts, ("last load", _last_load(loads.row(0, named=True) if loads.height else None))]


def _counted(catalogue: pl.DataFrame, what: str) -> str:
    """A total, and its parts by family where there are several: 3 (2 price, 1 spread)."""
    parts = catalogue.group_by("family", maintain_order=True).agg(pl.len(), pl.col("rows").sum())
    told = ", ".join(f"{count:,} {family}" for family, count in parts.select("family", what).rows())
    total = sum(parts[what].to_list())
    return f"{total:,} ({told})" if total else "none"


def _between(series: pl.DataFrame, logs: pl.DataFrame) -> str:
    times = pl.concat(frame.select("first_ts", "last_ts") for frame in (series, logs)).drop_nulls()
    if times.is_empty():
        return "–"
    first, last = times.select(pl.col("first_ts").min(), pl.col("last_ts").max()).row(0)
    return f"first {format_ts(first)}, last {format_ts(last)}"


def _last_load(load: dict[str, Any] | None) -> str:
    if load is None:
        return "none"
    begun, ended = load["started_at"], load["finished_at"]
    how = "not finished" if ended is None else f"finished within {duration(ended - begun + 1)}"
    return f"begun {format_ts(begun)}, {how}"
