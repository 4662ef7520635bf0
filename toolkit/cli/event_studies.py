"""`rail events study`: what prices, spreads and differentials did around events."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import polars as pl
import typer

from toolkit.cards import counted, duration
from toolkit.cli.event_logs import (
    CLUSTER_COLUMNS,
    EventCluster,
    EventsIn,
    log_coverage,
    one_log,
)
from toolkit.cli.options import StoredWindow
from toolkit.cli.table_options import TableOptions
from toolkit.cli.tables import show
from toolkit.columns import schema_of
from toolkit.market import EventFamily, Family, Trajectory, parse_length
from toolkit.show.sheet import Sheet
from toolkit.statistics.conditions import Schema
from toolkit.statistics.event_changes import CONTROL_DAYS, STUDIED, name_of_change
from toolkit.workspace.event_rows import rows_around

_PARTS = 6
"""Rows of a study on its longer side."""

_MARGIN_S = 86_400
"""Rows further than a path's sides: a path starts, and a value is used, up to three steps late."""

_NAMES = {Family.PRICE: "price", Family.SPREAD: "spread", Family.FUNDING: "differential"}
_MEASURED = {
    Family.PRICE: "change of the price in bps, in the direction of the event",
    Family.SPREAD: "change of the log spread in bps",
    Family.FUNDING: "change of the differential in percent per 8 h",
}
_FIGURES = (
    "mean",
    "mean_lower",
    "mean_upper",
    "median",
    "median_lower",
    "median_upper",
    "q25",
    "q75",
)


class Less(StrEnum):
    """What is taken from the path around an event."""

    NONE = "none"
    PAST = "past"
    CONTROLS = "controls"


def study_columns() -> Schema:
    """Return the columns of studies of prices, spreads and differentials."""
    ways = itertools.product(STUDIED.values(), _FIGURES, (False, True))
    paths = [name_of_change(of, figure, from_detection=way) for of, figure, way in ways]
    return schema_of("events.study", also=paths)


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
    from_detection: Annotated[
        bool,
        typer.Option(
            "--from-detection",
            help="Start at what was known at the event: the move that made it then counts as what "
            "followed.",
        ),
    ] = False,
    cluster: EventsIn = EventCluster.PATH,
    *,
    within: StoredWindow,
    view: TableOptions,
) -> None:
    """Print what followed events: the mean and median path around their openings, with bands.

    Of a splash it is the price of its leg in the direction of the event, in bps. Of spread events
    it is the log spread, of funding events the differential (percent per 8 h). Paths start at the
    first value known after the event, so that the move that made it is no part of what followed.
    With --from-detection they start at the price known at the event, which is of the bar before,
    others at their median before it. An event that follows another too soon is left out. With
    --less controls it is the path beyond that of times without an event.

    Before: rail sync events/spread

    Example: rail events study spread --after 2h
    """
    key = None if on is None else Trajectory.parse(on)
    usual = "1d" if (key.family if key else family) == Family.FUNDING.value else "1h"
    before_s = parse_length(before or usual, parameter="--before")
    after_s = parse_length(after or before or usual, parameter="--after")
    held = view.opened(within)
    events = one_log(held, family, within.start, within.end)
    margin_s = before_s + after_s + _MARGIN_S * (1 + CONTROL_DAYS * (less is Less.CONTROLS))
    found = events.study(
        rows_around(held, events, margin_s, on=key),
        on=key,
        before_s=before_s,
        after_s=after_s,
        every_s=-(-max(before_s, after_s) // _PARTS),
        less=less.value,
        from_detection=from_detection,
        cluster=cluster.value,
    )
    what = "their own trajectories" if key is None else key.key
    sheet = _Studied.of(found, from_detection)
    heading = f"What {what} did around {family.value} events over {events.window}, {sheet.start}"
    notes = [*sheet.notes, *log_coverage(events)]
    columns = sheet.columns
    show(view, Sheet(heading, held.source.label, found, columns, window=events.window, notes=notes))


@dataclass(frozen=True, slots=True)
class _Studied:
    """What a study is shown as: the family of what was studied, and from where."""

    found: pl.DataFrame
    family: Family
    from_detection: bool

    @classmethod
    def of(cls, found: pl.DataFrame, from_detection: bool) -> _Studied:
        """Know the family of what was studied by the columns, which are named after it."""
        names = {
            name_of_change(column, "mean", from_detection=from_detection): family
            for family, column in STUDIED.items()
        }
        family = next(family for name, family in names.items() if name in found.columns)
        return cls(found, family, from_detection)

    @property
    def start(self) -> str:
        """Say at what the paths start."""
        if not self.from_detection:
            return f"from the first {_NAMES[self.family]} known after each"
        what = "price known at" if self.family is Family.PRICE else "median before"
        return f"from the {what} each"

    @property
    def notes(self) -> list[str]:
        """Say what the values are, how many events there are, and how many are left out and why."""
        row = self.found.row(0, named=True)
        measured = f"{_MEASURED[self.family]}, {self.start} event"
        if self.from_detection:
            measured += ": the move that made it counts as what followed"
        elif row["wait_median_s"] is not None:
            measured += f", {duration(row['wait_median_s'])} later in the median"
        soon = f"{row['n_overlapping']:,} that follow another too soon"
        unknown = f"{row['n_unknown']:,} of which nothing is known then"
        counts = f"{counted(row['n_events'], 'event')}; left out: {soon}, {unknown}"
        return [measured, counts]

    @property
    def columns(self) -> list[str]:
        """Return the columns of the table."""
        return ["offset_s", *map(self._named, _FIGURES), "n", *CLUSTER_COLUMNS]

    def _named(self, figure: str) -> str:
        column = STUDIED[self.family]
        return name_of_change(column, figure, from_detection=self.from_detection)
