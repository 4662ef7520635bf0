"""`rail stats`: statistics of what the store holds."""

from __future__ import annotations

from typing import Annotated

import typer

from toolkit.cli.held import asked_for
from toolkit.cli.measured import (
    EVENT_COUNTS,
    carries,
    event_sheet,
    funding_sheet,
    no_rows,
    spread_sheet,
)
from toolkit.cli.options import End, Start, StorePath, check_times, window
from toolkit.cli.tables import (
    FormatOption,
    OutputOption,
    SortOption,
    TopOption,
    WhereOption,
    checked_view,
    show,
)
from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Family
from toolkit.statistics import spread as spread_statistics
from toolkit.statistics.funding import MIN_COVERAGE
from toolkit.store import Store, event_logs, service_clock
from toolkit.workspace import store_path

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Print statistics of the data in the store."""


_Keys = Annotated[list[str] | None, typer.Argument(help="Keys SYMBOL:BUY.market:SELL.market.")]


_MinCoverage = Annotated[
    float,
    typer.Option(
        "--min-coverage",
        help="The least part of the window, 0 to 1, that both legs must cover for a figure.",
    ),
]


@app.command("spread")
def spread_command(
    trajectories: _Keys = None,
    start: Start = None,
    end: End = None,
    store: StorePath = None,
    form: FormatOption = None,
    sort: SortOption = None,
    top: TopOption = None,
    where: WhereOption = None,
    output: OutputOption = None,
) -> None:
    """Print the statistics of spreads in the store: level, dispersion, tails, half-life.

    The spread is 1e4 ln(sell / buy) in bps. Positive: long the buy leg and short the sell leg
    earns it. Without keys it takes every spread in the store, the largest standard deviation
    first, without a window all that is held. One spread alone is shown with every figure.

    Example: rail stats spread LTC_USDT:AURORA.spot:BOREAS.spot

    Example: rail stats spread --where "half_life_s < 3600" --top 20
    """
    columns = spread_statistics.summary(no_rows(Family.SPREAD), 0, 1).schema
    view = checked_view(form, sort, top, where, output, columns=columns)
    check_times(start, end)
    held = Store(store_path(store))
    show(view, spread_sheet(held, asked_for(held, Family.SPREAD, trajectories, start, end)))


@app.command("funding")
def funding_command(
    trajectories: _Keys = None,
    start: Start = None,
    end: End = None,
    store: StorePath = None,
    form: FormatOption = None,
    sort: SortOption = None,
    top: TopOption = None,
    where: WhereOption = None,
    output: OutputOption = None,
    min_coverage: _MinCoverage = MIN_COVERAGE,
) -> None:
    """Print the carry of funding trajectories in the store, summed settlement by settlement.

    Positive: long the buy leg and short the sell leg received it. Only the time that both legs
    cover counts. A settlement at the start of the window is not received, one at its end is.
    Without a window it takes all settlements that are held, and none ends after the last sync.
    The largest APR is first. One trajectory alone is shown with every figure. Where the service
    sends no rates of the legs, the mean of its own differential in force follows.

    Example: rail stats funding BTC_USDT:AURORA.futures:EQUINOX.futures
    """
    nothing = no_rows(Family.FUNDING)
    columns = carries(nothing, Interval(0, 1), min_coverage).schema
    view = checked_view(form, sort, top, where, output, columns=columns)
    check_times(start, end)
    held = Store(store_path(store))
    asked = asked_for(held, Family.FUNDING, trajectories, start, end)
    show(view, funding_sheet(held, asked, min_coverage))


@app.command("events")
def events_command(
    start: Start = None,
    end: End = None,
    store: StorePath = None,
    form: FormatOption = None,
    sort: SortOption = None,
    top: TopOption = None,
    where: WhereOption = None,
    output: OutputOption = None,
) -> None:
    """Print how the events in the store went: how many opened and closed, and how long they took.

    The median life counts an event that is still open as alive so far (Kaplan-Meier). Where half
    were not seen to end, there is none. Without a window it takes all that is held.

    Example: rail stats events
    """
    view = checked_view(form, sort, top, where, output, columns=EVENT_COUNTS)
    check_times(start, end)
    held = Store(store_path(store))
    with held.reading():
        ledger = held.ledger([EventLog(family) for family in EventFamily])
        logs = event_logs(held.catalogue()).drop_nulls("first_ts")
    stretches = [stretch for known in ledger.values() for stretch in known.answered]
    stretches += [Interval(a, b + 1) for a, b in logs.select("first_ts", "last_ts").iter_rows()]
    if not stretches:
        raise EmptyWindowError(
            f"{held.path} holds no event log yet; `{held.command('sync', 'events/*')}` loads them"
        )
    everything = Interval(min(s.start for s in stretches), max(s.end for s in stretches))
    asked = window(start, end, now=lambda: service_clock(held), default=lambda: everything)
    show(view, event_sheet(held, asked))
