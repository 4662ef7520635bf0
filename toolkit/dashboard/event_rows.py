"""The tables of the page of events: one row an event, one row a kind of event, one a transition."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from toolkit.cards import duration
from toolkit.charts.time_axis import clock_text
from toolkit.dashboard.event_reading import MOVES
from toolkit.dashboard.formatting import NULL
from toolkit.dashboard.lifecycles import SEEN, SIZE_BPS, lasted_text, size_bps, size_text
from toolkit.dashboard.rows import RowColumn
from toolkit.reasons import Reason
from toolkit.statistics.clusters import clusters_text
from toolkit.statistics.events import rates, survival


def event_columns(lives: pl.DataFrame, timezone: str) -> list[RowColumn]:
    """Build the columns of lifecycles, as `toolkit.dashboard.event_reading` gives them.

    >>> lives = pl.DataFrame({"move": ["pump"], "family": ["splash"], "symbol": ["A_B"],
    ...     "legs": ["X.spot"], "t_open": [0], "duration_s": [90.0], "kind": ["closed"],
    ...     "peak": [1.0], "near_lost": [None]})
    >>> [column.texts[0] for column in event_columns(lives, "UTC")]
    ['pump', '01-01 00:00', 'A_B', 'X.spot', '99.5', '1 min 30 s', 'closed']
    """
    opened = clock_text(lives["t_open"], timezone)
    sizes = _size_texts(lives)
    lasted = [lasted_text(*row) for row in lives.select("duration_s", "kind").iter_rows()]
    near = [NULL if why is None else why for why in lives["near_lost"]]
    lost = RowColumn("near lost rows", "text", near, help=_NEAR, narrow=False)
    return [
        RowColumn("event", "text", lives["move"].to_list()),
        RowColumn(
            f"opened ({timezone})",
            "text",
            opened.to_list(),
            shown=[NULL if clock is None else clock[5:] for clock in opened],
        ),
        RowColumn("symbol", "text", lives["symbol"].to_list()),
        RowColumn("legs", "text", lives["legs"].to_list()),
        RowColumn("peak (bps)", "number", _bps(lives), titles=sizes, help=SIZE_BPS),
        RowColumn("lasted", "number", lives["duration_s"].to_list(), shown=lasted, narrow=False),
        RowColumn("seen", "text", [SEEN[kind] for kind in lives["kind"]], narrow=False),
        *([lost] if lives["near_lost"].count() else []),
    ]


def _bps(lives: pl.DataFrame) -> list[float | None]:
    return lives.select(size_bps()).to_series().to_list()


def _size_texts(lives: pl.DataFrame) -> list[str]:
    return [size_text(*row) for row in lives.select("peak", "family").iter_rows()]


def kinds_of_events(lives: pl.DataFrame, held: pl.DataFrame, *, any_state: bool) -> pl.DataFrame:
    """Build one row a move: how often it opens, how long it lasts, and the largest that opened.

    ``lives`` are lifecycles of one window, and ``held`` the stretches in which their logs are. Of
    each of `toolkit.dashboard.event_reading.MOVES` with an event there are ``events`` (that touch
    the window) and the event_id, symbol, legs, family and peak of the largest that opened in the
    window, of all where none did. Unless lives of one state alone are asked for, the figures of
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
    """Build the columns of `kinds_of_events`."""
    columns = [
        RowColumn("kind", "text", kinds["move"].to_list()),
        RowColumn("events", "number", kinds["events"].to_list(), digits=0, help=_EVENTS),
    ]
    if "rate_per_day" in kinds.columns:
        columns += [
            RowColumn("a day", "number", kinds["rate_per_day"].to_list(), help=_RATE),
            _range(kinds, "a day, 95 %", "rate", "_per_day", lambda value: f"{value:,.1f}"),
            RowColumn(
                "half over after",
                "number",
                kinds["median_life_s"].to_list(),
                shown=[duration(value) for value in kinds["median_life_s"]],
                help=_HALF,
            ),
            _range(kinds, "half, 95 %", "median_life", "_s", duration),
            RowColumn("open", "number", kinds["open"].to_list(), digits=0, narrow=False),
            RowColumn(
                "log held (%)",
                "bar",
                (100 * kinds["coverage"]).to_list(),
                help="Of the time that is shown",
                narrow=False,
            ),
        ]
    return [
        *columns,
        RowColumn("largest (bps)", "number", _bps(kinds), titles=_size_texts(kinds), help=SIZE_BPS),
        RowColumn("its symbol", "text", kinds["symbol"].to_list()),
        RowColumn("its legs", "text", kinds["legs"].to_list(), narrow=False),
    ]


_NEAR = "Why rows of its legs are lost at the source, from an hour before it to its end"
_EVENTS = "Events that were open at any time of what is shown"
_RATE = "Openings in 24 h of the time in which the log is held"
_HALF = "Kaplan and Meier: an event that is still open counts as longer than seen"
_RANGE = "Events of one cluster may depend on each other: point at a range to see of which"


def _range(
    kinds: pl.DataFrame, name: str, figure: str, unit: str, shown: Callable[[float], str]
) -> RowColumn:
    """Build the column of an interval, with its clusters or why there is none to point at."""
    lower, upper = (kinds[f"{figure}_{end}{unit}"] for end in ("lower", "upper"))
    texts = [
        NULL if low is None else f"{shown(low)} to {'?' if high is None else shown(high)}"
        for low, high in zip(lower, upper, strict=True)
    ]
    reasons = kinds["rate_reason" if figure == "rate" else f"{figure}_lower_reason"]
    clusters = zip(kinds[f"{figure}_cluster"], kinds[f"{figure}_n_clusters"], strict=True)
    titles = [
        Reason(reason).words if reason else clusters_text(*each)
        for reason, each in zip(reasons, clusters, strict=True)
    ]
    return RowColumn(
        name, "number", lower.to_list(), shown=texts, titles=titles, help=_RANGE, narrow=False
    )


def transition_columns(documents: pl.DataFrame, timezone: str) -> list[RowColumn]:
    """Build the columns of an event's documents as its transitions, in their order.

    >>> documents = pl.DataFrame({"ts": [0], "ts_ms": [250], "event_type": ["spread.closed"],
    ...     "family": ["spread"], "magnitude_pct": [1.0], "peak_pct": [2.5],
    ...     "differential_pct_8h": [None], "close_reason": ["converged"], "lifecycle": ["closed"]})
    >>> [column.texts[0] for column in transition_columns(documents, "UTC")]
    ['spread.closed', '1970-01-01 00:00:00.250', '+1 %', '+2.5 %', 'converged']
    """
    own = pl.coalesce("magnitude_pct", "differential_pct_8h").cast(pl.Float64)
    rows = documents.select(own, pl.col("peak_pct").cast(pl.Float64), "family").rows()
    clock = clock_text(documents["ts"], timezone)
    times = [
        f"{f'{time}:00'[:19]}.{ms % 1000:03}"
        for time, ms in zip(clock, documents["ts_ms"], strict=True)
    ]
    return [
        RowColumn("transition", "text", documents["event_type"].to_list()),
        RowColumn(f"time ({timezone})", "text", times),
        RowColumn(
            "size",
            "number",
            [size for size, _, _ in rows],
            shown=[size_text(size, family) for size, _, family in rows],
        ),
        RowColumn(
            "largest so far",
            "number",
            [peak for _, peak, _ in rows],
            shown=[size_text(peak, family) for _, peak, family in rows],
            narrow=False,
        ),
        RowColumn("close reason", "text", documents["close_reason"].to_list(), narrow=False),
    ]
