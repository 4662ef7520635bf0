"""What a store holds of each stream, how complete it is and how old."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import Any

import polars as pl

from toolkit.intervals import clip, total_s
from toolkit.market import Stream
from toolkit.store import Ledger, Store, answer_words, clock_offset_s
from toolkit.tables import GapStatus

STATUS: dict[str, pl.DataType] = {
    "stream": pl.String(),
    "kind": pl.String(),
    "state": pl.String(),
    "rows": pl.Int64(),
    "answered_share": pl.Float64(),
    "first_ts": pl.Int64(),
    "last_ts": pl.Int64(),
    "behind_s": pl.Int64(),
    "step_s": pl.Int64(),
    "holes": pl.Int64(),
    "longest_hole_s": pl.Int64(),
    "open_gaps": pl.Int64(),
}
"""The columns of `stream_states`."""


def stream_states(store: Store) -> pl.DataFrame:
    """Return one row for each stream that the store knows, sorted by kind and key.

    ==============  =======  ========  ============================================================
    column          type     unit      meaning
    ==============  =======  ========  ============================================================
    stream          String   none      the key
    kind            String   none      price, spread, funding, events or snapshot
    state           String   none      held, nothing there, no answer, never asked
    rows            Int64    count     rows, documents or snapshots
    answered_share  Float64  fraction  of the time asked for that can be known by now, the part
                                       that the service answered for. Null for snapshots
    first_ts        Int64    s         oldest row, Unix UTC, null without rows
    last_ts         Int64    s         newest row
    behind_s        Int64    s         from the newest row to now, by the service's clock
    step_s          Int64    s         spacing of the rows as observed
    holes           Int64    count     spacings of more than 1.5 steps. Null where rows have no step
    longest_hole_s  Int64    s         the longest of them, 0 for none
    open_gaps       Int64    count     losses of live capture that are still open
    ==============  =======  ========  ============================================================

    Raises `StoreError` as `toolkit.store.Store.reading`.
    """
    with store.reading():
        catalogue, loads, ledger = store.catalogue(), store.loads(), store.ledger()
        holes = {row["stream"]: row for row in store.continuity().iter_rows(named=True)}
        lost = Counter(store.gaps().filter(status=GapStatus.OPEN)["stream"])
    newest_load_at = int(loads["served_at"][0]) if loads.height else 0
    now = int(time.time()) + clock_offset_s(catalogue, loads)
    rows = [
        _row(row, ledger.get(Stream.parse(row["stream"])), newest_load_at, now)
        | {"open_gaps": lost[row["stream"]]}
        | _holes(row["kind"], holes.get(row["stream"]))
        for row in catalogue.iter_rows(named=True)
    ]
    return pl.DataFrame(rows, schema=dict(STATUS))


def _row(
    row: dict[str, Any], known: Ledger | None, newest_load_at: int, now: int
) -> dict[str, str | int | float | None]:
    """Return the values of a stream of the catalogue."""
    last = row["last_ts"]
    return {
        **{name: row[name] for name in ("stream", "kind", "rows", "first_ts", "last_ts", "step_s")},
        "state": "held" if row["rows"] else answer_words(known, 0),
        "answered_share": _answered_share(row["kind"], known, newest_load_at),
        "behind_s": None if last is None else max(0, now - last),
    }


def _answered_share(kind: str, known: Ledger | None, newest_load_at: int) -> float | None:
    """Return the share of what was asked for, and can be known, that was answered.

    What could be known moves on with each load, also with one that got no answer.
    """
    if known is None or kind == "snapshot":
        return None
    asked = known.asked
    if known.edge and asked:
        edge = replace(known.edge, served_at=max(known.edge.served_at, newest_load_at))
        asked = clip(asked, (asked[0].start, max(edge.final_before, asked[0].start)))
    seconds = total_s(asked)
    if not seconds:
        return None
    answered_s = sum(total_s(clip(known.answered, stretch)) for stretch in asked)
    return answered_s / seconds


def _holes(kind: str, found: dict[str, Any] | None) -> dict[str, int | None]:
    """Return how many holes a trajectory has, and the longest. Other streams cannot have any."""
    if kind in ("events", "snapshot"):
        return {"holes": None, "longest_hole_s": None}
    holes = int(found["holes"]) if found else 0
    return {"holes": holes, "longest_hole_s": int(found["longest_hole_s"]) if found else 0}
