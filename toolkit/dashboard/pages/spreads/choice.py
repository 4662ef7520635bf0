"""The choices of the page Spreads, and the columns of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from toolkit.columns import column
from toolkit.dashboard.choice import Choices, Marked, Number, OneOf, Picked, SomeOf
from toolkit.dashboard.fee_choice import Net, either_switch, level_of
from toolkit.dashboard.link import SHORT_PRESETS
from toolkit.dashboard.parts.age import age_column
from toolkit.dashboard.parts.rows import Kind, RowColumn
from toolkit.dashboard.parts.spread_table import NET
from toolkit.dashboard.widgets import Container, st
from toolkit.foreign import Markdown
from toolkit.market import Family
from toolkit.show.values import doubt_of, half_life_note, null_text, value_text
from toolkit.statistics.screening import SPREAD_ORDER
from toolkit.statistics.spread.net_episodes import LEVEL_BPS, Level


class FigureColumn(NamedTuple):
    """A column: its figure of a result, form and own help. A phone has only the ``narrow``."""

    figure: str
    kind: Kind = "number"
    narrow: bool = False
    result: str = "spread.screen"
    help: str = ""

    @property
    def words(self) -> str:
        """Its name where columns are chosen."""
        return column(self.figure, self.result).heading


_BEYOND = (
    "With fees: the spread's size is beyond the cost of a round trip. Without: it is at or above "
    "the level under Columns."
)
_NET = "spread.net_summary"

COLUMNS = {
    "last": FigureColumn(
        "spread_last_log_bps",
        narrow=True,
        help="The newest spread, in bps of the log spread: 10,000 ln(sell price / buy price). "
        "Positive where the sell leg is dearer.",
    ),
    "percentile": FigureColumn("last_percentile", "bar"),
    "recent": FigureColumn("recent", "line", narrow=True),
    "z": FigureColumn("last_z"),
    "mean": FigureColumn("spread_mean_log_bps"),
    "std": FigureColumn("spread_std_log_bps"),
    "half_life": FigureColumn(
        "half_life_s",
        help="The time in which half of a deviation from the mean is gone, by a mean-reverting "
        "process with noise. (?): not reliable, as its 95 % interval has no upper bound. The notes "
        "say why, and why there is none.",
    ),
    "acf_half_lag": FigureColumn("acf_half_lag_s"),
    "calm_half_life": FigureColumn("half_life_without_spikes_s"),
    "reversion_q": FigureColumn(
        "reversion_q_value",
        help="Of the spreads with q up to 0.05, at most 5 % are expected not to be mean-reverting. "
        "Over all spreads tested in the window, whatever the filters.",
    ),
    "above": FigureColumn("level_share", help=f"Share of the time observed. {_BEYOND}"),
    "episodes": FigureColumn(
        "level_per_day",
        help="Episodes per day with an observed beginning.",
    ),
    "net_mean": FigureColumn("net_mean_bps", result=_NET),
    "edge_q": FigureColumn(
        "edge_q_value",
        help="Of the spreads with q up to 0.05, at most 5 % are expected to have a mean net of "
        "costs of 0 or less. Over all spreads tested in the window.",
    ),
    "cost": FigureColumn("cost_bps", result=_NET),
    "n": FigureColumn("n"),
    "coverage": FigureColumn(
        "coverage",
        help="Share of the window with an observation, for series from snapshots of the polls due.",
    ),
    "age": FigureColumn("age_s", "age"),
    "notes": FigureColumn("notes", "text"),
}
"""The columns to choose from, by their name in a link."""

NET_COLUMNS = tuple(name for name, each in COLUMNS.items() if each.figure in NET)
"""The columns that need fees."""

USUAL = tuple(
    name for name in COLUMNS if name not in ("z", "n", "coverage", "calm_half_life", "edge_q")
)
"""The columns shown by default."""

NET_ORDER = "-net_mean_bps"
"""The default order of the rows with fees."""

SORTS = {
    SPREAD_ORDER: "the widest now first",
    "-last_percentile": "the highest percentile first",
    "last_percentile": "the lowest percentile first",
    "-spread_std_log_bps": "the most variable first",
    "half_life_s": "the shortest half-life first",
    NET_ORDER: "the most left after costs first",
    "-net_share": "the longest beyond the cost first",
    "trajectory": "by symbol and legs",
}
"""The orders of the rows, named as in `rail screen --sort`."""


def shown_columns(
    lines: pl.DataFrame, names: Sequence[str], named: Mapping[str, str], net_words: Markdown | None
) -> list[RowColumn]:
    """Build the chosen columns that have figures.

    ``lines`` is of `spread_lines`. ``named`` is what a heading names by column: the window or the
    level. ``net_words`` name the fees.
    """
    legs = [f"{buy} → {sell}" for buy, sell in lines.select("buy", "sell").iter_rows()]
    columns = [
        RowColumn("symbol", "text", lines["symbol"].to_list()),
        RowColumn("buy_sell", "text", legs),
    ]
    for name, figure in COLUMNS.items():
        if name not in names or figure.figure not in lines.columns:
            continue
        if name == "age":
            columns.append(age_column(lines))
            continue
        meaning = figure.help or column(figure.figure, figure.result).meaning
        if net_words is not None and figure.figure in (*NET, *_OF_LEVEL):
            meaning = Markdown("{} {}").format(Markdown.harmless(meaning), net_words)
        columns.append(
            RowColumn(
                figure.figure,
                figure.kind,
                lines[figure.figure].to_list(),
                help=meaning,
                narrow=figure.narrow,
                of=named.get(name, ""),
                result=figure.result,
                **(_doubted(lines) if name == "half_life" else {}),
            )
        )
    return columns


def _doubted(lines: pl.DataFrame) -> dict[str, Any]:
    """Mark half-lives that are not reliable, with the reason as a tooltip."""
    shown, titles = [], []
    for line in lines.iter_rows(named=True):
        value = line["half_life_s"]
        text = value_text(value, column("half_life_s"))
        if value is None:
            text = null_text(line, "half_life_s")
        shown.append(f"{text} (?)" if doubt_of(line, "half_life_s") else text)
        titles.append(half_life_note(line) or None)
    return {"shown": shown, "titles": titles}


_OF_LEVEL = ("level_share", "level_per_day")
_HISTORY = "history"
_ROWS = {_HISTORY: Family.SPREAD.value, "snapshots": "snapshot-spread"}
_USUAL_SORT = {False: SPREAD_ORDER, True: NET_ORDER}
"""The default order, without and with fees."""

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
"""The filters in the popover, in this order."""

_ALLOWED = {"exchange": "exchanges", "type": "type", "exclude": "symbol"}
"""The column of the spreads with the allowed values of a filter."""

CHOICES = Choices(
    "spreads",
    (
        *FILTERS,
        Number("above", Markdown("Time and episodes from (bps) on"), LEVEL_BPS, bounds=(0.1, 1e4)),
        either_switch("above_either"),
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
    """Return the chosen kind of rows: loaded, or kept from snapshots."""
    return _ROWS[CHOICES.given(rows=_kinds(streams)).early("rows")]


def _kinds(streams: pl.DataFrame) -> dict[str, Any]:
    return {"allowed": [word for word, kind in _ROWS.items() if kind in streams["kind"]]}


def choose(
    bar: Container, streams: pl.DataFrame, names: pl.DataFrame, *, has_costs: bool
) -> Choices:
    """Draw the widgets, filled from the link, and write the link."""
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
    """Return the level of time and episodes."""
    return level_of(net, values["above"], either=values["side"])


def level_params(choices: Choices) -> dict[str, str]:
    """Return an unusual level as parameters of a link to a trajectory."""
    names = {"above": "threshold", "side": "side"}
    return {names[name]: text for name, text in choices.params().items() if name in names}
