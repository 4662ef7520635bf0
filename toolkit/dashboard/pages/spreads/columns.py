"""The columns of the page of spreads: what each shows, in which form, and what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from toolkit.columns import column
from toolkit.dashboard.parts.age import age_column
from toolkit.dashboard.parts.rows import Kind, RowColumn
from toolkit.dashboard.parts.spread_table import NET
from toolkit.foreign import Markdown
from toolkit.show.half_life import half_life_note
from toolkit.show.values import doubt_of, null_text, value_text
from toolkit.statistics.screening import SPREAD_ORDER


class FigureColumn(NamedTuple):
    """A column: what it shows of a row, of which result, in which form, and help of its own.

    On a phone those that are not ``narrow`` are left out.
    """

    figure: str
    kind: Kind = "number"
    narrow: bool = False
    result: str = "spread.screen"
    help: str = ""

    @property
    def words(self) -> str:
        """What it is called where columns are chosen."""
        return column(self.figure, self.result).heading


_BEYOND = (
    "With fees it is the time in which the size of the spread is beyond the cost of a round trip, "
    "else that at or above the level under Columns."
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
        help="In which half of a deviation from the mean is gone, where one speed beneath noise "
        "fits. (?): not believed, since its 95 % interval has no upper bound. The notes say why, "
        "also where there is none.",
    ),
    "acf_half_lag": FigureColumn("acf_half_lag_s"),
    "calm_half_life": FigureColumn("half_life_without_spikes_s"),
    "reversion_q": FigureColumn(
        "reversion_q_value",
        help="Of the spreads with a q up to 0.05 at most 5 % are expected to return to no level. "
        "Over all spreads of the window that have a test, whatever the filters keep.",
    ),
    "above": FigureColumn("level_share", help=f"Share of the time observed. {_BEYOND}"),
    "episodes": FigureColumn(
        "level_per_day",
        help="How often a day it gets there, of those times whose beginning was seen.",
    ),
    "net_mean": FigureColumn("net_mean_bps", result=_NET),
    "edge_q": FigureColumn(
        "edge_q_value",
        help="Of the spreads with a q up to 0.05 at most 5 % are expected to have a mean net of "
        "the cost of 0 or less at all times. Over all spreads of the window that have a test.",
    ),
    "cost": FigureColumn("cost_bps", result=_NET),
    "n": FigureColumn("n"),
    "coverage": FigureColumn(
        "coverage",
        help="Share of the window with an observation. Kept from snapshots: of the polls due.",
    ),
    "age": FigureColumn("age_s", "age"),
    "notes": FigureColumn("notes", "text"),
}
"""The columns that can be chosen, beside the symbol and its legs, by their name in a link."""

NET_COLUMNS = tuple(name for name, each in COLUMNS.items() if each.figure in NET)
"""The columns that are there with fees alone."""

USUAL = tuple(
    name for name in COLUMNS if name not in ("z", "n", "coverage", "calm_half_life", "edge_q")
)
"""The columns that are shown where none were chosen. The net ones are there with fees alone."""

NET_ORDER = "-net_mean_bps"
"""The order of the rows with fees, where none is chosen."""

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
"""The orders of the rows, in words. Their names are those of `rail screen --sort`."""


def shown_columns(
    lines: pl.DataFrame, names: Sequence[str], named: Mapping[str, str], net_words: Markdown | None
) -> list[RowColumn]:
    """Build the columns of the page's table: each that is chosen and has figures.

    A row of ``lines`` is one of `toolkit.dashboard.parts.spread_table.spread_lines`. ``named`` has
    what headings name: by column the window, or the level from which on time and episodes count.
    ``net_words`` name the fees of the net figures.
    """
    legs = [f"{buy} → {sell}" for buy, sell in lines.select("buy", "sell").iter_rows()]
    columns = [
        RowColumn("symbol", "text", lines["symbol"].to_list()),
        RowColumn("buy_sell", "text", legs),
    ]
    for name in _chosen(lines, names):
        if name == "age":
            columns.append(age_column(lines))
            continue
        figure = COLUMNS[name]
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
    """Mark the half-lives that are not believed, and say why where one is pointed at."""
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


def _chosen(lines: pl.DataFrame, names: Sequence[str]) -> list[str]:
    return [name for name in COLUMNS if name in names and COLUMNS[name].figure in lines.columns]
