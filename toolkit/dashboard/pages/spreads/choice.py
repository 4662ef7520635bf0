"""Declared choices of the page of spreads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from toolkit.dashboard.choice import Choices, Marked, Number, OneOf, Picked, SomeOf, Switch
from toolkit.dashboard.fee_choice import Net, level_of
from toolkit.dashboard.link import SHORT_PRESETS
from toolkit.dashboard.pages.spreads.columns import COLUMNS, NET_COLUMNS, NET_ORDER, SORTS, USUAL
from toolkit.dashboard.screen import Screen, st
from toolkit.foreign import Markdown
from toolkit.market import Family
from toolkit.statistics.screening import SPREAD_ORDER
from toolkit.statistics.spread.net_episodes import LEVEL_BPS, Level

_HISTORY = "history"
_ROWS = {_HISTORY: Family.SPREAD.value, "snapshots": "snapshot-spread"}
_USUAL_SORT = {False: SPREAD_ORDER, True: NET_ORDER}
"""The order where none is chosen, without and with fees."""

FILTERS = (
    OneOf("rows", Markdown("Rows"), _HISTORY, allowed=tuple(_ROWS)),
    SomeOf(
        "exchange",
        Markdown("Both legs on these exchanges"),
        (),
        argument="exchanges",
        looks={"placeholder": "all"},
    ),
    SomeOf("type", Markdown("Markets"), (), argument="types", looks={"placeholder": "all"}),
    SomeOf(
        "exclude",
        Markdown("Symbols left out"),
        (),
        argument="exclude_symbols",
        looks={"placeholder": "none"},
    ),
    Number(
        "min",
        Markdown("Last |spread| at least (bps)"),
        0.0,
        where="spread_last_size_log_bps >= {:g}",
    ),
)
"""What the popover Filters has, in this order."""

_ALLOWED = {"exchange": "exchanges", "type": "type", "exclude": "symbol"}
"""The column of the spreads that has the allowed values of a filter."""

CHOICES = Choices(
    "spreads",
    (
        *FILTERS,
        Number("above", Markdown("Time and episodes from (bps) on"), LEVEL_BPS, bounds=(0.1, 1e4)),
        Switch(
            "side",
            Markdown("Of |spread|"),
            usual=False,
            key="above_either",
            on="either",
            off="above",
            looks={"help": Markdown("The size of the spread, on either side of zero.")},
        ),
        OneOf(
            "window",
            Markdown("Window"),
            "7 days",
            allowed=SHORT_PRESETS,
            looks={"label_visibility": "collapsed"},
        ),
        Marked("columns", Markdown("Columns"), USUAL, allowed=tuple(COLUMNS)),
        Picked("sort", Markdown("Order"), SPREAD_ORDER, allowed=SORTS),
        Picked(
            "matrix",
            Markdown("Last spreads between all exchanges of"),
            None,
            looks={"placeholder": "no symbol"},
        ),
    ),
)


def chosen_kind(streams: pl.DataFrame) -> str:
    """Return which rows are chosen: what was loaded, or what is kept from snapshots."""
    return _ROWS[CHOICES.given(rows=_kinds(streams)).early("rows")]


def _kinds(streams: pl.DataFrame) -> dict[str, Any]:
    return {"allowed": [word for word, kind in _ROWS.items() if kind in streams["kind"]]}


def choose(bar: Screen, streams: pl.DataFrame, names: pl.DataFrame, *, has_costs: bool) -> Choices:
    """Draw the widgets, filled from the link, and keep the link in step with them."""
    usual, state = _USUAL_SORT[has_costs], st.session_state
    if state.get("sort") in _USUAL_SORT.values():  # follows the choice of fees
        state["sort"] = usual
    known: dict[str, Mapping[str, Any]] = {
        name: {"allowed": names[column].explode().unique().sort().to_list()}
        for name, column in _ALLOWED.items()
    }
    sorts = {key: words for key, words in SORTS.items() if has_costs or not key.startswith("-net_")}
    choices = CHOICES.given(
        **known,
        rows=_kinds(streams),
        matrix=known["exclude"],
        sort={"allowed": sorts, "usual": usual},
    )
    choices.follow()
    names_of_filters = [option.name for option in FILTERS]
    with bar:
        choices.draw("window")
        active = len(choices.chosen(*names_of_filters[1:]))
        words = Markdown("Filters ({})").format(active) if active else Markdown("Filters")
        with st.popover(words, type="tertiary"):
            both = len(choices["rows"].allowed) > 1
            choices.draw(*names_of_filters[0 if both else 1 :])
        with st.popover(Markdown("Columns"), type="tertiary"):
            choices.draw("sort", "above", "side")
            choices.draw("columns", format_func=lambda name: _column_words(name, has_costs))
        with st.popover(Markdown("Heat map"), type="tertiary"):
            choices.draw("matrix")
    choices.write()
    return choices


def _column_words(name: str, has_costs: bool) -> str:
    words = COLUMNS[name].words
    return words if has_costs or name not in NET_COLUMNS else f"{words}, with fees"


def chosen_level(values: Mapping[str, Any], net: Net | None) -> Level:
    """Return the level from which on time and episodes count."""
    return level_of(net, values["above"], either=values["side"])


def level_params(choices: Choices) -> dict[str, str]:
    """Return the level that is not the usual one, as parameters of a link to a trajectory."""
    names = {"above": "threshold", "side": "side"}
    return {names[name]: text for name, text in choices.params().items() if name in names}
