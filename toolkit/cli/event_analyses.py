"""`rail events`: how long events last, how often they open, how large they are, what followed."""

from __future__ import annotations

from typing import Annotated, Any

import polars as pl
import typer

from toolkit.cards import counted
from toolkit.cli.event_channels import channel_columns, channels_command
from toolkit.cli.event_cooccurrence import together_columns, together_command
from toolkit.cli.event_logs import (
    CLUSTER_COLUMNS,
    Group,
    LifeCluster,
    LifeGroup,
    LivesIn,
    Logs,
    OneFamily,
    OpeningsIn,
    RateCluster,
    event_store,
    families,
    group_columns,
)
from toolkit.cli.event_open import open_columns, open_command
from toolkit.cli.event_payoffs import payoff_columns, payoff_command
from toolkit.cli.event_rows import audit_columns, audit_command
from toolkit.cli.event_studies import study_columns, study_command
from toolkit.cli.options import StoredWindow
from toolkit.cli.table_options import TableOptions, tabled
from toolkit.cli.tables import show
from toolkit.columns import schema_of
from toolkit.show.sheet import Name, Sheet
from toolkit.statistics import events as event_statistics
from toolkit.statistics.conditions import Schema
from toolkit.statistics.event_survival import MOST_GROUPS

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Print how long events last, how often they open, how large they are, and what followed."""


_SURVIVAL = (
    "median_life_s",
    "median_life_lower_s",
    "median_life_upper_s",
    "n",
    "closed",
    "open",
    "reopened",
    "orphans",
    "coverage",
    "life_q25_s",
    "life_q75_s",
    "life_q90_s",
    "n_lives",
    "cut",
    *CLUSTER_COLUMNS,
)
_RATES = (
    "rate_per_day",
    "rate_lower_per_day",
    "rate_upper_per_day",
    "n",
    "coverage",
    "between_median_s",
    "rate_per_h",
    "n_not_held",
    "fano",
    *CLUSTER_COLUMNS,
)
_MAGNITUDES = (
    "size_median_pct",
    "size_q25_pct",
    "size_q75_pct",
    "size_q95_pct",
    "size_q99_pct",
    "size_largest_pct",
    "n",
    "coverage",
    "tail_10pct_index",
    "tail_10pct_lower",
    "tail_10pct_upper",
    "n_open",
    "n_opened_before",
    "tail_5pct_index",
    "size_mean_pct",
    "n_without",
)
_LEAGUE = (
    "rank",
    "rate_shrunk_per_day",
    "share",
)


def survival_columns() -> Schema:
    """Return the columns of lives, by any group."""
    return schema_of("events.survival", also=group_columns(LifeGroup))


def rate_columns() -> Schema:
    """Return the columns of rates and of leagues, by any group."""
    return schema_of("events.league", also=group_columns(Group))


def magnitude_columns() -> Schema:
    """Return the columns of magnitudes, by any group."""
    return schema_of("events.magnitudes", also=group_columns(LifeGroup))


@app.command("survival")
@tabled(survival_columns)
def survival_command(
    by: Annotated[
        list[LifeGroup] | None,
        typer.Option("--by", help="A row for each of these. May be repeated."),
    ] = None,
    family: OneFamily = None,
    cluster: LivesIn = LifeCluster.AUTO,
    *,
    within: StoredWindow,
    view: TableOptions,
) -> None:
    """Print how long events last: the times by which parts of them are over, with intervals.

    An event that is still open lived at least so far (Kaplan-Meier). One that opened before the
    window is watched from the window on. Nothing is known of an event beyond a gap of its log. The
    intervals allow for lives of one cluster that are alike.
    Groups are compared by the log-rank test. --by size takes the size at the opening, in bands from
    1, 2, 5, 10 and so on: the largest is larger for living longer. Without a window it takes all
    that is held.

    Example: rail events survival spread --by symbol
    """
    held, asked = event_store(view, within)
    logs = Logs.read(held, asked, families(family))
    lives, groups = logs.lives(), group_columns(by or [])
    found = event_statistics.survival(lives, groups, held=logs.held, cluster=cluster.value)
    columns: list[Name] = [("family", *groups), *_SURVIVAL]
    heading = f"How long events last, over {asked}"
    notes = _compared(lives, groups, logs.held)
    show(view, Sheet(heading, held.source.label, found, columns, window=asked, notes=notes))


@app.command("stats")
@tabled(rate_columns)
def stats_command(
    by: Annotated[
        list[Group] | None,
        typer.Option("--by", help="Rank these by how often. May be repeated."),
    ] = None,
    family: OneFamily = None,
    cluster: OpeningsIn = RateCluster.AUTO,
    *,
    within: StoredWindow,
    view: TableOptions,
) -> None:
    """Print how often events open, a day of time in which their log is held, with intervals.

    A gap of the log is no quiet time. Where openings come in bursts, the Fano factor is above 1 and
    the intervals are wider. With --by it is a league, the first on top, and each rate is
    also shrunk toward the mean of its family: of many groups with few events the first are those
    with luck. What became of the events is in `rail stats events`. Without a window it takes all
    that is held.

    Example: rail events stats --by symbol --top 20
    """
    held, asked = event_store(view, within)
    logs = Logs.read(held, asked, families(family))
    lives, groups = logs.lives(), group_columns(by or [])
    asked_of: dict[str, Any] = {"held": logs.held, "cluster": cluster.value}
    columns: list[Name] = [("family", *groups)]
    if groups:
        found = event_statistics.league(lives, groups, **asked_of)
        columns += [_LEAGUE[0], *_RATES[:3], *_LEAGUE[1:], *_RATES[3:]]
    else:
        found = event_statistics.rates(lives, **asked_of)
        columns += _RATES
    heading = f"How often events open, over {asked}"
    show(view, Sheet(heading, held.source.label, found, columns, window=asked))


@app.command("magnitudes")
@tabled(magnitude_columns)
def magnitudes_command(
    by: Annotated[
        list[LifeGroup] | None,
        typer.Option("--by", help="A row for each of these. May be repeated."),
    ] = None,
    family: OneFamily = None,
    *,
    within: StoredWindow,
    view: TableOptions,
) -> None:
    """Print how large events become, in percent, and how fast large ones become rare.

    Of events that opened in the window, by their largest size. Of those not closed it is the size
    so far. With a tail index of 3, sizes twice as large are 8 times as rare: it is of the largest
    10 %, which have to be 50 events. Without a window it takes all that is held.

    Example: rail events magnitudes splash --by symbol
    """
    held, asked = event_store(view, within)
    groups = group_columns(by or [])
    logs = Logs.read(held, asked, families(family))
    found = event_statistics.magnitudes(logs.lives(), groups, held=logs.held)
    heading = f"How large events become, over {asked}"
    columns: list[Name] = [("family", *groups), *_MAGNITUDES]
    show(view, Sheet(heading, held.source.label, found, columns, window=asked))


def _compared(lives: pl.DataFrame, groups: list[str], held: pl.DataFrame) -> list[str]:
    """Write a line per family on whether its groups live equally long."""
    if not groups:
        return []
    parts = lives.select("family", *groups).unique().group_by("family").len()
    few = parts.filter(pl.col("len").is_between(2, MOST_GROUPS))["family"]
    tested = lives.filter(pl.col("family").is_in(few.implode()))
    found = event_statistics.log_rank(tested, groups, held=held).drop_nulls("p_value")
    return [
        f"{row['family']}: log-rank test of {counted(row['n_groups'], 'group')}, "
        f"p = {row['p_value']:.3g} if all live equally long"
        for row in found.iter_rows(named=True)
    ]


app.command("audit")(tabled(audit_columns)(audit_command))
app.command("study")(tabled(study_columns)(study_command))
app.command("channels")(tabled(channel_columns, of_now=True)(channels_command))
app.command("open")(tabled(open_columns, of_now=True)(open_command))
app.command("payoff")(tabled(payoff_columns)(payoff_command))
app.command("together")(tabled(together_columns)(together_command))
