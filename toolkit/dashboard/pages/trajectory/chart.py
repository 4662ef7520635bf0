"""The chart of a trajectory, which is zoomed by dragging over a part of it."""

from __future__ import annotations

from typing import Any

import polars as pl

from toolkit.charts import Figure, price_chart, rate_chart, spread_chart
from toolkit.charts.theme import MARK_COLOUR
from toolkit.columns import column
from toolkit.dashboard.pages.trajectory.beyond import Beyond
from toolkit.dashboard.pages.trajectory.choice import CHOICES, take_threshold
from toolkit.dashboard.pages.trajectory.explorer import Explored
from toolkit.dashboard.parts.zoom import ZOOMED_BY_US, listen_to_zoom
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import draw
from toolkit.foreign import Markdown
from toolkit.market import Family
from toolkit.show.values import value_text

_POINTS = 2000
"""The most rows drawn. Of more the extremes are."""
_PX = {"none": 430, "below": 580, "from_mean": 580}


def draw_explored(
    explored: Explored, rows: pl.DataFrame, events: pl.DataFrame | None, beyond: Beyond | None
) -> None:
    """Draw the rows. A part that is dragged over is read anew, and each of its rows drawn."""
    chart = _figure(explored, rows, events, beyond)
    chart.update_yaxes(fixedrange=True)  # a drag is for the time alone
    draw(chart, key="chart", headed=False, **ZOOMED_BY_US, edits={"shapePosition": True})
    listen_to_zoom("chart", explored.shell.timezone, "trajectory_zoom", take_threshold)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        CHOICES.draw("zoom")
        if rows.height:
            st.caption(_caption(explored, rows.height, beyond))


def _caption(explored: Explored, rows: int, beyond: Beyond | None) -> Markdown:
    words = [Markdown("Every one of {:,} rows is drawn.").format(rows)]
    if rows > _POINTS:
        words = [
            Markdown(
                "The extremes of {:,} rows are drawn. Drag over a part to see each of its rows."
            ).format(rows)
        ]
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
    """Return the line at which a threshold is dragged. zoom.js knows it by its name."""
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
