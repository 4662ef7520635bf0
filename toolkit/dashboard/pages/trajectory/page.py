"""The page Trajectory: its chart, its figures, and what is below them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from toolkit.charts import Figure, price_chart, rate_chart, spread_chart
from toolkit.charts.theme import MARK_COLOUR
from toolkit.charts.view import subject_of
from toolkit.columns import column
from toolkit.dashboard.loads import WATCHLIST, offer
from toolkit.dashboard.open_stream import offer_absent, offer_history
from toolkit.dashboard.pages.trajectory.below import show_below
from toolkit.dashboard.pages.trajectory.choice import (
    CHOICES,
    choose_trajectory,
    chosen_part,
    take_threshold,
)
from toolkit.dashboard.pages.trajectory.explorer import Beyond, Explored, asked_of, measure_beyond
from toolkit.dashboard.pages.trajectory.figures import (
    measure_explored,
    show_figures,
    show_kept,
)
from toolkit.dashboard.parts.analyses import show_analyses
from toolkit.dashboard.parts.spread_table import spread_notes
from toolkit.dashboard.reading import StoreState
from toolkit.dashboard.shell import ZOOMED_BY_US, PageShell, draw, listen_to_zoom, page, show_alone
from toolkit.dashboard.widgets import side_by_side, st
from toolkit.errors import InputError
from toolkit.foreign import Markdown, markdown
from toolkit.market import Family, Pair
from toolkit.show.values import value_text
from toolkit.tables import SNAPSHOT_SERIES

_POINTS = 2000
"""The most rows drawn, extremes included."""
_PX = {"none": 430, "below": 580, "from_mean": 580}


def draw_explored(
    explored: Explored, rows: pl.DataFrame, events: pl.DataFrame | None, beyond: Beyond | None
) -> None:
    """Draw the rows. A zoomed part is read again and drawn in full."""
    chart = _figure(explored, rows, events, beyond)
    chart.update_yaxes(fixedrange=True)  # a drag is for the time alone
    draw(chart, key="chart", **ZOOMED_BY_US, edits={"shapePosition": True})
    listen_to_zoom("chart", explored.shell.timezone, "trajectory_zoom", take_threshold)
    with side_by_side():
        CHOICES.draw("zoom")
        if rows.height:
            st.caption(_caption(explored, rows.height, beyond))


def _caption(explored: Explored, rows: int, beyond: Beyond | None) -> Markdown:
    of_rows = Markdown("Every one of {:,} rows is drawn.")
    if rows > _POINTS:
        of_rows = Markdown(
            "The extremes of {:,} rows are drawn. Drag over a part to see each of its rows."
        )
    words = [of_rows.format(rows)]
    if explored.asked.zoom:
        words.append(Markdown("Double-click to zoom out."))
    if explored.asked.threshold_bps:
        words.append(Markdown("Drag a threshold to move it."))
    if beyond is not None and beyond.drawn:
        at = value_text(beyond.drawn[0], column("cost_bps"), unit=True)
        of = Markdown("Grey: {}, {}.") if beyond.level.fees else Markdown("Grey: {}.")
        words.append(of.format(beyond.level.words, at))
    return Markdown(" ").join(words)


def _figure(
    explored: Explored, rows: pl.DataFrame, events: pl.DataFrame | None, beyond: Beyond | None
) -> Figure:
    polls = explored.polls()
    shared = {"step_s": explored.step_s, "points": _POINTS, **explored.chart}
    if explored.trajectory.family is Family.FUNDING:
        return rate_chart(rows, polls=polls, **shared)
    if explored.trajectory.family is Family.PRICE:
        return price_chart(rows, **shared)
    asked = explored.asked
    sides = (1, -1) if asked.either else (1,)
    lines = [side * asked.threshold_bps for side in sides] if asked.threshold_bps else []
    level_bps, episodes = (beyond and beyond.drawn) or (None, None)
    if beyond and level_bps:
        lines += [side * level_bps for side in beyond.level.sides]
    chart = spread_chart(
        rows,
        polls=polls,
        thresholds_bps=list(dict.fromkeys(lines)),
        episodes=episodes,
        events=events,
        logs=explored.shell.held.logs,
        legs=asked.legs,
        distribution=True,
        **shared,
    )
    if not rows.is_empty():
        chart.update_layout(height=_PX[asked.legs], yaxis2_title_text="spread (bps)")
        for side in sides if asked.threshold_bps else ():
            chart.add_shape(_handle(side * (asked.threshold_bps or 0.0)))
    return chart


def _handle(level_bps: float) -> dict[str, Any]:
    """Return the line by which a threshold is dragged, which zoom.js finds by its name."""
    return {
        "name": "threshold",
        "type": "line",
        "xref": "x domain",
        "yref": "y2",
        "x0": 0,
        "x1": 1,
        "y0": level_bps,
        "y1": level_bps,
        "line": {"color": MARK_COLOUR, "width": 1, "dash": "dash"},
    }


def with_pair(held: StoreState, key: str | None) -> StoreState:
    """Add the pair of a key to the streams, if its legs are stored and overlap in time.

    It counts the rows of both legs, so that either changes its version.
    """
    if key is None or not key.startswith("pair/"):
        return held
    try:
        two = Pair.parse(key)
        two.coins()
    except InputError:
        return held
    prices = {leg.key for leg in two.prices}
    legs = held.streams.filter(pl.col("stream").is_in(prices), pl.col("rows") > 0)
    joined = legs.select(
        pl.lit(two.key).alias("stream"),
        pl.lit(two.kind).alias("kind"),
        pl.col("rows", "revisions").sum(),
        pl.col("first_ts").max(),
        pl.col("last_ts").min(),
        pl.col("step_s", "delay_s").max(),
        pl.col("retention_s", "served_at", "asked_at", "answered_until").min(),
    ).select(held.streams.columns)
    if legs.height < len(prices) or joined["first_ts"][0] > joined["last_ts"][0]:
        return held
    return replace(held, streams=pl.concat([held.streams, joined]))


_SHOWN = [Family.PRICE.value, Family.SPREAD.value, "pair", *SNAPSHOT_SERIES]


def _body(shell: PageShell) -> None:
    shell = replace(shell, held=with_pair(shell.held, CHOICES.link.asks_for("trajectory")))
    catalogue = shell.held.streams.filter(pl.col("kind").is_in(_SHOWN))
    if catalogue.is_empty():
        what = Markdown("{} has no prices and no spreads yet.")
        offer(shell.held, what.format(markdown(shell.held.place)), WATCHLIST)
        return
    logged = "spread" in set(shell.held.logs["family"])
    choice = choose_trajectory(shell, catalogue, logged=logged)
    offer_absent(shell)
    key = choice.trajectory
    mine = catalogue.row(by_predicate=pl.col("stream") == key, named=True)
    offer_history(shell, key, mine["rows"])
    show_alone(lambda: _show(Explored(shell, subject_of(key), chosen_part(choice))))


def _show(explored: Explored) -> None:
    rows, events = explored.rows(), explored.events()
    beyond = measure_beyond(explored, rows)
    draw_explored(explored, rows, events, beyond)
    row = None
    if not rows.is_empty():
        row = measure_explored(explored, rows)
        show_figures(explored, row, beyond)
        if explored.trajectory.family is Family.SPREAD:
            if notes := spread_notes(row):
                st.caption(Markdown("; ").join(notes))
            show_kept(explored)
    show_below(explored, rows, row, events)
    if row is not None:
        show_analyses(explored.shell, asked_of(explored))


if __name__ == "__main__":
    page(Markdown("Trajectory"), _body)
