"""`rail status`: what the store holds, how complete it is, how old, and where it is from."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import polars as pl

from toolkit.cards import counted, duration, some
from toolkit.cli.options import StorePath
from toolkit.cli.show import console, plain_table
from toolkit.errors import EmptyWindowError
from toolkit.intervals import clip, total_s
from toolkit.market import SnapshotKind, Stream, format_ts
from toolkit.store import (
    Ledger,
    Store,
    answer_words,
    clock_offset_s,
    never_asked,
    read_deliveries,
)
from toolkit.tables import GapStatus
from toolkit.wire.snapshots import snapshot_items
from toolkit.workspace import store_path

_WIDE = 118
"""Columns of a terminal on which the table's every column has room."""

_NONE = "–"


def status_command(store: StorePath = None) -> None:
    """Show what the store holds: one line per trajectory, event log and kind of snapshot.

    held: rows, documents or snapshots, else what came of asking: "nothing there", "no answer" or
    "never asked". answered: of the time asked for that can be known by now,
    the share that the service has answered for. holes: where rows are further apart than 1.5
    steps (and how far at most). gaps: losses of live capture that are still open. behind: from the
    newest row to now, by the service's clock. Times are UTC.

    Example: rail status --store rail.duckdb
    """
    held = Store(store_path(store))
    with held.reading():
        catalogue, gaps = held.catalogue(), held.gaps()
        holes = {row["stream"]: row for row in held.continuity().iter_rows(named=True)}
        odd = {kind: words for kind in SnapshotKind if (words := _odd(held, kind))}
        ledger, loads, deliveries = held.ledger(), held.loads(), read_deliveries(held).height
    if catalogue.is_empty() and not deliveries:
        raise EmptyWindowError(f"{held.path} holds nothing yet; `rail sync` loads some")
    console.print(f"{held.path} · {held.source.label}")
    newest_load_at = int(loads["served_at"][0]) if loads.height else 0
    now = int(time.time()) + clock_offset_s(catalogue, loads)
    lost = Counter(gaps.filter(status=GapStatus.OPEN)["stream"])
    headings = ["stream", "held", "first", "last", "answered", "holes", "gaps", "behind"]
    hidden = {h for h, hide in (("first", console.width < _WIDE), ("gaps", not lost)) if hide}
    table = plain_table(*(h for h in headings if h not in hidden))
    for row in catalogue.iter_rows(named=True):
        known = ledger.get(Stream.parse(row["stream"]))
        cells = _cells(row, holes.get(row["stream"]), lost[row["stream"]], now)
        cells["answered"] = _answered(row["kind"], known, newest_load_at)
        if not row["rows"]:
            cells["held"] = answer_words(known, 0)
        table.add_row(*(cells[h] for h in headings if h not in hidden))
    console.print(table)
    console.print(_totals(catalogue, deliveries))
    if kinds := never_asked(ledger):
        console.print(f"never asked: {', '.join(kinds)}")
    for kind, words in odd.items():
        console.print(f"snapshot/{kind.value}: {words}")
    for line in (_ties(holes), _gaps(gaps), _findings(held)):
        if line:
            console.print(line)


def _cells(
    row: dict[str, Any], holes: dict[str, Any] | None, lost: int, now: int
) -> dict[str, str]:
    last = row["last_ts"]
    return {
        "stream": row["stream"],
        "held": f"{row['rows']:,}",
        "first": _short(row["first_ts"]),
        "last": _short(last),
        "holes": _holes(holes) if row["kind"] not in ("events", "snapshot") else _NONE,
        "gaps": f"{lost:,}",
        "behind": duration(None if last is None else max(0, now - last)),
    }


def _answered(kind: str, known: Ledger | None, newest_load_at: int) -> str:
    """Return the share of what was asked for, and can be known, that was answered.

    What could be known moves on with each load, also with one that got no answer.
    """
    if known is None:
        return answer_words(None, 0)
    if kind == "snapshot":
        return _NONE
    asked = known.asked
    if known.edge and asked:
        edge = replace(known.edge, served_at=max(known.edge.served_at, newest_load_at))
        asked = clip(asked, (asked[0].start, max(edge.final_before, asked[0].start)))
    seconds = total_s(asked)
    if not seconds:
        return _NONE
    answered_s = sum(total_s(clip(known.answered, stretch)) for stretch in asked)
    return f"{answered_s / seconds:.2%}"


def _short(ts: int | None) -> str:
    return _NONE if ts is None else format_ts(ts).removesuffix(" UTC")


def _holes(holes: dict[str, Any] | None) -> str:
    if holes is None or not holes["holes"]:
        return "0"
    return f"{holes['holes']:,} (to {duration(float(holes['longest_hole_s']))})"


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
