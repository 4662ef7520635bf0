"""Statistics of what a store holds, as tables: computed in one pass over all that was asked for."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from toolkit.cards import counted
from toolkit.cli.held import name_silent
from toolkit.show.sheet import Sheet
from toolkit.statistics import spread as spread_statistics
from toolkit.statistics.plausibility import notes_of
from toolkit.workspace.selection import Selection

_RATE: tuple[str, ...] = (
    "n",
    "coverage",
    "observed_share",
    "step_s",
    "n_segments",
    "longest_gap_s",
    "implausible",
    "funding_apr_mean_pct",
    "funding_apr_time_weighted_mean_pct",
    "funding_apr_std_pct",
    "funding_apr_median_pct",
    "funding_apr_q05_pct",
    "funding_apr_q95_pct",
    "half_life_s",
)
_NOT_TRACKED: str = "not_tracked"

_RATE_COLUMNS = (
    "trajectory",
    "funding_apr_mean_pct",
    "funding_apr_std_pct",
    "coverage",
    "n",
    "funding_apr_median_pct",
    "funding_apr_q05_pct",
    "funding_apr_q95_pct",
    "longest_gap_s",
)


def rate_sheet(asked: Selection) -> Sheet:
    """Measure the rates of legs as snapshots showed them, in one pass over all their rows."""
    return series_sheet(
        asked,
        asked.measured(spread_statistics.summary, column="funding_apr_pct")[0],
        f"Funding rate in force, percent a year, over {asked.window}",
        (_RATE, _RATE_COLUMNS),
        order="-funding_apr_mean_pct",
    )


def series_sheet(
    asked: Selection,
    found: pl.DataFrame,
    heading: str,
    shown: tuple[Sequence[str], Sequence[str]],
    order: str,
) -> Sheet:
    """Return the table of what was measured of series. It names those without a row."""
    name_silent(asked, found["trajectory"])
    figures, columns = shown_where_odd(shown[0], found), shown[1]
    if asked.polls is not None:
        polls = f"{counted(asked.polls.answered, 'poll')} answered, {asked.polls.missed:,} missed"
        heading += f", kept from snapshots: {polls}"
        after = list(figures).index("coverage") + 1
        figures = [*figures[:after], _NOT_TRACKED, *figures[after:]]
        columns = [*columns, "not_tracked"]
    notes = [*([] if asked.pairs is None else asked.pairs.notes), *notes_of(found)]
    source = asked.store.source.label
    return Sheet(heading, source, found, columns, order=order, figures=figures, notes=notes)


def shown_where_odd(figures: Sequence[str], found: pl.DataFrame) -> Sequence[str]:
    """Leave out the line of what is not plausible where nothing is."""
    if notes_of(found):
        return figures
    return [figure for figure in figures if figure != "implausible"]
