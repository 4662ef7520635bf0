"""What is held, missing and out of reach, as tables, and what to type to fill a gap."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import polars as pl

from toolkit.cards import duration
from toolkit.commands import rail
from toolkit.dashboard.formatting import NULL
from toolkit.market import Stream
from toolkit.tables import LedgerState

STATE_COLUMNS = {state: f"{state.value.replace(' ', '_')}_s" for state in LedgerState}
"""The column of `coverage_line` with the seconds of each state."""

RUNNING_S = 600
"""How long after its last sign of life a load without an end counts as running (s)."""

_COVERAGE = {"start_ts": pl.Int64, "end_ts": pl.Int64, "state": pl.String}


def coverage_line(stream: Stream, coverage: pl.DataFrame | None) -> dict[str, Any]:
    """Return one row of the table of coverage: seconds of each state, the longest stretch not held.

    ``coverage`` is `toolkit.store.Store.coverage`, None where nothing was answered.

    >>> coverage = pl.DataFrame({"start_ts": [0, 60], "end_ts": [60, 100],
    ...                          "state": ["held", "missing"]})
    >>> line = coverage_line(Stream.parse("BTC_USD:KRAKEN.spot"), coverage)
    >>> line["held_s"], line["missing_s"], line["gap_start"], line["gap_end"], line["gap_state"]
    (60, 40, 60, 100, 'missing')
    """
    if coverage is None:
        coverage = pl.DataFrame(schema=_COVERAGE)
    lengths = coverage["end_ts"] - coverage["start_ts"]
    seconds = dict(coverage.group_by("state").agg(lengths_s=_length().sum()).iter_rows())
    gaps = coverage.filter(pl.col("state") != LedgerState.HELD).sort(
        _length(), descending=True, maintain_order=True
    )
    longest = gaps.row(0, named=True) if gaps.height else {}
    return {
        "kind": stream.kind,
        "stream": stream.key,
        "known_s": int(lengths.sum()),
        **{column: int(seconds.get(state.value, 0)) for state, column in STATE_COLUMNS.items()},
        "gap_start": longest.get("start_ts"),
        "gap_end": longest.get("end_ts"),
        "gap_state": longest.get("state"),
    }


def _length() -> pl.Expr:
    return pl.col("end_ts") - pl.col("start_ts")


def shares_by_kind(lines: pl.DataFrame) -> pl.DataFrame:
    """Return for each kind the share of each state in percent of its seconds, and its streams.

    Columns: what (kind and number), then the five states.

    >>> seconds = {"held_s": 30, "empty_s": 10, "not_yet_known_s": 0, "missing_s": 0,
    ...            "unrecoverable_s": 0}
    >>> lines = pl.DataFrame([{"kind": "price", "known_s": 40} | seconds])
    >>> shares_by_kind(lines).row(0)
    ('price (1)', 75.0, 25.0, 0.0, 0.0, 0.0)
    """
    known = lines.filter(pl.col("known_s") > 0)
    totals = known.group_by("kind", maintain_order=True).agg(
        pl.len().alias("of"), pl.col("known_s", *STATE_COLUMNS.values()).sum()
    )
    return totals.select(
        pl.format("{} ({})", "kind", "of").alias("what"),
        *(
            (100 * pl.col(column) / pl.col("known_s")).alias(state.value)
            for state, column in STATE_COLUMNS.items()
        ),
    )


def fill_commands(lines: pl.DataFrame, limit: int) -> list[str]:
    """Return what to type to load the longest stretches that are missing, the longest first.

    >>> lines = pl.DataFrame([{"stream": "events/splash", "missing_s": 60,
    ...                        "gap_start": 0, "gap_end": 60, "gap_state": "missing"}])
    >>> fill_commands(lines, 1)
    ['rail sync events/splash --start 1970-01-01T00:00:00Z --end 1970-01-01T00:01:00Z']
    """
    missing = lines.filter(pl.col("gap_state") == LedgerState.MISSING).sort(
        pl.col("gap_end") - pl.col("gap_start"), descending=True, maintain_order=True
    )
    commands = []
    for line in missing.head(limit).iter_rows(named=True):
        start, end = (
            f"{dt.datetime.fromtimestamp(line[name], dt.UTC):%Y-%m-%dT%XZ}"
            for name in ("gap_start", "gap_end")
        )
        commands.append(rail("sync", line["stream"], "--start", start, "--end", end))
    return commands


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
