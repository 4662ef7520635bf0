"""`rail status`: the contents, completeness, age and source of a store."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import polars as pl

from toolkit.cards import counted, duration, some
from toolkit.cli.tables import TableOptions, show, store_as_of, tabled
from toolkit.columns import schema_of
from toolkit.errors import EmptyWindowError
from toolkit.market import SnapshotKind, format_ts
from toolkit.show.sheet import Cells, Sheet
from toolkit.store import Store, never_asked, profile_words, read_deliveries, sync_advice
from toolkit.store.file.compaction import scattered
from toolkit.tables import GapStatus
from toolkit.wire.finding_words import explained
from toolkit.wire.profile.snapshots import snapshot_items
from toolkit.workspace.holdings import stream_states

_COLUMNS = (
    "stream",
    "rows",
    "answered_share",
    "behind_s",
    "holes",
    "open_gaps",
    "longest_hole_s",
    "last_ts",
    "first_ts",
)
_CELLS: Cells = {"rows": lambda row: f"{row['rows']:,}" if row["rows"] else row["state"]}

_STATUS = schema_of(
    "holdings.stream_states", also=("snapshot_oddity", "deliveries", "last_load_findings")
)
"""The columns of a stream's row. The last two are those of the store."""


@tabled(lambda: _STATUS)
def status_command(store: Path | None = None, *, view: TableOptions) -> None:
    """Show what the store holds: one line per trajectory, event log and kind of snapshot.

    held: rows, documents or snapshots, else "nothing there", "no answer" or "never asked".
    answered: the share of the time asked for, as far as it can be known by now, that the service
    has answered for. behind: the time from the last row or answer to now, by the service's clock.
    holes: how often rows are more than 1.5 steps apart, and the longest. gaps: losses of live
    capture that are still open. Times are UTC.

    Example: rail status --store rail.duckdb

    Example: rail status --where "answered_share < 1" --sort -behind_s
    """
    held = store_as_of(store, view.as_of)
    with held.reading():
        catalogue, frame = held.catalogue(), stream_states(held)
        odd = {kind.value: words for kind in SnapshotKind if (words := _odd(held, kind))}
        own, never = held.source.kind == "own", never_asked(held.ledger())
        deliveries, findings = read_deliveries(held).height, _findings(held)
        loads, remap = held.loads(), held.command("store", "remap")
        profiles = profile_words(loads, held.rows_by_load(), remap)
        order = _order(held) if held.as_of is None else ""
    if catalogue.is_empty() and not deliveries:
        advice = sync_advice(held, "--watchlist", does="loads some")
        raise EmptyWindowError(f"{held.name} holds nothing yet; {advice}")
    now = int(time.time()) if held.as_of is None else held.as_of
    notes = [
        _totals(catalogue, deliveries) + ("" if own else _last_answer(catalogue, now)),
        f"never asked: {', '.join(never)}" if never and not own else "",
        *(f"snapshot/{kind}: {words}" for kind, words in odd.items()),
        _ties(frame),
        _gaps(frame),
        _lost(held.gaps()),
        *(f"the last load found: {line}" for line in explained(findings)),
        profiles,
        order,
    ]
    found = some([f"{f['kind']} at {f['where']} ({f.get('times', 1)}x)" for f in findings])
    oddities = {f"snapshot/{kind}": words for kind, words in odd.items()}
    frame = frame.with_columns(
        pl.col("stream")
        .replace_strict(oddities, default=None, return_dtype=pl.String)
        .alias("snapshot_oddity"),
        pl.lit(deliveries, pl.Int64).alias("deliveries"),
        pl.lit(found if findings else None, pl.String).alias("last_load_findings"),
    )
    lost = frame["open_gaps"].sum()
    columns = [each for each in _COLUMNS if lost or each != "open_gaps"]
    show(view, Sheet(str(held.path), held.source.label, frame, columns, notes=notes, cells=_CELLS))


def _totals(catalogue: pl.DataFrame, deliveries: int) -> str:
    of_kind = {kind: catalogue.filter(kind=kind) for kind in ("events", "snapshot")}
    kept = pl.col("kind").str.starts_with("snapshot-")
    series = catalogue.filter(~pl.col("kind").is_in(list(of_kind)) & ~kept)
    parts = [
        (series, ("row", "rows"), ("trajectory", "trajectories")),
        (of_kind["events"], ("event document",), ("log",)),
        (of_kind["snapshot"], ("snapshot",), ("kind",)),
        (
            catalogue.filter(kept),
            ("row kept from them", "rows kept from them"),
            ("pair or leg", "pairs or legs"),
        ),
    ]
    held = [
        f"{counted(int(frame['rows'].sum()), *things)} of {counted(frame.height, *of)}"
        for frame, things, of in parts
        if frame.height
    ]
    if deliveries:
        held.append(counted(deliveries, "webhook delivery", "webhook deliveries"))
    return ", ".join(held)


def _last_answer(catalogue: pl.DataFrame, now: int) -> str:
    asked = catalogue.drop_nulls("asked_at").sort("asked_at").tail(1).to_dicts()
    if not asked:
        return "; the service has answered nothing yet"
    ago_s = max(0, now - int(asked[0]["asked_at"]))
    clock = format_ts(int(asked[0]["served_at"]))
    return f"; last answer {duration(ago_s)} ago, when the service's clock was {clock}"


def _odd(store: Store, kind: SnapshotKind) -> str:
    newest = store.snapshots(kind, newest=True)["document"].to_list()
    return snapshot_items(kind.value, newest[0]).words if newest else ""


def _ties(frame: pl.DataFrame) -> str:
    tied = frame.filter(pl.col("tied_rows") > 0)
    if tied.is_empty():
        return ""
    rows = counted(int(tied["tied_rows"].sum()), "row shares its time", "rows share their time")
    names = some(tied["stream"].to_list())
    return f"{rows} with another, of {names}: statistics use the last of each time"


def _gaps(frame: pl.DataFrame) -> str:
    counts = {status: int(frame[f"{status}_gaps"].sum()) for status in GapStatus}
    del counts[GapStatus.LOST]
    parts = [f"{count:,} {status}" for status, count in counts.items() if count]
    return f"gaps of live capture: {', '.join(parts)}" if parts else ""


def _lost(gaps: pl.DataFrame) -> str:
    rows = gaps.filter(status=GapStatus.LOST.value).select("stream", "start_ts", "end_ts", "cause")
    says = [f"{key} {format_ts(a)} to {format_ts(b)}, {why}" for key, a, b, why in rows.iter_rows()]
    return f"lost at the source, each load asks again: {some(says)}" if says else ""


def _order(store: Store) -> str:
    found = scattered(store)
    if found is None:
        return ""
    now, compacted = found
    return (
        f"the rows of a trajectory lie in {now:.0f} parts of the file, as they came; "
        f"`{store.command('store', 'compact')}` brings them into {compacted:.0f}, "
        "which is read faster"
    )


def _findings(store: Store) -> list[dict[str, Any]]:
    last = store.loads().head(1)["finding"].drop_nulls().to_list()
    return json.loads(last[0]) if last else []
