"""A reader's actions in a chart: the stretch of time dragged over, and the mark clicked on."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence

from toolkit.charts.time_axis import clock_moment
from toolkit.dashboard.link import EARLIEST, LATEST
from toolkit.dashboard.screen import component, st
from toolkit.intervals import Interval

ZOOMED_BY_US = {
    "doubleClick": False,
    "modeBarButtonsToRemove": [
        *("zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d", "resetScale2d")
    ],
    "showTips": False,
}
"""The configuration of a chart whose stretch of time the page itself draws anew."""

_ZOOM = component("zoom")
_LEAST_ZOOM_S = 10


def listen_to_zoom(
    chart: str, timezone: str, kept: str, take_threshold: Callable[[object], None] = lambda _: None
) -> None:
    """Take over the stretch that the reader drags over in the chart of that key, under ``kept``.

    It is None after a double click. What was clicked on is what
    `toolkit.dashboard.parts.rows.opened_key` has of the chart: the ``customdata`` of the mark,
    where that is text. ``take_threshold`` is called with the level that a threshold was dragged to.
    """
    state, key = st.session_state, f"{chart}_zoom_sent"

    def take_range() -> None:
        sent = state[key]["range"]
        if sent is not None:
            state[kept] = read_range(sent, timezone)

    def take_click() -> None:
        state[f"{chart}_opened"] = state[key]["opened"]

    _ZOOM(
        data={"chart": chart},
        key=key,
        on_range_change=take_range,
        on_opened_change=take_click,
        on_threshold_change=lambda: take_threshold(state[key]["threshold"]),
    )


def read_range(sent: Sequence[object], timezone: str) -> Interval | None:
    """Read the axis of a chart in the zone's clock as whole seconds, None if it is not a stretch.

    It is at least 10 s long.

    >>> read_range(["1970-01-01 09:00:00.5", "1970-01-01 09:01:10.25"], "Asia/Tokyo")
    Interval(start=0, end=71)
    >>> read_range([], "UTC"), read_range(["now", "then"], "UTC")
    (None, None)
    """
    try:
        since, until = (dt.datetime.fromisoformat(str(clock)) for clock in sent)
        start, end = clock_moment(since, timezone), clock_moment(until, timezone)
    except (ValueError, OverflowError):
        return None
    if not EARLIEST <= start < end <= LATEST:
        return None
    first = math.floor(start)
    return Interval(first, max(math.ceil(end), first + _LEAST_ZOOM_S))
