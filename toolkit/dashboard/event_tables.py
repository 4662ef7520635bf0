"""Events counted and listed: how many of each family there were, and the newest of them."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from toolkit.dashboard.words import NULL
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Trajectory

__all__ = [
    "Count",
    "count_events",
    "event_legs",
    "event_size",
    "newest_events",
    "of_legs",
    "open_events",
]


_OPENS = r"(^|\.)(opened|pump|dump)$"
"""What the type of a document that opens an event ends in."""


class Count(NamedTuple):
    """Events of one family that opened in a window, and in the one before it."""

    family: EventFamily
    events: int
    documents: int
    before: int


def count_events(events: pl.DataFrame, window: Interval) -> list[Count]:
    """Each family's openings of a window, with those of the window as long just before it.

    ``events`` are rows of `toolkit.store.Store.events`; a document whose type ends in opened, pump
    or dump opens an event, and one event is counted once.

    Examples
    --------
    >>> events = pl.DataFrame({"family": ["splash"] * 3, "event_id": ["a", "b", "b"],
    ...     "event_type": ["splash.pump", "splash.dump", "splash.faded"], "ts": [0, 60, 70]})
    >>> count_events(events, Interval(60, 120))[1]
    Count(family=<EventFamily.SPLASH: 'splash'>, events=1, documents=2, before=1)
    """
    earlier = Interval(2 * window.start - window.end, window.start)
    found = []
    for family in EventFamily:
        of_family = events.filter(pl.col("family") == family)
        inside, before = (
            of_family.filter(pl.col("ts").is_between(*part, closed="left"))
            for part in (window, earlier)
        )
        counts = [
            part.filter(pl.col("event_type").str.contains(_OPENS))["event_id"].n_unique()
            for part in (inside, before)
        ]
        found.append(Count(family, counts[0], inside.height, counts[1]))
    return found


def newest_events(events: pl.DataFrame, limit: int) -> pl.DataFrame:
    """The newest document of each of the newest events, newest first."""
    return (
        events.sort("ts_ms", "family", "arrival", descending=True)
        .unique(["family", "event_id"], keep="first", maintain_order=True)
        .head(limit)
    )


def open_events(events: pl.DataFrame, family: EventFamily) -> pl.DataFrame:
    """The newest document of each event of a family whose newest document leaves it open.

    Examples
    --------
    >>> events = pl.DataFrame({"family": ["spread"] * 3, "event_id": ["a", "a", "b"],
    ...     "ts_ms": [0, 9, 5], "arrival": [0, 2, 1], "lifecycle": ["open", "closed", "open"]})
    >>> open_events(events, EventFamily.SPREAD)["event_id"].to_list()
    ['b']
    """
    of_family = events.filter(pl.col("family") == family)
    return newest_events(of_family, of_family.height).filter(pl.col("lifecycle") == "open")


def of_legs(events: pl.DataFrame, trajectory: Trajectory) -> pl.DataFrame:
    """The documents between the two legs of a trajectory, whichever of them was bought.

    Examples
    --------
    >>> events = pl.DataFrame({"buy_exchange": ["X", "Y", "X"], "buy_market": ["spot"] * 3,
    ...     "sell_exchange": ["Y", "X", "Z"], "sell_market": ["spot"] * 3})
    >>> of_legs(events, Trajectory.parse("A_B:X.spot:Y.spot")).height
    2
    """
    bought, sold = (
        pl.format("{}.{}", f"{side}_exchange", f"{side}_market") for side in ("buy", "sell")
    )
    legs = [str(leg) for leg in trajectory.legs]
    return events.filter(bought.is_in(legs) & sold.is_in(legs))


def event_legs(row: dict[str, str | None]) -> str:
    """The legs of an event's row: one for a splash, buy and sell for the others.

    Examples
    --------
    >>> event_legs({"buy_exchange": "X", "buy_market": "spot", "sell_exchange": "Y",
    ...             "sell_market": "futures"})
    'X.spot → Y.futures'
    """
    legs = [
        f"{row[f'{side}_exchange']}.{row[f'{side}_market']}"
        for side in ("buy", "sell")
        if row[f"{side}_exchange"]
    ]
    return " → ".join(legs) or NULL


def event_size(row: dict[str, float | None]) -> str:
    """The size of an event's row with its unit.

    Examples
    --------
    >>> event_size({"magnitude_pct": 1.234, "differential_pct_8h": None})
    '+1.23 %'
    >>> event_size({"magnitude_pct": None, "differential_pct_8h": -0.0312})
    '-0.0312 % per 8 h'
    """
    if row["magnitude_pct"] is not None:
        return f"{row['magnitude_pct']:+,.2f} %"
    if row["differential_pct_8h"] is not None:
        return f"{row['differential_pct_8h']:+,.4f} % per 8 h"
    return NULL
