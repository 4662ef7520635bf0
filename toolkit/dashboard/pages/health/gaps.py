"""Missing data: why, when it is lost, and the load that brings it."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from toolkit.dashboard.loads import Load, LoadPart
from toolkit.foreign import Markdown
from toolkit.intervals import Interval, difference, intersection
from toolkit.market import SnapshotTrajectory, Stream
from toolkit.store import Ledger

UNANSWERED = "asked for, and never answered"
BETWEEN = "between what was asked for"
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
    (`toolkit.store.Store.gaps`). Rows: stream, start_ts, end_ts, cause, and leaves_at, when the
    first second leaves the service's archive (s UTC by its clock, null where it never does). A loss
    of live capture comes before the other causes, whose words are `UNANSWERED` and `BETWEEN`.

    >>> missing = pl.DataFrame({"stream": ["events/splash"], "start_ts": [0], "end_ts": [100]})
    >>> lost = pl.DataFrame({"stream": ["events/splash"], "start_ts": [90], "end_ts": [None],
    ...                      "cause": ["connection closed"]})
    >>> asked = Ledger(None, asked=[Interval(0, 60)])
    >>> for row in caused(missing, {Stream.parse("events/splash"): asked}, lost).rows():
    ...     print(row)
    ('events/splash', 90, 100, 'live capture: connection closed', None)
    ('events/splash', 0, 60, 'asked for, and never answered', None)
    ('events/splash', 60, 90, 'between what was asked for', None)
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

    Each stream is asked from its first to its last; the loader leaves out what is held. Streams
    whose time begins and ends in the same hours are one question.

    >>> missing = pl.DataFrame({"stream": ["a", "a", "b"], "start_ts": [0, 60, 30],
    ...                         "end_ts": [10, 90, 80]})
    >>> [(part.streams, part.start, part.end) for part in repair(Markdown("All"), missing).parts]
    [(('a', 'b'), 0, 90)]
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
    """Return what was not asked for since each stream answered last: stream, start_ts, end_ts.

    ``lines`` are of `toolkit.dashboard.pages.health.measured.Health`, ``now`` is the service's
    clock (s). What is kept from snapshots comes with its snapshot.

    >>> lines = pl.DataFrame({"stream": ["A_B:X.spot", "snapshot-spread/A_B:X.spot:Y.spot"],
    ...                       "served_at": [60, 60]})
    >>> behind(lines, 90).rows()
    [('A_B:X.spot', 60, 90)]
    """
    known = lines.drop_nulls("served_at").filter(pl.col("served_at") < now)
    asked = [not isinstance(Stream.parse(key), SnapshotTrajectory) for key in known["stream"]]
    return known.filter(pl.Series(asked, dtype=pl.Boolean)).select(
        "stream", start_ts="served_at", end_ts=pl.lit(now)
    )
