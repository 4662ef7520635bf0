"""State of each stream in a store: completeness and age."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import Any

import polars as pl

from toolkit.columns import described, schema_of
from toolkit.intervals import clip, difference, total_s
from toolkit.market import Family, SnapshotKind, SnapshotLog, Stream
from toolkit.statistics.quality.coverage import poll_count
from toolkit.store import Ledger, Store, answer_words, service_now, unchanged
from toolkit.store.file.file import NOT_READABLE
from toolkit.tables import GapStatus

STATUS = schema_of("holdings.stream_states")
"""The columns of `stream_states`."""

_CATALOGUED = ("stream", "kind", "rows", "first_ts", "last_ts", "step_s", "asked_at", "served_at")
_OF_ROWS = ("holes", "longest_hole_s", "tied_rows")


@described("holdings.stream_states")
def stream_states(store: Store, *, as_of: int | None = None) -> pl.DataFrame:
    """Return one row per known stream, sorted by kind and key, as of a time (s, local clock).

    {columns}

    Raises `StoreError` as `toolkit.store.Store.reading`, `InputError` as
    `toolkit.store.Store.coverage` for ``as_of``.
    """
    with store.reading():
        catalogue, loads = store.catalogue(as_of=as_of), store.loads(as_of=as_of)
        ledger = store.ledger(as_of=as_of)
        unreadable = store.unreadable()
        holes = {r["stream"]: r for r in store.continuity(as_of=as_of).iter_rows(named=True)}
        lost = Counter(store.gaps(as_of=as_of).select("stream", "status").rows())
        known = {*catalogue["kind"], *catalogue["stream"]}
        kinds = {kind for name, kind in _POLLED.items() if name in known}
        polled = {kind: _polled_share(store, kind, as_of) for kind in kinds}
    newest_load_at = int(loads["served_at"][0]) if loads.height else 0
    at = store.as_of if as_of is None else as_of
    local_now = int(time.time()) if at is None else at
    now = service_now(catalogue, loads, store.source, local_now)
    rows = [
        _row(row, ledger.get(Stream.parse(row["stream"])), newest_load_at, now)
        | {f"{status}_gaps": lost[row["stream"], status.value] for status in GapStatus}
        | _polled(row, polled)
        | _holes(row["kind"], holes.get(row["stream"]))
        for row in catalogue.iter_rows(named=True)
    ]
    rows += [{"stream": e.stream, "kind": e.kind, "state": NOT_READABLE} for e in unreadable]
    return pl.DataFrame(rows, schema=dict(STATUS)).sort("kind", "stream")


def _row(
    row: dict[str, Any], known: Ledger | None, newest_load_at: int, now: int
) -> dict[str, str | int | float | None]:
    last = row["last_ts"]
    ends = [row["answered_until"], None if last is None else last + (row["step_s"] or 0)]
    until = max((end for end in ends if end is not None), default=None)
    return {
        **{name: row[name] for name in _CATALOGUED},
        "state": "held" if row["rows"] else answer_words(known, 0),
        "answered_share": _answered_share(row["kind"], known, newest_load_at),
        "behind_s": None if until is None else max(0, now - until),
    }


_POLLED = {
    name: kind
    for kind in (SnapshotKind.SPREAD, SnapshotKind.FUNDING)
    for name in (SnapshotLog(kind).key, f"snapshot-{kind}")
}
"""The snapshots that have series, by their key and by the kind of these series."""


def _polled(row: dict[str, Any], shares: dict[SnapshotKind, float | None]) -> dict[str, Any]:
    kind = _POLLED.get(row["kind"], _POLLED.get(row["stream"]))
    return {} if kind is None else {"answered_share": shares[kind]}


def _polled_share(store: Store, kind: SnapshotKind, as_of: int | None) -> float | None:
    """Return answered over due polls, from the first to the last."""
    polls = store.polls(kind, as_of=as_of)
    if polls.is_empty():
        return None
    return poll_count(polls, polls["ts"][0], polls["ts"][-1] + 1).coverage


def _answered_share(kind: str, known: Ledger | None, newest_load_at: int) -> float | None:
    """Return the answered share of the requests knowable by the newest load."""
    if known is None or kind.startswith("snapshot"):
        return None
    asked = known.asked
    if known.edge and asked:
        edge = replace(known.edge, served_at=max(known.edge.served_at, newest_load_at))
        asked = clip(asked, (asked[0].start, max(edge.final_before, asked[0].start)))
        bars = kind in (Family.PRICE, Family.SPREAD)
        same = unchanged(known.asked, known.answered, known.edge, edge, bars=bars)
        asked = difference(asked, same)
    seconds = total_s(asked)
    if not seconds:
        return None
    answered_s = sum(total_s(clip(known.answered, stretch)) for stretch in asked)
    return answered_s / seconds


def _holes(kind: str, found: dict[str, Any] | None) -> dict[str, int | None]:
    if kind not in list(Family):
        return dict.fromkeys(_OF_ROWS)
    return {name: int(found[name]) if found else 0 for name in _OF_ROWS}
