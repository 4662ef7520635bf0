"""Tables of the page of events: one row per event, per kind of event, and per transition."""

from __future__ import annotations

import polars as pl

from toolkit.charts.time_axis import clock_text
from toolkit.dashboard.parts.event_reading import MOVES
from toolkit.dashboard.parts.event_tables import peak_column
from toolkit.dashboard.parts.lifecycles import SEEN
from toolkit.dashboard.parts.rows import RowColumn, row_column, time_column
from toolkit.show.events import lasted_text
from toolkit.show.values import reason_words
from toolkit.statistics.events import rates, survival
from toolkit.statistics.events.clusters import clusters_text


def event_columns(lives: pl.DataFrame, timezone: str) -> list[RowColumn]:
    """Build the columns of lifecycles, as `toolkit.dashboard.parts.event_reading` gives them.

    >>> lives = pl.DataFrame({"move": ["pump"], "family": ["splash"], "symbol": ["A_B"],
    ...     "legs": ["X.spot"], "t_open": [0], "duration_s": [90.0], "kind": ["closed"],
    ...     "peak": [1.0], "near_lost": [None]})
    >>> [column.texts[0] for column in event_columns(lives, "UTC")]
    ['pump', '01-01 00:00', 'A_B', 'X.spot', '99.5', '1 min 30 s', 'closed']
    """
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
    """Build one row per move: how often it opens, how long it lasts, and the largest that opened.

    ``lives`` are lifecycles of one window, and ``held`` the stretches in which their logs are. Of
    each of `toolkit.dashboard.parts.event_reading.MOVES` with an event there are ``events`` (that
    touch the window) and the event_id, symbol, legs, family and peak of the largest that opened in
    the window, of all where none did. Unless lives of one state alone are asked for, the figures of
    `toolkit.statistics.events.rates` and of `toolkit.statistics.events.survival` are beside them.
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
    """Build the columns of `kinds_of_events`. A bound says of which clusters it is, or why not."""
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
    """Build the columns of an interval's bounds: events of one cluster may depend on each other."""
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
    """Build the columns of an event's documents as its transitions, in their order.

    >>> documents = pl.DataFrame({"ts": [0], "ts_ms": [250], "event_type": ["spread.closed"],
    ...     "magnitude_pct": [1.0], "peak_pct": [2.5], "differential_pct_8h": [None],
    ...     "close_reason": ["converged"]})
    >>> [column.texts[0] for column in transition_columns(documents, "UTC")]
    ['spread.closed', '1970-01-01 00:00:00.250', '1.000', '–', '2.500', 'converged']
    """
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
