"""Which events their page shows: one row of widgets and the brush, kept in the page's link."""

from __future__ import annotations

from dataclasses import astuple
from typing import NamedTuple

import polars as pl

from toolkit.dashboard.link import (
    PRESETS,
    SHORT_PRESETS,
    read_choice,
    read_option,
    read_zoom,
    zoom_text,
)
from toolkit.dashboard.page_link import PageLink
from toolkit.dashboard.parts.lifecycles import STATES, Filter
from toolkit.dashboard.screen import Screen, st
from toolkit.foreign import Markdown, plain
from toolkit.intervals import Interval
from toolkit.market import EventFamily

ZOOM = "events_zoom"
"""Under what the stretch that is brushed is kept."""

_DEFAULT_WINDOW = "24 hours"
_LINK = PageLink("events", ("family", "symbol", "exchange", "state", "window", "zoom"))


class AskedEvents(NamedTuple):
    """The filter, the window that ends with what is held, and the part of it that is brushed."""

    chosen: Filter
    window: Interval
    zoom: Interval | None

    @property
    def view(self) -> Interval:
        """The stretch of time that is listed and measured."""
        return self.zoom or self.window


def follow_link() -> None:
    """Fill the window, the state and the brush from a link that the page did not write itself."""
    state = st.session_state
    params = _LINK.to_follow(*(f"event_{name}" for name in _LINK.names if name != "zoom"))
    if params is None:
        return
    faults: list[Markdown] = []
    state["event_window"] = read_option(params, "window", PRESETS, _DEFAULT_WINDOW, faults)
    state["event_state"] = read_option(params, "state", STATES, "any", faults)
    state[ZOOM] = read_zoom(params, faults)
    state["events_unread"] = params, faults


def choose_events(bar: Screen, documents: pl.DataFrame, window: Interval) -> AskedEvents:
    """Draw the widgets, filled from the link once, and keep the link in step with them.

    ``documents`` are those of the window, of which the symbols and exchanges are offered.
    """
    state = st.session_state
    options = _options(documents)
    unread = state.pop("events_unread", None)
    if unread is not None:
        params, faults = unread
        for name, allowed in options.items():
            state[f"event_{name}"] = read_choice(params, name, allowed, faults)
        _LINK.keep_faults(faults)
    for name, allowed in options.items():
        kept = [value for value in state.get(f"event_{name}", []) if value in allowed]
        state[f"event_{name}"] = kept
    zoom = _within(state[ZOOM], window)
    with bar:
        _draw(options)
        if zoom:
            st.button(Markdown("⤢ Zoom out"), key="events_zoom_out", on_click=_end_zoom)
    families, symbols, venues = (tuple(state[f"event_{name}"]) for name in options)
    asked = AskedEvents(Filter(families, symbols, venues, state["event_state"]), window, zoom)
    _LINK.write(_params(asked))
    return asked


def _options(documents: pl.DataFrame) -> dict[str, list[str]]:
    exchanges = pl.concat([documents["buy_exchange"], documents["sell_exchange"]]).drop_nulls()
    return {
        "family": [family.value for family in EventFamily],
        "symbol": documents["symbol"].drop_nulls().unique().sort().to_list(),
        "exchange": exchanges.unique().sort().to_list(),
    }


def _draw(options: dict[str, list[str]]) -> None:
    state = st.session_state
    st.segmented_control(
        Markdown("Window, up to the last sync"),
        list(PRESETS),
        key="event_window",
        required=True,
        label_visibility="collapsed",
        format_func=SHORT_PRESETS.__getitem__,
        on_change=_end_zoom,
    )
    st.pills(
        Markdown("Families"),
        options["family"],
        key="event_family",
        selection_mode="multi",
        label_visibility="collapsed",
        width="content",
    )
    active = sum(map(bool, (state["event_symbol"], state["event_exchange"])))
    active += state["event_state"] != "any"
    words = Markdown("Filters ({})").format(active) if active else Markdown("Filters")
    with st.popover(words, type="tertiary"):
        for name, label in (("symbol", Markdown("Symbols")), ("exchange", Markdown("Exchanges"))):
            st.multiselect(
                label, options[name], key=f"event_{name}", format_func=plain, placeholder="all"
            )
        st.segmented_control(
            Markdown("State at the end of the window"),
            list(STATES),
            key="event_state",
            required=True,
        )


def _within(zoom: Interval | None, window: Interval) -> Interval | None:
    """Cut the brushed stretch to the window, None where nothing or all is left of it."""
    if zoom is None:
        return None
    cut = Interval(max(zoom.start, window.start), min(zoom.end, window.end))
    return cut if cut.start < cut.end and cut != window else None


def _end_zoom() -> None:
    st.session_state[ZOOM] = None


def _params(asked: AskedEvents) -> dict[str, str]:
    """Return what is not the default as parameters of a link."""
    values = [",".join(part) if isinstance(part, tuple) else part for part in astuple(asked.chosen)]
    zoom = zoom_text(asked.zoom) if asked.zoom else ""
    named = dict(zip(_LINK.names, [*values, st.session_state["event_window"], zoom], strict=True))
    defaults = {"state": "any", "window": _DEFAULT_WINDOW}
    return {name: value for name, value in named.items() if value != defaults.get(name, "")}
