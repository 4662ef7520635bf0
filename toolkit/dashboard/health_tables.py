"""What is held, missing and out of reach, as tables, and what to type to fill a gap."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from toolkit.cards import duration
from toolkit.dashboard.formatting import NULL
from toolkit.tables import LedgerState
from toolkit.wire.finding_words import explained

STATE_COLUMNS = {state: f"{state.value.replace(' ', '_')}_s" for state in LedgerState}
"""The column of `coverage_lines` with the seconds of each state."""

RUNNING_S = 600
"""How long after its last sign of life a load without an end counts as running (s)."""

COVERAGE = {"start_ts": pl.Int64, "end_ts": pl.Int64, "state": pl.String}
"""The columns of `toolkit.store.Store.coverage`."""


def coverage_lines(stretches: pl.DataFrame) -> pl.DataFrame:
    """Return one row of the table of coverage for each stream, of its `Store.coverage`.

    ``stretches`` has stream, start_ts, end_ts (s UTC) and state. Rows: stream, the seconds of each
    state and of all (known_s), and the longest stretch not held (gap_start, gap_end, gap_state,
    null without one).

    >>> coverage = pl.DataFrame({"stream": ["a", "a"], "start_ts": [0, 60], "end_ts": [60, 100],
    ...                          "state": ["held", "missing"]})
    >>> (line,) = coverage_lines(coverage).to_dicts()
    >>> line["held_s"], line["missing_s"], line["gap_start"], line["gap_end"], line["gap_state"]
    (60, 40, 60, 100, 'missing')
    """
    length_s = pl.col("end_ts") - pl.col("start_ts")
    seconds = stretches.select(
        "stream",
        known_s=length_s,
        **{
            column: pl.when(pl.col("state") == state).then(length_s).otherwise(0)
            for state, column in STATE_COLUMNS.items()
        },
    )
    gaps = stretches.filter(pl.col("state") != LedgerState.HELD).sort(
        length_s, descending=True, maintain_order=True
    )
    longest = gaps.unique("stream", keep="first", maintain_order=True).rename(
        {"start_ts": "gap_start", "end_ts": "gap_end", "state": "gap_state"}
    )
    return (
        seconds.group_by("stream", maintain_order=True)
        .agg(pl.all().sum())
        .join(longest, on="stream", how="left", maintain_order="left")
    )


def load_lines(loads: pl.DataFrame, rows: pl.DataFrame, now: int) -> pl.DataFrame:
    """Return the loads in words, in their order.

    Columns: load, started_at (s), took, rows, quota left, findings, outcome.
    ``rows`` is `toolkit.store.Store.rows_by_load`, ``now`` the local clock (s). A load without an
    end is "running" where it began, or asked a question that was answered, in the last
    `RUNNING_S`. Else it is "silent": it was killed or waits for quota, and what it had committed is
    held.
    """
    counts = dict(rows.select("load_id", "rows").iter_rows())
    asked_at = dict(rows.select("load_id", "asked_at").iter_rows())
    lines = []
    for load in loads.iter_rows(named=True):
        finished = load["finished_at"]
        took_s = 0 if finished is None else finished - load["started_at"]
        took = duration(took_s) if took_s > 0 else "under 1 s"
        found = json.loads(load["finding"]) if load["finding"] else []
        lines.append(
            {
                "load": load["load_id"],
                "started_at": load["started_at"],
                "took": NULL if finished is None else took,
                "rows": counts.get(load["load_id"], 0),
                "quota left": _left(load),
                "findings": "; ".join(f"{f['kind']} ({f.get('times', 1)}×)" for f in found) or NULL,
                "outcome": _outcome(load, asked_at.get(load["load_id"]), now),
            }
        )
    words = ("took", "quota left", "findings", "outcome")
    numbers = ("load", "started_at", "rows")
    schema = dict.fromkeys(numbers, pl.Int64()) | dict.fromkeys(words, pl.String())
    return pl.DataFrame(lines, schema_overrides=schema)


def found_lines(loads: pl.DataFrame) -> list[str]:
    """Return in words what loads found odd: see `toolkit.wire.finding_words.explained`.

    >>> loads = pl.DataFrame({"finding": [
    ...     '[{"kind": "next_missing", "where": "/p", "says": "no next", "times": 2}]', None]})
    >>> found_lines(loads)
    ['a page does not name where the next begins (next_missing, 2 times); first: ...']
    """
    found = [each for text in loads["finding"].drop_nulls() for each in json.loads(text)]
    return explained(found)


def retention_lines(lines: pl.DataFrame, missing: pl.DataFrame, now: int) -> pl.DataFrame:
    """Return of each kind when the first second of it that is not held leaves the archive.

    ``lines`` has kind, stream, retention_s and served_at (s), ``missing`` stream and start_ts (s)
    of what is missing, ``now`` is the service's clock (s). Rows: kind, streams, retention_s,
    first_ts (s UTC) and lost_in_s, 0 where it is being lost, the soonest first. Streams whose
    archive forgets nothing have none.

    >>> lines = pl.DataFrame({"kind": ["events"] * 2, "stream": ["events/splash", "events/spread"],
    ...                       "retention_s": [600, 600], "served_at": [900, 900]})
    >>> missing = pl.DataFrame({"stream": ["events/splash"], "start_ts": [500]})
    >>> retention_lines(lines, missing, 1000).rows()
    [('events', 2, 600, 500, 100)]
    """
    first = missing.group_by("stream").agg(missing_ts=pl.col("start_ts").min())
    known = lines.drop_nulls(["retention_s", "served_at"]).join(first, on="stream", how="left")
    leaves_s = pl.col("first_ts") + pl.col("retention_s") - now
    return (
        known.with_columns(first_ts=pl.min_horizontal("served_at", "missing_ts"))
        .with_columns(lost_in_s=leaves_s.clip(lower_bound=0))
        .sort("lost_in_s", "stream")
        .group_by("kind", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("streams"),
            pl.col("retention_s", "first_ts", "lost_in_s").first(),
        )
    )


def _outcome(load: dict[str, Any], asked_at: int | None, now: int) -> str:
    if load["finished_at"] is not None:
        return "finished"
    active_at = max(load["started_at"], asked_at or 0)
    return "running" if now - active_at < RUNNING_S else "silent"


def _left(load: dict[str, Any]) -> str:
    if load["quota_left"] is None:
        return NULL
    quota = "" if load["quota"] is None else f" of {load['quota']:,}"
    return f"{load['quota_left']:,}{quota}"
