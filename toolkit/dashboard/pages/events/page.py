"""The page of events: how many there are of each kind, when each lived, and one of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import polars as pl

from toolkit.cards import some
from toolkit.charts import event_lanes
from toolkit.dashboard.export import hand_over, literal
from toolkit.dashboard.link import PRESETS
from toolkit.dashboard.loads import LOGS, Load, load_button, offer
from toolkit.dashboard.pages.events.answers import show_following, show_rates_and_lives
from toolkit.dashboard.pages.events.choice import CHOICES, ZOOM, AskedEvents, choose_events
from toolkit.dashboard.pages.events.shown import ShownEvent, clicked_event, find_event, show_event
from toolkit.dashboard.parts.analyses import Asked, show_analyses
from toolkit.dashboard.parts.event_reading import (
    held_events,
    kept_answer,
    read_documents,
    read_lifecycles,
)
from toolkit.dashboard.parts.event_rows import event_columns, kind_columns, kinds_of_events
from toolkit.dashboard.parts.event_tables import logs_that_end
from toolkit.dashboard.parts.rows import opened_key, show_rows
from toolkit.dashboard.parts.zoom import ZOOMED_BY_US, listen_to_zoom
from toolkit.dashboard.reading import WAIT_S
from toolkit.dashboard.screen import Screen, st
from toolkit.dashboard.shell import PageShell, draw, page, show_alone
from toolkit.foreign import LONGEST, Markdown, markdown
from toolkit.market import EventFamily, format_ts
from toolkit.series.logs import HeldEvents
from toolkit.statistics.events import detections
from toolkit.store import Store
from toolkit.workspace.events.event_selection import EventSelection

_SHOWN = 200
_BARS = 300
_ROWS_HIGH = 12


def _body(shell: PageShell) -> None:
    logs = shell.held.logs
    if logs.is_empty():
        what = Markdown("{} holds no event log yet.").format(markdown(shell.held.place))
        offer(shell.held, what, LOGS)
        return
    bar = st.container(horizontal=True, vertical_alignment="center", gap="small", key="filters_row")
    window = held_events(shell.held).last(PRESETS[CHOICES.early("window")])
    documents = read_documents(shell.held, window)
    asked = choose_events(bar, shell.kept(documents), window)
    lives = shell.kept(read_lifecycles(shell.held, window))
    _open_row(lives)
    event_id = st.query_params.get("event")
    shown = None
    if event_id is not None:
        shown = find_event(shell, event_id, documents)
        show_event(shell, event_id, shown, _alike(asked, lives, shown))
    _show_events(shell, bar, asked, lives, shown)
    _show_unknown(shell.kept(documents), asked)


def _open_row(lives: pl.DataFrame) -> None:
    opened = opened_key("kinds") or opened_key("events") or clicked_event("timeline", lives)
    if opened is not None:
        st.query_params["event"] = opened


def _alike(asked: AskedEvents, lives: pl.DataFrame, shown: ShownEvent | None) -> pl.Series:
    """Return the ids of the events of the window of one's own kind, oldest first."""
    if shown is None:
        return pl.Series([], dtype=pl.String)
    mine = asked.chosen.documents(lives).sort("since", "event_id")
    moves = mine.filter(event_id=shown.documents["event_id"][0])["move"]
    return mine.filter(pl.col("move").is_in(moves.to_list()))["event_id"]


def _show_events(
    shell: PageShell, bar: Screen, asked: AskedEvents, lives: pl.DataFrame, shown: ShownEvent | None
) -> None:
    chosen, view = asked.chosen, asked.view
    held = shell.held
    in_view = shell.kept(read_lifecycles(held, view)) if asked.zoom else lives
    listed = chosen.lifecycles(in_view)
    kept = partial(kept_answer, held, repr((view, chosen, sorted(shell.symbols))))
    any_state = chosen.state == "any"
    kinds = kept("kinds", lambda: kinds_of_events(listed, held.log_stretches, any_state=any_state))
    if kinds.height:
        label = Markdown("Kinds of events; a row opens the largest")
        show_rows(label, kinds["event_id"].to_list(), kind_columns(kinds), "kinds")
    drawn = chosen.lifecycles(lives)
    if drawn.height:
        _draw_timeline(shell, asked, drawn, shown, listed.height)
    else:
        what = Markdown("{}: none from {} to {}. Choose a longer window, or clear the filters.")
        words = chosen.words
        st.info(
            what.format(
                Markdown.harmless(words[0].upper() + words[1:]), *map(shell.moment, asked.window)
            )
        )
    _say_unknown_time(shell, asked)
    _hand_over(shell, bar, asked, listed)
    if listed.is_empty():
        return
    columns = event_columns(listed.head(_SHOWN), shell.timezone)
    ids = listed["event_id"].head(_SHOWN).to_list()
    show_rows(Markdown("Events, newest first"), ids, columns, "events", _ROWS_HIGH)
    first = f"{_SHOWN:,} of " if listed.height > _SHOWN else ""
    st.caption(Markdown("{}{:,} events, newest first.").format(first, listed.height))
    if any_state:
        show_rates_and_lives(shell, listed, chosen, kept)
    else:
        st.caption(Markdown("How often and how long is shown of events in any state."))
    show_following(shell, kept("detections", lambda: _detected(shell, asked)), view)
    if any_state:
        show_alone(lambda: show_analyses(shell, _question(shell, asked)))


def _question(shell: PageShell, asked: AskedEvents) -> Asked:
    held, chosen, view = shell.held, asked.chosen, asked.view
    logs = tuple(each for each in EventFamily if each.value in set(held.logs["family"]))
    families = tuple(each for each in logs if each.value in (chosen.families or logs))

    def selection() -> EventSelection:
        documents = chosen.documents(shell.kept(read_documents(held, asked.window)))
        events = HeldEvents(view, documents, held.logs, held.log_stretches)
        return EventSelection(Store(held.path, wait_s=WAIT_S), families, events)

    every = not (chosen.symbols or chosen.exchanges or shell.symbols) and len(families) == 1
    start, end = (literal(format_ts(ts)) for ts in view)
    net = shell.fees.net()
    return Asked(
        "events",
        "events",
        selection,
        (held.version, view, chosen, sorted(shell.symbols)),
        f"rail.events({literal(families[0].value)}, {start}, {end})" if every else "",
        net,
        shown=("league", "rates", "rates_by_hour", "survival", "survival_curve"),
        one_log=len(families) == 1,
    )


def _detected(shell: PageShell, asked: AskedEvents) -> pl.DataFrame:
    documents = asked.chosen.documents(shell.kept(read_documents(shell.held, asked.window)))
    return detections(documents).filter(
        pl.col("ts").is_between(*asked.view, closed="left"), family=EventFamily.SPLASH.value
    )


def _draw_timeline(
    shell: PageShell, asked: AskedEvents, lives: pl.DataFrame, shown: ShownEvent | None, listed: int
) -> None:
    """Draw the lanes, ``listed`` events of which are in the stretch that is shown."""
    window, timezone = asked.window, shell.timezone
    chart = event_lanes(
        lives,
        start=window.start,
        end=window.end,
        zoom=asked.zoom,
        at=None if shown is None else shown.span.start,
        source=shell.held.source,
        subject=asked.chosen.words,
        timezone=timezone,
        bars=_BARS,
    )
    draw(chart, key="timeline", headed=False, **ZOOMED_BY_US)
    listen_to_zoom("timeline", timezone, ZOOM.key)
    words = [Markdown("Drag over a stretch to measure it alone; a click on a bar opens it.")]
    if asked.zoom:
        words = [
            Markdown("{} to {}; double-click to zoom out.").format(*map(shell.moment, asked.zoom))
        ]
    drawn = sum(len(trace.base) for trace in chart.data if trace.base is not None)
    if drawn < listed:
        several = Markdown("Those that opened close together share a bar: {:,} events in {:,}.")
        words.append(several.format(listed, drawn))
    st.caption(Markdown(" ").join(words))


def _say_unknown_time(shell: PageShell, asked: AskedEvents) -> None:
    logs = shell.held.logs
    if ended := logs_that_end(logs, asked.window.end, shell.timezone):
        st.caption(ended)
    if lacking := [family.value for family in EventFamily if family not in logs["family"]]:
        streams = (f"events/{family}" for family in lacking)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            load = Load.of(Markdown("Load 7 days of them"), *streams, since="7d")
            load_button(shell.held, load, "load_logs")
            st.caption(Markdown("Nothing is held of {} events.").format(" and ".join(lacking)))


def _show_unknown(documents: pl.DataFrame, asked: AskedEvents) -> None:
    mine = asked.chosen.documents(documents)
    unknown = mine.filter(pl.col("role").is_null())["event_type"].fill_null("none")
    if unknown.is_empty():
        return
    types = markdown(some(unknown.unique().sort().to_list(), at_most=10), LONGEST)
    st.caption(
        Markdown(
            "{:,} documents say neither by type nor by lifecycle what became of their event, and "
            "are left out. Their types: {}."
        ).format(unknown.len(), types)
    )


def _hand_over(shell: PageShell, bar: Screen, asked: AskedEvents, listed: pl.DataFrame) -> None:
    start, end = map(format_ts, asked.view)
    families = [family.value for family in EventFamily if family in shell.held.logs["family"]]
    symbols = asked.chosen.symbols or tuple(sorted(shell.symbols))
    lines = replace(asked.chosen, symbols=symbols).python(shell.held.place, (start, end), families)
    rows = listed.with_columns(ts="since")
    hand_over(bar, rows, shell.held.source, f"events_{end}", lines)


if __name__ == "__main__":
    page(Markdown("Events"), _body)
