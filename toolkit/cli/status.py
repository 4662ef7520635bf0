"""`rail status`: what the store holds, how complete it is, how old, and where it is from."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import polars as pl

from toolkit.cards import counted, duration, some
from toolkit.cli.options import StorePath
from toolkit.cli.tables import (
    FormatOption,
    OutputOption,
    Sheet,
    SortOption,
    TableColumn,
    TopOption,
    WhereOption,
    checked_view,
    show,
)
from toolkit.errors import EmptyWindowError
from toolkit.market import SnapshotKind, format_ts
from toolkit.store import (
    Store,
    never_asked,
    read_deliveries,
)
from toolkit.tables import GapStatus
from toolkit.wire.snapshots import snapshot_items
from toolkit.workspace import store_path
from toolkit.workspace.holdings import STATUS, stream_states

_COLUMNS = (
    TableColumn("stream", "stream", "text"),
    TableColumn(
        "held", "rows", "count", lambda row: f"{row['rows']:,}" if row["rows"] else row["state"]
    ),
    TableColumn("answered", "answered_share", "share"),
    TableColumn("behind", "behind_s", "s"),
    TableColumn("holes", "holes", "count"),
    TableColumn("gaps", "open_gaps", "count"),
    TableColumn("longest hole", "longest_hole_s", "s"),
    TableColumn("last", "last_ts", "time"),
    TableColumn("first", "first_ts", "time"),
)


def status_command(
    store: StorePath = None,
    form: FormatOption = None,
    sort: SortOption = None,
    top: TopOption = None,
    where: WhereOption = None,
    output: OutputOption = None,
) -> None:
    """Show what the store holds: one line per trajectory, event log and kind of snapshot.

    held: rows, documents or snapshots, else what came of asking: "nothing there", "no answer" or
    "never asked". answered: of the time asked for that can be known by now,
    the share that the service has answered for. behind: from the newest row to now, by the
    service's clock. holes: where rows are further apart than 1.5 steps, and how far at most. gaps:
    losses of live capture that are still open. Times are UTC.

    Example: rail status --store rail.duckdb

    Example: rail status --where "answered_share < 1" --sort -behind_s
    """
    view = checked_view(form, sort, top, where, output, columns=STATUS)
    held = Store(store_path(store))
    with held.reading():
        catalogue, gaps = held.catalogue(), held.gaps()
        holes = {row["stream"]: row for row in held.continuity().iter_rows(named=True)}
        odd = {kind: words for kind in SnapshotKind if (words := _odd(held, kind))}
        never = never_asked(held.ledger())
        frame, deliveries = stream_states(held), read_deliveries(held).height
    if catalogue.is_empty() and not deliveries:
        loads_some = held.command("sync", "--watchlist")
        raise EmptyWindowError(f"{held.path} holds nothing yet; `{loads_some}` loads some")
    notes = [
        _totals(catalogue, deliveries),
        f"never asked: {', '.join(never)}" if never else "",
        *(f"snapshot/{kind.value}: {words}" for kind, words in odd.items()),
        _ties(holes),
        _gaps(gaps),
        _findings(held),
    ]
    lost = frame["open_gaps"].sum()
    columns = [each for each in _COLUMNS if lost or each.name != "open_gaps"]
    show(view, Sheet(str(held.path), held.source.label, frame, columns, notes=notes))


def _totals(catalogue: pl.DataFrame, deliveries: int) -> str:
    """Return how much there is of each kind, and when the service was last asked."""
    of_kind = {kind: catalogue.filter(kind=kind) for kind in ("events", "snapshot")}
    series = catalogue.filter(~pl.col("kind").is_in(list(of_kind)))
    parts = [
        (series, ("row", "rows"), ("trajectory", "trajectories")),
        (of_kind["events"], ("event document",), ("log",)),
        (of_kind["snapshot"], ("snapshot",), ("kind",)),
    ]
    held = [
        f"{counted(int(frame['rows'].sum()), *things)} of {counted(frame.height, *of)}"
        for frame, things, of in parts
        if frame.height
    ]
    if deliveries:
        held.append(counted(deliveries, "webhook delivery", "webhook deliveries"))
    asked = catalogue.drop_nulls("asked_at").sort("asked_at").tail(1).to_dicts()
    if not asked:
        return f"{', '.join(held)}; the service has answered nothing yet"
    ago_s = max(0, int(time.time()) - int(asked[0]["asked_at"]))
    clock = format_ts(int(asked[0]["served_at"]))
    last = f"last answer {duration(ago_s)} ago, when the service's clock was {clock}"
    return f"{', '.join(held)}; {last}"


def _odd(store: Store, kind: SnapshotKind) -> str:
    """Return what is not understood of the newest snapshot of a kind, "" for nothing."""
    newest = store.snapshots(kind, newest=True)["document"].to_list()
    return snapshot_items(kind.value, newest[0]).words if newest else ""


def _ties(holes: dict[str, dict[str, Any]]) -> str:
    """Return how many rows share their time with another row."""
    tied = {stream: row["tied_rows"] for stream, row in holes.items() if row["tied_rows"]}
    if not tied:
        return ""
    rows = counted(sum(tied.values()), "row shares its time", "rows share their time")
    return f"{rows} with another, of {some(list(tied))}: statistics use the last of each time"


def _gaps(gaps: pl.DataFrame) -> str:
    statuses = Counter(gaps["status"])
    parts = [f"{statuses[status]:,} {status}" for status in GapStatus if statuses[status]]
    return f"gaps of live capture: {', '.join(parts)}" if parts else ""


def _findings(store: Store) -> str:
    """Return what the last load found odd."""
    last = store.loads().head(1)["finding"].drop_nulls().to_list()
    found = json.loads(last[0]) if last else []
    listed = some([f"{f['kind']} at {f['where']} ({f.get('times', 1)}x)" for f in found])
    return f"findings of the last load: {listed}" if found else ""
