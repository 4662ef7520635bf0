"""The bar above every page: source and age of the data, clock, refresh, symbols and fees.

Its choices apply to all pages and are in the link.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from streamlit import logout, session_state

from toolkit.cards import duration
from toolkit.charts.time_axis import clock_text
from toolkit.dashboard.choice import OPTION, Choices, Picked, SomeOf
from toolkit.dashboard.fee_choice import FEES, FeeChoice, offer_form
from toolkit.dashboard.link import read_zone
from toolkit.dashboard.loads import show_following
from toolkit.dashboard.parts.age import age_facts, dated, newest_end, show_age
from toolkit.dashboard.reading import StoreState
from toolkit.dashboard.widgets import Container, st
from toolkit.foreign import Markdown, markdown
from toolkit.market import SnapshotTrajectory, Source, Stream, Trajectory
from toolkit.store.file.engine import version_of

_REFRESH = {"off": None, "5 s": 5, "30 s": 30, "1 min": 60}
_USUAL_REFRESH = "30 s"


class _Zone(Picked):
    """A time zone, of all that exist."""

    def read(self, params: Mapping[str, str], faults: list[Markdown]) -> str:
        """Return the zone in a link, or the usual one and why in ``faults``."""
        return read_zone(params, self.name, faults)

    def fitted(self, value: Any) -> Any:
        """Return the zone as it is: another list of zones is drawn each time."""
        return value


_CLOCKS = Choices(
    "clocks",
    (
        _Zone("clock", Markdown("Clock"), "UTC"),
        Picked(
            "refresh",
            Markdown("Refresh, where the store has changed"),
            _USUAL_REFRESH,
            allowed=tuple(_REFRESH),
        ),
    ),
)
_KEPT = Choices(
    "kept",
    (
        SomeOf(
            "symbols",
            Markdown("Only these symbols, on all pages but Data health"),
            (),
            looks={"placeholder": "all"},
        ),
        *FEES,
    ),
)
_ZONES = {zone for zone in zoneinfo.available_timezones() if "/" in zone}
_IN_SIGHT = {"trajectory", "event", "window", "zoom", "analysis"}
"""Parameters that a page shows even when its choices are folded away on a phone."""

_UNKNOWN = Markdown(":gray[**UNKNOWN**]")
_BADGES = {
    "simulated": Markdown(":orange[**SIMULATED**]"),
    "replay": Markdown(":blue[**REPLAY**]"),
    "live": Markdown(":green[**LIVE**]"),
}


def choose_clock(place: Container, path: Path) -> str:
    """Draw the clock and the refresh, and return the clock's zone."""
    state = st.session_state
    choices = _CLOCKS.given(refresh={"usual": "5 s" if state.get("follow") else _USUAL_REFRESH})
    choices.follow()
    browser = st.context.timezone or "UTC"
    first = dict.fromkeys(["UTC", browser, state["clock"]])
    choices = choices.given(clock={"allowed": [*first, *sorted(_ZONES - first.keys())]})
    label = Markdown("{} ↻ {}").format(Markdown.harmless(state["clock"]), state["refresh"])
    with place, st.popover(label, type="tertiary", key="clock_and_refresh"):
        named = f"{browser} (browser)" if browser != "UTC" else browser
        choices.draw("clock", format_func=lambda zone: named if zone == browser else zone)
        choices.draw("refresh")
    choices.write()
    _renew(path, _REFRESH[state["refresh"]])
    return str(state["clock"])


def _renew(path: Path, every_s: int | None) -> None:
    """Run the page again when the file has changed."""
    if every_s is None:
        return
    seen = version_of(path)

    @st.fragment(run_every=every_s)
    def look() -> None:
        if version_of(path) != seen:
            st.rerun(scope="app")

    look()


def show_source(place: Container, held: StoreState, timezone: str) -> None:
    """Show the source and age of the data, and in a popover plan, times and file."""
    with place:
        with st.popover(_BADGES.get(held.source.kind, _UNKNOWN), type="tertiary"):
            st.markdown(source_words(held.source))
            st.markdown(plan_words(held.loads, dated(held.streams)))
            st.markdown(_times_words(held, timezone))
            st.markdown(Markdown("Store: {}").format(markdown(held.place, 200)))
            show_following(held)
            show_leaving()
        show_age(age_facts(held, held.now()))


def _times_words(held: StoreState, timezone: str) -> Markdown:
    """Format the end of the newest row and the service's last answer, by its clock."""
    if held.loads.is_empty():
        return Markdown("Never synced.")
    ended, as_of = newest_end(held.streams), held.as_of
    answered = held.streams["asked_at"].count()
    known = clock_text(pl.Series([ended, as_of], dtype=pl.Int64), timezone)
    newest = Markdown("No rows yet") if ended is None else Markdown("Newest row ended {}")
    asked = Markdown("last answer as of {}") if answered else Markdown("no answer yet")
    return Markdown("{}, {} {}, by the service's clock.").format(
        newest.format(known[0]), asked.format(known[1]), timezone
    )


def choose_kept(place: Container, held: StoreState) -> tuple[frozenset[str], FeeChoice]:
    """Draw the symbols and the fees of all pages. No symbols mean all."""
    fees = FeeChoice.of(held)
    choices = _KEPT.given(symbols={"allowed": held_symbols(held)}, **fees.given)
    choices.follow()
    chosen = st.session_state["symbols"]
    with place:
        label = Markdown("{} symbols").format(len(chosen)) if chosen else Markdown("All symbols")
        with st.popover(label, type="tertiary"):
            choices.draw("symbols")
        with st.popover(fees.label, type="tertiary"):
            choices.draw("fees", "style")
            offer_form(held, fees)
    choices.write()
    return frozenset(chosen), fees


def show_switch(place: Container, name: str) -> None:
    """Draw the switch that unfolds a page's choices on a phone, with their number."""

    @st.fragment()
    def switch() -> None:
        known = (each for each in st.query_params if not each.startswith(OPTION))
        chosen = len(set(known) - _IN_SIGHT - {name})
        label = Markdown("Options ({})").format(chosen) if chosen else Markdown("Options")
        st.toggle(label, key="unfold", persist_state="session")

    with place:
        switch()


def held_symbols(held: StoreState) -> list[str]:
    """Return the symbols of the stored trajectories, sorted."""
    streams = map(Stream.parse, held.streams["stream"])
    return sorted(
        {str(s.symbol) for s in streams if isinstance(s, Trajectory | SnapshotTrajectory)}
    )


def show_leaving() -> None:
    """Show the way to log out, if there was a login."""
    way = session_state.get("login")
    if way == "provider":
        st.button(Markdown("Log out"), key="log_out", on_click=logout)
    elif way == "password":
        st.markdown(Markdown("[Log out](/logout)"))


def plan_words(loads: pl.DataFrame, streams: pl.DataFrame) -> Markdown:
    """Format the plan, its quota and its delay, as far as known."""
    sent = loads.filter(pl.col("plan").is_not_null()).head(1).to_dicts()
    plan = Markdown("plan {}").format(markdown(sent[0]["plan"])) if sent else None
    parts = [plan or "plan not sent by the service"]
    if sent and sent[0]["quota"] is not None:
        window_s = sent[0]["quota_window_s"]
        within = f" in {duration(window_s)}" if window_s else ""
        parts.append(f"{sent[0]['quota']:,} requests{within}")
    if streams.height:
        worst = streams["delay_s"].sort()[-1]
        parts.append(f"rows up to {duration(worst)} late" if worst else "no delay")
    return Markdown(", ").join(parts)


def source_words(source: Source) -> Markdown:
    """Format the source as Markdown."""
    words = {
        "simulated": Markdown(":orange-badge[SIMULATED] {}, no market ever showed these numbers"),
        "replay": Markdown(":blue-badge[REPLAY] {}, recorded data"),
        "live": Markdown(":green-badge[LIVE] {}"),
        "unknown": Markdown(":gray-badge[UNKNOWN] {}"),
    }
    other = Markdown(":gray-badge[UNKNOWN] {}, of the kind {}")
    if source.by_ccxt:
        words["live"] = Markdown(":green-badge[LIVE] {}, public endpoints of exchanges, by ccxt")
    return words.get(source.kind, other).format(markdown(source.id), markdown(source.kind))
