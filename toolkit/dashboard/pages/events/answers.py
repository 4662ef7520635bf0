"""Sections of the page of events: how often, how long, and what prices did after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from toolkit.analyses import find
from toolkit.cards import counted
from toolkit.charts import event_study_chart
from toolkit.columns import column
from toolkit.dashboard.loads import Load, LoadPart, offer
from toolkit.dashboard.parts.answers import drawn
from toolkit.dashboard.parts.event_reading import MOVES
from toolkit.dashboard.parts.lifecycles import Filter
from toolkit.dashboard.reading import measure_following
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell, draw_titled
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.show.values import figures_text, heading_of, reason_words, value_text

KeptAnswer = Callable[[str, Callable[[], pl.DataFrame]], pl.DataFrame]
"""`toolkit.dashboard.parts.event_reading.kept_answer` of what is shown."""

_MOST_LEGS, _MOST_LOADED = 100, 5
_BEFORE_S = 3600
"""A move is measured from the price so long before its detection."""
_HOURS = "Hours of the week"
_MEASURES: dict[str, tuple[str, dict[str, Any]]] = {
    "How long they live": ("events.survival_curve", {}),
    "How often by symbol": ("events.league", {"by": ["symbol"]}),
    "How often by legs": ("events.league", {"by": ["symbol", "legs"]}),
    _HOURS: ("events.rates_by_hour", {}),
}
"""The analysis that each measure is, and its options."""

_MOST_RANKED = 15
_WEEK_S = 604_800
_METRIC_PX = 180


@st.fragment()
def show_rates_and_lives(
    shell: PageShell, lives: pl.DataFrame, chosen: Filter, kept: KeptAnswer
) -> None:
    """Show one measure of one kind of event, nothing until the reader chooses one."""
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
    """Show what prices did after pumps and dumps that were detected, in their direction."""
    if opened.is_empty():
        return
    st.subheader(Markdown("After pumps and dumps"), anchor=False)
    held = set(shell.held.streams.filter(pl.col("rows") > 0)["stream"])
    legs = opened["trajectory"].value_counts(sort=True)["trajectory"]
    known = tuple(sorted([key for key in legs if key in held][:_MOST_LEGS]))
    if not known:
        first = tuple(legs[:_MOST_LOADED])
        asked = Markdown("Load prices of the {} with most pumps and dumps")
        asked = asked.format(counted(len(first), "leg"))
        load = Load(asked, (LoadPart(first, window.start - _BEFORE_S),))
        what = Markdown("What followed is measured on the prices of their legs, and none is held.")
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
    """Return the commonest step of the legs, the smallest on a tie."""
    steps = shell.held.streams.filter(pl.col("stream").is_in(known))["step_s"].drop_nulls()
    return int(steps.mode().sort()[0]) if steps.len() else 60


def _show_horizon(row: Mapping[str, Any]) -> None:
    later, one = value_text(row["horizon_s"], column("horizon_s")), column("return_median_log_bps")
    bounds = [f"return_median_{end}_log_bps" for end in ("lower", "upper")]
    band = figures_text(row, bounds)
    if row[bounds[0]] is None:
        band = reason_words(row, bounds[0])
    st.metric(
        Markdown("{} later: {}").format(later, heading_of(one)),
        Markdown.harmless(value_text(row[one.name], one)),
        delta=Markdown.harmless(band),
        delta_color="off",
        delta_arrow="off",
        help=_FOLLOWED,
    )
    shares = figures_text(row, ("went_on_share", "retraced_median", "n"), "events.follow_through")
    st.caption(Markdown.harmless(shares))


_FOLLOWED = Markdown(
    "In the event's direction, from the first price after its detection. Retraced: the median "
    "share, 0 % at the furthest price since, 100 % where the move began 1 h before."
)
