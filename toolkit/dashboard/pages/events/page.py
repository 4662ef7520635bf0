"""The page Events: counts by kind, a timeline, a list, and measures of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from toolkit.analyses import find
from toolkit.cards import counted, some
from toolkit.charts import event_lanes, event_study_chart
from toolkit.columns import column
from toolkit.dashboard.export import hand_over, literal
from toolkit.dashboard.link import PRESETS
from toolkit.dashboard.loads import LOGS, Load, LoadPart, load_button, offer
from toolkit.dashboard.pages.events.choice import CHOICES, ZOOM, AskedEvents, Filter, choose_events
from toolkit.dashboard.pages.events.shown import (
    ShownEvent,
    clicked_event,
    find_event,
    show_event,
    show_later,
)
from toolkit.dashboard.parts.analyses import Asked, show_analyses
from toolkit.dashboard.parts.answers import drawn
from toolkit.dashboard.parts.event_reading import (
    MOVES,
    held_events,
    kept_answer,
    read_documents,
    read_lifecycles,
)
from toolkit.dashboard.parts.event_tables import (
    event_columns,
    kind_columns,
    kinds_of_events,
    logs_that_end,
)
from toolkit.dashboard.parts.rows import opened_key, show_rows
from toolkit.dashboard.reading import WAIT_S, measure_following
from toolkit.dashboard.shell import (
    ZOOMED_BY_US,
    PageShell,
    draw,
    draw_titled,
    listen_to_zoom,
    page,
    show_alone,
)
from toolkit.dashboard.widgets import Container, side_by_side, st
from toolkit.foreign import LONGEST, Markdown, markdown
from toolkit.intervals import Interval
from toolkit.market import EventFamily, format_ts
from toolkit.series.logs import HeldEvents
from toolkit.show.values import figures_text, reason_words
from toolkit.statistics.events import detections
from toolkit.store import Store
from toolkit.workspace.events.event_selection import EventSelection

KeptAnswer = Callable[[str, Callable[[], pl.DataFrame]], pl.DataFrame]
"""`toolkit.dashboard.parts.event_reading.kept_answer` of what is shown."""

_MOST_LEGS, _MOST_LOADED = 100, 5
_BEFORE_S = 3600
"""How long before its detection a move begins."""
_HOURS = "Hours of the week"
_MEASURES: dict[str, tuple[str, dict[str, Any]]] = {
    "How long they live": ("events.survival_curve", {}),
    "How often by symbol": ("events.league", {"by": ["symbol"]}),
    "How often by legs": ("events.league", {"by": ["symbol", "legs"]}),
    _HOURS: ("events.rates_by_hour", {}),
}
"""The analysis of each measure, and its options."""

_MOST_RANKED = 15
_WEEK_S = 604_800
_METRIC_PX = 180


@st.fragment()
def show_rates_and_lives(
    shell: PageShell, lives: pl.DataFrame, chosen: Filter, kept: KeptAnswer
) -> None:
    """Show one measure of one kind of event, once the reader has chosen one."""
    held, state = shell.held.log_stretches, st.session_state
    moves = [move for move in MOVES if move in lives["move"]]
    start, end = lives.select("window_start", "window_end").row(0)
    measures = [each for each in _MEASURES if each != _HOURS or end - start >= _WEEK_S]
    # Streamlit has None for a choice that it forgot, as where a run ended before it.
    for key, allowed, usual in (
        ("event_measure", measures, None),
        ("event_rated", moves, moves[0]),
    ):
        if state.get(key) not in allowed:
            state[key] = usual
    with st.container(horizontal=True, gap="small"):
        measure = st.segmented_control(
            Markdown("Measure"),
            measures,
            key="event_measure",
            label_visibility="collapsed",
            persist_state="session",
        )
        if measure is None:
            return
        move = st.segmented_control(
            Markdown("Kind"),
            moves,
            key="event_rated",
            label_visibility="collapsed",
            required=True,
            persist_state="session",
        )
    mine = lives.filter(move=move)
    subject = replace(chosen, families=(move,)).words
    result, options = _MEASURES[measure]
    analysis = find(result)
    found = kept(f"{move}, {measure}", lambda: analysis.function(mine, held=held, **options))
    figure = drawn(shell, analysis, found, subject=subject, limit=_MOST_RANKED)
    draw_titled(figure, "event_measured")


def show_following(shell: PageShell, opened: pl.DataFrame, window: Interval) -> None:
    """Show what prices did after detected pumps and dumps, in their direction."""
    if opened.is_empty():
        return
    st.subheader(Markdown("After pumps and dumps"), anchor=False)
    held = set(shell.held.streams.filter(pl.col("rows") > 0)["stream"])
    legs = opened["trajectory"].value_counts(sort=True)["trajectory"]
    known = tuple(sorted([key for key in legs if key in held][:_MOST_LEGS]))
    if not known:
        first = tuple(legs[:_MOST_LOADED])
        label = Markdown("Load prices of the {} with most pumps and dumps")
        part = LoadPart(first, window.start - _BEFORE_S)
        load = Load(label.format(counted(len(first), "leg")), (part,))
        what = Markdown("What followed is measured on the prices of their legs. None are stored.")
        offer(shell.held, what, load, part="following")
        return
    path, found = measure_following(
        shell.held.path,
        opened.filter(pl.col("trajectory").is_in(known)),
        _step(shell, known),
        versions=tuple(shell.held.versions[key] for key in known),
    )
    words = f"pumps and dumps on {len(known):,} of {legs.len():,} legs, from the next price"
    with st.grid(max(found.height, 1), min_column_width=_METRIC_PX):
        for row in found.iter_rows(named=True):
            with st.container(gap="xxsmall"):
                _show_horizon(row)
    draw_titled(event_study_chart(path, source=shell.held.source, subject=words), "following")


def _step(shell: PageShell, known: tuple[str, ...]) -> int:
    """Return the commonest step of the legs (s), the smallest on a tie."""
    steps = shell.held.streams.filter(pl.col("stream").is_in(known))["step_s"].drop_nulls()
    return int(steps.mode().sort()[0]) if steps.len() else 60


def _show_horizon(row: Mapping[str, Any]) -> None:
    one = column("return_median_log_bps")
    bounds = [f"return_median_{end}_log_bps" for end in ("lower", "upper")]
    known = row[bounds[0]] is not None
    band = figures_text(row, bounds) if known else reason_words(row, bounds[0])
    show_later(row["horizon_s"], row[one.name], one, band, _FOLLOWED)
    shares = figures_text(row, ("went_on_share", "retraced_median", "n"), "events.follow_through")
    st.caption(Markdown.harmless(shares))


_FOLLOWED = Markdown(
    "In the event's direction, from the first price after its detection. Retraced: the median "
    "share, 0 % at the furthest price since, 100 % where the move began 1 h before."
)
_SHOWN = 200
_BARS = 300
_ROWS_HIGH = 12


def _body(shell: PageShell) -> None:
    logs = shell.held.logs
    if logs.is_empty():
        what = Markdown("{} has no event log yet.").format(markdown(shell.held.place))
        offer(shell.held, what, LOGS)
        return
    bar = side_by_side(key="filters_row")
    window = held_events(shell.held).last(PRESETS[CHOICES.early("window")])
    documents = read_documents(shell.held, window)
    asked = choose_events(bar, shell.kept(documents), window)
    lives = shell.kept(read_lifecycles(shell.held, window))
    _open_row(lives)
    event_id = st.query_params.get("event")
    shown = None if event_id is None else find_event(shell, event_id, documents)
    if event_id is not None:
        show_event(shell, event_id, shown, _alike(asked, lives, shown))
    _show_events(shell, bar, asked, lives, shown)
    _show_unknown(shell.kept(documents), asked)


def _open_row(lives: pl.DataFrame) -> None:
    opened = opened_key("kinds") or opened_key("events") or clicked_event("timeline", lives)
    if opened is not None:
        st.query_params["event"] = opened


def _alike(asked: AskedEvents, lives: pl.DataFrame, shown: ShownEvent | None) -> pl.Series:
    """Return the ids of the window's events of the same kind, oldest first."""
    if shown is None:
        return pl.Series([], dtype=pl.String)
    mine = asked.chosen.documents(lives).sort("since", "event_id")
    moves = mine.filter(event_id=shown.documents["event_id"][0])["move"]
    return mine.filter(pl.col("move").is_in(moves.to_list()))["event_id"]


def _show_events(
    shell: PageShell,
    bar: Container,
    asked: AskedEvents,
    lives: pl.DataFrame,
    shown: ShownEvent | None,
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
        words = Markdown.harmless(chosen.words[0].upper() + chosen.words[1:])
        st.info(what.format(words, *map(shell.moment, asked.window)))
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
        st.caption(Markdown("Rates and lifetimes are shown for events in any state."))
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
    return Asked(
        "events",
        "events",
        selection,
        (held.version, view, chosen, sorted(shell.symbols)),
        f"rail.events({literal(families[0].value)}, {start}, {end})" if every else "",
        shell.fees.net(),
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
    """Draw the lanes. ``listed`` is the number of events in view."""
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
    draw(chart, key="timeline", **ZOOMED_BY_US)
    listen_to_zoom("timeline", timezone, ZOOM.key)
    words = [Markdown("Drag over a stretch to zoom in; click a bar to open it.")]
    if asked.zoom:
        zoomed = Markdown("{} to {}; double-click to zoom out.")
        words = [zoomed.format(*map(shell.moment, asked.zoom))]
    drawn = sum(len(trace.base) for trace in chart.data if trace.base is not None)
    if drawn < listed:
        several = Markdown("Events that opened close together share a bar: {:,} events in {:,}.")
        words.append(several.format(listed, drawn))
    st.caption(Markdown(" ").join(words))


def _say_unknown_time(shell: PageShell, asked: AskedEvents) -> None:
    logs = shell.held.logs
    if ended := logs_that_end(logs, asked.window.end, shell.timezone):
        st.caption(ended)
    if lacking := [family.value for family in EventFamily if family not in logs["family"]]:
        streams = (f"events/{family}" for family in lacking)
        with side_by_side():
            load = Load.of(Markdown("Load 7 days of them"), *streams, since="7d")
            load_button(shell.held, load, "load_logs")
            st.caption(Markdown("No {} events are stored.").format(" and ".join(lacking)))


def _show_unknown(documents: pl.DataFrame, asked: AskedEvents) -> None:
    mine = asked.chosen.documents(documents)
    unknown = mine.filter(pl.col("role").is_null())["event_type"].fill_null("none")
    if unknown.is_empty():
        return
    types = markdown(some(unknown.unique().sort().to_list(), at_most=10), LONGEST)
    st.caption(
        Markdown(
            "{:,} documents of unknown type are left out, as neither type nor lifecycle gives the "
            "state of their event. Their types: {}."
        ).format(unknown.len(), types)
    )


def _hand_over(shell: PageShell, bar: Container, asked: AskedEvents, listed: pl.DataFrame) -> None:
    start, end = map(format_ts, asked.view)
    families = [family.value for family in EventFamily if family in shell.held.logs["family"]]
    symbols = asked.chosen.symbols or tuple(sorted(shell.symbols))
    lines = replace(asked.chosen, symbols=symbols).python(shell.held.place, (start, end), families)
    rows = listed.with_columns(ts="since")
    hand_over(bar, rows, shell.held.source, f"events_{end}", lines)


if __name__ == "__main__":
    page(Markdown("Events"), _body)
