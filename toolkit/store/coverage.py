"""The coverage ledger in the file: what of each stream was asked for, and what was answered.

Neighbouring stretches of one state are one row, merged when they are written. So the ledger stays
as small as the holes in it are few, however often the service was asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

import duckdb
import polars as pl

from toolkit.intervals import EVER, Interval, clip, difference, union
from toolkit.market import Stream, Trajectory
from toolkit.store.answers import Provisional, renewed, within_reach, without
from toolkit.store.batch import Ledger
from toolkit.store.ledger import Edge, states, stretches
from toolkit.store.streams import append, number_streams, numbers_of
from toolkit.tables import COVERAGE, EDGE, SERIES, CoverageState


def record(
    connection: duckdb.DuckDBPyConnection,
    state: CoverageState,
    stretches: Mapping[int, Iterable[tuple[int, int]]],
) -> None:
    """Record stretches as asked for or settled, by number of the stream, merged with what is held.

    A stretch that is held already writes nothing.
    """
    wanted = {number: joined for number, parts in stretches.items() if (joined := union(parts))}
    held = _touching(connection, state, wanted)
    gone, fresh = [], []
    for number, parts in wanted.items():
        before = {(start, end) for start, end, *_ in held[number]}
        after = set(map(tuple, union([*before, *parts])))
        gone += [(number, start) for start, _ in before - after]
        fresh += [(number, state, *stretch, None, None) for stretch in sorted(after - before)]
    _replace(connection, state, gone, fresh)


def record_answers(
    connection: duckdb.DuckDBPyConnection,
    settled: Mapping[int, Sequence[Interval]],
    provisional: Mapping[int, Sequence[Interval]],
    clocks: Mapping[int, int],
) -> None:
    """Record what was answered, by number of the stream, with the service's clock at the answer.

    What is settled stays so. A provisional part that is answered again keeps its first time.
    """
    record(connection, CoverageState.SETTLED, settled)
    spans = {
        number: [*settled.get(number, []), *provisional.get(number, [])]
        for number in {*settled, *provisional}
    }
    held = _touching(connection, CoverageState.PROVISIONAL, spans)
    known = _touching(connection, CoverageState.SETTLED, spans)
    gone, fresh = [], []
    for number in spans:
        before = {Provisional(*part) for part in held[number]}
        final = [(start, end) for start, end, *_ in known[number]]
        answers = difference(provisional.get(number, []), final)
        after = set(renewed(without(sorted(before), final), answers, clocks[number]))
        gone += [(number, part.start) for part in before - after]
        fresh += [(number, CoverageState.PROVISIONAL, *part) for part in sorted(after - before)]
    _replace(connection, CoverageState.PROVISIONAL, gone, fresh)


def _touching(
    connection: duckdb.DuckDBPyConnection,
    state: CoverageState,
    spans: Mapping[int, Sequence[tuple[int, int]]],
) -> dict[int, list[tuple[int, ...]]]:
    """Read the rows of a state that touch the spans, by number of the stream."""
    bounds = {"stream_id": pl.Int32, "low": pl.Int64, "high": pl.Int64}
    touched = [
        (number, min(start for start, _ in parts), max(end for _, end in parts))
        for number, parts in spans.items()
        if parts
    ]
    found: dict[int, list[tuple[int, ...]]] = {number: [] for number in spans}
    if touched:
        connection.register("touched", pl.DataFrame(touched, schema=bounds, orient="row"))
        for number, *row in connection.execute(
            "SELECT stream_id, start_ts, end_ts, first_served_at, served_at FROM coverage "
            "JOIN touched USING (stream_id) "
            "WHERE state = ? AND start_ts <= high AND end_ts >= low",
            [state],
        ).fetchall():
            found[number].append(tuple(row))
        connection.unregister("touched")
    return found


def _replace(
    connection: duckdb.DuckDBPyConnection,
    state: CoverageState,
    gone: Sequence[tuple[int, int]],
    fresh: Sequence[tuple[object, ...]],
) -> None:
    """Drop rows of a state by stream and start, and append others."""
    if gone:
        schema = {"stream_id": pl.Int32, "start_ts": pl.Int64}
        connection.register("gone", pl.DataFrame(gone, schema=schema, orient="row"))
        connection.execute(
            "DELETE FROM coverage USING gone WHERE coverage.stream_id = gone.stream_id "
            "AND coverage.state = ? AND coverage.start_ts = gone.start_ts",
            [state],
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
    """Record how far the service answers now, by number of the stream, in place of what was.

    The newest row that ever came stays the newest.
    """
    if not edges:
        return
    before = dict(
        connection.execute(
            "DELETE FROM edge WHERE list_contains(?, stream_id) RETURNING stream_id, tail_ts",
            [list(edges)],
        ).fetchall()
    )
    now = int(time.time())
    rows = []
    for number, e in edges.items():
        tails = [ts for ts in (before.get(number), e.tail_ts) if ts is not None]
        asked_at = now if e.asked_at is None else e.asked_at
        tail_ts = max(tails, default=None)
        rows.append(
            (number, load_id, e.retention_s, e.delay_s, e.step_s, tail_ts, e.served_at, asked_at)
        )
    append(connection, EDGE, rows)


def read_ledger(
    connection: duckdb.DuckDBPyConnection,
    streams: Iterable[Stream] | None = None,
    window: Interval | None = None,
) -> dict[Stream, Ledger]:
    """Read what is known of the streams that were ever asked for, all of them by default.

    Only stretches that touch ``window`` are read, cut to it. What an older answer of an event log
    covered beyond the plan's reach, before its first document, counts as never answered.
    """
    if streams is None:
        found = connection.execute("SELECT key, stream_id FROM stream").fetchall()
        numbers = {Stream.parse(key): int(number) for key, number in found}
    else:
        numbers = numbers_of(connection, streams)
    edges: dict[int, Edge] = {}
    firsts: dict[int, int | None] = {}
    for number, kind, first_ts, *edge in connection.execute(
        "SELECT stream_id, kind, first_ts, served_at, delay_s, retention_s, step_s, tail_ts, "
        "asked_at, late_s FROM edge JOIN stream USING (stream_id) "
        "WHERE list_contains(?, stream_id)",
        [list(numbers.values())],
    ).fetchall():
        edges[number] = Edge(*edge)
        if kind == "events":
            firsts[number] = first_ts
    inside = "true" if window is None else "start_ts < $high AND end_ts > $low"
    limits = {} if window is None else {"low": window.start, "high": window.end}
    found_rows: dict[tuple[int, str], list[tuple[int, ...]]] = {}
    for number, state, *row in connection.execute(
        "SELECT stream_id, state, start_ts, end_ts, first_served_at, served_at FROM coverage "  # noqa: S608 - ours
        f"WHERE list_contains($numbers, stream_id) AND {inside}",
        {"numbers": list(numbers.values())} | limits,
    ).fetchall():
        found_rows.setdefault((number, state), []).append(tuple(row))
    cut = EVER if window is None else window

    def of(number: int, state: CoverageState) -> list[Interval]:
        return clip(((row[0], row[1]) for row in found_rows.get((number, state), [])), cut)

    def provisional(number: int) -> list[Provisional]:
        parts = [Provisional(*r) for r in found_rows.get((number, CoverageState.PROVISIONAL), [])]
        if number in firsts:
            parts = within_reach(parts, edges[number].retention_s, firsts[number])
        return without(parts, difference([EVER], [cut]))

    return {
        stream: Ledger(
            edges.get(number),
            of(number, CoverageState.SETTLED),
            provisional(number),
            of(number, CoverageState.ASKED),
        )
        for stream, number in numbers.items()
        if number in edges or (number, CoverageState.ASKED) in found_rows
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
