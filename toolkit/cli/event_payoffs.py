"""`rail events payoff`: what spread events would have paid, by how late they were taken."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import polars as pl
import typer

from toolkit.cards import counted, duration
from toolkit.cli.event_logs import (
    CLUSTER_COLUMNS,
    EventCluster,
    EventsIn,
    Logs,
    event_window,
)
from toolkit.cli.fees import CostOptions
from toolkit.cli.options import StoredWindow
from toolkit.cli.table_options import TableOptions
from toolkit.cli.tables import show
from toolkit.columns import schema_of
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, Trajectory, parse_length
from toolkit.show.sheet import Sheet
from toolkit.statistics import events as event_statistics
from toolkit.statistics.conditions import Schema
from toolkit.statistics.contract import real_number
from toolkit.statistics.definition import with_spread
from toolkit.statistics.event_detections import trajectory_of
from toolkit.statistics.event_positions import DELAYS_S
from toolkit.statistics.fee_table import check_held_style
from toolkit.statistics.passes import in_one_pass
from toolkit.store import Store, held_key, sync_advice
from toolkit.workspace.answers import Costs, no_rows
from toolkit.workspace.passes import Passes
from toolkit.workspace.selection import OfLegs, Selection

_MINUTE_S = 60

_FIRST = (
    "delay_s",
    "n",
    "n_closed_before",
)
_NET = (
    "net_median_bps",
    "net_mean_bps",
    "net_mean_lower_bps",
    "net_mean_upper_bps",
    "net_positive_share",
    "net_per_event_bps",
)
_COLUMNS = (
    "gross_median_bps",
    "gross_q05_bps",
    "gross_q95_bps",
    "gross_mean_bps",
    "gross_mean_lower_bps",
    "gross_mean_upper_bps",
    "gross_per_event_bps",
    "gross_positive_share",
    "held_median_s",
    "n_open",
    "n_close_lost",
    "n_opened_before",
    "n_returned_before",
    "n_unpriced",
    "n_log_gap",
    "n_no_rows",
    "n_closed",
    "n_returned",
    "n_limited",
    "coverage",
    *CLUSTER_COLUMNS,
)


class PairGroup(StrEnum):
    """What tells groups of positions apart."""

    SYMBOL = "symbol"
    LEGS = "legs"


class Taken(NamedTuple):
    """How events are taken: how late, for how long at most, down to which level, how late out."""

    delays_s: Sequence[int]
    limit_s: int | None
    exit_bps: float | None
    exit_delay_s: int

    @property
    def words(self) -> str:
        """What ends a position, in words, for a heading."""
        ends = ["held to the close"]
        if self.exit_bps is not None:
            ends.append(f"a spread of {self.exit_bps:g} bps")
        if self.limit_s is not None:
            ends.append(f"{duration(self.limit_s)} at most")
        late = f", left {duration(self.exit_delay_s)} late" if self.exit_delay_s else ""
        return " or ".join(ends) + late


_Delays = Annotated[
    list[str] | None,
    typer.Option(
        "--delay",
        help="How long after its detection an event is taken: 0, 30s, 5m. May be repeated. "
        "Default: 0, 1m, 5m and 15m.",
    ),
]
_Limit = Annotated[
    str | None,
    typer.Option("--limit", help="How long a position is held at most: 1h. Default: no limit."),
]
_ExitBps = Annotated[
    float | None,
    typer.Option("--exit-bps", help="Leave also when the log spread is at most this. bps."),
]
_ExitDelay = Annotated[
    str | None,
    typer.Option("--exit-delay", help="How long after its end an event is left. Default: 0."),
]


def payoff_columns() -> Schema:
    """Return the columns of payoffs, by any group."""
    return schema_of("events.payoff", also=PairGroup)


def payoff_command(
    delays: _Delays = None,
    limit: _Limit = None,
    exit_bps: _ExitBps = None,
    exit_delay: _ExitDelay = None,
    by: Annotated[
        list[PairGroup] | None,
        typer.Option("--by", help="Rows for each of these. May be repeated."),
    ] = None,
    cluster: EventsIn = EventCluster.PATH,
    *,
    within: StoredWindow,
    net_of: CostOptions,
    view: TableOptions,
) -> None:
    """Print what spread events would have paid, taken so long after they were detected.

    Positive: the spread fell from the entry to the exit, so that long the buy leg and short the
    sell leg earned it. Entry is at the first price known after the delay, exit at the
    first after the end. An event that is over by then is not taken, so that late entries are of
    long events. The mean "of all" counts such an event as 0. The range of the mean holds it at
    95 %. When the service shows an opening depends on the plan: that is part of a delay. Without a
    window it takes all that is held.

    Before: rail fees --example > fees.toml

    Example: rail events payoff --delay 1m --limit 2h --fees fees.toml
    """
    lengths = [_delay(each, "--delay") for each in delays or []]
    if len(set(lengths)) < len(lengths):
        raise InputError("--delay", ", ".join(delays or []), "each delay once")
    taken = Taken(
        lengths or list(DELAYS_S),
        None if limit is None else parse_length(limit, parameter="--limit"),
        None if exit_bps is None else real_number("--exit-bps", exit_bps, "basis points"),
        _delay(exit_delay or "0", "--exit-delay"),
    )
    held = view.opened(within)
    costs = net_of.chosen(held)
    if costs is not None:
        check_held_style(costs.style)
    asked = event_window(held, within.start, within.end)
    logs = Logs.read(held, asked, [EventFamily.SPREAD])
    show(
        view,
        payoff_sheet(held, logs, taken, [each.value for each in by or []], costs, cluster.value),
    )


def _delay(text: str, option: str) -> int:
    """Read a length of time, which may be 0."""
    return 0 if text in ("0", "0s") else parse_length(text, parameter=option)


def payoff_sheet(
    store: Store, logs: Logs, taken: Taken, by: Sequence[str], costs: Costs | None, cluster: str
) -> Sheet:
    """Take the spread events of a window, in one pass over the rows of their trajectories.

    Groups of which no trajectory is held are left out, and a note counts their events.
    """
    rows = _positions(store, logs.lives(), logs.held, logs.window, taken, costs)
    found = event_statistics.payoff(rows, by=by, cluster=cluster).filter(
        pl.col("n_no_rows") < pl.col("n_events")
    )
    key = [tuple(by)] if by else []
    return Sheet(
        f"What spread events would have paid, {taken.words}, over {logs.window}, "
        + (costs.heading if costs else "before fees"),
        store.source.label,
        found,
        [*key, *_FIRST, *(_NET if costs else ()), *_COLUMNS],
        notes=[*_lacking(rows, costs), *_not_held(store, rows)],
    )


def _positions(
    store: Store,
    lives: pl.DataFrame,
    held: pl.DataFrame,
    window: Interval,
    taken: Taken,
    costs: Costs | None,
) -> pl.DataFrame:
    """Compute the positions of the events, also of those whose trajectory is not held."""
    events = lives.filter(family=EventFamily.SPREAD.value).with_columns(trajectory_of())
    opened = events.filter(pl.col("t_open").is_between(*window, closed="left"))
    keys = opened["trajectory"].drop_nulls().value_counts(sort=True)["trajectory"].to_list()
    if not keys:
        raise EmptyWindowError(f"{store.name} holds no spread event that opened in {window}")
    known = store.catalogue().filter(pl.col("rows") > 0, kind=Family.SPREAD.value)
    streams = set(known["stream"])
    found = {key: at for key in keys if (at := held_key(key, streams))}
    if not found:
        raise EmptyWindowError(
            f"{store.name} holds none of the {len(keys):,} trajectories in which events opened; "
            + sync_advice(store, keys[0], does="loads the first")
        )
    pairs: dict[OfLegs, OfLegs] = {
        Trajectory.parse(key): Trajectory.parse(at) for key, at in found.items()
    }
    passes, (start, end) = Passes.of(store), window
    asked = Selection.over(passes, Family.SPREAD.value, pairs, known, start=start, end=end)
    step_s = max(asked.steps.values(), default=_MINUTE_S)
    options: dict[str, Any] = taken._asdict() | {"held": held, "step_s": asked.steps}
    if costs is not None:
        options |= costs.arguments

    def measure(rows: pl.DataFrame) -> pl.DataFrame:
        mine = events.filter(pl.col("trajectory").is_in(rows["trajectory"].unique().implode()))
        return event_statistics.positions(mine, rows, **options)

    read = Interval(window.start - step_s, window.end + taken.exit_delay_s + 5 * step_s)
    [rows] = in_one_pass(asked.groups(read), measure)
    others = events.filter(~pl.col("trajectory").is_in(rows["trajectory"].unique().implode()))
    nothing = with_spread(no_rows(Family.SPREAD.value))
    return pl.concat([rows, event_statistics.positions(others, nothing, **options)])


def _lacking(rows: pl.DataFrame, costs: Costs | None) -> list[str]:
    """Return the lines on the fee table: which it is, and what it lacks for the trajectories."""
    if costs is None:
        return []
    without = rows.filter(pl.col("gross_bps").is_not_null(), pl.col("net_bps").is_null())
    last = without.group_by("trajectory", maintain_order=True).agg(pl.col("entry_ts").max())
    words = [", ".join(costs.fees.lacking(key, costs.style, at=at)) for key, at in last.iter_rows()]
    return costs.notes(pl.DataFrame({"cost_lacks": words}, schema={"cost_lacks": pl.String}))


def _not_held(store: Store, rows: pl.DataFrame) -> list[str]:
    """Return a line on the events whose trajectory is not held, if there are any."""
    one_delay = rows.filter(pl.col("delay_s") == pl.col("delay_s").min())
    without = one_delay.filter(position_reason="no_rows")
    if without.is_empty():
        return []
    keys = without["trajectory"].value_counts(sort=True)["trajectory"]
    unheld = counted(keys.len(), "trajectory", "trajectories")
    these = f"{without.height:,} of {counted(one_delay.height, 'event')} are of {unheld}"
    return [f"{these} without rows; {sync_advice(store, keys[0], does='loads the first')}"]
