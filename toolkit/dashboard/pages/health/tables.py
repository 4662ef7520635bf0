"""Tables of coverage, loads and retention, and missing data: causes, deadlines and repairs."""

from __future__ import annotations

import json
from collections.abc import Mapping

import polars as pl

from toolkit.dashboard.loads import Load, LoadPart
from toolkit.foreign import Markdown
from toolkit.intervals import Interval, difference, intersection
from toolkit.market import SnapshotTrajectory, Stream
from toolkit.store import Ledger
from toolkit.tables import LedgerState
from toolkit.wire.finding_words import explained

STATE_COLUMNS = {state: f"{state.value.replace(' ', '_')}_s" for state in LedgerState}
"""The column of `coverage_lines` with the seconds of each state."""

RUNNING_S = 600
"""How long after its last answer a load without an end counts as running (s)."""

COVERAGE = {"start_ts": pl.Int64, "end_ts": pl.Int64, "state": pl.String}
"""The columns of `toolkit.store.Store.coverage`."""


def coverage_lines(stretches: pl.DataFrame) -> pl.DataFrame:
    """Return one row of coverage per stream.

    ``stretches`` has stream, start_ts, end_ts (s UTC) and state. Columns: stream, the seconds of
    each state and of all (known_s), and the longest stretch not held (gap_start, gap_end,
    gap_state; nullable).
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
    """Return the loads with took_s (null without an end), rows, findings and outcome.

    ``rows`` is `toolkit.store.Store.rows_by_load`, ``now`` the local clock (s). A load without an
    end is "running" if active in the last `RUNNING_S`, else "stalled".
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
    """Describe the findings of loads with `toolkit.wire.finding_words.explained`."""
    found = [each for text in loads["finding"].drop_nulls() for each in json.loads(text)]
    return explained(found)


def retention_lines(lines: pl.DataFrame, missing: pl.DataFrame, now: int) -> pl.DataFrame:
    """Return when the archive drops the first second of each kind that is not stored.

    ``lines`` has kind, stream, retention_s and served_at (s), ``missing`` stream and start_ts (s),
    ``now`` is the service's clock (s). Rows, the soonest first: kind, streams, retention_s,
    not_held_from (s UTC) and lost_in_s (0 if being lost). Streams without retention are left out.

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


UNANSWERED = "requested, and never answered"
BETWEEN = "not requested yet"
_HOUR_S = 3_600

_CAUSED = {
    "stream": pl.String(),
    "start_ts": pl.Int64(),
    "end_ts": pl.Int64(),
    "cause": pl.String(),
    "leaves_at": pl.Int64(),
}


def caused(
    missing: pl.DataFrame, ledger: Mapping[Stream, Ledger], lost: pl.DataFrame
) -> pl.DataFrame:
    """Return why each stretch is missing, split where the cause changes.

    ``missing`` has stream, start_ts, end_ts (s UTC), ``lost`` are the open gaps of live capture
    (`toolkit.store.Store.gaps`). Columns: stream, start_ts, end_ts, cause (a loss of live capture,
    else `UNANSWERED` or `BETWEEN`), and leaves_at, when its first second leaves the archive (s UTC
    by the service's clock, null if never).

    >>> missing = pl.DataFrame({"stream": ["events/splash"], "start_ts": [0], "end_ts": [100]})
    >>> lost = pl.DataFrame({"stream": ["events/splash"], "start_ts": [90], "end_ts": [None],
    ...                      "cause": ["connection closed"]})
    >>> asked = Ledger(None, asked=[Interval(0, 60)])
    >>> for row in caused(missing, {Stream.parse("events/splash"): asked}, lost).rows():
    ...     print(row)
    ('events/splash', 90, 100, 'live capture: connection closed', None)
    ('events/splash', 0, 60, 'requested, and never answered', None)
    ('events/splash', 60, 90, 'not requested yet', None)
    """
    found, captured = [], lost.partition_by("stream", as_dict=True)
    for (key,), parts in missing.group_by("stream", maintain_order=True):
        stream = Stream.parse(str(key))
        known = ledger.get(stream, Ledger(None))
        left = [Interval(*part) for part in parts.select("start_ts", "end_ts").iter_rows()]
        for cause, stretches in _causes(left[-1].end, known, captured.get((key,), lost.clear())):
            for part in intersection(left, stretches):
                leaves_at = known.edge.leaves_at(part.start) if known.edge else None
                found.append((stream.key, *part, cause, leaves_at))
            left = difference(left, stretches)
    return pl.DataFrame(found, schema=_CAUSED, orient="row")


def _causes(
    until: int, known: Ledger, lost: pl.DataFrame
) -> list[tuple[str, list[tuple[int, int]]]]:
    captures = [
        (f"live capture: {cause}", [(start, until if end is None else end)])
        for start, end, cause in lost.select("start_ts", "end_ts", "cause").iter_rows()
    ]
    asked = [(part.start, part.end) for part in known.asked]
    return [*captures, (UNANSWERED, asked), (BETWEEN, [(0, until)])]


def repair(words: Markdown, missing: pl.DataFrame) -> Load:
    """Return the load of stretches: stream, start_ts, end_ts (s UTC).

    Each stream has one stretch, of which the loader leaves out what is stored. Streams that begin
    and end in the same hours are one part.
    """
    hour = pl.col("start_ts") // _HOUR_S, (pl.col("end_ts") - 1) // _HOUR_S
    whole = missing.group_by("stream").agg(pl.col("start_ts").min(), pl.col("end_ts").max())
    together = (
        whole.sort("stream")
        .group_by(hour[0].alias("first"), hour[1].alias("last"), maintain_order=True)
        .agg("stream", pl.col("start_ts").min(), pl.col("end_ts").max())
        .sort("start_ts", "end_ts")
    )
    rows = together.select("stream", "start_ts", "end_ts").iter_rows()
    return Load(words, tuple(LoadPart(tuple(streams), start, end) for streams, start, end in rows))


def behind(lines: pl.DataFrame, now: int) -> pl.DataFrame:
    """Return the time since each stream's last answer: stream, start_ts, end_ts (s UTC).

    ``lines`` are of `Health`, ``now`` is the service's clock (s). Series from snapshots are left
    out.
    """
    known = lines.drop_nulls("served_at").filter(pl.col("served_at") < now)
    asked = [not isinstance(Stream.parse(key), SnapshotTrajectory) for key in known["stream"]]
    return known.filter(pl.Series(asked, dtype=pl.Boolean)).select(
        "stream", start_ts="served_at", end_ts=pl.lit(now)
    )
