"""What every page has around it: the source, the plan, the age of the data and the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
import streamlit as st

from toolkit import commands
from toolkit.charts.time_axis import clock_text
from toolkit.dashboard.formatting import NULL, age_words, plan_words, source_words
from toolkit.dashboard.link import read_zone
from toolkit.dashboard.reading import Held, read_held, store_version
from toolkit.errors import RailError
from toolkit.foreign import LONGEST, csv_cell, markdown, plain
from toolkit.workspace import store_path

_LOOK_S = 10
"""How often a page that follows looks whether the file changed, and every page renews its age."""

# No more buttons than fit beside a title on a phone; drag to zoom, double-click to return.
_PLOTLY = {
    "displaylogo": False,
    "showSendToCloud": False,
    "modeBarButtonsToRemove": ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d"],
}


@dataclass(frozen=True, slots=True)
class PageShell:
    """What a page's body is given: one look at the store, and the clock to show times in."""

    held: Held
    timezone: str

    def clock(self, ts: pl.Series) -> pl.Series:
        """Format Unix seconds in the chosen clock. Null stays null."""
        return clock_text(ts, self.timezone)

    def moment(self, ts: int) -> str:
        """Format one time in the chosen clock, with its zone."""
        return f"{self.clock(pl.Series([ts]))[0]} {self.timezone}"


def page(title: str, body: Callable[[PageShell], None]) -> None:
    """Show a whole page: its head, then its body or one sentence with the reason and the remedy."""
    path = store_path()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(title, anchor=False, width="stretch")
        timezone, fault = _choose_clock()
        follows = st.toggle(
            "Follow the store",
            key="follow",
            persist_state="session",
            help=f"Looks every {_LOOK_S} s and shows what a sync has brought. "
            "A page that does not follow shows it at the next click.",
        )
    if follows:
        _follow()
    try:
        held = read_held(path, store_version(path))
        commands.shown_for(path, held.base_url)
        _head(held, timezone)
        say_faults([fault] if fault else [])
        body(PageShell(held, timezone))
    except RailError as error:
        st.error(markdown(str(error), LONGEST))


def say_faults(faults: list[str]) -> None:
    """Show one warning for each thing that a link asked for and did not get."""
    for fault in faults:
        st.warning(fault)


def say_empty(what: str, *lines: str) -> None:
    """Show that there is no data yet, and the command lines that load some."""
    st.info(what)
    if lines:
        st.code("\n".join(lines), language="bash")


def draw(figure: Any, key: str) -> None:
    """Draw the figure in Streamlit's template. The browser fills in the colours of its theme."""
    st.plotly_chart(figure.update_layout(template="streamlit"), config=_PLOTLY, key=key)


def show_table(table: pl.DataFrame, **options: Any) -> None:
    """Draw a table. Its texts are plain, and no formula in the file that Streamlit makes of it."""
    cells = {
        column.name: [None if cell is None else csv_cell(plain(cell)) for cell in column]
        for column in table
        if column.dtype == pl.String
    }
    shown = table.with_columns(pl.Series(name, c, pl.String) for name, c in cells.items())
    st.dataframe(shown, hide_index=True, **options)


def opened_row(
    table: pl.DataFrame, key: str, *, height: int | str = "auto", **columns: Any
) -> int | None:
    """Draw a table with a button per row in its first column, "", and return the row clicked.

    A null there leaves the row without a button. ``columns`` configures others by name.
    """
    clicked = f"{key}_clicked"
    button = st.column_config.ButtonColumn("", width="small", type="tertiary", key=clicked)
    show_table(
        table,
        key=key,
        height=height,
        placeholder=NULL,
        column_config={"": button, **columns},
    )
    click = st.session_state.get(clicked)
    return None if click is None else int(click["row"])


@st.fragment(run_every=_LOOK_S)
def _head(held: Held, timezone: str) -> None:
    """Show the head again and again, so that its age grows in a tab that is left open."""
    _say_whose(held, timezone)


def _say_whose(held: Held, timezone: str) -> None:
    followed = held.streams.filter(pl.col("kind") != "snapshot")
    parts = [source_words(held.source), plan_words(held.loads, followed)]
    if held.as_of is not None:
        as_of = clock_text(pl.Series([held.as_of]), timezone)[0]
        parts.append(f"as of {as_of} {timezone}")
    parts.append(age_words(held.streams, held.loads, int(time.time())))
    # A foreign bracket would end a directive such as :small[…], so only our own words are in one.
    st.markdown(f"{parts[0]} · {parts[1]} · :small[:gray[{' · '.join(parts[2:])}]]")


def _choose_clock() -> tuple[str, str | None]:
    """Choose UTC, the browser's zone or the link's, and say what is wrong with the link's."""
    state = st.session_state
    asked = st.query_params.get("clock")
    linked, fault = read_zone(asked)
    if "zone" not in state or (asked is not None and asked != state["zone_link"]):
        state["zone"] = linked
    zones = list(dict.fromkeys(["UTC", st.context.timezone or "UTC", linked, state["zone"]]))
    if len(zones) > 1:
        state["clock"] = state["zone"]
        state["zone"] = st.segmented_control(
            "Clock",
            zones,
            required=True,
            key="clock",
            on_change=_take_clock,
            label_visibility="collapsed",
        )
    if state["zone"] != linked:
        fault = None
    if state["zone"] not in ("UTC", asked):
        st.query_params["clock"] = state["zone"]
    elif state["zone"] == "UTC" and asked is not None and fault is None:
        del st.query_params["clock"]
    state["zone_link"] = st.query_params.get("clock")
    return state["zone"], fault


def _take_clock() -> None:
    """Keep the clock under a name of our own, since a widget's state goes with its page."""
    st.session_state["zone"] = st.session_state["clock"]
    st.session_state["zone_link"] = st.query_params.get("clock")


def _follow() -> None:
    """Run the page again when the file has changed. Nothing moves while it has not."""
    seen = store_version(store_path())

    @st.fragment(run_every=_LOOK_S)
    def look() -> None:
        if store_version(store_path()) != seen:
            st.rerun(scope="app")

    look()
