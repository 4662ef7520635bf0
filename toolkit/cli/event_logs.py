"""Event logs that a command asks for: the window, the documents, and when the logs are held."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import polars as pl
import typer

from toolkit.cli.options import StoredWindow
from toolkit.cli.table_options import TableOptions
from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog
from toolkit.series import EventSeries, read_series
from toolkit.show.values import share_text
from toolkit.statistics import events as event_statistics
from toolkit.store import Store, chosen_window, event_logs, held_stretches, sync_advice


class Group(StrEnum):
    """What tells groups of events apart."""

    SYMBOL = "symbol"
    LEGS = "legs"
    EXCHANGE = "exchange"
    SIZE = "size"


class LifeGroup(StrEnum):
    """What tells groups of lives apart: also the hour of their opening, UTC."""

    SYMBOL = "symbol"
    LEGS = "legs"
    EXCHANGE = "exchange"
    SIZE = "size"
    HOUR = "hour"


class LifeCluster(StrEnum):
    """Within what lives may depend on each other."""

    AUTO = "auto"
    NONE = "none"
    PATH = "path"
    DAY = "day"
    SYMBOL = "symbol"
    TRAJECTORY = "trajectory"
    TRAJECTORY_DAY = "trajectory_day"


class RateCluster(StrEnum):
    """What may hold the bursts of openings."""

    AUTO = "auto"
    NONE = "none"
    STRETCH = "stretch"
    DAY = "day"


class EventCluster(StrEnum):
    """Within what events may depend on each other in what followed them."""

    PATH = "path"
    DAY = "day"
    TRAJECTORY = "trajectory"
    TRAJECTORY_DAY = "trajectory_day"


CLUSTER_COLUMNS = (
    "cluster",
    "n_clusters",
)
"""Which clusters the intervals of a row allow for, and how many there are."""

LivesIn = Annotated[
    LifeCluster,
    typer.Option(
        "--cluster",
        help="Within what lives may depend on each other. auto: what widens the intervals most.",
    ),
]
OpeningsIn = Annotated[
    RateCluster,
    typer.Option("--cluster", help="What may hold bursts of openings. auto: where they show."),
]
EventsIn = Annotated[
    EventCluster,
    typer.Option("--cluster", help="Within what events may depend on each other. path: in time."),
]

_COLUMNS: dict[str, str] = {"size": "size_from"}
"""The columns of groups that have another name than their option."""


def group_columns(groups: Iterable[Group | LifeGroup]) -> list[str]:
    """Return the columns that groups are told apart by.

    >>> group_columns(Group)
    ['symbol', 'legs', 'exchange', 'size_from']
    """
    return [_COLUMNS.get(each, each.value) for each in groups]


@dataclass(frozen=True, slots=True)
class Logs:
    """What a store holds of event logs in a window, and of the time before in which they opened.

    ``logs`` has family and known_until (s), and ``held`` the stretches of `held_stretches`.
    """

    window: Interval
    documents: pl.DataFrame
    logs: pl.DataFrame
    held: pl.DataFrame

    @classmethod
    def read(
        cls, store: Store, asked: Interval, families: Iterable[EventFamily] = EventFamily
    ) -> Logs:
        """Read the logs of some families, in one state of the store."""
        wanted, read = list(families), event_statistics.documents_window(asked)
        with store.reading():
            logs = event_logs(store.catalogue())
            documents = pl.concat([store.events(each, read, whole=False) for each in wanted])
            held = held_stretches(store.ledger([EventLog(each) for each in wanted]), logs)
        return cls(asked, documents, logs, held)

    def lives(self) -> pl.DataFrame:
        """Return the lifecycles that touch the window, with the columns of `with_groups`."""
        found = event_statistics.event_lifecycles(self.documents, *self.window, logs=self.logs)
        return event_statistics.with_groups(found)


OneFamily = Annotated[EventFamily | None, typer.Argument(help="Of this family alone.")]


def families(family: EventFamily | None) -> list[EventFamily]:
    """Return the family asked for alone, or all of them."""
    return [family] if family else list(EventFamily)


def one_log(store: Store, family: EventFamily, start: str | None, end: str | None) -> EventSeries:
    """Read the log of a family, without the text of its documents."""
    events = read_series(store, EventLog(family), start, end, whole=False)
    assert isinstance(events, EventSeries)
    return events


def log_coverage(events: EventSeries) -> list[str]:
    """Write in which part of the window a log is held, where the store knows."""
    (share,) = events.coverage()["coverage"]
    return [] if share is None else [f"the log is held in {share_text(share)} of the window"]


def event_store(view: TableOptions, within: StoredWindow) -> tuple[Store, Interval]:
    """Open the store named, and return it with the window asked for. Times are read first."""
    held = view.opened(within)
    return held, event_window(held, within.start, within.end)


def event_window(store: Store, start: str | None, end: str | None) -> Interval:
    """Return the window asked for, without one that of all logs. It raises `EmptyWindowError`."""
    with store.reading():
        ledger = store.ledger([EventLog(family) for family in EventFamily])
        logs = event_logs(store.catalogue()).drop_nulls("first_ts")
    stretches = [stretch for known in ledger.values() for stretch in known.answered]
    stretches += [Interval(a, b + 1) for a, b in logs.select("first_ts", "last_ts").iter_rows()]
    if not stretches:
        raise EmptyWindowError(
            f"{store.name} holds no event log yet; "
            + sync_advice(store, "events/*", does="loads them")
        )
    everything = Interval(min(s.start for s in stretches), max(s.end for s in stretches))
    return chosen_window(store, start, end, lambda: everything, names=("--start", "--end"))
