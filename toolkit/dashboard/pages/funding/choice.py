"""What the page of funding shows: one row of widgets, filled from the link and kept in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolkit.charts import FUNDING_UNITS
from toolkit.dashboard.link import PRESETS, read_number, read_option
from toolkit.dashboard.page_link import PageLink
from toolkit.dashboard.pages.funding.tables import read_pair, without_family
from toolkit.dashboard.screen import Screen, st
from toolkit.foreign import Markdown
from toolkit.statistics.fees import NOTIONAL
from toolkit.store import held_key

NOW, TIME, PAIR = "now", "time", "pair"
VIEWS = {NOW: "Now", TIME: "Through time", PAIR: "One pair"}
"""The views of the page by the word that a link has for them."""

UNITS = dict(zip(("1h", "8h", "24h", "apr"), FUNDING_UNITS, strict=True))
"""The units of rates by the word that a link has for them."""

ROWS = {"symbols": "Symbols", "legs": "Legs", "pairs": "Pairs"}
"""What the rows of the heat map are, by the word that a link has for it."""

_PRICE_WORDS = {"with": "With prices", "without": "Funding only"}
_UNIT_WORDS = dict(zip(UNITS, ("% 1 h", "% 8 h", "% day", "% year"), strict=True))
_PRESET_WORDS = {"24 hours": "1 d", "7 days": "7 d", "30 days": "30 d", "All": "all"}
_USUAL = {"unit": "apr", "window": "7 days", "rows": "symbols", "prices": "with"}
_MOST = 1e9
_KEPT = "funding_kept"
_LINK = PageLink("funding", ("view", "trajectory", *_USUAL, "size"))
_SIZE_HELP = Markdown("Notional of each leg, in the quote of the pair. Fees may depend on it.")


@dataclass(frozen=True, slots=True)
class FundingChoice:
    """What the widgets ask for.

    ``pair`` is the key of the pair as asked, None outside its view and for one that is not held.
    ``notional`` is of each leg, in the quote. ``rows`` is one of `ROWS`. ``funding_only`` leaves
    prices out of what is kept.
    """

    view: str
    unit: str
    preset: str
    notional: float
    pair: str | None
    rows: str
    funding_only: bool


def choose_funding(bar: Screen, keys: Sequence[str]) -> FundingChoice:
    """Draw the widgets, filled from the link, and keep the link in step with them.

    ``keys`` are the pairs that are held.
    """
    _follow_link(keys)
    state = st.session_state
    with bar:
        _segments(Markdown("Show"), VIEWS, "funding_view")
        pair = None
        if state["funding_view"] == PAIR and keys:
            pair = _choose_pair(keys)
        if state["funding_view"] == TIME:
            _segments(Markdown("Rows"), ROWS, "funding_rows")
        if state["funding_view"] != NOW and keys:
            _segments(
                Markdown("Window, up to the newest settlement"), _PRESET_WORDS, "funding_window"
            )
        _segments(Markdown("Unit of rates"), _UNIT_WORDS, "funding_unit")
        if state["funding_view"] != TIME:
            _segments(Markdown("What is kept"), _PRICE_WORDS, "funding_prices")
        if pair is not None:
            st.number_input(
                Markdown("Size per leg"),
                1.0,
                _MOST,
                step=1000.0,
                format="%g",
                key="funding_size",
                label_visibility="collapsed",
                help=_SIZE_HELP,
                persist_state="session",
                width=150,
            )
    _LINK.write(_widget_params(pair))
    return FundingChoice(
        state["funding_view"],
        UNITS[state["funding_unit"]],
        state["funding_window"],
        state["funding_size"],
        pair,
        state["funding_rows"],
        state["funding_prices"] == "without",
    )


def keep_choice() -> None:
    """Take unit, window and size along to the pair that is opened next."""
    written = st.session_state.get("funding_written", {})
    names = (*_USUAL, "size")
    st.session_state[_KEPT] = {name: written[name] for name in names if name in written}


def _segments(label: Markdown, words: Mapping[str, str], key: str) -> None:
    st.segmented_control(
        label,
        list(words),
        key=key,
        format_func=words.__getitem__,
        required=True,
        label_visibility="collapsed",
        persist_state="session",
    )


def _follow_link(keys: Sequence[str]) -> None:
    """Fill the widgets from a link that the page did not write itself."""
    state = st.session_state
    kept = state.pop(_KEPT, {})
    params = _LINK.to_follow(*(f"funding_{name}" for name in ("view", *_USUAL, "size")))
    if params is None:
        return
    params = kept | params
    state["funding_asked"] = params.get("trajectory")
    state["funding_pair"], faults = read_pair(params.get("trajectory"), keys)
    usual = PAIR if "trajectory" in params else NOW
    state["funding_view"] = read_option(params, "view", VIEWS, usual, faults)
    state["funding_unit"] = read_option(params, "unit", UNITS, _USUAL["unit"], faults)
    state["funding_window"] = read_option(params, "window", PRESETS, _USUAL["window"], faults)
    state["funding_rows"] = read_option(params, "rows", ROWS, _USUAL["rows"], faults)
    state["funding_prices"] = read_option(params, "prices", _PRICE_WORDS, _USUAL["prices"], faults)
    state["funding_size"] = read_number(params, "size", NOTIONAL, (1.0, _MOST), faults)
    _LINK.keep_faults(faults)


def _widget_params(pair: str | None) -> dict[str, str]:
    """Return the values of the widgets that are not the usual ones, as parameters of a link."""
    state = st.session_state
    params: dict[str, str] = {}
    if state["funding_view"] != PAIR:
        if state["funding_view"] != NOW:
            params["view"] = state["funding_view"]
    elif asked := pair or state["funding_asked"]:
        params["trajectory"] = state["funding_asked"] = asked
    else:
        params["view"] = PAIR
    for name, usual in _USUAL.items():
        if state[f"funding_{name}"] != usual:
            params[name] = state[f"funding_{name}"]
    if state["funding_size"] != NOTIONAL:
        params["size"] = f"{state['funding_size']:g}"
    return params


def _choose_pair(keys: Sequence[str]) -> str | None:
    """Draw the pairs to choose from: those held, and the one asked for the other way round."""
    state = st.session_state
    if state.get("funding_pair") is None:
        state["funding_pair"] = read_pair(state["funding_asked"], keys)[0]
    now = state["funding_pair"]
    chosen: str | None = st.selectbox(
        Markdown("Pair: symbol, leg bought, leg sold"),
        list(keys) if now is None or now in keys else [now, *keys],
        index=None if now is None else 0,
        key="funding_pair",
        format_func=without_family,
        placeholder="Choose a pair",
        label_visibility="collapsed",
        persist_state="session",
        width=330,
    )
    return chosen if chosen is not None and held_key(chosen, keys) else None
