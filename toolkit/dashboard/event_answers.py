"""Sections of the page of events: how often, how long, and what prices did after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from toolkit.cards import counted, duration, signed
from toolkit.charts import event_hours_chart, event_study_chart, league_chart, survival_chart
from toolkit.dashboard.event_reading import MOVES
from toolkit.dashboard.formatting import NULL
from toolkit.dashboard.lifecycles import Filter
from toolkit.dashboard.loads import Load, LoadPart, offer
from toolkit.dashboard.reading import measure_following
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell, draw_titled
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.statistics.events import league, rates_by_hour, survival_curve

KeptAnswer = Callable[[str, Callable[[], pl.DataFrame]], pl.DataFrame]
"""`toolkit.dashboard.event_reading.kept_answer` of what is shown."""

_MOST_LEGS, _MOST_LOADED = 100, 5
_BEFORE_S = 3600
"""A move is measured from the price so long before its detection."""
_LIVES, _HOURS = "How long they live", "Hours of the week"
_RANKED = {"How often by symbol": ["symbol"], "How often by legs": ["symbol", "legs"]}
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
    measures = [_LIVES, *_RANKED, *([_HOURS] if end - start >= _WEEK_S else [])]
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
    known: dict[str, Any] = {
        "source": shell.held.source,
        "subject": replace(chosen, families=(move,)).words,
        "timezone": shell.timezone,
    }
    found = kept(f"{move}, {measure}", lambda: _measured(mine, measure, held))
    if measure == _LIVES:
        figure = survival_chart(found, **known)
    elif measure == _HOURS:
        figure = event_hours_chart(found, **known)
    else:
        figure = league_chart(found, limit=_MOST_RANKED, **known)
    draw_titled(figure, "event_measured")


def _measured(lives: pl.DataFrame, measure: str, held: pl.DataFrame) -> pl.DataFrame:
    if measure == _LIVES:
        return survival_curve(lives, held=held)
    if measure == _HOURS:
        return rates_by_hour(lives, held=held)
    return league(lives, _RANKED[measure], held=held)


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
    """Show what prices did until one time after the events."""
    change, lower, upper = (row[f"return_median{end}_log_bps"] for end in ("", "_lower", "_upper"))
    band = Markdown("too few for a band")
    if lower is not None:
        band = Markdown("95 %: {} to {}").format(signed(lower, 1), signed(upper, 1))
    went, back = row["went_on_share"], row["retraced_median"]
    st.metric(
        Markdown("{} later, median (bps)").format(duration(row["horizon_s"])),
        Markdown.harmless(NULL if change is None else signed(change, 1)),
        delta=band,
        delta_color="off",
        delta_arrow="off",
        help=_FOLLOWED,
    )
    shares = [
        Markdown.harmless(NULL if share is None else f"{100 * share:.0f} %")
        for share in (went, back)
    ]
    st.caption(Markdown("{} went on, {} given back, n = {:,}").format(*shares, row["n"]))


_FOLLOWED = Markdown(
    "In the event's direction, from the first price after its detection. Given back: the median "
    "share, 0 % at the furthest price since, 100 % where the move began 1 h before."
)
