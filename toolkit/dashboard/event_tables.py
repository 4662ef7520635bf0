"""Events counted and listed: how many of each family there were, and the newest of them."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from toolkit.charts.time_axis import clock_text
from toolkit.dashboard.formatting import NULL
from toolkit.dashboard.lifecycles import document_sizes
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Trajectory
from toolkit.statistics.events import STILL_OPEN


class Count(NamedTuple):
    """Events of one family that opened in a window, and in the one before it."""

    family: EventFamily
    events: int
    documents: int
    before: int


def count_events(events: pl.DataFrame, lifecycles: pl.DataFrame, window: Interval) -> list[Count]:
    """Count the events of each family that opened in a window and in the one just before it.

    ``events`` are documents and ``lifecycles`` what `toolkit.statistics.events.event_lifecycles`
    makes of them.

    Examples
    --------
    >>> events = pl.DataFrame({"family": ["splash"] * 3, "ts": [0, 60, 70]})
    >>> lifecycles = pl.DataFrame({"family": ["splash"] * 2, "t_open": [0, 60]})
    >>> count_events(events, lifecycles, Interval(60, 120))[1]
    Count(family=<EventFamily.SPLASH: 'splash'>, events=1, documents=2, before=1)
    """
    earlier = Interval(2 * window.start - window.end, window.start)
    found = []
    for family in EventFamily:
        documents, opened = (
            frame.filter(pl.col("family") == family)[column]
            for frame, column in ((events, "ts"), (lifecycles, "t_open"))
        )
        counts = [
            int(times.is_between(*part, closed="left").sum())
            for times, part in ((opened, window), (documents, window), (opened, earlier))
        ]
        found.append(Count(family, *counts))
    return found


def newest_events(events: pl.DataFrame, limit: int) -> pl.DataFrame:
    """Return the newest document of each of the newest events, newest first.

    ``events`` are documents with the columns of `toolkit.statistics.event_documents.identified`.
    """
    return (
        events.sort("ts_ms", "family", "arrival", descending=True)
        .unique(["family", "event"], keep="first", maintain_order=True)
        .head(limit)
    )


def open_events(
    events: pl.DataFrame, lifecycles: pl.DataFrame, family: EventFamily
) -> pl.DataFrame:
    """Return the newest document of each event of a family that has not closed.

    Examples
    --------
    >>> events = pl.DataFrame({"family": ["spread"] * 3, "event": ["a", "a", "b"],
    ...     "ts_ms": [0, 9, 5], "arrival": [0, 2, 1]})
    >>> lifecycles = pl.DataFrame({"family": ["spread"] * 2, "event": ["a", "b"],
    ...     "kind": ["closed", "open"]})
    >>> open_events(events, lifecycles, EventFamily.SPREAD)["event"].to_list()
    ['b']
    """
    still = lifecycles.filter(pl.col("kind").is_in(STILL_OPEN), family=family.value)
    mine = events.join(still, on=["family", "event"], how="semi")
    return newest_events(mine, mine.height)


def of_legs(events: pl.DataFrame, trajectory: Trajectory) -> pl.DataFrame:
    """Select the documents between the two legs of a trajectory, bought either way round.

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


def event_table(newest: pl.DataFrame, timezone: str) -> pl.DataFrame:
    """Build the table of `newest_events`, with a button in each row.

    Examples
    --------
    >>> newest = pl.DataFrame({"ts": [0], "event_type": ["spread.opened"], "family": ["spread"],
    ...     "symbol": ["A_B"], "legs": [None], "magnitude_pct": [1.5],
    ...     "differential_pct_8h": [None]})
    >>> event_table(newest, "UTC").rows()
    [('Open', '1970-01-01 00:00', 'spread.opened', 'A_B', '–', '+1.5 %')]
    """
    return pl.DataFrame(
        {
            "": ["Open"] * newest.height,
            f"newest document ({timezone})": clock_text(newest["ts"], timezone),
            "event": newest["event_type"],
            "symbol": newest["symbol"],
            "legs": newest["legs"].cast(pl.String).fill_null(NULL),
            "size": document_sizes(newest),
        }
    )
