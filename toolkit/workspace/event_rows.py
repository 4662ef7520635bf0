"""The rows of a store around events, in which to look for what followed."""

from __future__ import annotations

import polars as pl

from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory, swapped
from toolkit.series import EventSeries
from toolkit.statistics.contract import whole_number
from toolkit.statistics.definition import turned
from toolkit.statistics.families import FAMILIES
from toolkit.store import Store, sync_advice


def rows_around(
    store: Store,
    events: EventSeries,
    margin_s: int,
    *,
    on: Trajectory | str | None = None,
    as_of: int | None = None,
) -> pl.LazyFrame:
    """Return the rows that are held of the trajectories in which events of a series opened.

    With ``on`` those of that trajectory. A pair that is held the other way round is turned.
    """
    whole_number("margin_s", margin_s, 0)
    keys = events.detections()["trajectory"].unique().sort() if on is None else [str(on)]
    asked = [Trajectory.parse(key) for key in keys]
    known = set(store.catalogue().filter(pl.col("rows") > 0)["stream"])
    as_held = [each for each in asked if each.key in known]
    paired = [each for each in asked if each.family is not Family.PRICE]
    turns = {swapped(each.key): each.key for each in paired if each not in as_held}
    turns = {held: key for held, key in turns.items() if held in known}
    if not (as_held or turns):
        if not asked:
            raise EmptyWindowError(f"no event of {events.stream} opened in {events.window}")
        what = f"none of the {len(asked)} trajectories in which events opened"
        what = what if on is None else f"no rows of {on}"
        does = "loads the first" if on is None else "loads it"
        advice = sync_advice(store, asked[0].key, does=does)
        raise EmptyWindowError(f"{store.name} holds {what}; {advice}")
    window = Interval(events.window.start - margin_s, events.window.end + margin_s)
    parts = [store.scan(as_held, window, as_of=as_of)] if as_held else []
    if turns:
        renamed = pl.col("trajectory").replace_strict(turns, return_dtype=pl.String)
        parts.append(turned(store.scan(list(turns), window, as_of=as_of)).with_columns(renamed))
    ready: pl.LazyFrame = FAMILIES[asked[0].kind].ready(pl.concat(parts))
    return ready
