"""Events counted and listed: how many of each family there were, and the newest of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from toolkit.charts.time_axis import clock_text
from toolkit.dashboard.parts.lifecycles import size_bps
from toolkit.dashboard.parts.rows import RowColumn, row_column, time_column
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.market import EventFamily
from toolkit.show.events import size_text
from toolkit.statistics.events import STILL_OPEN


class Count(NamedTuple):
    """Events of one family that opened in a window, and in the one before it."""

    family: EventFamily
    events: int
    documents: int
    before: int


def count_events(
    events: pl.DataFrame, lifecycles: pl.DataFrame, windows: Mapping[str, Interval]
) -> list[Count]:
    """Count the events of each family that opened in its window and in the one just before it.

    ``events`` are documents and ``lifecycles`` what `toolkit.statistics.events.event_lifecycles`
    makes of them. A family without a window is left out.

    >>> events = pl.DataFrame({"family": ["splash"] * 3, "ts": [0, 60, 70]})
    >>> lifecycles = pl.DataFrame({"family": ["splash"] * 2, "t_open": [0, 60]})
    >>> count_events(events, lifecycles, {"splash": Interval(60, 120)})
    [Count(family=<EventFamily.SPLASH: 'splash'>, events=1, documents=2, before=1)]
    """
    found = []
    for family in (family for family in EventFamily if family.value in windows):
        window = windows[family.value]
        earlier = Interval(2 * window.start - window.end, window.start)
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


def logs_that_end(logs: pl.DataFrame, end: int, timezone: str) -> Markdown:
    """Name the logs whose own answers end over a minute before a time, "" where none does.

    >>> logs = pl.DataFrame({"family": ["spread", "splash"], "known_until": [600, 1200]})
    >>> logs_that_end(logs, 1200, "UTC")
    'Nothing is known of spread events from 1970-01-01 00:10 UTC on.'
    >>> logs_that_end(logs, 600, "UTC")
    ''
    """
    early = logs.filter(pl.col("known_until") < end - 60).sort("family")
    ends = zip(early["family"], clock_text(early["known_until"], timezone), strict=True)
    words = [f"{family} events from {clock} {timezone} on" for family, clock in ends]
    known = Markdown("Nothing is known of {}.")
    return known.format(Markdown(", ").join(words)) if words else Markdown("")


def newest_events(events: pl.DataFrame, limit: int) -> pl.DataFrame:
    """Return the newest document of each of the newest events, newest first.

    ``events`` are documents with the columns of `toolkit.statistics.events.documents.identified`.
    """
    return (
        events.sort("ts_ms", "family", "arrival", descending=True)
        .unique(["family", "event"], keep="first", maintain_order=True)
        .head(limit)
    )


def open_events(
    events: pl.DataFrame, lifecycles: pl.DataFrame, family: EventFamily
) -> pl.DataFrame:
    """Return the newest document of each event of a family that has not closed, with its t_open.

    Documents from where the log is no longer known are left out.

    >>> events = pl.DataFrame({"family": ["spread"] * 3, "event": ["a", "a", "b"],
    ...     "ts": [0, 9, 5], "ts_ms": [0, 9000, 5000], "arrival": [0, 2, 1]})
    >>> lifecycles = pl.DataFrame({"family": ["spread"] * 2, "event": ["a", "b"],
    ...     "kind": ["closed", "open"], "since": [0, 5], "t_open": [0, 5], "known_until": [9, 9]})
    >>> open_events(events, lifecycles, EventFamily.SPREAD).select("event", "t_open").rows()
    [('b', 5)]
    """
    of_event = ["family", "event"]
    still = (
        lifecycles.filter(pl.col("kind").is_in(STILL_OPEN), family=family.value)
        .sort("since", descending=True)
        .unique(of_event, keep="first")
    )
    mine = events.join(still.select(*of_event, "t_open", "known_until"), on=of_event)
    known = mine.filter(pl.col("ts") < pl.col("known_until"))
    return newest_events(known, known.height)


def document_columns(
    newest: pl.DataFrame, lifecycles: pl.DataFrame, timezone: str
) -> list[RowColumn]:
    """Build the columns of `newest_events` for `toolkit.dashboard.parts.rows.show_rows`.

    The peak is that of the lifecycle which the document belongs to, with its sign. A document
    without one, such as one of no known word, has its own largest size so far.

    >>> newest = pl.DataFrame({"ts": [90], "event_type": ["spread.closed"], "family": ["spread"],
    ...     "event": ["a"], "symbol": ["A_B"], "legs": [None], "size": [-0.01]})
    >>> lifecycles = pl.DataFrame({"family": ["spread"], "event": ["a"], "since": [30],
    ...     "t_close": [90], "peak": [-3.4]})
    >>> [column.texts[0] for column in document_columns(newest, lifecycles, "UTC")]
    ['spread.closed', '01-01 00:01:30', 'A_B', '–', '-345.9']
    """
    return [
        row_column(newest, "event_type"),
        time_column(newest, "ts", timezone, year=False),
        *(row_column(newest, name) for name in ("symbol", "legs")),
        peak_column(_peaks(newest, lifecycles), narrow=False),
    ]


def peak_column(events: pl.DataFrame, name: str = "peak_bps", *, narrow: bool = True) -> RowColumn:
    """Build the column of the peaks of events in bps, each as sent where one points at it."""
    return RowColumn(
        name,
        "number",
        events.select(size_bps()).to_series().to_list(),
        titles=[size_text(*row) for row in events.select("peak", "family").iter_rows()],
        result="tables",
        narrow=narrow,
    )


def _peaks(newest: pl.DataFrame, lifecycles: pl.DataFrame) -> pl.DataFrame:
    """Return the peak and family of each document's lifecycle: the last that had begun by then."""
    lives = lifecycles.select("family", "event", "since", "t_close", "peak").sort("since")
    documents = newest.select("family", "event", "ts", "size").with_row_index("row").sort("ts")
    found = documents.join_asof(
        lives,
        left_on="ts",
        right_on="since",
        by=["family", "event"],
        strategy="backward",
        check_sortedness=False,
    ).sort("row")
    later = (pl.col("ts") > pl.col("t_close")).fill_null(value=False)
    shown = pl.coalesce(pl.when(~later).then("peak"), "size").alias("peak")
    return found.select(shown, "family")
