"""The bar above every page: whose data, how old, in which clock, renewed how often, net of what.

All of it is one choice for all pages, goes along from one to the other, and is in the link.
"""

from __future__ import annotations

import zoneinfo
from pathlib import Path

import polars as pl

from toolkit.charts.time_axis import clock_text
from toolkit.dashboard.choice import OPTION, PageLink
from toolkit.dashboard.fee_choice import FeeChoice
from toolkit.dashboard.fee_form import offer_form
from toolkit.dashboard.following import show_following
from toolkit.dashboard.formatting import dated, newest_end, plan_words, source_words
from toolkit.dashboard.link import read_choice, read_option, read_zone
from toolkit.dashboard.membership import show_leaving
from toolkit.dashboard.parts.age import age_facts, show_age
from toolkit.dashboard.reading import Held, store_version
from toolkit.dashboard.screen import Screen, st
from toolkit.foreign import Markdown, markdown
from toolkit.market import SnapshotTrajectory, Stream, Trajectory

_REFRESH = {"off": None, "5 s": 5, "30 s": 30, "1 min": 60}
_USUAL_REFRESH = "30 s"
_CLOCKS = PageLink("clocks", ("clock", "refresh"))
_KEPT = PageLink("kept", ("symbols", "fees", "style"))
_ZONES = {zone for zone in zoneinfo.available_timezones() if "/" in zone}
_IN_SIGHT = {"trajectory", "event", "window", "zoom", "analysis"}
"""What of a link a page shows when its choices are folded away, beside what it is named after."""

_UNKNOWN = Markdown(":gray[**UNKNOWN**]")
_BADGES = {
    "simulated": Markdown(":orange[**SIMULATED**]"),
    "replay": Markdown(":blue[**REPLAY**]"),
    "live": Markdown(":green[**LIVE**]"),
}


def choose_clock(place: Screen, path: Path) -> str:
    """Draw the clock and how often the page looks for new rows, and return the clock's zone."""
    state = st.session_state
    usual = {"clock": "UTC", "refresh": "5 s" if state.get("follow") else _USUAL_REFRESH}
    params = _CLOCKS.to_follow("clock", "refresh")
    if params is not None:
        zone, fault = read_zone(params.get("clock"))
        faults = [fault] if fault else []
        state["clock"] = zone
        state["refresh"] = read_option(params, "refresh", _REFRESH, usual["refresh"], faults)
        _CLOCKS.keep_faults(faults)
    browser = st.context.timezone or "UTC"
    first = dict.fromkeys(["UTC", browser, state["clock"]])
    label = Markdown("{} ↻ {}").format(Markdown.harmless(state["clock"]), state["refresh"])
    with place, st.popover(label, type="tertiary", key="clock_and_refresh"):
        st.selectbox(
            Markdown("Clock"),
            [*first, *sorted(_ZONES - first.keys())],
            key="clock",
            format_func=lambda zone: f"{zone} (browser)" if zone == browser != "UTC" else zone,
            persist_state="session",
        )
        st.selectbox(
            Markdown("Refresh, where the store has changed"),
            list(_REFRESH),
            key="refresh",
            persist_state="session",
        )
    chosen = {name: state[name] for name in ("clock", "refresh")}
    _CLOCKS.write({name: value for name, value in chosen.items() if value != usual[name]})
    _renew(path, _REFRESH[state["refresh"]])
    return str(state["clock"])


def _renew(path: Path, every_s: int | None) -> None:
    """Run the page again when the file has changed. Nothing moves while it has not."""
    if every_s is None:
        return
    seen = store_version(path)

    @st.fragment(run_every=every_s)
    def look() -> None:
        if store_version(path) != seen:
            st.rerun(scope="app")

    look()


def show_source(place: Screen, held: Held, timezone: str) -> None:
    """Show whose data it is and its age. A click on it opens the plan, the times and the file."""
    with place:
        with st.popover(_BADGES.get(held.source.kind, _UNKNOWN), type="tertiary"):
            st.markdown(source_words(held.source))
            st.markdown(plan_words(held.loads, dated(held.streams)))
            st.markdown(_times_words(held, timezone))
            st.markdown(Markdown("Store: {}").format(markdown(held.place, 200)))
            show_following(held)
            show_leaving()
        show_age(age_facts(held, held.now()))


def _times_words(held: Held, timezone: str) -> Markdown:
    """Format when the newest row ended and when the service answered last, by its own clock."""
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


def choose_kept(place: Screen, held: Held) -> tuple[frozenset[str], FeeChoice]:
    """Draw the symbols and the fees that all pages keep to. No symbol chosen is all of them."""
    state = st.session_state
    symbols = held_symbols(held)
    fees = FeeChoice.of(held)
    params = _KEPT.to_follow("symbols", "fees", "style")
    if params is not None:
        faults: list[Markdown] = []
        state["symbols"] = read_choice(params, "symbols", symbols, faults)
        fees.follow(params, faults)
        _KEPT.keep_faults(faults)
    with place:
        chosen = state["symbols"]
        label = Markdown("{} symbols").format(len(chosen)) if chosen else Markdown("All symbols")
        with st.popover(label, type="tertiary"):
            st.multiselect(
                Markdown("Only these symbols, on all pages but Data health"),
                symbols,
                key="symbols",
                placeholder="all",
                persist_state="session",
            )
        with st.popover(fees.label, type="tertiary"):
            fees.choose()
            offer_form(held, fees)
    kept = {"symbols": ",".join(state["symbols"])} if state["symbols"] else {}
    _KEPT.write(kept | fees.params)
    return frozenset(state["symbols"]), fees


def show_switch(place: Screen, name: str) -> None:
    """Draw the switch that unfolds a page's choices on a phone.

    It says how many of them are not the usual ones.
    """

    @st.fragment()
    def switch() -> None:
        known = (each for each in st.query_params if not each.startswith(OPTION))
        chosen = len(set(known) - _IN_SIGHT - {name})
        label = Markdown("Options ({})").format(chosen) if chosen else Markdown("Options")
        st.toggle(label, key="unfold", persist_state="session")

    with place:
        switch()


def held_symbols(held: Held) -> list[str]:
    """Return the symbols of the trajectories that are held, in order."""
    streams = map(Stream.parse, held.streams["stream"])
    return sorted(
        {str(s.symbol) for s in streams if isinstance(s, Trajectory | SnapshotTrajectory)}
    )
