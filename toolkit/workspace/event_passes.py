"""Event logs held to the trajectories of a store, and taken in them, some at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, Trajectory, swapped
from toolkit.series.held_events import with_places
from toolkit.statistics import events as event_statistics
from toolkit.statistics.definition import with_spread
from toolkit.statistics.event_detections import trajectory_of
from toolkit.statistics.passes import in_one_pass
from toolkit.store import held_key, sync_advice
from toolkit.workspace.answers import no_rows
from toolkit.workspace.event_selection import OF_FAMILY, EventSelection
from toolkit.workspace.passes import Passes
from toolkit.workspace.selection import OfLegs, Selection

_MINUTE_S = 60
_LOADED_BY = {
    Family.SPREAD: "--all-spreads",
    Family.FUNDING: "--all-funding",
    Family.PRICE: "--all-prices",
}


def taken_positions(asked: EventSelection, options: Mapping[str, Any]) -> pl.DataFrame:
    """Compute the positions of spread events, also of those whose trajectory is not held.

    ``options`` are those of `toolkit.statistics.events.positions`. Raises `EmptyWindowError` where
    no event opened, or none in a trajectory that is held.
    """
    store, window = asked.store, asked.window
    lives = asked.events.lives.filter(family=EventFamily.SPREAD.value)
    events = lives.with_columns(trajectory_of())
    opened = events.filter(pl.col("t_open").is_between(*window, closed="left"))
    nothing = with_spread(no_rows(Family.SPREAD.value))
    # refuses what it must, before rows are read
    event_statistics.positions(events.head(0), nothing, step_s=_MINUTE_S, **options)
    keys = opened["trajectory"].drop_nulls().value_counts(sort=True)["trajectory"].to_list()
    if not keys:
        raise EmptyWindowError(f"{store.name} holds no spread event that opened in {window}")
    known = store.catalogue().filter(pl.col("rows") > 0, kind=Family.SPREAD.value)
    streams = set(known["stream"])
    found = {key: at for key in keys if (at := held_key(key, streams))}
    if not found:
        raise EmptyWindowError(
            f"{store.name} holds none of the {len(keys):,} trajectories in which events opened; "
            + sync_advice(store, keys[0], does="loads the first")
        )
    pairs: dict[OfLegs, OfLegs] = {
        Trajectory.parse(key): Trajectory.parse(at) for key, at in found.items()
    }
    start, end = window
    spreads = Selection.over(
        Passes.of(store), Family.SPREAD.value, pairs, known, start=start, end=end
    )
    step_s = max(spreads.steps.values(), default=_MINUTE_S)
    given = {**options, "held": asked.events.held, "step_s": spreads.steps}

    def measure(rows: pl.DataFrame) -> pl.DataFrame:
        mine = events.filter(pl.col("trajectory").is_in(rows["trajectory"].unique().implode()))
        return event_statistics.positions(mine, rows, **given)

    read = Interval(start - step_s, end + options.get("exit_delay_s", 0) + 5 * step_s)
    [rows] = in_one_pass(spreads.groups(read), measure)
    others = events.filter(~pl.col("trajectory").is_in(rows["trajectory"].unique().implode()))
    return pl.concat([rows, event_statistics.positions(others, nothing, **given)])


def audited_events(asked: EventSelection, options: Mapping[str, Any]) -> pl.DataFrame:
    """Hold a log to all trajectories of the store of its kind, some at a time.

    ``options`` are those of `toolkit.statistics.events.audited`. The rows have what tells groups
    apart too. A log in which pairs have events both ways round is held to both ways of each.
    Raises `EmptyWindowError` where no such trajectory is held.
    """
    store, window, kind = asked.store, asked.window, OF_FAMILY[asked.family]
    known = store.catalogue().filter(pl.col("rows") > 0, kind=kind.value)["stream"]
    if known.is_empty():
        advice = sync_advice(store, _LOADED_BY[kind], does="loads some")
        raise EmptyWindowError(f"{store.name} holds no {kind} yet; {advice}")
    held = {key: Trajectory.parse(key) for key in known}
    documents = asked.events.documents
    detected: set[str] = set()
    if kind is not Family.PRICE:
        inside = pl.col("ts").is_between(*window, closed="left")
        detected = set(event_statistics.detections(documents).filter(inside)["trajectory"])
    if any(swapped(key) in detected or swapped(key) in held for key in detected):
        held |= {swapped(key): each for key, each in held.items() if swapped(key) not in held}
    pairs: dict[OfLegs, OfLegs] = {Trajectory.parse(key): of for key, of in held.items()}
    series = Selection(Passes.of(store), kind.value, pairs, window)
    lives = event_statistics.with_direction(asked.events.lives, documents)
    left, trajectory = lives.with_columns(trajectory_of()), pl.col("trajectory")
    not_held = trajectory.is_null() | ~trajectory.is_in(list(held))

    def audited(rows: pl.DataFrame) -> pl.DataFrame:
        nonlocal left
        mine = trajectory.is_in(rows["trajectory"].unique().implode()) | not_held
        taken, left = left.filter(mine), left.filter(~mine)
        return event_statistics.audited(
            taken.drop("trajectory"),
            rows,
            *window,
            family=asked.family,
            held=asked.events.held,
            **options,
        )

    (found,) = in_one_pass(series.groups(window), audited)
    return with_places(found.sort("trajectory", maintain_order=True))


def smallest_size_bps(asked: EventSelection) -> float:
    """Return the smallest size of an event of the log. Raises `EmptyWindowError` for no event."""
    lives = event_statistics.with_direction(asked.events.lives, asked.events.documents)
    if lives.is_empty():
        raise EmptyWindowError(
            f"{asked.store.name} holds nothing of events/{asked.family} in {asked.window}"
        )
    return event_statistics.smallest_size_bps(lives, asked.window, asked.family)
