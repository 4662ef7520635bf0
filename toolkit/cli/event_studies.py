"""`rail events study`: what prices, spreads and differentials did around events."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import polars as pl
import typer

from toolkit.cards import counted, duration
from toolkit.cli.event_logs import log_coverage, one_log
from toolkit.cli.options import StoredWindow
from toolkit.cli.table_options import TableOptions
from toolkit.cli.tables import Sheet, TableColumn, show
from toolkit.market import EventFamily, Family, Trajectory, parse_length
from toolkit.series.logs import STUDIED
from toolkit.statistics import events as event_statistics
from toolkit.statistics.conditions import Schema
from toolkit.statistics.event_changes import CONTROL_DAYS, name_of_change
from toolkit.workspace.event_rows import rows_around

_PARTS = 6
"""Rows of a study on its longer side."""

_MEASURED = {
    Family.PRICE: "the price in bps of the one known at the event, in the direction of the event",
    Family.SPREAD: "the log spread in bps, less its median before the event",
    Family.FUNDING: "the differential in percent per 8 h, less its median before the event",
}


class Less(StrEnum):
    """What is taken from the path around an event."""

    NONE = "none"
    PAST = "past"
    CONTROLS = "controls"


def study_columns() -> Schema:
    """Return the columns of studies of prices, spreads and differentials."""
    found: dict[str, pl.DataType] = {}
    event = pl.DataFrame({"trajectory": ["a"], "ts": [0]})
    for column in STUDIED.values():
        rows = pl.DataFrame({"trajectory": ["a"], "ts": [0], column: [1.0]})
        found |= event_statistics.study(event, rows, column=column, step_s=60).schema
    return found


def study_command(
    family: Annotated[
        EventFamily, typer.Argument(help="Around events of this family.")
    ] = EventFamily.SPREAD,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="KEY",
            help="What this trajectory did around the events of its symbol. Default: what that of "
            "each event did.",
        ),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option("--before", help="So long before events. Default: 1h, of funding 1d."),
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", help="So long after them. Default: as --before.")
    ] = None,
    less: Annotated[
        Less,
        typer.Option("--less", help="What is taken from each path. past: its trend before."),
    ] = Less.NONE,
    *,
    within: StoredWindow,
    view: TableOptions,
) -> None:
    """Print what followed events: the mean and median path around their openings, with bands.

    Of a splash it is the price of its leg in the direction of the event, in bps from the price
    known then. That is of the bar before, so that the first step has a part of the move that made
    the event: what followed counts from the next price. Of spread events it is the log spread, of
    funding events the differential (percent per 8 h), less the median before. An event that follows
    another too soon is left out. With --less controls it is the path beyond that of times without
    an event.

    Before: rail sync events/spread

    Example: rail events study spread --after 2h
    """
    key = None if on is None else Trajectory.parse(on)
    usual = "1d" if (key.family if key else family) == Family.FUNDING.value else "1h"
    before_s = parse_length(before or usual, parameter="--before")
    after_s = parse_length(after or before or usual, parameter="--after")
    held = view.opened(within)
    events = one_log(held, family, within.start, within.end)
    margin_s = before_s + after_s + (86_400 * CONTROL_DAYS if less is Less.CONTROLS else 0)
    found = events.study(
        rows_around(held, events, margin_s, on=key),
        on=key,
        before_s=before_s,
        after_s=after_s,
        every_s=-(-max(before_s, after_s) // _PARTS),
        less=less.value,
    )
    what = "their own trajectories" if key is None else key.key
    heading = f"What {what} did around {family.value} events over {events.window}"
    studied = _studied(found)
    columns = _path(STUDIED[studied])
    notes = [_MEASURED[studied], *_left_out(found), *log_coverage(events)]
    show(view, Sheet(heading, held.source.label, found, columns, window=events.window, notes=notes))


def _studied(found: pl.DataFrame) -> Family:
    """Return the family of what was studied, after which the columns are named."""
    return next(
        family
        for family, column in STUDIED.items()
        if name_of_change(column, "mean") in found.columns
    )


def _path(column: str) -> list[TableColumn]:
    """Return the columns of a study of a column."""
    unit = "bps" if column.endswith("_bps") or column == STUDIED[Family.PRICE] else "plain"

    def figure(heading: str, name: str) -> TableColumn:
        return TableColumn(heading, name_of_change(column, name), unit)

    return [
        TableColumn("after the event", "offset_s", "text", _offset),
        figure("mean", "mean"),
        figure("95 % from", "mean_lower"),
        figure("to", "mean_upper"),
        figure("median", "median"),
        figure("95 % from", "median_lower"),
        figure("to", "median_upper"),
        figure("a quarter below", "q25"),
        figure("above", "q75"),
        TableColumn("events", "n", "count"),
        TableColumn("clusters", "n_clusters", "count"),
    ]


def _offset(row: dict[str, Any]) -> str:
    seconds = row["offset_s"]
    return "0" if seconds == 0 else f"{'-' if seconds < 0 else ''}{duration(abs(seconds))}"


def _left_out(found: pl.DataFrame) -> list[str]:
    """Write how many events there are, and how many are left out and why."""
    row = found.row(0, named=True)
    soon = f"{row['n_overlapping']:,} that follow another too soon"
    unknown = f"{row['n_unknown']:,} of which nothing is known then"
    return [f"{counted(row['n_events'], 'event')}; left out: {soon}, {unknown}"]
