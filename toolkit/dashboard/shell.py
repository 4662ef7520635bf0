"""The shell of every page: the bar above it, its tables and its figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from toolkit import commands
from toolkit.charts.time_axis import clock_text
from toolkit.columns import column
from toolkit.dashboard.alert_news import show_news
from toolkit.dashboard.desk import choose_clock, choose_kept, show_source, show_switch
from toolkit.dashboard.export import show_share
from toolkit.dashboard.fee_choice import FeeChoice
from toolkit.dashboard.formatting import heading
from toolkit.dashboard.loads import show_load
from toolkit.dashboard.navigation import PAGES
from toolkit.dashboard.reading import Held, read_newest
from toolkit.dashboard.screen import st
from toolkit.dashboard.view_menu import show_views
from toolkit.errors import RailError, StoreLockedError
from toolkit.foreign import LONGEST, Markdown, csv_cell, markdown, plain
from toolkit.show.values import null_text, reason_words, value_text
from toolkit.workspace import store_path

_LOOKS = Path(__file__).with_name("desk.css")
"""What no setting of Streamlit can say: figures of one width, and no fading while a page runs."""

# No more buttons than fit beside a title on a phone; drag to zoom, double-click to return.
_PLOTLY = {
    "displaylogo": False,
    "showSendToCloud": False,
    "modeBarButtonsToRemove": ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d"],
}

_AGAIN_S = 2.0
_LOCKED_RUNS = 4
"""How often a page that is shown runs again before it says that the store is locked."""

_UNHEADED_PX = 30
"""Above a chart without a heading: the mark of its source."""


_NUMBERS_PX, _BESIDE_PX, _LETTER_PX, _TITLE_PX, _MOST_PX = 66, 14, 6, 34, 130
"""Left of a chart: a title and numbers, or names of so many letters with a title or without.

Longer names are left to plotly to measure, as a phone has no pixel to give away.
"""

_CELLS_ON_A_PHONE = 6
_LEGEND_PX, _BELOW_PX = 44, 98
"""A legend above a chart, and the labels, the title and the legend below one."""


@dataclass(frozen=True, slots=True)
class PageShell:
    """What a page's body is given: one look at the store, and what the bar above it chose.

    ``timezone`` is the clock to show times in. ``symbols`` are those to keep to, none for all.
    """

    held: Held
    timezone: str
    symbols: frozenset[str]
    fees: FeeChoice

    def clock(self, ts: pl.Series) -> pl.Series:
        """Format Unix seconds in the chosen clock. Null stays null."""
        return clock_text(ts, self.timezone)

    def moment(self, ts: int) -> str:
        """Format one time in the chosen clock, with its zone."""
        return f"{self.clock(pl.Series([ts]))[0]} {self.timezone}"

    def kept(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Select the rows of the symbols to keep to, by their column ``symbol``."""
        return rows.filter(pl.col("symbol").is_in(self.symbols)) if self.symbols else rows


def page(title: Markdown, body: Callable[[PageShell], None]) -> None:
    """Show a whole page: its bar, then its body or one sentence with the reason and the remedy."""
    path = store_path()
    name = next(name for name, words in PAGES.items() if words == title)
    st.html(_LOOKS)
    bar = st.container(horizontal=True, vertical_alignment="center", gap="small")
    with bar:
        st.header(title, anchor=False, width="content")
        source = st.container(horizontal=True, vertical_alignment="center", width="stretch")
        switch = st.container(width="content")
        kept = st.container(
            horizontal=True,
            vertical_alignment="center",
            width="content",
            gap="small",
            key="kept_row",
        )
    timezone = choose_clock(bar, path)
    try:
        held, locked = read_newest(path)
        commands.shown_for(held.place, held.base_url)
        show_source(source, held, timezone)
        with kept:
            show_share()
            show_views(path, name)
        symbols, fees = choose_kept(kept, held)
        show_load(held)
        show_news(held)
        if locked:
            st.caption(Markdown("Another process has the store: these are the last values."))
            _try_again()
        body(PageShell(held, timezone, symbols, fees))
        st.session_state["shown_page"], st.session_state["locked_runs"] = title, 0
    except StoreLockedError as error:
        _keep_shown(title)
        st.info(
            Markdown("{}. The page tries again by itself.").format(markdown(str(error), LONGEST))
        )
        _try_again()
    except RailError as error:
        st.error(markdown(str(error), LONGEST))
    finally:
        show_switch(switch, name)


def _keep_shown(title: Markdown) -> None:
    """Run the page again at once, some times, where it is in sight: what it shows stays."""
    state = st.session_state
    if state.get("shown_page") != title:
        return
    state["locked_runs"] += 1
    if state["locked_runs"] <= _LOCKED_RUNS:
        st.rerun()
    state["shown_page"] = None


def show_alone(body: Callable[[], None]) -> None:
    """Show a part that runs alone where one of its widgets is used, as by a zoom.

    Its error is the page's.
    """
    whole = True

    @st.fragment()
    def part() -> None:
        try:
            body()
        except RailError:
            if whole:
                raise
            st.rerun(scope="app")

    part()
    whole = False


def _try_again() -> None:
    began = time.monotonic()

    @st.fragment(run_every=_AGAIN_S)
    def again() -> None:
        if time.monotonic() - began >= _AGAIN_S / 2:
            st.rerun(scope="app")

    again()


def draw(figure: Any, key: str, *, headed: bool = True, **config: Any) -> None:
    """Draw the figure in Streamlit's template. The browser fills in the colours of its theme.

    Its heading is read to who does not see it, and is left out where it is not ``headed``: the
    page around it then has to have the words. ``config`` is plotly's.
    """
    words = figure.words
    figure.update_layout(template="streamlit")
    if not headed:
        figure.update_layout(title=None, margin_t=_UNHEADED_PX)
    _make_room(figure)
    st.plotly_chart(figure, config=_PLOTLY | config, key=key, alt=words)


def draw_titled(figure: Any, key: str) -> None:
    """Draw the figure below its title. What it is of and rests on is behind the help sign."""
    if not figure.lines:  # a sentence in place of data
        draw(figure, key=key)
        return
    lines = Markdown("\n\n").join(map(Markdown.harmless, figure.lines))
    st.markdown(Markdown("**{}**").format(Markdown.harmless(figure.title_words)), help=lines)
    if figure.layout.height:
        figure.update_layout(height=figure.layout.height - figure.layout.margin.t + _UNHEADED_PX)
    draw(figure, key=key, headed=False)


def draw_cells(figure: Any, key: str, *, headed: bool = True) -> None:
    """Draw a figure of cells with a number in each. On a phone narrow cells show none."""
    dense = len(figure.data) > 0 and len(figure.data[0].x) > _CELLS_ON_A_PHONE
    with st.container(key="dense_cells" if dense else "cells"):
        draw(figure, key=key, headed=headed)


def _make_room(figure: Any) -> None:
    """Give the labels and the legend their room.

    Where a margin turns out too small, plotly draws all of the figure once more.
    """
    layout = figure.layout
    for axis in figure.select_yaxes():
        names = [*(axis.ticktext or ()), *_names_on(figure, axis)]
        beside_px = _BESIDE_PX + (_TITLE_PX if axis.title.text else 0)
        beside_px += axis.ticklabelstandoff or 0
        needed_px = max((beside_px + _LETTER_PX * len(name) for name in names), default=0)
        if needed_px <= _MOST_PX:
            layout.margin.l = max(layout.margin.l or 0, _NUMBERS_PX, needed_px)
    named = any(trace.showlegend is not False for trace in figure.data if "showlegend" in trace)
    if layout.showlegend or (layout.showlegend is None and named and len(figure.data) > 1):
        side, least_px = ("t", _LEGEND_PX) if layout.legend.yanchor == "top" else ("b", _BELOW_PX)
        layout.margin[side] = max(layout.margin[side] or 0, least_px)
    # Else plotly measures each of n labels n times, to hide those that do not fit.
    figure.update_yaxes(ticklabeloverflow="allow")


def _names_on(figure: Any, axis: Any) -> list[str]:
    short = axis.plotly_name.replace("axis", "")
    mine = (t.y for t in figure.data if "yaxis" in t and (t.yaxis or "y") == short)
    known = (place for places in mine if places is not None for place in places)
    return [place for place in known if isinstance(place, str)]


def show_table(table: pl.DataFrame, **options: Any) -> None:
    """Draw a table. Its texts are plain, and no formula in the file that Streamlit makes of it."""
    cells = {
        column.name: [None if cell is None else csv_cell(plain(cell)) for cell in column]
        for column in table
        if column.dtype == pl.String
    }
    shown = table.with_columns(pl.Series(name, c, pl.String) for name, c in cells.items())
    st.dataframe(shown, hide_index=True, **options)


def show_metric(
    row: Mapping[str, Any],
    name: str,
    beside: str | int | None = None,
    *,
    text: str | None = None,
    of: str = "",
    long: bool = False,
    sign: Markdown | None = None,
) -> None:
    """Show a figure of a result's row: its heading, its value, and some words below it.

    Of a null these say why it is, and a number is a change. ``text`` stands in the place of the
    value, ``of`` and ``long`` are as in `toolkit.dashboard.formatting.heading`, ``sign`` is the
    help, by default what the column means.
    """
    method, value = str(row.get("method") or ""), row[name]
    one = column(name, method)
    if text is None:
        text = null_text(row, name) if value is None else value_text(value, one)
    if value is None:
        beside = beside or reason_words(row, name)
    st.metric(
        Markdown.harmless(heading(name, of, result=method, long=long)),
        Markdown.harmless(text),
        delta=Markdown.harmless(beside) if isinstance(beside, str) and beside else beside or None,
        delta_color="off",
        delta_arrow="off" if isinstance(beside, str) else "auto",
        help=sign or Markdown.harmless(one.meaning),
    )
