"""`rail stats episodes`: each stretch of time in which a spread was at or above a level."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from toolkit.cli.held import JoinOptions, MeasuredWindow, SpreadKeys, with_rows
from toolkit.cli.measured import no_rows
from toolkit.cli.table_options import TableOptions, tabled
from toolkit.cli.tables import show
from toolkit.columns import schema_of
from toolkit.market import Family
from toolkit.show.sheet import Sheet
from toolkit.statistics.conditions import Schema
from toolkit.statistics.episodes import level_words
from toolkit.statistics.spread import episodes

_COLUMNS = (
    "trajectory",
    "start_ts",
    "duration_s",
    "peak_bps",
    "area_bps_h",
    "end_ts",
    "peak_ts",
    "censored_left",
    "censored_right",
    "n",
    "coverage",
)


def episode_columns() -> Schema:
    """Return the columns of the rows of episodes."""
    return schema_of("spread.episodes", also=["spread_basis"])


@tabled(episode_columns)
def episodes_command(
    enter_bps: Annotated[
        float, typer.Option("--enter-bps", help="From which spread on an episode begins.")
    ],
    trajectories: SpreadKeys = None,
    absolute: Annotated[
        bool,
        typer.Option("--absolute", help="The size counts, |spread|, on either side of zero."),
    ] = False,
    leave_bps: Annotated[
        float | None,
        typer.Option("--leave-bps", help="Below how much it ends. Default: where it begins."),
    ] = None,
    merge_gap_s: Annotated[
        int, typer.Option("--merge-gap-s", help="Two that are at most so far apart are one.")
    ] = 0,
    min_duration_s: Annotated[
        int, typer.Option("--min-duration-s", help="Leave out those that are shorter.")
    ] = 0,
    *,
    within: MeasuredWindow,
    pairs: JoinOptions,
    view: TableOptions,
) -> None:
    """Print each stretch of time in which a spread was at or above a level, before costs.

    An episode begins where the spread is ENTER bps or more, and ends where it is less than LEAVE
    bps. It is the spread with its sign: with --absolute its size, on either side of zero. One that
    a gap or the end cuts off lasted longer than seen. Those beyond a round trip's cost are counted
    by `rail stats net-episodes --fees FILE`.

    Example: rail stats episodes --enter-bps 20 --leave-bps 5 --sort -duration_s

    Example: rail stats episodes --enter-bps 20 --absolute
    """
    joined = pairs.joining()
    options: dict[str, Any] = {
        "enter_bps": enter_bps,
        "absolute": absolute,
        "leave_bps": leave_bps,
        "merge_gap_s": merge_gap_s,
        "min_duration_s": min_duration_s,
    }
    episodes(no_rows("spread"), 0, 1, **options)  # refuses what it must
    held = view.opened(within)
    asked = within.of(held, Family.SPREAD, trajectories, joined)
    found, present = with_rows(asked, asked.analysis(episodes, **options))
    level = level_words(enter_bps, absolute=absolute)
    heading = f"Spreads, episodes {level}, over {asked.window}"
    notes = [] if asked.pairs is None else list(asked.pairs.notes)
    none_of = present.height - found["trajectory"].n_unique()
    if none_of:
        notes.append(f"{none_of} of {present.height} spreads have no episode")
    rows = asked.by_polls(found)
    show(view, Sheet(heading, held.source.label, rows, _COLUMNS, notes=notes))
