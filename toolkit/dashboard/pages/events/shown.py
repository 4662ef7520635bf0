"""One event: the rows around it, prices after it, its documents and neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import polars as pl

from toolkit.charts import Figure, funding_chart, price_chart, spread_chart
from toolkit.charts.theme import FAMILY_COLOURS
from toolkit.charts.time_axis import clock_text
from toolkit.charts.view import subject_of
from toolkit.columns import Column, column
from toolkit.dashboard.desk import held_symbols
from toolkit.dashboard.link import Choice, go_to, link_fault
from toolkit.dashboard.loads import LOGS, Load, LoadPart, load_button, offer
from toolkit.dashboard.parts.event_reading import read_documents, read_text
from toolkit.dashboard.parts.event_tables import SEEN, size_bps, transition_columns
from toolkit.dashboard.parts.rows import opened_key, show_rows
from toolkit.dashboard.reading import measure_following, read_rows
from toolkit.dashboard.shell import PageShell, draw
from toolkit.dashboard.widgets import side_by_side, st
from toolkit.errors import InputError
from toolkit.foreign import Markdown, file_name, html, markdown
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, Leg, Symbol, Trajectory
from toolkit.show.values import NULL, figures_text, heading_of, lasted_text, size_text, value_text
from toolkit.statistics.events import detections, event_lifecycles
from toolkit.workspace.snapshot_tables import held_stream

_DOCUMENTS_SHOWN = 200
_AROUND_S = 3600
_CHART_PX = 250
_SIDE_PX = 400


class ShownEvent(NamedTuple):
    """One event: its lifecycle (a row), and its documents, oldest first."""

    life: dict[str, Any]
    documents: pl.DataFrame

    @property
    def span(self) -> Interval:
        """The time from its first to its last document, in whole minutes, at least one."""
        start = self.documents["ts"][0] // 60 * 60
        return Interval(start, max(start + 60, -(-self.documents["ts"][-1] // 60) * 60))


def clicked_event(chart: str, lives: pl.DataFrame) -> str | None:
    """Return the id of the clicked event of a chart, None without a click."""
    clicked = opened_key(chart)
    if clicked is None:
        return None
    return next((each for each in lives["event_id"] if html(each) == clicked), None)


def find_event(shell: PageShell, event_id: str, documents: pl.DataFrame) -> ShownEvent | None:
    """Return the event with a document of that id, None if it is not stored.

    ``documents`` are searched first, then the whole store.
    """
    found = _event_of(shell, event_id, documents)
    if found is None or found.life["t_open"] is None:
        # It began outside of the window.
        held = shell.held.logs["first_ts"].drop_nulls()
        whole = Interval(min([0, *held]), shell.held.now() + 1)
        found = _event_of(shell, event_id, read_documents(shell.held, whole))
    return found


def _event_of(shell: PageShell, event_id: str, documents: pl.DataFrame) -> ShownEvent | None:
    one = documents.filter(event_id=event_id)
    if one.is_empty():
        return None
    asked = one.row(0, named=True)
    mine = documents.filter(family=asked["family"], event=asked["event"])
    mine = mine.sort("ts_ms", "arrival")
    end = max(mine["ts"][-1] + 1, *shell.held.logs["served_at"].drop_nulls())
    lives = event_lifecycles(mine, mine["ts"][0], end, logs=shell.held.logs).sort("since")
    since = lives["since"].search_sorted(asked["ts"], side="right") - 1
    if lives.is_empty():  # of no known word
        life = {"t_open": None, "duration_s": None, "kind": "unknown", "peak": None}
        return ShownEvent(life | {"family": asked["family"]}, mine)
    at = max(int(since), 0)
    begun = mine["ts"] >= lives["since"][at]
    over = mine["ts"] >= lives["since"][at + 1] if at + 1 < lives.height else ~begun & begun
    return ShownEvent(lives.row(at, named=True), mine.filter(begun & ~over))


def show_event(shell: PageShell, event_id: str, shown: ShownEvent | None, alike: pl.Series) -> None:
    """Show the event. ``alike`` are the ids of its kind, oldest first."""
    if shown is None:
        lacking = Markdown(", which is not in the stored events.")
        st.warning(link_fault(f"event={event_id}", lacking))
        load_button(shell.held, LOGS, "load_of_link")
        return
    with st.container(border=True, gap="small", key="event_shown"):
        _show_head(shell, event_id, shown, alike)
        with st.grid(2, min_column_width=_SIDE_PX):
            with st.container(gap="small"):
                _draw_around(shell, shown)
            with st.container(gap="small"):
                _show_after(shell, shown)
                _show_transitions(shell, shown.documents)
        _show_document(shell, shown.documents)


def _show_head(shell: PageShell, event_id: str, shown: ShownEvent, alike: pl.Series) -> None:
    newest, life = shown.documents.row(-1, named=True), shown.life
    kind = shown.documents["event_type"][0] or shown.life["family"]
    name = Markdown("**{}** {} {}").format(
        markdown(kind), markdown(newest["symbol"] or NULL), markdown(newest["legs"] or NULL)
    )
    opened = NULL if life["t_open"] is None else shell.moment(life["t_open"])
    bps = pl.DataFrame({"family": [life["family"]], "peak": [life["peak"]]}).select(size_bps())
    words = Markdown("Opened **{}**, lasted **{}**, peak **{}** ({}), **{}**").format(
        opened,
        lasted_text(life["duration_s"], life["kind"]),
        size_text(life["peak"], life["family"]),
        value_text(bps.item(), column("peak_bps", "tables"), unit=True),
        SEEN[life["kind"]],
    )
    with side_by_side():
        st.markdown(Markdown("{} · {}").format(name, words))
        if newest["symbol"] in held_symbols(shell.held) and st.button(
            Markdown("Symbol"), key="event_symbol_way", type="tertiary"
        ):
            go_to("symbol", symbol=newest["symbol"])
        _step_button(alike, event_id, -1, Markdown("◀ Previous"), "p")
        _step_button(alike, event_id, 1, Markdown("Next ▶"), "n")
        st.button(
            Markdown("Close"),
            key="event_close",
            type="tertiary",
            shortcut="escape",
            on_click=_show_instead,
            args=(lambda _: None,),
        )


def _step_button(alike: pl.Series, event_id: str, way: int, label: Markdown, key: str) -> None:
    """Show a button, also a key, to the previous or next event."""

    def beside(of: str | None) -> str | None:
        at = alike.index_of(of)
        there = -1 if at is None else at + way
        return alike[there] if 0 <= there < alike.len() else None

    st.button(
        label,
        key=f"event_step_{key}",
        disabled=beside(event_id) is None,
        type="tertiary",
        shortcut=key,
        on_click=_show_instead,
        args=(lambda of: beside(of) or of,),
    )


def _show_instead(other: Callable[[str | None], str | None]) -> None:
    """Replace the event in the link, None for none.

    This happens before the page runs, so that no press is lost.
    """
    event_id = other(st.query_params.get("event"))
    if event_id is not None:
        st.query_params["event"] = event_id
    elif "event" in st.query_params:
        del st.query_params["event"]


def _draw_around(shell: PageShell, shown: ShownEvent) -> None:
    trajectory = around(shown.documents.row(-1, named=True))
    if trajectory is None:
        st.caption(Markdown("The document does not name its legs."))
        return
    held, span = shell.held, shown.span
    margin_s = max(_AROUND_S, span.length_s)
    window = Interval(span.start - margin_s, span.end + margin_s)
    found = held_stream(trajectory.key, set(held.streams.filter(pl.col("rows") > 0)["stream"]))
    key = found[0] if found else ""
    rows = read_rows(held.path, key, *window, version=held.versions[key]) if found else None
    if rows is None or rows.is_empty():
        what = Markdown("Its {} around that time is not stored.").format(trajectory.family)
        words = Markdown("Load {}").format(trajectory.family)
        load = Load(words, (LoadPart((trajectory.key,), *window),))
        offer(held, what, load, part="event")
        return
    chart = _figure(shell, key, window, rows)
    chart.update_layout(height=_CHART_PX, showlegend=False, margin_b=36, xaxis_title_text="")
    since, until = clock_text(pl.Series(span), shell.timezone)
    family = EventFamily(shown.life["family"])
    box = {"fillcolor": FAMILY_COLOURS[family], "opacity": 0.2, "line_width": 0, "layer": "below"}
    chart.add_shape(type="rect", x0=since, x1=until, y0=0, y1=1, yref="paper", **box)
    draw(chart, key="event_around")
    words = Markdown("Open {} in full").format(trajectory.family)
    if st.button(words, key="event_way", type="tertiary"):
        if trajectory.family is Family.FUNDING:
            go_to("funding", trajectory=trajectory.key)
        params = Choice(trajectory.key, window).params
        go_to("trajectory", trajectory=key, start=params["start"], end=params["end"])


def _figure(shell: PageShell, key: str, window: Interval, rows: pl.DataFrame) -> Figure:
    subject = subject_of(key)
    known: dict[str, Any] = {
        "trajectory": subject,
        "start": window.start,
        "end": window.end,
        "source": shell.held.source,
        "timezone": shell.timezone,
    }
    if subject.family is Family.PRICE:
        return price_chart(rows, **known)
    if subject.family is Family.SPREAD:
        return spread_chart(rows, legs="none", **known)
    return funding_chart(rows, **known)


def _show_after(shell: PageShell, shown: ShownEvent) -> None:
    opened = detections(shown.documents).filter(family=EventFamily.SPLASH.value).head(1)
    held = shell.held.streams.filter(pl.col("rows") > 0)
    mine = held.filter(pl.col("stream").is_in(opened["trajectory"].to_list()))
    if mine.is_empty():
        return
    key, step_s = mine.select("stream", pl.col("step_s").fill_null(60)).row(0)
    _, found = measure_following(
        shell.held.path, opened, step_s, versions=(shell.held.versions[key],)
    )
    with st.container(horizontal=True, gap="medium"):
        for row in found.iter_rows(named=True):
            change, back = row["return_median_log_bps"], row["retraced_median"]
            beside = "" if back is None else figures_text({"retraced": back}, ["retraced"])
            show_later(row["horizon_s"], change, column("return_log_bps"), beside, _AFTER)


def show_later(horizon_s: float, value: Any, one: Column, beside: str, sign: Markdown) -> None:
    """Show a figure some time after an event, with words below it."""
    later = value_text(horizon_s, column("horizon_s"))
    st.metric(
        Markdown("{} later: {}").format(later, heading_of(one)),
        Markdown.harmless(value_text(value, one)),
        delta=Markdown.harmless(beside) if beside else None,
        delta_color="off",
        delta_arrow="off",
        help=sign,
    )


_AFTER = Markdown(
    "In the event's direction, from the first price after its detection. Retraced: 0 % at the "
    "furthest price since, 100 % where the move began 1 h before."
)


def _show_transitions(shell: PageShell, documents: pl.DataFrame) -> None:
    shown = documents.tail(_DOCUMENTS_SHOWN)
    columns = transition_columns(shown, shell.timezone)
    label = Markdown("Transitions of the event, oldest first")
    keys = [str(row) for row in range(shown.height)]
    show_rows(label, keys, columns, "transitions", 6)
    if documents.height > shown.height:
        st.caption(
            Markdown("{:,} transitions, the newest {:,}.").format(documents.height, shown.height)
        )


def _show_document(shell: PageShell, documents: pl.DataFrame) -> None:
    shown = documents.tail(_DOCUMENTS_SHOWN)
    state = st.session_state
    event = documents["event_id"][0]
    if (opened := opened_key("transitions")) is not None:
        state["event_document"] = event, int(opened)
    of, row = state.get("event_document", (None, 0))
    asked = of == event and row < shown.height
    one = shown.row(row if asked else -1, named=True)
    words = Markdown("Document of {} as the service sent it").format(markdown(one["event_type"]))
    if (text := read_text(shell.held, one)) is None:
        st.caption(Markdown("The store has changed: reload this page."))
        return
    with st.expander(words, expanded=asked):
        st.code(pretty(text), language="json")
        st.download_button(
            Markdown("Download its exact bytes"),
            text.encode(),
            file_name=f"{file_name(one['event_id'])}_{one['ts_ms']}.json",
            mime="application/json",
            on_click="ignore",
        )


def pretty(document: str) -> str:
    """Add line breaks to a JSON text without changing a digit. Other text stays as it is."""
    try:
        return msgspec.json.format(document.encode(), indent=2).decode()
    except msgspec.DecodeError:
        return document


def around(document: dict[str, str | None]) -> Trajectory | None:
    """Return the trajectory of an event: a splash's price, a spread or a funding pair.

    None if the document does not name its legs, or not validly.
    """
    named = [
        f"{document[f'{side}_exchange']}.{document[f'{side}_market']}"
        for side in ("buy", "sell")
        if document[f"{side}_exchange"] and document[f"{side}_market"]
    ]
    family = {
        EventFamily.SPREAD: Family.SPREAD,
        EventFamily.SPLASH: Family.PRICE,
        EventFamily.FUNDING: Family.FUNDING,
    }[EventFamily(str(document["family"]))]
    if document["symbol"] is None or len(named) != (1 if family is Family.PRICE else 2):
        return None
    try:
        symbol = Symbol.parse(document["symbol"])
        return Trajectory(family, symbol, tuple(map(Leg.parse, named)))
    except InputError:
        return None
