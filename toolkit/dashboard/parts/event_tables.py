"""Events as tables: counts by family, lists of events, of kinds and of transitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from toolkit.charts.time_axis import clock_text
from toolkit.dashboard.parts.event_reading import MOVES
from toolkit.dashboard.parts.rows import RowColumn, row_column, time_column
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.market import EventFamily
from toolkit.show.values import lasted_text, reason_words, size_text
from toolkit.statistics.events import STILL_OPEN, rates, survival
from toolkit.statistics.events.clusters import clusters_text

SEEN = {
    "closed": "closed",
    "open": "still open",
    "reopened": "over, its close was lost",
    "orphan_close": "closed, opening not seen",
    "orphan_update": "neither end seen",
    "unknown": "of unknown type",
}
"""What was observed of an event, by the kind of its lifecycle."""


def size_bps() -> pl.Expr:
    """Build the size of events in bps: of the log spread or price, for funding per 8 h.

    Null if the size is not known, or -100 % or less.

    >>> sizes = {"family": ["spread", "funding", "splash"], "peak": [1.0, 0.1, -100.0]}
    >>> pl.DataFrame(sizes).select(size_bps().round(1)).to_series().to_list()
    [99.5, 10.0, None]
    """
    size = pl.col("peak")
    log = pl.when(size > -100).then(10_000 * (size / 100).log1p())
    funding = pl.col("family") == EventFamily.FUNDING
    return pl.when(funding).then(100 * size).otherwise(log).alias("peak_bps")


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

    ``lifecycles`` are of the documents ``events``. A family without a window is left out.
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
    """Name the logs that end over a minute before a time, "" without any."""
    early = logs.filter(pl.col("known_until") < end - 60).sort("family")
    ends = zip(early["family"], clock_text(early["known_until"], timezone), strict=True)
    words = [f"{family} events from {clock} {timezone} on" for family, clock in ends]
    known = Markdown("Not loaded yet: {}.")
    return known.format(Markdown(", ").join(words)) if words else Markdown("")


def newest_events(events: pl.DataFrame, limit: int) -> pl.DataFrame:
    """Return the newest document of each of the newest events, newest first.

    ``events`` have the columns of `toolkit.statistics.events.documents.identified`.
    """
    return (
        events.sort("ts_ms", "family", "arrival", descending=True)
        .unique(["family", "event"], keep="first", maintain_order=True)
        .head(limit)
    )


def open_events(
    events: pl.DataFrame, lifecycles: pl.DataFrame, family: EventFamily
) -> pl.DataFrame:
    """Return the newest document of each open event of a family, with its t_open.

    Documents after the end of the log's answers are left out.
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
    """Build the columns of `newest_events`.

    The peak is the lifecycle's, signed, or without one the document's size.
    """
    return [
        row_column(newest, "event_type"),
        time_column(newest, "ts", timezone, year=False),
        *(row_column(newest, name) for name in ("symbol", "legs")),
        peak_column(_peaks(newest, lifecycles), narrow=False),
    ]


def peak_column(events: pl.DataFrame, name: str = "peak_bps", *, narrow: bool = True) -> RowColumn:
    """Build the column of peaks in bps, with the original size as a tooltip."""
    return RowColumn(
        name,
        "number",
        events.select(size_bps()).to_series().to_list(),
        titles=[size_text(*row) for row in events.select("peak", "family").iter_rows()],
        result="tables",
        narrow=narrow,
    )


def _peaks(newest: pl.DataFrame, lifecycles: pl.DataFrame) -> pl.DataFrame:
    """Return peak and family of each document's lifecycle, the last begun by then."""
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


def event_columns(lives: pl.DataFrame, timezone: str) -> list[RowColumn]:
    """Build the columns of lifecycles of `toolkit.dashboard.parts.event_reading`."""
    lasted = [lasted_text(*row) for row in lives.select("duration_s", "kind").iter_rows()]
    lost = row_column(lives, "near_lost", narrow=False)
    return [
        row_column(lives, "move"),
        time_column(lives, "t_open", timezone, year=False),
        *(row_column(lives, name) for name in ("symbol", "legs")),
        peak_column(lives),
        row_column(lives, "duration_s", shown=lasted, narrow=False),
        RowColumn("seen", "text", [SEEN[kind] for kind in lives["kind"]], narrow=False),
        *([lost] if lives["near_lost"].count() else []),
    ]


def kinds_of_events(lives: pl.DataFrame, held: pl.DataFrame, *, any_state: bool) -> pl.DataFrame:
    """Build one row per kind of event: rate, survival, and the largest event.

    ``lives`` are lifecycles of one window, ``held`` the stretches that their logs cover. Columns:
    move, ``events`` (those that touch the window), event_id, symbol, legs, family and peak of the
    largest, preferably one opened in the window, and with ``any_state`` those of
    `toolkit.statistics.events.rates` and ``survival``.
    """
    window = pl.col("t_open").is_between("window_start", "window_end", closed="left")
    largest = (
        lives.with_columns(inside=window.fill_null(value=False), size=pl.col("peak").abs())
        .sort("inside", "size", "since", descending=True, nulls_last=True)
        .group_by("move", maintain_order=True)
        .agg(pl.col("event_id", "symbol", "legs", "family", "peak").first(), events=pl.len())
    )
    order = pl.col("move").replace_strict({move: at for at, move in enumerate(MOVES)})
    found = largest.sort(order)
    if not any_state or found.is_empty():
        return found
    measured = {
        "rate": rates(lives, ["move"], held=held),
        "median_life": survival(lives, ["move"], held=held),
    }
    for name, figures in measured.items():
        own = figures.rename({each: f"{name}_{each}" for each in ("cluster", "n_clusters")})
        more = own.select("move", pl.exclude(found.columns))
        found = found.join(more, on="move", how="left", maintain_order="left")
    return found


def kind_columns(kinds: pl.DataFrame) -> list[RowColumn]:
    """Build the columns of `kinds_of_events`. Tooltips of bounds give clusters or a reason."""
    columns = [row_column(kinds, "move"), row_column(kinds, "events")]
    if "rate_per_day" in kinds.columns:
        columns += [
            row_column(kinds, "rate_per_day"),
            *_bounds(kinds, "rate", "rate_lower_per_day", "rate_upper_per_day"),
            row_column(kinds, "median_life_s"),
            *_bounds(kinds, "median_life", "median_life_lower_s", "median_life_upper_s"),
            row_column(kinds, "open", narrow=False),
            RowColumn("coverage", "bar", kinds["coverage"].to_list(), narrow=False),
        ]
    of_largest = kinds.rename({"symbol": "largest_symbol", "legs": "largest_legs"})
    return [
        *columns,
        peak_column(kinds, "largest_bps"),
        row_column(of_largest, "largest_symbol"),
        row_column(of_largest, "largest_legs", narrow=False),
    ]


def _bounds(kinds: pl.DataFrame, figure: str, *names: str) -> list[RowColumn]:
    """Build the columns of an interval's bounds, which allow for clusters."""
    clusters = kinds.select(f"{figure}_cluster", f"{figure}_n_clusters").rows()
    return [
        row_column(
            kinds,
            name,
            titles=[
                reason_words(row, name) or clusters_text(*each)
                for row, each in zip(kinds.iter_rows(named=True), clusters, strict=True)
            ],
            narrow=False,
        )
        for name in names
    ]


def transition_columns(documents: pl.DataFrame, timezone: str) -> list[RowColumn]:
    """Build the columns of an event's documents as transitions."""
    times = [
        f"{f'{time}:00'[:19]}.{ms % 1000:03}"
        for time, ms in zip(clock_text(documents["ts"], timezone), documents["ts_ms"], strict=True)
    ]
    sizes = documents.with_columns(
        pl.col("magnitude_pct", "differential_pct_8h", "peak_pct").cast(pl.Float64)
    )
    return [
        row_column(documents, "event_type"),
        RowColumn("ts_ms", "text", times, of=timezone),
        *(row_column(sizes, name) for name in ("magnitude_pct", "differential_pct_8h")),
        row_column(sizes, "peak_pct", narrow=False),
        row_column(documents, "close_reason", narrow=False),
    ]
