"""The page of events: when each lived, how many there were, and one event's documents."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import polars as pl
import streamlit as st

from toolkit.cards import some
from toolkit.charts import activity_chart, event_timeline
from toolkit.commands import rail
from toolkit.dashboard.event_tables import logs_that_end
from toolkit.dashboard.formatting import NULL, command_words
from toolkit.dashboard.lifecycles import (
    STATES,
    Filter,
    around,
    lifecycle_table,
    pretty,
    size_text,
    transition_table,
)
from toolkit.dashboard.link import PRESETS, Choice, preset_window, read_choice, read_option
from toolkit.dashboard.navigation import go_to
from toolkit.dashboard.page_link import PageLink
from toolkit.dashboard.reading import read_events
from toolkit.dashboard.shell import PageShell, draw, opened_row, page, say_empty, show_table
from toolkit.foreign import file_name, markdown, plain
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventRole, Family, Trajectory
from toolkit.statistics.event_documents import identified
from toolkit.statistics.events import documents_window, event_lifecycles
from toolkit.store import swapped

_SHOWN = 500
_DOCUMENTS_SHOWN = 200
_AROUND_S = 3600
_TABLE_PX = 388
_LINK = PageLink("events", ("family", "symbol", "exchange", "state", "window"))
_LOGS = tuple(f"events/{family}" for family in EventFamily)


def _body(shell: PageShell) -> None:
    logs = shell.held.logs
    if logs.is_empty():
        say_empty(
            f"{markdown(str(shell.held.path))} holds no event log yet. Load some, then look here "
            "again:",
            rail("sync", *_LOGS),
        )
        return
    held = _held(logs)
    asked = _follow_link()
    window = preset_window(held, st.session_state["event_window"])
    documents = _read(shell, documents_window(window))
    if asked is not None:
        _show_event(shell, asked, documents, held)
    chosen = _choose(documents)
    _show_events(shell, documents, window, chosen)


def _read(shell: PageShell, window: Interval) -> pl.DataFrame:
    return identified(read_events(shell.held.path, *window, version=shell.held.version))


def _held(logs: pl.DataFrame) -> Interval:
    """Return the window from the oldest document of any log to where the newest log is known."""
    end = -(-max(logs["known_until"].fill_null(logs["served_at"])) // 60) * 60
    first = [ts for ts in logs["first_ts"] if ts is not None]
    return Interval(min([*first, end - 86_400]) // 60 * 60, end)


# -- what is chosen ------------------------------------------------------------------------------


def _follow_link() -> str | None:
    """Fill the widgets from a link that the page did not write itself.

    Returns the event that the link asks for.
    """
    state = st.session_state
    params = _LINK.to_follow(ready="event_window" in state)
    if params is not None:
        faults: list[str] = []
        state["event_window"] = read_option(params, "window", PRESETS, "24 hours", faults)
        state["event_state"] = read_option(params, "state", STATES, "any", faults)
        state["events_unread"] = params, faults
    return st.query_params.get("event")


def _choose(documents: pl.DataFrame) -> Filter:
    """Draw the widgets, filled from the link once, and keep the link in step with them."""
    state = st.session_state
    exchanges = pl.concat([documents["buy_exchange"], documents["sell_exchange"]]).drop_nulls()
    options = {
        "family": [family.value for family in EventFamily],
        "symbol": documents["symbol"].drop_nulls().unique().sort().to_list(),
        "exchange": exchanges.unique().sort().to_list(),
    }
    unread = state.pop("events_unread", None)
    if unread is not None:
        params, faults = unread
        for name, allowed in options.items():
            state[f"event_{name}"] = read_choice(params, name, allowed, faults)
        _LINK.keep_faults(faults)
    for name, allowed in options.items():
        kept = [value for value in state.get(f"event_{name}", []) if value in allowed]
        state[f"event_{name}"] = kept
    first, second = st.columns(2, vertical_alignment="bottom")
    first.pills("Window, up to the last sync", list(PRESETS), key="event_window", required=True)
    second.segmented_control("State at its end", list(STATES), key="event_state", required=True)
    places = st.columns(3, vertical_alignment="bottom")
    labels = {"family": "Families", "symbol": "Symbols", "exchange": "Exchanges"}
    for place, (name, allowed) in zip(places, options.items(), strict=True):
        place.multiselect(
            labels[name], allowed, key=f"event_{name}", format_func=plain, placeholder="all"
        )
    families, symbols, venues = (tuple(state[f"event_{name}"]) for name in options)
    chosen = Filter(families, symbols, venues, state["event_state"])
    _LINK.write(_widget_params(chosen))
    return chosen


def _widget_params(chosen: Filter) -> dict[str, str]:
    """Return the values of the widgets that are not the default, as parameters of a link."""
    values = [",".join(part) if isinstance(part, tuple) else part for part in astuple(chosen)]
    named = dict(zip(_LINK.names, [*values, st.session_state["event_window"]], strict=True))
    defaults = {"state": "any", "window": "24 hours"}
    return {name: value for name, value in named.items() if value != defaults.get(name, "")}


# -- all events ----------------------------------------------------------------------------------


def _show_events(shell: PageShell, held: pl.DataFrame, window: Interval, chosen: Filter) -> None:
    logs = shell.held.logs
    documents = chosen.documents(held)
    lifecycles = chosen.lifecycles(_lifecycles(documents, window, logs))
    unknown = documents.filter(pl.col("role").is_null())["event_type"].fill_null("none")
    never = [family.value for family in EventFamily if family not in logs["family"]]
    if never:
        ask = [f"events/{family}" for family in never]
        load = command_words("sync", *ask)
        st.caption(f"Never asked for: {', '.join(never)}; {load} loads them.")
    if unknown.len():
        types = some([markdown(kind) for kind in unknown.unique().sort()], at_most=10)
        st.caption(
            f"{unknown.len():,} documents say neither by type nor by lifecycle what became of "
            f"their event, and are left out. Their types: {types}."
        )
    shared: dict[str, Any] = {
        "start": window.start,
        "end": window.end,
        "source": shell.held.source,
        "subject": chosen.words,
        "timezone": shell.timezone,
    }
    draw(event_timeline(lifecycles, **shared), key="timeline")
    if words := logs_that_end(logs, window.end, shell.timezone):
        st.caption(words)
    if lifecycles.is_empty():
        return
    shown = lifecycles.head(_SHOWN)
    st.subheader("List", anchor=False)
    first = f"{_SHOWN:,} of " if lifecycles.height > _SHOWN else ""
    st.caption(f"{first}{lifecycles.height:,} events, newest first. {NULL}: not seen.")
    clicked = opened_row(lifecycle_table(shown, shell.timezone), "lifecycles", height=_TABLE_PX)
    if clicked is not None:
        st.query_params["event"] = shown["event_id"][clicked]
        st.rerun()
    if chosen.state == "any":
        draw(activity_chart(documents, **shared), key="activity")


# -- one event -----------------------------------------------------------------------------------


def _lifecycles(documents: pl.DataFrame, window: Interval, logs: pl.DataFrame) -> pl.DataFrame:
    found = event_lifecycles(documents, *window, logs=logs)
    return found.with_columns(pl.col("symbol", "legs").fill_null(NULL))


def _show_event(shell: PageShell, event_id: str, documents: pl.DataFrame, held: Interval) -> None:
    mine = _documents_of(event_id, documents)
    if mine.is_empty() or mine["role"][0] != EventRole.OPENS:
        # It began outside of the window: look through all that is held.
        mine = _documents_of(event_id, _read(shell, held))
    if mine.is_empty():
        st.warning(
            f"The link asks for {markdown(f'event={event_id}')}, which this store does not hold; "
            f"{command_words('sync', *_LOGS)} loads the logs of 7 days."
        )
        return
    newest = mine.row(-1, named=True)
    with st.container(border=True):
        name, close = st.columns([5, 1], vertical_alignment="center")
        name.subheader(
            f"{newest['family']} {markdown(newest['symbol'] or NULL)}, "
            f"{markdown(newest['legs'] or NULL)}",
            anchor=False,
        )
        if close.button("Close", key="event_close", width="stretch"):
            del st.query_params["event"]
            st.rerun()
        st.caption(f"Event {markdown(event_id)}")
        _show_transitions(shell, mine)
        _show_trajectory_button(shell, mine)
        _show_documents(shell, mine)


def _documents_of(event_id: str, documents: pl.DataFrame) -> pl.DataFrame:
    """Return all documents of the event that a document of that id belongs to, oldest first."""
    one = documents.filter(event_id=event_id).select("family", "event").unique()
    return documents.join(one, on=["family", "event"], how="semi").sort("ts_ms", "event_type")


def _show_transitions(shell: PageShell, mine: pl.DataFrame) -> None:
    end = max(mine["ts"][-1] + 1, *shell.held.logs["served_at"])
    lifecycles = _lifecycles(mine, Interval(mine["ts"][0], end), shell.held.logs)
    if not lifecycles.is_empty():
        row = lifecycle_table(lifecycles.head(1), shell.timezone).row(0, named=True)
        opened = row[f"opened ({shell.timezone})"]
        peak = size_text(lifecycles["peak"][0], mine["family"][0])
        st.markdown(
            f"Opened **{f'{opened} {shell.timezone}' if opened else NULL}**, lasted "
            f"**{row['lasted']}**, peak **{peak}**, **{row['seen']}**"
        )
    table = transition_table(mine.tail(_DOCUMENTS_SHOWN), shell.timezone)
    shown = f", the newest {_DOCUMENTS_SHOWN:,}" if mine.height > _DOCUMENTS_SHOWN else ""
    st.caption(f"{mine.height:,} transition{'s' * (mine.height > 1)}{shown}, oldest first.")
    show_table(table, placeholder=NULL, height="content")


def _show_trajectory_button(shell: PageShell, mine: pl.DataFrame) -> None:
    """Show a button to the trajectory's page around the event, or the command that loads it."""
    trajectory = around(mine.row(-1, named=True))
    if trajectory is None:
        return
    held = shell.held.streams["stream"]
    both = [trajectory.key]
    if trajectory.family is not Family.PRICE:
        both.append(swapped(trajectory.key))
    key = next((key for key in both if key in held), None)
    if key is None:
        start, end = (text[:-1] + ":00Z" for text in _times(trajectory, mine))
        st.caption(f"Its {trajectory.family} around that time is not held; this loads it:")
        load = rail("sync", trajectory.key, "--start", start, "--end", end)
        st.code(load, language="bash")
    elif st.button(f"Show its {trajectory.family} around that time", key="event_way"):
        if trajectory.family is Family.FUNDING:
            go_to("funding", trajectory=trajectory.key)
        start, end = _times(trajectory, mine)
        go_to("trajectory", trajectory=key, start=start, end=end)


def _times(trajectory: Trajectory, mine: pl.DataFrame) -> tuple[str, str]:
    """Return a link's window around the event: its length on either side, at least an hour."""
    first, last = mine["ts"][0] // 60 * 60, -(-mine["ts"][-1] // 60) * 60
    margin_s = max(_AROUND_S, last - first)
    params = Choice(trajectory.key, Interval(first - margin_s, last + margin_s)).params
    return params["start"], params["end"]


def _show_documents(shell: PageShell, mine: pl.DataFrame) -> None:
    shown = mine.tail(_DOCUMENTS_SHOWN).with_row_index("row")
    clock = shell.clock(shown["ts"])
    labels = [
        plain(f"{kind} {time}", 80) for kind, time in zip(shown["event_type"], clock, strict=True)
    ]
    with st.expander("Documents as the service sent them"):
        row = st.selectbox(
            "Document",
            range(shown.height),
            index=shown.height - 1,
            key="event_document",
            format_func=labels.__getitem__,
            label_visibility="collapsed",
        )
        one = shown.row(row, named=True)
        st.code(pretty(one["document"]), language="json")
        st.download_button(
            "Download its exact bytes",
            one["document"].encode(),
            file_name=f"{file_name(one['event_id'])}_{one['ts_ms']}.json",
            mime="application/json",
            on_click="ignore",
        )


if __name__ == "__main__":
    page("Events", _body)
