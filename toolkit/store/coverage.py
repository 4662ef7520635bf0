"""The coverage ledger in the file: what of each stream was asked for, and what was answered.

Neighbouring stretches of one state are one row, merged when they are written. So the ledger stays
as small as the holes in it are few, however often the service was asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import duckdb
import polars as pl

from toolkit.intervals import Interval, clip, union
from toolkit.market import Stream, Trajectory
from toolkit.store.batch import Ledger
from toolkit.store.ledger import Edge, states, stretches
from toolkit.store.streams import append, number_streams, numbers_of
from toolkit.tables import COVERAGE, EDGE, SERIES, CoverageState

__all__ = ["read_coverage", "read_ledger", "record", "record_asked", "write_edges"]


def record(
    connection: duckdb.DuckDBPyConnection,
    state: CoverageState,
    stretches: Mapping[int, Iterable[tuple[int, int]]],
) -> None:
    """Record stretches as asked for or answered, by number of the stream, merged with what is held.

    A stretch that is held already writes nothing.
    """
    wanted = {number: joined for number, parts in stretches.items() if (joined := union(parts))}
    if not wanted:
        return
    bounds = {"stream_id": pl.Int32, "low": pl.Int64, "high": pl.Int64}
    touched = [(number, parts[0].start, parts[-1].end) for number, parts in wanted.items()]
    connection.register("touched", pl.DataFrame(touched, schema=bounds, orient="row"))
    neighbours: dict[int, list[tuple[int, int]]] = {number: [] for number in wanted}
    for number, start, end in connection.execute(
        "SELECT stream_id, start_ts, end_ts FROM coverage JOIN touched USING (stream_id) "
        "WHERE state = ? AND start_ts <= high AND end_ts >= low",
        [state],
    ).fetchall():
        neighbours[number].append((start, end))
    connection.unregister("touched")
    gone, fresh = [], []
    for number, parts in wanted.items():
        before, after = (
            set(neighbours[number]),
            set(map(tuple, union([*neighbours[number], *parts]))),
        )
        gone += [(number, state, start, end) for start, end in before - after]
        fresh += [(number, state, start, end) for start, end in sorted(after - before)]
    if gone:
        connection.register("gone", pl.DataFrame(gone, schema=COVERAGE.schema, orient="row"))
        connection.execute(
            "DELETE FROM coverage USING gone WHERE coverage.stream_id = gone.stream_id "
            "AND coverage.state = gone.state AND coverage.start_ts = gone.start_ts"
        )
        connection.unregister("gone")
    append(connection, COVERAGE, fresh)


def record_asked(
    connection: duckdb.DuckDBPyConnection, streams: Iterable[Stream], window: Interval
) -> None:
    """Record that a window of some streams is asked for."""
    numbers = number_streams(connection, streams)
    record(connection, CoverageState.ASKED, {number: [window] for number in numbers.values()})


def write_edges(
    connection: duckdb.DuckDBPyConnection, edges: Mapping[int, Edge], load_id: int
) -> None:
    """Record how far the service answers now, by number of the stream, in place of what was."""
    if not edges:
        return
    asked_at = int(time.time())
    rows = [
        (number, load_id, e.retention_s, e.delay_s, e.step_s, e.tail_ts, e.served_at, asked_at)
        for number, e in edges.items()
    ]
    connection.execute("DELETE FROM edge WHERE list_contains(?, stream_id)", [list(edges)])
    append(connection, EDGE, rows)


def read_ledger(
    connection: duckdb.DuckDBPyConnection,
    streams: Iterable[Stream] | None = None,
    window: Interval | None = None,
) -> dict[Stream, Ledger]:
    """Read what is known of the streams that were ever asked for, all of them by default.

    Only stretches that touch ``window`` are read, cut to it.
    """
    if streams is None:
        found = connection.execute("SELECT key, stream_id FROM stream").fetchall()
        numbers = {Stream.parse(key): int(number) for key, number in found}
    else:
        numbers = numbers_of(connection, streams)
    edges = {
        number: Edge(*edge)
        for number, *edge in connection.execute(
            "SELECT stream_id, served_at, delay_s, retention_s, step_s, tail_ts FROM edge "
            "WHERE list_contains(?, stream_id)",
            [list(numbers.values())],
        ).fetchall()
    }
    inside = "true" if window is None else "start_ts < $high AND end_ts > $low"
    limits = {} if window is None else {"low": window.start, "high": window.end}
    stretches: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for number, state, start, end in connection.execute(
        "SELECT stream_id, state, start_ts, end_ts FROM coverage "  # noqa: S608 - ours
        f"WHERE list_contains($numbers, stream_id) AND {inside}",
        {"numbers": list(numbers.values())} | limits,
    ).fetchall():
        stretches.setdefault((number, state), []).append((start, end))

    def of(number: int, state: CoverageState) -> list[Interval]:
        parts = stretches.get((number, state), [])
        return union(parts) if window is None else clip(parts, window)

    return {
        stream: Ledger(
            edges.get(number), of(number, CoverageState.ANSWERED), of(number, CoverageState.ASKED)
        )
        for stream, number in numbers.items()
        if number in edges or (number, CoverageState.ASKED) in stretches
    }


def read_coverage(
    connection: duckdb.DuckDBPyConnection,
    stream: Stream,
    window: Interval,
    tolerance_s: int | None,
) -> pl.DataFrame | None:
    """Return the rows of `toolkit.store.Store.coverage`, None for a stream without an answer."""
    known = read_ledger(connection, [stream], window).get(stream)
    if known is None or known.edge is None:
        return None
    held = known.answered
    if isinstance(stream, Trajectory):
        held = _held(connection, stream, window, known.edge, tolerance_s)
    found = states(window, known.answered, held, known.edge)
    return pl.DataFrame(
        [(*interval, state.value) for interval, state in found],
        schema={"start_ts": pl.Int64, "end_ts": pl.Int64, "state": pl.String},
        orient="row",
    )


def _held(
    connection: duckdb.DuckDBPyConnection,
    trajectory: Trajectory,
    window: Interval,
    edge: Edge,
    tolerance_s: int | None,
) -> list[Interval]:
    """Return the stretches of the window in which there are rows."""
    step_s = edge.step_s or 1
    apart_s = step_s * 3 // 2 if tolerance_s is None else tolerance_s
    reach_s = max(apart_s, step_s)
    times = connection.sql(
        f"SELECT ts FROM {SERIES[trajectory.family].name} JOIN stream USING (stream_id) "  # noqa: S608 - ours
        "WHERE key = $key AND ts >= $low AND ts < $high",
        params={
            "key": trajectory.key,
            "low": window.start - reach_s,
            "high": window.end + reach_s,
        },
    ).pl()["ts"]
    return stretches(times, step_s, apart_s)
