"""The card of a store: what it holds, read in one short look, also where it cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from toolkit.cards import Card, duration
from toolkit.errors import RailError
from toolkit.market import format_ts
from toolkit.tables import SERIES, SNAPSHOT_SERIES

if TYPE_CHECKING:
    from toolkit.store.store import Store

_WAIT_S = 0.5


def store_card(store: Store) -> Card:
    """Show source, trajectories, rows, first and last time, size and last load of a store.

    A display neither waits for a load under way nor fails: a store that is missing, locked or no
    store is a fact like the others.

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
        source, streams, loads = store.source, store.catalogue(), store.loads()
    logs = streams.filter(kind="events")
    snapshots = int(streams.filter(kind="snapshot")["rows"].sum())
    series = streams.filter(pl.col("kind").is_in(list(SERIES)))
    kept = streams.filter(pl.col("kind").is_in(list(SNAPSHOT_SERIES)))
    facts = [
        ("source", source.label),
        ("trajectories", _counted(series, pl.len())),
        ("rows", _counted(series, pl.col("rows").sum())),
        ("events", _counted(logs.with_columns(kind="stream"), pl.col("rows").sum())),
        ("snapshots", f"{snapshots:,}" if snapshots else "none"),
        *([("kept from them", _counted(kept, pl.len()))] if kept.height else []),
        ("between", _between(pl.concat([series, logs]))),
        ("size", f"{store.path.stat().st_size / 1e6:,.1f} MB"),
    ]
    return [*facts, ("last load", _last_load(loads.row(0, named=True) if loads.height else None))]


def _counted(streams: pl.DataFrame, what: pl.Expr) -> str:
    """Return a total, and its parts by kind where there is one: 3 (2 price, 1 spread)."""
    parts = streams.group_by("kind", maintain_order=True).agg(what.alias("count"))
    named = ", ".join(f"{count:,} {kind.removeprefix('events/')}" for kind, count in parts.rows())
    total = sum(parts["count"].to_list())
    return f"{total:,} ({named})" if total else "none"


def _between(streams: pl.DataFrame) -> str:
    first, last = streams["first_ts"].min(), streams["last_ts"].max()
    if not isinstance(first, int) or not isinstance(last, int):
        return "–"
    return f"first {format_ts(first)}, last {format_ts(last)}"


def _last_load(load: dict[str, Any] | None) -> str:
    if load is None:
        return "none"
    begun, ended = load["started_at"], load["finished_at"]
    how = "not finished" if ended is None else f"finished within {duration(ended - begun + 1)}"
    return f"begun {format_ts(begun)}, {how}"
