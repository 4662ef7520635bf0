"""The choices of the page Trajectory, kept in its link."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import polars as pl

from toolkit.charts.time_axis import clock_moment
from toolkit.charts.view import subject_of
from toolkit.dashboard.choice import Choices, Number, Picked, Switch, Zoom
from toolkit.dashboard.fee_choice import either_switch
from toolkit.dashboard.link import PRESETS, SHORT_PRESETS, Choice, held_window, read_link
from toolkit.dashboard.parts.age import age_facts, show_age, stream_ages
from toolkit.dashboard.shell import PageShell
from toolkit.dashboard.widgets import Container, side_by_side, st
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.market import Family, format_ts
from toolkit.statistics.fees import NOTIONAL
from toolkit.statistics.spread.net_episodes import LEVEL_BPS
from toolkit.workspace.snapshot_tables import held_stream

LEGS = {"none": "Legs: off", "below": "Legs: prices", "from_mean": "Legs: bps from mean"}
"""The ``legs`` of `toolkit.charts.spread_chart`, with their labels."""

_MOST_BPS = 10_000.0
_ZOOM = Zoom("zoom", Markdown("⤢ Zoom out"), None, key="trajectory_zoom")
CHOICES = Choices(
    "trajectory",
    (
        _ZOOM,
        Picked(
            "legs",
            Markdown("Legs"),
            "none",
            allowed=LEGS,
            looks={"label_visibility": "collapsed", "width": 170},
        ),
        Number(
            "threshold",
            Markdown("Time and episodes from (bps) on"),
            None,
            bounds=(0.0, _MOST_BPS),
            looks={"placeholder": f"{LEVEL_BPS:g}"},
        ),
        either_switch("threshold_either"),
        Switch("marks", Markdown("Mark spread events"), usual=True),
        Number(
            "size",
            Markdown("Size per leg"),
            NOTIONAL,
            key="notional",
            bounds=(1.0, 1e12),
            step=1000.0,
        ),
    ),
    also=("trajectory", "window", "start", "end"),
)
_FIRST_DAY, _LAST_DAY = dt.datetime(1969, 12, 31), dt.datetime(2100, 1, 2)  # noqa: DTZ001 - the calendar widget has no zones


@dataclass(frozen=True, slots=True)
class ShownPart:
    """The values of the widgets.

    ``zoom`` may extend beyond the window. ``either`` applies the threshold to the spread's size.
    ``marks`` shows events of the legs. ``notional`` is per leg, in the quote.
    """

    choice: Choice
    zoom: Interval | None
    legs: str
    threshold_bps: float | None
    either: bool
    marks: bool
    notional: float

    @property
    def view(self) -> Interval:
        """The stretch that is shown and measured."""
        return self.zoom or self.choice.window


def choose_trajectory(shell: PageShell, catalogue: pl.DataFrame, *, logged: bool) -> Choice:
    """Draw the widgets by the link.

    The trajectories of the chosen symbols are offered, and the open one. ``logged`` is whether
    spread events are stored.
    """
    state = st.session_state
    timed = state.get("preset") or state.get("trajectory_window")
    CHOICES.follow(
        lambda params, faults: _read_choice(params, catalogue, faults),
        ready=state.get("trajectory") in catalogue["stream"] and timed is not None,
    )
    row = side_by_side(key="filters_row")
    with row:
        key = st.selectbox(
            Markdown("Trajectory"),
            _offered(catalogue, shell.symbols),
            key="trajectory",
            label_visibility="collapsed",
        )
        now = shell.held.now()
        own = stream_ages(catalogue.filter(stream=key), now, stands=shell.held.clock_stands).row(
            0, named=True
        )
        if own["age_s"] != age_facts(shell.held, now)["age_s"]:  # else the bar says it
            show_age(own, "trajectory_age")
        window = held_window(catalogue, key)
        st.segmented_control(
            Markdown("Window, up to the newest row"),
            list(PRESETS),
            key="preset",
            format_func=SHORT_PRESETS.__getitem__,
            label_visibility="collapsed",
            required=True,
            width="content",
            on_change=_ZOOM.end,
        )
        spread = subject_of(key).family is Family.SPREAD
        if spread:
            CHOICES.draw("legs")
        window = _chosen_window(window)
        with st.popover(Markdown("More"), type="tertiary"):
            _choose_window(window, shell.timezone)
            if spread:
                _choose_marks(logged=logged)
    return Choice(key, window, state["preset"])


def chosen_part(choice: Choice) -> ShownPart:
    """Return all values, and write the link."""
    state = st.session_state
    if state.pop("threshold_dragged", False):
        st.rerun()  # the whole page, for the threshold's own widget
    CHOICES.write(choice.params)
    return ShownPart(choice, *CHOICES.values().values())


def take_threshold(sent: object) -> None:
    """Take over the level (bps) that a threshold was dragged to: none below zero.

    A threshold on sizes has a line below zero too.
    """
    if isinstance(sent, int | float) and math.isfinite(sent):
        level = abs(sent) if st.session_state.get("threshold_either") else max(sent, 0)
        st.session_state["threshold"] = round(min(level, _MOST_BPS), 1) or None
        st.session_state["threshold_dragged"] = True


def _offered(catalogue: pl.DataFrame, symbols: Collection[str]) -> list[str]:
    keys: list[str] = catalogue["stream"].to_list()
    if not symbols:
        return keys
    now = st.session_state["trajectory"]
    return [key for key in keys if key == now or str(subject_of(key).symbol) in symbols]


def _choose_window(window: Interval, timezone: str) -> None:
    """Draw calendars with the window. A value set in them replaces the preset."""
    state = st.session_state
    for name, ts in zip(("start", "end"), window, strict=True):
        state[name] = dt.datetime.fromtimestamp(ts, ZoneInfo(timezone)).replace(tzinfo=None)
    since, until = st.columns(2)
    _calendar(since, Markdown("From ({})").format(timezone), "start", timezone)
    _calendar(until, Markdown("To, excluded ({})").format(timezone), "end", timezone)


def _calendar(column: Container, label: Markdown, key: str, timezone: str) -> None:
    column.datetime_input(
        label,
        key=key,
        min_value=_FIRST_DAY,
        max_value=_LAST_DAY,
        step=60,
        format="YYYY-MM-DD",
        on_change=_take_calendars,
        args=(timezone,),
    )


def _take_calendars(timezone: str) -> None:
    state = st.session_state
    state["trajectory_window"] = tuple(
        int(clock_moment(state[name], timezone)) for name in ("start", "end")
    )
    state["preset"] = None
    _ZOOM.end()


def _choose_marks(*, logged: bool) -> None:
    threshold, toggles = st.columns(2, vertical_alignment="bottom")
    with threshold:
        CHOICES.draw("threshold")
    why = Markdown("The log of spread events is not stored. Data health offers to load it.")
    with toggles:
        CHOICES.draw("side")
        CHOICES.draw("marks", disabled=not logged, help=None if logged else why)


def _read_choice(params: dict[str, str], catalogue: pl.DataFrame, faults: list[Markdown]) -> None:
    state = st.session_state
    choice, wrong = read_link(params, catalogue)
    faults.extend(wrong)
    asked = params.get("trajectory", choice.trajectory)
    shown = held_stream(asked, catalogue["stream"])
    state["trajectory_absent"] = None if shown and shown[0] == choice.trajectory else asked
    state["trajectory"] = choice.trajectory
    state["preset"] = choice.preset
    state["trajectory_window"] = None if choice.preset else tuple(choice.window)


def _chosen_window(held: Interval) -> Interval:
    """Return the window of the preset, or of the calendars. Warn of an empty one."""
    state = st.session_state
    if state["preset"] is not None:
        state["trajectory_window"] = None
        return held.last(PRESETS[state["preset"]])
    start, end = state["trajectory_window"]
    if start < end:
        return Interval(start, end)
    st.warning(
        Markdown(
            "The window from {} to {} is empty: its start must lie before its end. The page "
            "shows all rows instead."
        ).format(format_ts(start), format_ts(end))
    )
    return held
