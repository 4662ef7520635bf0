"""What is chosen on the page of spreads, in one row of widgets that are kept in its link."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from toolkit.dashboard.fee_choice import Net, level_of
from toolkit.dashboard.link import PRESETS, SHORT_PRESETS, read_choice, read_number, read_option
from toolkit.dashboard.page_link import PageLink
from toolkit.dashboard.pages.spreads.columns import COLUMNS, NET_COLUMNS, NET_ORDER, SORTS, USUAL
from toolkit.dashboard.parts.spread_table import SpreadFilters
from toolkit.dashboard.screen import Screen, st
from toolkit.foreign import Markdown
from toolkit.market import Family
from toolkit.statistics.screening import SPREAD_ORDER
from toolkit.statistics.spread.level import LEVEL_BPS, Level

_MOST_BPS = 10_000.0
_DEFAULT_WINDOW = "7 days"
_HISTORY = "history"
_ROWS = {_HISTORY: Family.SPREAD.value, "snapshots": "snapshot-spread"}
_KINDS = {"exchange": "exchanges", "type": "type", "exclude": "symbol"}
_LABELS = (
    ("exchange", Markdown("Both legs on these exchanges"), "all"),
    ("type", Markdown("Markets"), "all"),
    ("exclude", Markdown("Symbols left out"), "none"),
)
_USUAL = {"window": _DEFAULT_WINDOW, "rows": _HISTORY, "matrix": None}
_USUAL_SORT = {False: SPREAD_ORDER, True: NET_ORDER}
"""The order where none is chosen, without and with fees."""
_VALUED = ("rows", *_KINDS, "min", "above", "above_either", "window", "columns", "sort")
_LINK = PageLink("spreads", (*(n for n in _VALUED if n != "above_either"), "side", "matrix"))


class Chosen(NamedTuple):
    """What the page shows: ``matrix`` is the symbol of the heat map, None for none.

    ``either`` is whether ``above_bps`` is of the spread's size.
    """

    asked: SpreadFilters
    above_bps: float
    either: bool
    preset: str
    columns: tuple[str, ...]
    matrix: str | None

    def level(self, net: Net | None) -> Level:
        """Return the level from which on time and episodes count."""
        return level_of(net, self.above_bps, either=self.either)

    @property
    def level_params(self) -> dict[str, str]:
        """The level that is not the usual one, as parameters of a link to a trajectory."""
        params = {} if self.above_bps == LEVEL_BPS else {"threshold": f"{self.above_bps:g}"}
        return params | ({"side": "either"} if self.either else {})


def chosen_kind(streams: pl.DataFrame) -> str:
    """Return which rows are chosen: what was loaded, or what is kept from snapshots."""
    kinds = _kinds(streams)
    state = st.session_state
    params = _LINK.to_follow(*_VALUED)
    if params is not None or "rows" not in state:
        state["rows"] = read_option(params or {}, "rows", kinds, next(iter(kinds), _HISTORY), [])
    return _ROWS[state["rows"]]


def _kinds(streams: pl.DataFrame) -> dict[str, str]:
    """Return what the store has of `_ROWS`."""
    return {word: kind for word, kind in _ROWS.items() if kind in streams["kind"]}


def choose(
    bar: Screen, kind: str, streams: pl.DataFrame, names: pl.DataFrame, has_costs: bool
) -> Chosen:
    """Draw the widgets, filled from the link, and keep the link in step with them."""
    allowed = {
        name: names[column].explode().unique().sort().to_list() for name, column in _KINDS.items()
    }
    symbols = allowed["exclude"]
    sorts = [name for name in SORTS if has_costs or not name.startswith("-net_")]
    _follow_link(allowed, sorts, _USUAL_SORT[has_costs])
    state = st.session_state
    with bar:
        st.segmented_control(
            Markdown("Window"),
            list(PRESETS),
            key="window",
            required=True,
            label_visibility="collapsed",
            format_func=SHORT_PRESETS.__getitem__,
            persist_state="session",
        )
        active = sum(bool(state[name]) for name in (*_KINDS, "min"))
        words = Markdown("Filters ({})").format(active) if active else Markdown("Filters")
        with st.popover(words, type="tertiary"):
            _choose_rows(allowed, len(_kinds(streams)) > 1)
        with st.popover(Markdown("Columns"), type="tertiary"):
            _choose_columns(sorts, has_costs)
        with st.popover(Markdown("Heat map"), type="tertiary"):
            st.selectbox(
                Markdown("Last spreads between all exchanges of"),
                symbols,
                key="matrix",
                index=None,
                placeholder="no symbol",
                persist_state="session",
            )
    _LINK.write(_widget_params(_USUAL_SORT[has_costs]))
    return Chosen(
        SpreadFilters(
            kind,
            tuple(state["exchange"]),
            tuple(state["type"]),
            tuple(state["exclude"]),
            state["min"],
            state["sort"],
        ),
        state["above"],
        state["above_either"],
        state["window"],
        tuple(state["columns"]),
        state["matrix"],
    )


def _choose_rows(allowed: Mapping[str, list[str]], both: bool) -> None:
    if both:
        st.segmented_control(
            Markdown("Rows"), list(_ROWS), key="rows", required=True, persist_state="session"
        )
    for name, label, placeholder in _LABELS:
        st.multiselect(
            label, allowed[name], key=name, placeholder=placeholder, persist_state="session"
        )
    st.number_input(
        Markdown("Last |spread| at least (bps)"),
        0.0,
        _MOST_BPS,
        step=5.0,
        format="%g",
        key="min",
        persist_state="session",
    )


def _choose_columns(sorts: list[str], has_costs: bool) -> None:
    def named(name: str) -> str:
        words = COLUMNS[name].words
        return words if has_costs or name not in NET_COLUMNS else f"{words}, with fees"

    st.selectbox(
        Markdown("Order"), sorts, key="sort", format_func=SORTS.__getitem__, persist_state="session"
    )
    st.number_input(
        Markdown("Time and episodes from (bps) on"),
        0.1,
        _MOST_BPS,
        step=5.0,
        format="%g",
        key="above",
        persist_state="session",
    )
    st.toggle(
        Markdown("Of |spread|"),
        key="above_either",
        persist_state="session",
        help=Markdown("The size of the spread, on either side of zero."),
    )
    st.pills(
        Markdown("Columns"),
        list(COLUMNS),
        key="columns",
        selection_mode="multi",
        format_func=named,
        persist_state="session",
    )


def _follow_link(allowed: Mapping[str, list[str]], sorts: list[str], usual: str) -> None:
    """Fill the widgets from a link that the page did not write itself.

    ``usual`` is the order where none is chosen, which follows the choice of fees.
    """
    state = st.session_state
    params = _LINK.to_follow(*_VALUED)
    if params is None:
        for name, values in allowed.items():  # rows of another kind may have others
            state[name] = [value for value in state[name] if value in values]
        if state["sort"] not in sorts or state["sort"] in _USUAL_SORT.values():
            state["sort"] = usual
        if state["matrix"] not in allowed["exclude"]:
            state["matrix"] = None
        return
    faults: list[Markdown] = []
    for name, values in allowed.items():
        state[name] = read_choice(params, name, values, faults)
    state["min"] = read_number(params, "min", 0.0, (0.0, _MOST_BPS), faults)
    state["above"] = read_number(params, "above", LEVEL_BPS, (0.1, _MOST_BPS), faults)
    side = read_option(params, "side", ("above", "either"), "above", faults)
    state["above_either"] = side == "either"
    state["window"] = read_option(params, "window", PRESETS, _DEFAULT_WINDOW, faults)
    state["sort"] = read_option(params, "sort", sorts, usual, faults)
    state["columns"] = read_choice(params, "columns", list(COLUMNS), faults) or list(USUAL)
    state["matrix"] = next(iter(read_choice(params, "matrix", allowed["exclude"], faults)), None)
    _LINK.keep_faults(faults)


def _widget_params(usual_sort: str) -> dict[str, str]:
    """Return the values of the widgets that are not the usual ones, as parameters of a link."""
    state = st.session_state
    params = {name: ",".join(state[name]) for name in _KINDS if state[name]}
    for name, default in (("min", 0.0), ("above", LEVEL_BPS)):
        if state[name] != default:
            params[name] = f"{state[name]:g}"
    if state["above_either"]:
        params["side"] = "either"
    if set(state["columns"]) != set(USUAL):
        params["columns"] = ",".join(name for name in COLUMNS if name in state["columns"])
    for name, usual in (_USUAL | {"sort": usual_sort}).items():
        if state.get(name, usual) != usual:
            params[name] = state[name]
    return params
