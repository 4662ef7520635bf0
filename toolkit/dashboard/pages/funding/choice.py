"""The choices of the page Funding, kept in its link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.charts import FUNDING_UNITS
from toolkit.dashboard.choice import Choices, Number, OneOf
from toolkit.dashboard.pages.funding.tables import read_pair
from toolkit.dashboard.widgets import Container, st
from toolkit.foreign import Markdown
from toolkit.market import Family, Trajectory
from toolkit.statistics.fees import NOTIONAL
from toolkit.store import held_key

NOW, TIME, PAIR = "now", "time", "pair"
VIEWS = {NOW: "Now", TIME: "Through time", PAIR: "One pair"}
"""The views of the page, by their word in a link."""

UNITS = dict(zip(("1h", "8h", "24h", "apr"), FUNDING_UNITS, strict=True))
"""The units of rates, by their word in a link."""

ROWS = {"symbols": "Symbols", "legs": "Legs", "pairs": "Pairs"}
"""The rows of the heat map, by their word in a link."""

_KEPT = "funding_kept"
_BARE: dict[str, Any] = {"label_visibility": "collapsed"}
CHOICES = Choices(
    "funding",
    (
        OneOf("view", Markdown("Show"), NOW, key="funding_view", allowed=VIEWS, looks=_BARE),
        OneOf(
            "unit",
            Markdown("Unit of rates"),
            "apr",
            key="funding_unit",
            allowed=dict(zip(UNITS, ("% 1 h", "% 8 h", "% day", "% year"), strict=True)),
            looks=_BARE,
        ),
        OneOf(
            "window",
            Markdown("Window, up to the newest settlement"),
            "7 days",
            key="funding_window",
            allowed={"24 hours": "1 d", "7 days": "7 d", "30 days": "30 d", "All": "all"},
            looks=_BARE,
        ),
        OneOf("rows", Markdown("Rows"), "symbols", key="funding_rows", allowed=ROWS, looks=_BARE),
        OneOf(
            "prices",
            Markdown("What is kept"),
            "with",
            key="funding_prices",
            allowed={"with": "With prices", "without": "Funding only"},
            looks=_BARE,
        ),
        Number(
            "size",
            Markdown("Size per leg"),
            NOTIONAL,
            key="funding_size",
            bounds=(1.0, 1e9),
            step=1000.0,
            looks={
                **_BARE,
                "help": Markdown(
                    "Notional of each leg, in the quote of the pair. Fees may depend on it."
                ),
                "width": 150,
            },
        ),
    ),
    also=("trajectory",),
)


@dataclass(frozen=True, slots=True)
class FundingChoice:
    """The values of the widgets.

    ``pair`` is a key in the link's orientation, None outside its view or if not stored.
    ``notional`` is per leg, in the quote. ``funding_only`` leaves the basis out of the carry.
    """

    view: str
    unit: str
    preset: str
    notional: float
    pair: str | None
    rows: str
    funding_only: bool


def choose_funding(bar: Container, keys: Sequence[str]) -> FundingChoice:
    """Draw the widgets by the link, and write it. ``keys`` are the stored pairs."""
    CHOICES.follow(
        lambda params, faults: _read_pair(params, keys, faults),
        besides=st.session_state.pop(_KEPT, None),
    )
    view = st.session_state["funding_view"]
    pair = None
    with bar:
        CHOICES.draw("view")
        if view == PAIR and keys:
            pair = _choose_pair(keys)
        if view == TIME:
            CHOICES.draw("rows")
        if view != NOW and keys:
            CHOICES.draw("window")
        CHOICES.draw("unit")
        if view != TIME:
            CHOICES.draw("prices")
        if pair is not None:
            CHOICES.draw("size")
    named = (pair or st.session_state["funding_asked"]) if view == PAIR else None
    if named:
        st.session_state["funding_asked"] = named
    also = {"trajectory": named} if named else {}
    CHOICES.given(view={"usual": PAIR if named else NOW}).write(also)
    values = CHOICES.values()
    return FundingChoice(
        view,
        UNITS[values["unit"]],
        values["window"],
        values["size"],
        pair,
        values["rows"],
        values["prices"] == "without",
    )


def keep_choice() -> None:
    """Keep unit, window and size for the pair that is opened next."""
    written = st.session_state.get("funding_written", {})
    names = {option.name for option in CHOICES} - {"view"}
    st.session_state[_KEPT] = {name: text for name, text in written.items() if name in names}


def _read_pair(params: dict[str, str], keys: Sequence[str], faults: list[Markdown]) -> None:
    """Read the pair of a link, which implies the view of one pair."""
    state = st.session_state
    if "trajectory" in params:
        params.setdefault("view", PAIR)
    state["funding_asked"] = params.get("trajectory")
    state["funding_pair"], wrong = read_pair(params.get("trajectory"), keys)
    faults.extend(wrong)


def _choose_pair(keys: Sequence[str]) -> str | None:
    state = st.session_state
    if state.get("funding_pair") is None:
        state["funding_pair"] = read_pair(state["funding_asked"], keys)[0]
    now = state["funding_pair"]
    chosen: str | None = st.selectbox(
        Markdown("Pair: symbol, leg bought, leg sold"),
        list(keys) if now is None or now in keys else [now, *keys],
        index=None if now is None else 0,
        key="funding_pair",
        format_func=lambda key: Trajectory.parse(key, Family.FUNDING).legs_key,
        placeholder="Choose a pair",
        label_visibility="collapsed",
        persist_state="session",
        width=330,
    )
    return chosen if chosen is not None and held_key(chosen, keys) else None
