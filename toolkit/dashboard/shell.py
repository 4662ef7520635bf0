"""The shell of every page: bar, toasts of alerts, figures with zoom, tables and metrics."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from streamlit import cache_data

from toolkit import commands
from toolkit.charts.time_axis import clock_moment, clock_text
from toolkit.columns import column
from toolkit.dashboard.desk import choose_clock, choose_kept, show_source, show_switch
from toolkit.dashboard.export import show_share
from toolkit.dashboard.fee_choice import FeeChoice
from toolkit.dashboard.link import EARLIEST, LATEST, PAGES
from toolkit.dashboard.loads import show_load
from toolkit.dashboard.parts.rows import heading
from toolkit.dashboard.reading import StoreState, read_newest
from toolkit.dashboard.saved_views import show_views
from toolkit.dashboard.widgets import component, side_by_side, st
from toolkit.errors import RailError, StoreLockedError
from toolkit.foreign import LONGEST, Markdown, csv_cell, markdown, plain
from toolkit.intervals import Interval
from toolkit.show.values import null_text, reason_words, value_text
from toolkit.store import Store
from toolkit.store.writing.alerts import read_alerts
from toolkit.tables import AlertChange
from toolkit.workspace import store_path

SHOWN = 500
"""The most changes of alerts that pages read, the newest."""

_SEEN = "alerts_seen"
_TOASTS = 3


@cache_data(max_entries=4, show_spinner=False)
def read_changes(path: Path, version: object) -> pl.DataFrame:
    """Read the newest changes of alerts."""
    del version
    return read_alerts(Store(path, wait_s=3.0), most=SHOWN)


def show_news(held: StoreState) -> None:
    """Show toasts of alerts that opened since this session's last run, a few at most."""
    changes = read_changes(held.path, held.version)
    newest = changes["change_id"].max()
    state = st.session_state
    about = (str(held.path), int(newest) if isinstance(newest, int) else 0)
    seen = state.get(_SEEN, about)
    state[_SEEN] = about
    if seen[0] != about[0]:
        return
    opened = (pl.col("change_id") > seen[1]) & (pl.col("change") == AlertChange.OPENED)
    news = changes.filter(opened)
    for words in news["words"].head(_TOASTS).reverse():
        st.toast(Markdown.harmless(words), duration="long")
    if news.height > _TOASTS:
        more = Markdown("{:,} alerts more").format(news.height - _TOASTS)
        st.toast(more, duration="long")


_LOOKS = Path(__file__).with_name("desk.css")
"""Looks without a setting of Streamlit."""

# No more buttons than fit beside a title on a phone; drag to zoom, double-click to return.
_PLOTLY = {
    "displaylogo": False,
    "showSendToCloud": False,
    "modeBarButtonsToRemove": ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d"],
}

_AGAIN_S = 2.0
_LOCKED_RUNS = 4
"""How often a page in view runs again before it says that the store is locked."""

_UNHEADED_PX = 30
"""The margin above a chart without a heading, for the mark of its source."""


_NUMBERS_PX, _BESIDE_PX, _LETTER_PX, _TITLE_PX, _MOST_PX = 66, 14, 6, 34, 130
"""Left of a chart: numbers, or names by their letters, and a title. Plotly measures the rest."""

_CELLS_ON_A_PHONE = 6
_LEGEND_PX, _BELOW_PX = 44, 98
"""A legend above a chart; the labels, the title and the legend below one."""


@dataclass(frozen=True, slots=True)
class PageShell:
    """The state of the store for a page's body, and the choices of the bar. No symbols mean all."""

    held: StoreState
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
        """Filter rows by the chosen symbols."""
        return rows.filter(pl.col("symbol").is_in(self.symbols)) if self.symbols else rows


def page(title: Markdown, body: Callable[[PageShell], None]) -> None:
    """Show a page: its bar, then its body or an error with the remedy."""
    path = store_path()
    name = next(name for name, words in PAGES.items() if words == title)
    st.html(_LOOKS)
    bar = side_by_side()
    with bar:
        st.header(title, anchor=False, width="content")
        source = st.container(horizontal=True, vertical_alignment="center", width="stretch")
        switch = st.container(width="content")
        kept = side_by_side(width="content", key="kept_row")
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
            st.caption(Markdown("Another process is using the store: these are the last values."))
            _try_again()
        body(PageShell(held, timezone, symbols, fees))
        st.session_state["shown_page"], st.session_state["locked_runs"] = title, 0
    except StoreLockedError as error:
        _keep_shown(title)
        st.info(Markdown("{}. The page will try again.").format(markdown(str(error), LONGEST)))
        _try_again()
    except RailError as error:
        st.error(markdown(str(error), LONGEST))
    finally:
        show_switch(switch, name)


def _keep_shown(title: Markdown) -> None:
    """Run the page in view again at once, a few times, to keep it in view."""
    state = st.session_state
    if state.get("shown_page") != title:
        return
    state["locked_runs"] += 1
    if state["locked_runs"] <= _LOCKED_RUNS:
        st.rerun()
    state["shown_page"] = None


def show_alone(body: Callable[[], None]) -> None:
    """Show a part that runs alone when one of its widgets is used. Its error is the page's."""
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


def draw(figure: Any, key: str, *, headed: bool = False, **config: Any) -> None:
    """Draw the figure in Streamlit's template.

    Its heading is the alternative text, and is drawn if ``headed``. ``config`` is plotly's.
    """
    words = figure.words
    figure.update_layout(template="streamlit")
    if not headed:
        figure.update_layout(title=None, margin_t=_UNHEADED_PX)
    _make_room(figure)
    st.plotly_chart(figure, config=_PLOTLY | config, key=key, alt=words)


def draw_titled(figure: Any, key: str) -> None:
    """Draw the figure below its title, with the lines of its heading as help."""
    if not figure.lines:  # a sentence in place of data
        draw(figure, key=key, headed=True)
        return
    lines = Markdown("\n\n").join(map(Markdown.harmless, figure.lines))
    st.markdown(Markdown("**{}**").format(Markdown.harmless(figure.title_words)), help=lines)
    if figure.layout.height:
        figure.update_layout(height=figure.layout.height - figure.layout.margin.t + _UNHEADED_PX)
    draw(figure, key=key)


def draw_cells(figure: Any, key: str, *, headed: bool = False) -> None:
    """Draw a figure of cells with numbers, which a phone hides in narrow cells."""
    dense = len(figure.data) > 0 and len(figure.data[0].x) > _CELLS_ON_A_PHONE
    with st.container(key="dense_cells" if dense else "cells"):
        draw(figure, key=key, headed=headed)


def _make_room(figure: Any) -> None:
    """Reserve room for labels and legend, as plotly draws twice if a margin is too small."""
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
    """Draw a table of plain texts, safe as a spreadsheet too."""
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
    """Show a figure of a result's row: heading, value, and ``beside`` below it.

    ``beside`` is by default the reason of a null; a number is a change. ``text`` replaces the
    value, ``of`` and ``long`` are as in `toolkit.dashboard.parts.rows.heading`, ``sign`` is the
    help, by default the column's meaning.
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


ZOOMED_BY_US: dict[str, Any] = {
    "doubleClick": False,
    "modeBarButtonsToRemove": [
        *("zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d", "resetScale2d")
    ],
    "showTips": False,
}
"""The plotly configuration of a chart that the page zooms itself."""

_ZOOM = component("zoom")
_LEAST_ZOOM_S = 10


def listen_to_zoom(
    chart: str, timezone: str, kept: str, take_threshold: Callable[[object], None] = lambda _: None
) -> None:
    """Keep the stretch that the reader drags over in a chart, None after a double click.

    It is in the session's state under ``kept``. `toolkit.dashboard.parts.rows.opened_key` returns
    the ``customdata`` (text) of a clicked mark. ``take_threshold`` gets the level of a
    dragged threshold.
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
    """Read a chart's axis in the zone's clock as whole seconds, at least 10, else None."""
    try:
        since, until = (dt.datetime.fromisoformat(str(clock)) for clock in sent)
        start, end = clock_moment(since, timezone), clock_moment(until, timezone)
    except (ValueError, OverflowError):
        return None
    if not EARLIEST <= start < end <= LATEST:
        return None
    first = math.floor(start)
    return Interval(first, max(math.ceil(end), first + _LEAST_ZOOM_S))
