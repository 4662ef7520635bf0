"""Reading a series from a store: the one place where a key is looked up and a window is chosen."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl

from toolkit.errors import EmptyWindowError, UnknownTrajectoryError
from toolkit.intervals import EVER, Interval, intersection
from toolkit.market import (
    EventLog,
    Family,
    SnapshotLog,
    Stream,
    Trajectory,
    When,
    asked_window,
    format_ts,
)
from toolkit.series.base import Origin, Series
from toolkit.series.logs import EventSeries, SnapshotSeries
from toolkit.series.trajectories import FundingSeries, PriceSeries, SpreadSeries
from toolkit.statistics import events as event_statistics
from toolkit.statistics import funding as funding_statistics
from toolkit.statistics import spread as spread_statistics
from toolkit.store import Ledger, Store, event_logs, held_trajectory, service_clock


def read_series(
    store: Store,
    stream: Stream,
    start: When | None = None,
    end: When | None = None,
    *,
    as_of: int | None = None,
) -> Series:
    """Read a stream's rows of a window from a store.

    ``start`` is a moment or the name of a window, as in `toolkit.market.asked_window`. Names are
    relative to the service's clock as the last load showed it. Without a start or an end the
    window is all that the store knows of the stream: from the first second asked for that the plan
    reached, to the last that could be known. ``as_of`` (s, local clock) reads the rows as the loads
    begun by then had brought them.

    A pair that is held the other way round is turned, with a warning and a note. Raises
    `UnknownTrajectoryError` with the nearest keys for a stream that was never asked for, and
    `EmptyWindowError` where the store knows nothing of any second of the window.
    """
    with store.reading():
        catalogue = store.catalogue()
        held = _held(store, stream, catalogue)
        known = store.ledger([held]).get(held)
        facts = catalogue.filter(stream=held.key).row(0, named=True)
        asked = asked_window(
            start,
            end,
            now=lambda: service_clock(store),
            default=lambda: _everything(held, known, facts, store),
        )
        window = Interval.checked(*asked)
        if as_of is not None:
            _check_loaded(store, as_of)
        rows = _rows(store, held, window, as_of)
        states = None
        if known is not None and known.edge is not None and not isinstance(held, SnapshotLog):
            states = store.coverage(held, window)
        origin = Origin(store.source, store.path, as_of, facts["step_s"], facts["delay_s"], states)
        logs = event_logs(catalogue) if isinstance(held, EventLog) else pl.DataFrame()
    if held != stream and isinstance(stream, Trajectory):
        note = f"held as {held.key}: legs and signs are turned"
        warnings.warn(f"{stream.key} is {note}", stacklevel=4)
        rows = spread_statistics.turned(rows, stream.key)
        origin = replace(origin, notes=(note,))
    if stream.kind == "spread":
        rows = spread_statistics.with_spread(rows)
    extra = {"logs": logs} if isinstance(stream, EventLog) else {}
    series = _CLASSES[stream.kind](stream, window, origin, rows, **extra)
    if not len(series) and not _answers(known, window):
        raise _nothing(store, held, window, facts)
    return series


_CLASSES: dict[str, Callable[..., Series]] = {
    "price": PriceSeries,
    "spread": SpreadSeries,
    "funding": FundingSeries,
    "events": EventSeries,
    "snapshot": SnapshotSeries,
}


def _held(store: Store, stream: Stream, catalogue: pl.DataFrame) -> Stream:
    if isinstance(stream, Trajectory):
        return held_trajectory(store, stream)
    if stream.key not in catalogue["stream"]:
        nearest = catalogue.filter(kind=stream.kind)["stream"].to_list()
        advice = f"`{store.command('sync', stream.key)}` loads it"
        raise UnknownTrajectoryError(
            stream.key, nearest, where=f"held by {store.path}", advice=advice
        )
    return stream


def _everything(
    stream: Stream, known: Ledger | None, facts: dict[str, Any], store: Store
) -> Interval:
    """Return the window of all that the store knows of a stream."""
    extents: list[Interval] = []
    if facts["first_ts"] is not None:
        extents.append(Interval(facts["first_ts"], facts["last_ts"] + (facts["step_s"] or 1)))
        if stream.kind == Family.FUNDING:
            args = (facts["first_ts"], facts["last_ts"], facts["step_s"])
            extents = [funding_statistics.settled_window(*args)]
    if known is not None and not isinstance(stream, SnapshotLog):
        extents += known.answered
        if known.edge is not None:
            reach = known.edge.reachable_from
            could = (EVER.start if reach is None else reach, known.edge.final_before)
            extents += intersection(known.asked, [could])
    if not extents:
        raise EmptyWindowError(f"{store.path} holds nothing of {stream}: the service had no answer")
    return Interval(min(low for low, _ in extents), max(high for _, high in extents))


def _rows(store: Store, stream: Stream, window: Interval, as_of: int | None) -> pl.DataFrame:
    if isinstance(stream, Trajectory):
        read = funding_statistics.rows_window(window) if stream.kind == Family.FUNDING else window
        return store.series(stream, read, as_of=as_of)
    if isinstance(stream, EventLog):
        read = event_statistics.documents_window(window)
        return store.events(stream.family, read, as_of=as_of)
    assert isinstance(stream, SnapshotLog)
    return store.snapshots(stream.of, as_of=as_of).rename({"served_at": "ts"})


def _check_loaded(store: Store, as_of: int) -> None:
    """Raise `EmptyWindowError` where no load had begun by then."""
    first = store.loads()["started_at"].min()
    if not isinstance(first, int) or first > as_of:
        begun = f"the first load began {format_ts(first)}" if isinstance(first, int) else "no load"
        raise EmptyWindowError(f"{store.path} held nothing as of {format_ts(as_of)}: {begun}")


def _answers(known: Ledger | None, window: Interval) -> bool:
    """Check whether the service has answered for any second of the window."""
    return known is not None and bool(intersection(known.answered, [window]))


def _nothing(
    store: Store, stream: Stream, window: Interval, facts: dict[str, Any]
) -> EmptyWindowError:
    held = "nor at any time"
    if facts["first_ts"] is not None:
        first, last = (format_ts(facts[name]) for name in ("first_ts", "last_ts"))
        held = f"held: {first.removesuffix(' UTC')} to {last}"
    start, end = (format_ts(ts).removesuffix(" 00:00 UTC") for ts in window)
    asks = store.command("sync", stream.key, "--start", start, "--end", end)
    return EmptyWindowError(
        f"{store.path.name} holds nothing of {stream} in [{start}, {end}); {held}; `{asks}` asks"
    )
