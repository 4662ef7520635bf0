"""`rail events together`: which events come near others in time, beyond their own hours."""

from __future__ import annotations

from typing import Annotated

import polars as pl
import typer

from toolkit.cards import counted
from toolkit.cli.event_logs import Group, Logs, event_store, group_columns
from toolkit.cli.options import StoredWindow
from toolkit.cli.table_options import TableOptions
from toolkit.cli.tables import show
from toolkit.columns import schema_of
from toolkit.market import parse_length
from toolkit.show.sheet import Name, Sheet
from toolkit.statistics import events as event_statistics
from toolkit.statistics.conditions import Schema
from toolkit.store import sync_advice

_TOGETHER = (
    "ratio",
    "q_value",
    "pairs",
    "pairs_expected",
    "null_band_upper",
    "after_ratio",
    "after_q_value",
    "n",
    "n_other",
    "coverage",
)


def together_columns() -> Schema:
    """Return the columns of pairs of groups, by any group."""
    groups = group_columns(Group)
    return schema_of("events.cooccurrence", also=[*groups, *(f"other_{name}" for name in groups)])


def together_command(
    by: Annotated[
        list[Group] | None,
        typer.Option("--by", help="Compare each of these with each other. May be repeated."),
    ] = None,
    same: Annotated[
        list[Group] | None,
        typer.Option("--same", help="Count pairs of one symbol, or of the same legs, alone."),
    ] = None,
    within: Annotated[
        str, typer.Option("--within", help="How far apart openings are at most, such as 5m.")
    ] = "5m",
    *,
    window: StoredWindow,
    view: TableOptions,
) -> None:
    """Print which events open near others in time, more often than their own hours explain.

    Two openings are a pair where they are at most --within apart. Expected is what is left where
    one log is shifted by whole days, within the time that is held of both: each log keeps its
    hours and its bursts. A q of 0.05: one in twenty of the rows up to here is by chance. The surest
    are on top, and each pair is there in both orders. Without a window it takes all that is held.

    Example: rail events together --same symbol --within 10m
    """
    within_s = parse_length(within, parameter="--within")
    held, asked = event_store(view, window)
    logs = Logs.read(held, asked)
    groups, shared = (group_columns(given or []) for given in (by, same))
    found = event_statistics.cooccurrence(
        logs.lives(), groups, same=shared, held=logs.held, within_s=within_s
    ).sort("p_value", "ratio", descending=[False, True], nulls_last=True, maintain_order=True)
    names = ["family", *groups]
    others = tuple(f"other_{name}" for name in names)
    columns: list[Name] = [tuple(names), others, *_TOGETHER]
    heading = f"Which events come together within {within}, over {asked}"
    notes = _of_shifts(found)
    if found.is_empty():
        loads = sync_advice(held, "events/*", does="loads the others")
        notes.append(f"the events held are of one log, with nothing to come together with; {loads}")
    show(view, Sheet(heading, held.source.label, found, columns, window=asked, notes=notes))


def _of_shifts(found: pl.DataFrame) -> list[str]:
    """Write what the shifts of a window of few days cannot tell."""
    tested = found.drop_nulls("p_value")
    notes = []
    if tested.filter(pl.col("season_s") < 86_400).height:
        hours = "few days are held, so logs are shifted by whole hours"
        notes.append(f"{hours}: hours of the day that are busy in both count as coming together")
    least = tested.select((pl.len() / 2 / (1 + pl.col("n_shifts"))).max()).item()
    if tested.height and least > 0.05:
        pairs = counted(tested.height // 2, "pair")
        notes.append(
            f"of {pairs} and so few shifts a single one that comes together has a q of "
            f"{min(least, 1):.2g} at best: a longer window can show more"
        )
    return notes
