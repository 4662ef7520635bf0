"""The rows of a store around events, in which to look for what followed."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval
from toolkit.market import Trajectory
from toolkit.statistics.core.contract import whole_number
from toolkit.store import Store, held_key, sync_advice
from toolkit.workspace.passes import Passes
from toolkit.workspace.selection import OfLegs, Selection

AROUND = frozenset(("values", "rows", "spreads"))
"""What methods of event logs call the rows that `toolkit.workspace.Workspace.around` returns."""
MARGIN_S = 28 * 86_400
"""How far before and after a window rows are read, by default."""


def rows_around(
    store: Store,
    trajectories: Iterable[str],
    window: Interval,
    margin_s: int,
    *,
    on: Trajectory | str | None = None,
    as_of: int | None = None,
) -> pl.LazyFrame:
    """Return the rows that are held of the trajectories in which events of a window opened.

    With ``on`` those of that trajectory. A pair that is held the other way round is turned.
    """
    whole_number("margin_s", margin_s, 0)
    keys = sorted({each for each in trajectories if each}) if on is None else [str(on)]
    asked = [Trajectory.parse(key) for key in keys]
    known = set(store.catalogue().filter(pl.col("rows") > 0)["stream"])
    found: dict[OfLegs, OfLegs] = {
        each: Trajectory.parse(at) for each in asked if (at := held_key(each.key, known))
    }
    if not found:
        if not asked:
            raise EmptyWindowError(f"no event opened in {window}")
        what = f"none of the {len(asked)} trajectories in which events opened"
        what = what if on is None else f"no rows of {on}"
        does = "loads the first" if on is None else "loads it"
        advice = sync_advice(store, asked[0].key, does=does)
        raise EmptyWindowError(f"{store.name} holds {what}; {advice}")
    read = Interval(window.start - margin_s, window.end + margin_s)
    passes = Passes.of(store, as_of=as_of)
    return Selection(passes, asked[0].kind, found, read).scan(read)
