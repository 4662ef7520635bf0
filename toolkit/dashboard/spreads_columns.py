"""The columns of the page of spreads: what each shows, in which form, and what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from toolkit.dashboard.age import AGE_HELP, age_column
from toolkit.dashboard.formatting import NULL
from toolkit.dashboard.rows import Kind, RowColumn
from toolkit.dashboard.spread_table import NET
from toolkit.foreign import Markdown
from toolkit.show.half_life import half_life_doubt, half_life_note
from toolkit.statistics.screening import SPREAD_ORDER


class FigureColumn(NamedTuple):
    """A column: its words in the choice, what it shows of a row, its heading and its help.

    On a phone those that are not ``narrow`` are left out.
    """

    words: str
    figure: str
    heading: str
    help: Markdown
    kind: Kind = "number"
    digits: int = 2
    times: float = 1
    narrow: bool = False


COLUMNS = {
    "last": FigureColumn(
        "last",
        "spread_last_log_bps",
        "last (bps)",
        Markdown(
            "The newest spread, in bps of the log spread: 10,000 ln(sell price / buy price). "
            "Positive where the sell leg is dearer."
        ),
        narrow=True,
    ),
    "percentile": FigureColumn(
        "percentile of the last",
        "last_percentile",
        "percentile, {}",
        Markdown(
            "Share of the window's observations below the last, and half of those equal. None of "
            "fewer than 100."
        ),
        "bar",
        0,
    ),
    "recent": FigureColumn(
        "last 24 h",
        "recent",
        "24 h",
        Markdown("Mean of each half hour."),
        "line",
        1,
        narrow=True,
    ),
    "z": FigureColumn(
        "z-score of the last",
        "last_z",
        "z",
        Markdown("The last less the mean of the window, over its standard deviation."),
    ),
    "mean": FigureColumn(
        "mean", "spread_mean_log_bps", "mean (bps)", Markdown("Mean of the window.")
    ),
    "std": FigureColumn(
        "standard deviation",
        "spread_std_log_bps",
        "sd (bps)",
        Markdown("Standard deviation in the window."),
    ),
    "half_life": FigureColumn(
        "half-life",
        "half_life_s",
        "half-life (min)",
        Markdown(
            "In which half of a deviation from the mean is gone, where one speed beneath noise "
            "fits. (?): not believed, since its 95 % interval has no upper bound. The notes say "
            "why, also where there is none."
        ),
        digits=1,
        times=1 / 60,
    ),
    "acf_half_lag": FigureColumn(
        "lag at which the autocorrelation halves",
        "acf_half_lag_s",
        "correlation halves (min)",
        Markdown("The lag at which the autocorrelation, less noise, is half: of any spread."),
        digits=1,
        times=1 / 60,
    ),
    "calm_half_life": FigureColumn(
        "half-life without spikes",
        "half_life_without_spikes_s",
        "without spikes (min)",
        Markdown("The half-life without values beyond 6 MAD of the median."),
        digits=1,
        times=1 / 60,
    ),
    "reversion_q": FigureColumn(
        "q-value of its return",
        "reversion_q_value",
        "returns (q)",
        Markdown(
            "Of the spreads with a q up to 0.05 at most 5 % are expected to return to no level. "
            "Over all spreads of the window that have a test, whatever the filters keep."
        ),
        digits=3,
    ),
    "above": FigureColumn(
        "share of time at the level or beyond",
        "level_share",
        "{} (%)",
        Markdown(
            "Share of the time observed. With fees it is the time in which the size of the spread "
            "is beyond the cost of a round trip, else that at or above the level under Columns."
        ),
        times=100,
    ),
    "episodes": FigureColumn(
        "episodes a day",
        "level_per_day",
        "{} (n/d)",
        Markdown("How often a day it gets there, of those times whose beginning was seen."),
        digits=1,
    ),
    "net_mean": FigureColumn(
        "net mean",
        "net_mean_bps",
        "net (bps)",
        Markdown("Mean of what is left while it is beyond the cost, none where it never is."),
    ),
    "edge_q": FigureColumn(
        "q-value of the mean net",
        "edge_q_value",
        "mean net > 0 (q)",
        Markdown(
            "Of the spreads with a q up to 0.05 at most 5 % are expected to have a mean net of the "
            "cost of 0 or less at all times. Over all spreads of the window that have a test."
        ),
        digits=3,
    ),
    "cost": FigureColumn(
        "cost", "cost_bps", "cost (bps)", Markdown("Of a round trip, at the last observation.")
    ),
    "n": FigureColumn("observations", "n", "n", Markdown("Observations in the window."), digits=0),
    "coverage": FigureColumn(
        "coverage",
        "coverage",
        "coverage (%)",
        Markdown("Share of the window with an observation. Kept from snapshots: of the polls due."),
        times=100,
    ),
    "age": FigureColumn("age", "age_s", "age", AGE_HELP, "age"),
    "notes": FigureColumn(
        "notes",
        "notes",
        "notes",
        Markdown("Signs of bad prices, coverage below 100 %, and why a figure is missing."),
        "text",
    ),
}
"""The columns that can be chosen, beside the symbol and its legs, by their name in a link."""

NET_COLUMNS = tuple(name for name, column in COLUMNS.items() if column.figure in NET)
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
    lines: pl.DataFrame,
    names: Sequence[str],
    named: Mapping[str, str],
    net_words: Markdown | None,
) -> list[RowColumn]:
    """Build the columns of the page's table: each that is chosen and has figures.

    A row of ``lines`` is one of `toolkit.dashboard.spread_table.spread_lines`. ``named`` has what
    headings name: by column the window, or the level from which on time and episodes count.
    ``net_words`` name the fees of the net figures.
    """
    legs = [f"{buy} → {sell}" for buy, sell in lines.select("buy", "sell").iter_rows()]
    columns = [
        RowColumn("symbol", "text", lines["symbol"].to_list()),
        RowColumn("buy → sell", "text", legs),
    ]
    for name in _chosen(lines, names):
        if name == "age":
            columns.append(age_column(lines))
            continue
        figure = COLUMNS[name]
        cells = lines[figure.figure]
        meaning = figure.help
        if net_words is not None and figure.figure in (*NET, *_OF_LEVEL):
            meaning = Markdown("{} {}").format(meaning, net_words)
        columns.append(
            RowColumn(
                heading_of(name, named),
                figure.kind,
                (cells if figure.times == 1 else cells * figure.times).to_list(),
                figure.digits,
                meaning,
                narrow=figure.narrow,
                **(_doubted(lines, figure) if name == "half_life" else {}),
            )
        )
    return columns


def _doubted(lines: pl.DataFrame, figure: FigureColumn) -> dict[str, Any]:
    """Mark the half-lives that are not believed, and say why where one is pointed at."""
    shown, titles = [], []
    for line in lines.iter_rows(named=True):
        value, doubt = line["half_life_s"], half_life_doubt(line)
        text = NULL if value is None else f"{value * figure.times:z,.{figure.digits}f}"
        shown.append(f"{text} (?)" if doubt else text)
        titles.append(half_life_note(line) or None)
    return {"shown": shown, "titles": titles}


def heading_of(name: str, named: Mapping[str, str]) -> str:
    """Return the heading of a column, in which its window or its level is named.

    >>> heading_of("above", {"above": "≥ 20 bps"}), heading_of("percentile", {"percentile": "7 d"})
    ('≥ 20 bps (%)', 'percentile, 7 d')
    """
    return COLUMNS[name].heading.format(named.get(name, ""))


_OF_LEVEL = ("level_share", "level_per_day")


def _chosen(lines: pl.DataFrame, names: Sequence[str]) -> list[str]:
    return [name for name in COLUMNS if name in names and COLUMNS[name].figure in lines.columns]
