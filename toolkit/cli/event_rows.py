"""`rail events audit`: how true a log is to the rows of trajectories."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import polars as pl
import typer

from toolkit.cards import counted, duration
from toolkit.cli.event_logs import Group, group_columns, log_coverage, one_log
from toolkit.cli.options import StoredWindow
from toolkit.cli.table_options import TableOptions
from toolkit.cli.tables import show
from toolkit.columns import schema_of
from toolkit.errors import EmptyWindowError
from toolkit.market import EventFamily, Family, Trajectory, format_ts, parse_length, swapped
from toolkit.series import EventSeries
from toolkit.show.sheet import Cells, Name, Sheet
from toolkit.statistics import events as event_statistics
from toolkit.statistics.conditions import Schema
from toolkit.statistics.event_audit import MOVE_S
from toolkit.statistics.event_detections import trajectory_of
from toolkit.statistics.passes import in_one_pass
from toolkit.store import Store, sync_advice
from toolkit.workspace.passes import Passes
from toolkit.workspace.selection import OfLegs, Selection

_AUDIT = (
    "precision",
    "precision_lower",
    "precision_upper",
    "recall",
    "recall_lower",
    "recall_upper",
    "delay_median_s",
    "n_events",
    "n_events_judged",
    "n_episodes",
    "n_episodes_judged",
    "delay_q25_s",
    "delay_q75_s",
)
_WHY = {
    "no_rows": "of trajectories that are not held, not counted above",
    "gap": "while no such size is known",
    "below": "with less than that all the time",
    "missed": "missed by the log",
    "began_before": "whose beginning was not seen",
    "log_ended": "after the log was known last",
    "log_gap": "in a gap of the log",
    "still_open": "while an event from before may be open",
}
_WHY_SPLASH = {
    "no_rows": "of prices that are not held, or in steps longer than the move, not counted above",
    "gap": "while no move of the price is known",
}
_SIDES = {"log": "event", "rows": "episode"}
_EARLY = "a delay below 0: events open within a bar, which is known at its end"


class Audited(StrEnum):
    """The families of which a log can be held to trajectories."""

    SPREAD = "spread"
    FUNDING = "funding"
    SPLASH = "splash"


_SIZES = {
    Audited.SPREAD: "spreads of {:,.1f} bps",
    Audited.FUNDING: "differentials of {:,.1f} bps per 8 h",
    Audited.SPLASH: "moves of {:,.1f} bps within {}",
}
_ROWS = {
    Audited.SPREAD: (Family.SPREAD, "--all-spreads"),
    Audited.FUNDING: (Family.FUNDING, "--all-funding"),
    Audited.SPLASH: (Family.PRICE, "--all-prices"),
}
"""The trajectories that a log is held to, and what loads them."""


def audit_columns() -> Schema:
    """Return the columns of audits, by any group, and of what one side alone has."""
    return schema_of("events.audited", "events.audit", also=group_columns(Group))


def audit_command(
    by: Annotated[
        list[Group] | None,
        typer.Option("--by", help="A row for each of these. May be repeated."),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List what one side alone has, with why.")
    ] = False,
    family: Annotated[
        Audited, typer.Argument(help="The log: of spreads, of funding, or of splashes.")
    ] = Audited.SPREAD,
    enter_bps: Annotated[
        float | None,
        typer.Option(
            "--enter-bps",
            help="The spread that opens an event, of funding the differential per 8 h, of a "
            "splash the move. Default: the smallest size of one.",
        ),
    ] = None,
    leave_bps: Annotated[
        float | None,
        typer.Option("--leave-bps", help="Below which it is over. Default: as --enter-bps."),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option("--within", help="The time over which a splash moves. Default: 5m."),
    ] = None,
    *,
    window: StoredWindow,
    view: TableOptions,
) -> None:
    """Print how true a log of events is to the spreads, the funding or the prices in the store.

    Precision is the share of events that the rows show too. Recall is the share of episodes,
    stretches of so large a spread, differential or move, that have an event. The delay is from the
    beginning of an episode to its event, below 0 within a bar. What cannot be judged counts on
    neither side: trajectories that are not held, and gaps of the rows and of the log. --by size
    takes the largest spread of an episode, and of an event without one its own.

    Before: rail sync events/spread

    Example: rail events audit --by symbol
    """
    held = view.opened(window)
    events = one_log(held, EventFamily(family), window.start, window.end)
    lives = event_statistics.with_direction(events.lifecycles(), events.rows)
    if enter_bps is None:
        enter_bps = event_statistics.smallest_size_bps(lives, events.window, family)
    move_s = None if within is None else parse_length(within, parameter="--within")
    asked = {"enter_bps": enter_bps, "leave_bps": leave_bps, "move_s": move_s}
    everything = _audited(held, events, lives, asked)
    found = everything.filter(pl.col("audit_reason").ne_missing("no_rows"))
    notes = _alone(everything, _WHY | (_WHY_SPLASH if family is Audited.SPLASH else {}))
    notes += [*_to_load(held, everything), *log_coverage(events)]
    if listed:
        rows, columns = found.filter(pl.col("found_in") != "both"), _LISTED
    else:
        groups = group_columns(by or [])
        rows = event_statistics.audit(found, by=groups)
        notes += [_EARLY] if (rows["delay_median_s"] < 0).any() else []
        columns = (tuple(groups), *_AUDIT) if groups else _AUDIT
    sizes = _SIZES[family].format(enter_bps, duration(move_s or MOVE_S))
    heading = f"{family.capitalize()} events against {sizes} over {events.window}"
    show(
        view,
        Sheet(
            heading,
            held.source.label,
            rows,
            columns,
            window=events.window,
            notes=notes,
            cells=_CELLS if listed else {},
        ),
    )


def _audited(
    store: Store, events: EventSeries, lives: pl.DataFrame, asked_of: dict[str, Any]
) -> pl.DataFrame:
    """Hold the log to all such trajectories of the store, some at a time.

    A log in which pairs have events both ways round is held to both ways of each.
    """
    family = events.stream.family
    kind, loaded_by = _ROWS[Audited(family)]
    known = store.catalogue().filter(pl.col("rows") > 0, kind=kind.value)["stream"]
    if known.is_empty():
        advice = sync_advice(store, loaded_by, does="loads some")
        raise EmptyWindowError(f"{store.name} holds no {kind} yet; {advice}")
    held = {key: Trajectory.parse(key) for key in known}
    detected = set() if kind is Family.PRICE else set(events.detections()["trajectory"])
    if any(swapped(key) in detected or swapped(key) in held for key in detected):
        held |= {swapped(key): each for key, each in held.items() if swapped(key) not in held}
    pairs: dict[OfLegs, OfLegs] = {Trajectory.parse(key): of for key, of in held.items()}
    asked = Selection(Passes.of(store), kind.value, pairs, events.window)
    left, trajectory = lives.with_columns(trajectory_of()), pl.col("trajectory")
    not_held = trajectory.is_null() | ~trajectory.is_in(list(held))

    def audited(rows: pl.DataFrame) -> pl.DataFrame:
        nonlocal left
        mine = trajectory.is_in(rows["trajectory"].unique().implode()) | not_held
        taken, left = left.filter(mine), left.filter(~mine)
        return event_statistics.audited(
            taken.drop("trajectory"),
            rows,
            *events.window,
            family=family,
            held=events.held,
            **asked_of,
        )

    (found,) = in_one_pass(asked.groups(events.window), audited)
    return _grouped(found.sort("trajectory", maintain_order=True))


def _grouped(found: pl.DataFrame) -> pl.DataFrame:
    """Add what tells rows of an audit apart: symbol, legs, exchange, and the band of the size."""
    place = pl.col("trajectory").str.strip_prefix(f"{Family.FUNDING.value}/")
    symbol, legs = (place.str.splitn(":", 2).struct[n] for n in (0, 1))
    size = pl.coalesce("episode_peak_pct", "event_peak_pct")
    added = found.with_columns(
        symbol.alias("symbol"),
        legs.str.replace(":(pump|dump)$", "").str.replace(":", " → ", literal=True).alias("legs"),
        size.alias("size"),
    )
    return event_statistics.with_groups(added).drop("hour", "size")


def _since(row: dict[str, Any]) -> str:
    """Write when a row of an audit began."""
    return format_ts(row["episode_start"] if row["t_open"] is None else row["t_open"])


def _size(row: dict[str, Any]) -> str:
    size = row["event_peak_pct"] if row["episode_peak_pct"] is None else row["episode_peak_pct"]
    return "–" if size is None else f"{size:.2f}"


def _why(row: dict[str, Any]) -> str:
    return f"{_SIDES[row['found_in']]} {_WHY[row['audit_reason']]}"


_LISTED: tuple[Name, ...] = (
    "trajectory",
    "t_open",
    "event_peak_pct",
    "audit_reason",
)
_CELLS: Cells = {"t_open": _since, "event_peak_pct": _size, "audit_reason": _why}


def _alone(found: pl.DataFrame, why: dict[str, str]) -> list[str]:
    """Write what one side alone has, counted by why."""
    alone = found.filter(pl.col("found_in") != "both")
    counts = (
        alone.group_by("found_in", "audit_reason").len().sort("found_in", "len", descending=True)
    )
    return [
        f"{counted(number, _SIDES[found_in])} {why[reason]}"
        for found_in, reason, number in counts.iter_rows()
    ]


def _to_load(store: Store, found: pl.DataFrame) -> list[str]:
    """Write what loads the trajectory of most events without rows, if there are any."""
    held = store.catalogue().filter(pl.col("rows") > 0)["stream"].implode()
    name = pl.col("trajectory").str.replace(":(pump|dump)$", "")
    lacking = found.filter(audit_reason="no_rows").group_by(name).len()
    lacking = lacking.filter(~pl.col("trajectory").is_in(held))
    keys = lacking.sort("len", "trajectory", descending=[True, False])["trajectory"]
    if keys.is_empty():
        return []
    these = counted(keys.len(), "trajectory", "trajectories")
    return [sync_advice(store, keys[0], does=f"loads the first of {these} that are not held")]
