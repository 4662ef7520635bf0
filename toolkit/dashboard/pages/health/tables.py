"""Tables of held, missing and unrecoverable time, with the command that fills a gap."""

from __future__ import annotations

import json

import polars as pl

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
    """Return the loads in words, in their order, with those of their columns that stay as they are.

    More columns: took_s (null without an end), rows, findings and outcome.
    ``rows`` is `toolkit.store.Store.rows_by_load`, ``now`` the local clock (s). A load without an
    end is "running" where it began, or asked a question that was answered, in the last
    `RUNNING_S`. Else it is "stalled": it was killed or waits for quota, and what it had committed
    is held.
    """
    found = [json.loads(finding) if finding else [] for finding in loads["finding"]]
    words = ["; ".join(f"{f['kind']} ({f.get('times', 1)}×)" for f in each) for each in found]
    active_at = pl.max_horizontal("started_at", "asked_at")
    unended = pl.when(now - active_at < RUNNING_S).then(pl.lit("running"))
    return (
        loads.with_columns(findings=pl.Series(words, dtype=pl.String))
        .join(
            rows.select("load_id", "rows", "asked_at"),
            on="load_id",
            how="left",
            maintain_order="left",
        )
        .with_columns(
            pl.col("rows").fill_null(0),
            took_s=pl.col("finished_at") - pl.col("started_at"),
            findings=pl.when(pl.col("findings") != "").then("findings"),
            outcome=pl.when(pl.col("finished_at").is_not_null())
            .then(pl.lit("finished"))
            .otherwise(unended.otherwise(pl.lit("stalled"))),
        )
    )


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
    not_held_from (s UTC) and lost_in_s, 0 where it is being lost, the soonest first. Streams whose
    archive forgets nothing have none.

    >>> lines = pl.DataFrame({"kind": ["events"] * 2, "stream": ["events/splash", "events/spread"],
    ...                       "retention_s": [600, 600], "served_at": [900, 900]})
    >>> missing = pl.DataFrame({"stream": ["events/splash"], "start_ts": [500]})
    >>> retention_lines(lines, missing, 1000).rows()
    [('events', 2, 600, 500, 100)]
    """
    first = missing.group_by("stream").agg(missing_ts=pl.col("start_ts").min())
    known = lines.drop_nulls(["retention_s", "served_at"]).join(first, on="stream", how="left")
    leaves_s = pl.col("not_held_from") + pl.col("retention_s") - now
    return (
        known.with_columns(not_held_from=pl.min_horizontal("served_at", "missing_ts"))
        .with_columns(lost_in_s=leaves_s.clip(lower_bound=0))
        .sort("lost_in_s", "stream")
        .group_by("kind", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("streams"),
            pl.col("retention_s", "not_held_from", "lost_in_s").first(),
        )
    )
