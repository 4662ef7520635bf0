"""The choice of events on their page: one row of widgets and the brush, kept in the page's link."""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

from toolkit.dashboard.choice import Choices, Marked, OneOf, SomeOf, Zoom
from toolkit.dashboard.link import SHORT_PRESETS
from toolkit.dashboard.parts.lifecycles import STATES, Filter
from toolkit.dashboard.screen import Screen, st
from toolkit.foreign import Markdown, plain
from toolkit.intervals import Interval
from toolkit.market import EventFamily

ZOOM = Zoom("zoom", Markdown("⤢ Zoom out"), None, key="events_zoom")
"""The stretch that is brushed."""

_SOME: dict[str, Any] = {"format_func": plain, "placeholder": "all"}
FILTERS = (
    SomeOf("symbol", Markdown("Symbols"), (), key="event_symbol", looks=_SOME),
    SomeOf("exchange", Markdown("Exchanges"), (), key="event_exchange", looks=_SOME),
    OneOf(
        "state",
        Markdown("State at the end of the window"),
        "any",
        key="event_state",
        allowed=tuple(STATES),
    ),
)
"""What the popover Filters has, in this order."""

CHOICES = Choices(
    "events",
    (
        Marked(
            "family",
            Markdown("Families"),
            (),
            key="event_family",
            allowed=[family.value for family in EventFamily],
            looks={"label_visibility": "collapsed", "width": "content"},
        ),
        *FILTERS,
        OneOf(
            "window",
            Markdown("Window, up to the last sync"),
            "24 hours",
            key="event_window",
            allowed=SHORT_PRESETS,
            looks={"label_visibility": "collapsed", "on_change": ZOOM.end},
        ),
        ZOOM,
    ),
)


class AskedEvents(NamedTuple):
    """The filter, the window that ends with what is held, and the part of it that is brushed."""

    chosen: Filter
    window: Interval
    zoom: Interval | None

    @property
    def view(self) -> Interval:
        """The stretch of time that is listed and measured."""
        return self.zoom or self.window


def choose_events(bar: Screen, documents: pl.DataFrame, window: Interval) -> AskedEvents:
    """Draw the widgets, filled from the link, and keep the link in step with them.

    ``documents`` are those of the window, of which the symbols and exchanges are offered.
    """
    exchanges = pl.concat([documents["buy_exchange"], documents["sell_exchange"]])
    known = {"symbol": documents["symbol"], "exchange": exchanges}
    choices = CHOICES.given(
        **{
            name: {"allowed": of.drop_nulls().unique().sort().to_list()}
            for name, of in known.items()
        }
    )
    choices.follow()
    state = st.session_state
    state[ZOOM.key] = _within(state[ZOOM.key], window)
    filters = [option.name for option in FILTERS]
    with bar:
        choices.draw("window", "family")
        active = len(choices.chosen(*filters))
        words = Markdown("Filters ({})").format(active) if active else Markdown("Filters")
        with st.popover(words, type="tertiary"):
            choices.draw(*filters)
        choices.draw("zoom")
    choices.write()
    values = choices.values()
    chosen = Filter(
        tuple(values["family"]), tuple(values["symbol"]), tuple(values["exchange"]), values["state"]
    )
    return AskedEvents(chosen, window, values["zoom"])


def _within(zoom: Interval | None, window: Interval) -> Interval | None:
    """Cut the brushed stretch to the window, None where nothing or all is left of it."""
    if zoom is None:
        return None
    cut = Interval(max(zoom.start, window.start), min(zoom.end, window.end))
    return cut if cut.start < cut.end and cut != window else None
