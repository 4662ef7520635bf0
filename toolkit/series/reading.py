"""Reading of series from a store: the key is looked up, and the window chosen."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import polars as pl

from toolkit.cards import some
from toolkit.errors import EmptyWindowError, UnknownTrajectoryError
from toolkit.intervals import EVER, Interval, intersection
from toolkit.market import (
    EventFamily,
    EventLog,
    Family,
    SnapshotLog,
    SnapshotTrajectory,
    Stream,
    Trajectory,
    When,
    format_ts,
)
from toolkit.series.base import Origin, Series
from toolkit.series.held_prices import HeldPrices
from toolkit.series.logs import EventSeries, SnapshotSeries
from toolkit.series.trajectories import FundingSeries, PriceSeries, RateSeries, SpreadSeries
from toolkit.statistics.core.definition import turned
from toolkit.statistics.families import FAMILIES, extent_of
from toolkit.statistics.fees import FeeModel
from toolkit.store import (
    Ledger,
    Store,
    chosen_window,
    event_logs,
    held_stretches,
    held_trajectory,
    sync_advice,
)
from toolkit.store.ledger.history import held_nothing, undated_loads


def read_series(
    store: Store,
    stream: Stream,
    start: When | None = None,
    end: When | None = None,
    *,
    as_of: int | None = None,
    fees: FeeModel | None = None,
    whole: bool = True,
) -> Series:
    """Read a stream's rows of a window from a store.

    ``start`` is a moment or the name of a window by the service's clock at the last load, as in
    `toolkit.market.asked_window`. The default window is from the first second requested within the
    plan's retention to the last that could be known. ``as_of`` (s, local clock) reads the rows
    committed by then. ``fees`` is the table of net figures. Without ``whole`` events lack the text
    of their documents.

    A pair in the other orientation is turned, with a warning and a note. Raises
    `UnknownTrajectoryError` for a stream never requested, and `EmptyWindowError` if the store knows
    nothing of the window.
    """
    with store.reading():
        listed = store.catalogue()
        held = _held(store, stream, listed)
        as_of = store.as_of if as_of is None else as_of
        then = _ledger_time(store, as_of)
        known = store.ledger([held], as_of=then).get(held)
        catalogue = listed if then is None else store.catalogue(as_of=then)
        facts = _facts(store, held, catalogue, as_of)
        window = chosen_window(
            store, start, end, lambda: _everything(held, known, facts, store, as_of)
        )
        rows = _rows(store, held, window, as_of, whole=whole)
        polls = None
        if isinstance(held, SnapshotTrajectory):
            polls = store.polls(held.of, window, as_of=as_of)
        answered = polls is not None or (known is not None and known.edge is not None)
        states = None
        if then == as_of and answered and not isinstance(held, SnapshotLog):
            states = store.coverage(held, window, as_of=as_of)
        origin = Origin(
            store.source,
            store.path,
            as_of,
            facts["step_s"],
            facts["delay_s"],
            states,
            notes=() if as_of is None else _of_that_time(store, as_of),
            polls=polls,
            fees=fees if stream.kind in _WITH_COSTS or stream == _SPREAD_EVENTS else None,
            held_prices=HeldPrices(store, as_of) if stream.kind == Family.FUNDING else None,
        )
        extra: dict[str, pl.DataFrame] = {}
        if isinstance(held, EventLog):
            logs = event_logs(catalogue)
            stretches = held_stretches({} if known is None else {held: known}, logs)
            extra = {"logs": logs, "held": stretches, "lost": store.gaps(as_of=then)}
    if held != stream and isinstance(stream, Trajectory):
        note = f"held as {held.key}: legs and signs are turned"
        warnings.warn(f"{stream.key} is {note}", stacklevel=4)
        rows = turned(rows, stream.key)
        origin = replace(origin, notes=(note, *origin.notes))
    rows = FAMILIES[stream.kind].ready(rows)
    series = SERIES_OF[stream.kind](stream, window, origin, rows, **extra)
    polled = polls is not None and not polls.is_empty()
    answers = known is not None and bool(intersection(known.answered, [window]))
    if not len(series) and not answers and not polled:
        raise _nothing(store, held, window, facts)
    return series


_WITH_COSTS = ("spread", "snapshot-spread", "funding")
_SPREAD_EVENTS = EventLog(EventFamily.SPREAD)
SERIES_OF: dict[str, type[Series]] = {
    "price": PriceSeries,
    "spread": SpreadSeries,
    "funding": FundingSeries,
    "events": EventSeries,
    "snapshot": SnapshotSeries,
    "snapshot-spread": SpreadSeries,
    "snapshot-funding": RateSeries,
}
"""The class of the series of each kind of stream."""


def _held(store: Store, stream: Stream, catalogue: pl.DataFrame) -> Stream:
    if isinstance(stream, Trajectory):
        return held_trajectory(store, stream)
    if stream.key not in catalogue["stream"]:
        nearest = catalogue.filter(kind=stream.kind)["stream"].to_list()
        where, advice = f"held by {store.name}", sync_advice(store, stream.key)
        raise UnknownTrajectoryError(stream.key, nearest, where=where, advice=advice)
    return stream


def _everything(
    stream: Stream, known: Ledger | None, facts: dict[str, Any], store: Store, as_of: int | None
) -> Interval:
    rows = [facts]
    if isinstance(stream, SnapshotTrajectory):
        polls = store.polls(stream.of, as_of=as_of)["ts"]
        rows += [facts | {"first_ts": polls[0], "last_ts": polls[-1]}] * bool(polls.len())
    extents = [each for each in [extent_of(rows)] if each is not None]
    if known is not None and not isinstance(stream, SnapshotLog):
        extents += known.answered
        if known.edge is not None:
            reach = known.edge.reachable_from
            could = (EVER.start if reach is None else reach, known.edge.final_before)
            extents += intersection(known.asked, [could])
    if not extents:
        raise EmptyWindowError(f"{store.path} holds nothing of {stream}: the service had no answer")
    return Interval(min(low for low, _ in extents), max(high for _, high in extents))


def _rows(
    store: Store, stream: Stream, window: Interval, as_of: int | None, *, whole: bool
) -> pl.DataFrame:
    read = FAMILIES[stream.kind].read(window)
    if isinstance(stream, EventLog):
        return store.events(stream.family, read, as_of=as_of, whole=whole)
    if isinstance(stream, SnapshotLog):
        return store.snapshots(stream.of, read, as_of=as_of).rename({"served_at": "ts"})
    assert isinstance(stream, Trajectory | SnapshotTrajectory)
    return store.series(stream, read, as_of=as_of)


def _ledger_time(store: Store, as_of: int | None) -> int | None:
    """Return the time to read the ledger as of, None (now) before its history begins."""
    if as_of is None:
        return None
    first = store.loads()["started_at"].min()
    if not isinstance(first, int) or first > as_of:
        raise held_nothing(store.path, as_of, first)
    begins = store.history_from
    return None if begins is not None and as_of < begins else as_of


def _facts(
    store: Store, stream: Stream, catalogue: pl.DataFrame, as_of: int | None
) -> dict[str, Any]:
    found = catalogue.filter(stream=stream.key).to_dicts()
    if not found:
        assert as_of is not None  # of now it is there
        then = format_ts(as_of)
        raise EmptyWindowError(f"{store.path} knew nothing of {stream} as of {then}")
    return found[0]


def _of_that_time(store: Store, as_of: int) -> tuple[str, ...]:
    if as_of >= time.time():
        return ()
    with store.reading() as connection:
        later = undated_loads(connection, as_of)
    named = some([str(number) for number in later])
    notes = [f"what these loads brought after that time is here too: {named}"] if later else []
    if _ledger_time(store, as_of) is None:
        begins = format_ts(store.history_from or 0)
        notes.append(f"the ledger's history begins {begins}: what it knew before is not known")
    return tuple(notes)


def _nothing(
    store: Store, stream: Stream, window: Interval, facts: dict[str, Any]
) -> EmptyWindowError:
    held = "nor at any time"
    if facts["first_ts"] is not None:
        first, last = (format_ts(facts[name]) for name in ("first_ts", "last_ts"))
        held = f"held: {first.removesuffix(' UTC')} to {last}"
    start, end = (format_ts(ts).removesuffix(" UTC").removesuffix(" 00:00") for ts in window)
    times = ("--start", start.replace(" ", "T"), "--end", end.replace(" ", "T"))
    name = store.published or store.path.name  # a line that loads has the whole path
    return EmptyWindowError(
        f"{name} holds nothing of {stream} in [{start}, {end}) UTC; {held}; "
        + sync_advice(store, stream.key, *times, does="asks")
    )
