"""`rail stats`: statistics of what the store holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
import typer

from toolkit.cards import counted, duration
from toolkit.cli.figures import Figure, print_figures
from toolkit.cli.options import End, Start, StorePath, window
from toolkit.cli.show import console, plain_table
from toolkit.errors import EmptyWindowError, InputError
from toolkit.foreign import command
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Family, Trajectory, format_ts
from toolkit.statistics import events as event_statistics
from toolkit.statistics import funding as funding_statistics
from toolkit.statistics import spread as spread_statistics
from toolkit.statistics.contract import Reason
from toolkit.statistics.differentials import service_differential, without_rates
from toolkit.statistics.event_documents import identified
from toolkit.statistics.funding import MIN_COVERAGE
from toolkit.statistics.survival import median_life
from toolkit.store import Store, event_logs
from toolkit.workspace import store_path

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

_SPREAD: tuple[Figure, ...] = (
    ("rows with a spread", "n", "count"),
    ("computed from", "spread_basis", "text"),
    ("coverage", "coverage", "share"),
    ("observed share", "observed_share", "share"),
    ("step", "step_s", "s"),
    ("segments", "n_segments", "count"),
    ("longest gap", "longest_gap_s", "s"),
    ("mean", "spread_mean_log_bps", "bps"),
    ("time-weighted mean", "spread_time_weighted_mean_log_bps", "bps"),
    ("standard deviation", "spread_std_log_bps", "bps"),
    ("median", "spread_median_log_bps", "bps"),
    ("median absolute deviation", "spread_mad_log_bps", "bps"),
    ("1 % quantile", "spread_q01_log_bps", "bps"),
    ("5 % quantile", "spread_q05_log_bps", "bps"),
    ("95 % quantile", "spread_q95_log_bps", "bps"),
    ("99 % quantile", "spread_q99_log_bps", "bps"),
    ("expected shortfall above 95 %", "spread_expected_shortfall_95_log_bps", "bps"),
    ("noise, share of the variance", "noise_share", "share"),
    ("half-life", "half_life_s", "s"),
    ("half-life, lower 95 %", "half_life_lower_s", "s"),
    ("half-life, upper 95 %", "half_life_upper_s", "s"),
    ("autocorrelation it misses by", "half_life_acf_error", "plain"),
    ("AR(1) coefficient", "ar1_phi", "plain"),
    ("half-life by the AR(1)", "half_life_ar1_s", "s"),
    ("autocorrelation that misses by", "half_life_ar1_acf_error", "plain"),
    ("AR(1) outside the 95 %", "half_lives_differ", "flag"),
)


_FUNDING: tuple[Figure, ...] = (
    ("settlements", "n", "count"),
    ("of the leg bought", "n_buy", "count"),
    ("of the leg sold", "n_sell", "count"),
    ("missed between others", "n_missed", "count"),
    ("changes of interval", "n_changed", "count"),
    ("with another interval than declared", "n_declared_differs", "count"),
    ("rows that are rates in force", "n_in_force", "count"),
    ("coverage of the leg bought", "buy_coverage", "share"),
    ("coverage of the leg sold", "sell_coverage", "share"),
    ("coverage of both at once", "coverage", "share"),
    ("received on the leg bought", "buy_carry_bps", "bps"),
    ("received on the leg sold", "sell_carry_bps", "bps"),
    ("carry, received on both", "carry_bps", "bps"),
    ("simple APR of one leg's notional", "funding_apr_pct", "%"),
)

_SHOWN_ABOVE_0 = {"n_declared_differs", "n_in_force"}
"""Counts of what is unusual: their line is left out where all are 0."""


_IN_FORCE: tuple[Figure, ...] = (
    ("rows with a differential", "n", "count"),
    ("computed from", "differential_basis", "text"),
    ("coverage", "coverage", "share"),
    ("observed share", "observed_share", "share"),
    ("step", "step_s", "s"),
    ("mean over time, per 8 h", "differential_pct_8h_time_weighted_mean", "%8h"),
    ("a year at that, simple", "differential_apr_pct", "%"),
)


@app.callback()
def _root() -> None:
    """Print statistics of the data in the store."""


_AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a row, with every column.")]
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
    as_json: _AsJson = False,
) -> None:
    """Print the statistics of spreads in the store: level, dispersion, tails, half-life.

    The spread is 1e4 ln(sell / buy) in bps. Positive: long the buy leg and short the sell leg
    earns it. Without keys it takes every spread in the store, without a window all that is held.

    Example: rail stats spread BTC_USD:COINBASE.spot:KRAKEN.spot --start 2023-03-01 --end 2023-03-22
    """
    held = Store(store_path(store))
    wanted, asked = _wanted(held, Family.SPREAD, trajectories, start, end)
    if as_json:
        _print_json(held, _spreads(held, wanted, asked))
    else:
        print_spreads(held, wanted, *asked)


@app.command("funding")
def funding_command(
    trajectories: _Keys = None,
    start: Start = None,
    end: End = None,
    store: StorePath = None,
    as_json: _AsJson = False,
    min_coverage: _MinCoverage = MIN_COVERAGE,
) -> None:
    """Print the carry of funding trajectories in the store, summed settlement by settlement.

    Positive: long the buy leg and short the sell leg received it. Only the time that both legs
    cover counts. A settlement at the start of the window is not received, one at its end is.
    Without a window it takes all settlements that are held, and none ends after the last sync.
    Where the service sends no rates of the legs, only its own differential in force, the mean of
    that follows.

    Example: rail stats funding BTC_USDT:BINANCE.futures:DYDX.futures --start 2022-01-01
    """
    held = Store(store_path(store))
    wanted, asked = _wanted(held, Family.FUNDING, trajectories, start, end)
    if as_json:
        _print_json(held, _carries(held, wanted, asked, min_coverage))
        _print_json(held, _in_force(held, wanted, asked))
    else:
        print_funding(held, wanted, *asked, min_coverage=min_coverage)


@app.command("events")
def events_command(
    start: Start = None, end: End = None, store: StorePath = None, as_json: _AsJson = False
) -> None:
    """Print how the events in the store went: how many opened and closed, and how long they took.

    The median life counts an event that is still open as alive so far (Kaplan-Meier). Where half
    were not seen to end, there is none. Without a window it takes all that is held.

    Example: rail stats events --start 2026-11-01 --end 2026-11-08
    """
    held = Store(store_path(store))
    with held.reading():
        ledger = held.ledger([EventLog(family) for family in EventFamily])
        logs = event_logs(held.catalogue()).drop_nulls("first_ts")
    stretches = [stretch for known in ledger.values() for stretch in known.answered]
    stretches += [Interval(a, b + 1) for a, b in logs.select("first_ts", "last_ts").iter_rows()]
    if not stretches:
        raise EmptyWindowError(
            f"{held.path} holds no event log yet; `rail sync events/spread` loads one"
        )
    everything = Interval(min(s.start for s in stretches), max(s.end for s in stretches))
    asked = window(start, end, default=everything)
    if as_json:
        _print_json(held, event_counts(held, asked))
    else:
        print_events(held, *asked)


def event_counts(store: Store, asked: Interval) -> pl.DataFrame:
    """Count the events that touch a window, by family and kind, with their median life.

    The median counts those still open as alive so far, see
    `toolkit.statistics.survival.median_life`. ``n_unknown`` documents of ``unknown_types`` say
    neither by type nor by lifecycle what became of their event, and are in no other column.
    """
    with store.reading():
        logs = event_logs(store.catalogue())
        read = event_statistics.documents_window(asked)
        events = pl.concat([store.events(family, read) for family in EventFamily])
    events = identified(events)
    found = event_statistics.event_lifecycles(events, *asked, logs=logs).sort("family")
    kinds = {kind: pl.col("kind").eq(kind).sum() for kind in ("closed", "open", "reopened")}
    counts = found.group_by("family", maintain_order=True).agg(
        n=pl.len(),
        **kinds,
        orphans=pl.col("kind").str.starts_with("orphan").sum(),
    )
    inside = pl.col("ts").is_between(*asked, closed="left")
    unknown = (
        events.filter(pl.col("role").is_null() & inside)
        .group_by("family")
        .agg(
            n_unknown=pl.len(),
            unknown_types=pl.col("event_type").fill_null("none").unique().sort().str.join(", "),
        )
    )
    return (
        counts.join(median_life(found, ["family"]), on="family", how="left")
        .join(unknown, on="family", how="full", coalesce=True)
        .with_columns(pl.col("n_unknown").fill_null(0))
        .sort("family")
    )


def _median(row: dict[str, Any]) -> str:
    median_s, reason = row["median_life_s"], row["median_life_reason"]
    return f"– ({Reason(reason).words})" if median_s is None else duration(median_s)


def _wanted(
    store: Store, family: Family, keys: list[str] | None, start: str | None, end: str | None
) -> tuple[list[Trajectory], Interval]:
    """Choose the trajectories asked for, or all, and the window, or all that is held."""
    catalogue = store.catalogue().filter(pl.col("rows") > 0, kind=family.value)
    known = {row["stream"]: row for row in catalogue.iter_rows(named=True)}
    if not keys and not known:
        raise EmptyWindowError(f"{store.path} holds no {family} yet; `rail sync` loads some")
    wanted = [Trajectory.parse(key, _two_legs(key, family)) for key in keys or known]
    for trajectory in wanted:
        if trajectory.key not in known:
            held = ", ".join(list(known)[:5]) or "none"
            raise EmptyWindowError(
                f"{store.path} holds no {family} rows of {trajectory.key}; held: {held}; "
                f"`{command('rail', 'sync', trajectory.key)}` asks for it"
            )
    rows = [known[t.key] for t in wanted]
    all_held = [_all_of(family, row) for row in rows]
    everything = Interval(min(held.start for held in all_held), max(held.end for held in all_held))
    asked = window(start, end, default=everything)
    if family is not Family.FUNDING:
        return wanted, asked
    known_until = max(row["served_at"] for row in rows)
    if known_until <= asked.start:
        raise EmptyWindowError(
            f"{store.path} knows nothing of {family} after {format_ts(known_until)}; "
            f"`{command('rail', 'sync', wanted[0].key)}` asks for more"
        )
    return wanted, Interval(asked.start, min(asked.end, known_until))


def _all_of(family: Family, row: dict[str, Any]) -> Interval:
    """Return the window of all rows of a stream of the catalogue."""
    if family is Family.FUNDING:
        return funding_statistics.settled_window(row["first_ts"], row["last_ts"], row["step_s"])
    return Interval(row["first_ts"], row["last_ts"] + (row["step_s"] or 1))


def _two_legs(key: str, family: Family) -> Family:
    if key.count(":") != 2:
        raise InputError("trajectory", key, "two legs: SYMBOL:BUY.market:SELL.market")
    return family


def _spreads(store: Store, trajectories: Sequence[Trajectory], asked: Interval) -> pl.DataFrame:
    frame = pl.concat(store.series(t, asked) for t in trajectories)
    if frame.is_empty():
        raise _nothing_in(store, trajectories, str(asked))
    return spread_statistics.summary(frame, *asked)


def _carries(
    store: Store, trajectories: Sequence[Trajectory], asked: Interval, min_coverage: float
) -> pl.DataFrame:
    read = funding_statistics.rows_window(asked)
    frame = pl.concat(store.series(t, read) for t in trajectories)
    if not frame["ts"].is_between(*asked, closed="right").any():
        raise _nothing_in(store, trajectories, _left_open(asked))
    return funding_statistics.summary(frame, *asked, min_coverage=min_coverage)


def _nothing_in(store: Store, trajectories: Sequence[Trajectory], asked: str) -> EmptyWindowError:
    names = ", ".join(t.key for t in trajectories)
    return EmptyWindowError(f"{store.path} holds nothing in {asked} of {names}")


def _left_open(asked: Interval) -> str:
    """Format a window of settlements, which has its end and not its start."""
    return f"({format_ts(asked.start)}, {format_ts(asked.end)}]"


def _in_force(store: Store, trajectories: Sequence[Trajectory], asked: Interval) -> pl.DataFrame:
    """Average the service's own differential of the trajectories that have nothing else."""
    frame = pl.concat([store.series(t, asked) for t in trajectories])
    return service_differential(without_rates(frame), *asked)


def _print_json(store: Store, rows: pl.DataFrame) -> None:
    for row in rows.iter_rows(named=True):
        typer.echo(json.dumps({"source": store.source.label, **row}))


def print_spreads(store: Store, trajectories: Sequence[Trajectory], start: int, end: int) -> None:
    """Print a table with a column for each trajectory, and where its numbers are from."""
    asked = Interval(start, end)
    found = {row["trajectory"]: row for row in _spreads(store, trajectories, asked).to_dicts()}
    console.print(f"Spread 1e4 ln(sell / buy) over {asked} · {store.source.label}")
    print_figures([found[t.key] for t in trajectories if t.key in found], _SPREAD)


def print_funding(
    store: Store,
    trajectories: Sequence[Trajectory],
    start: int,
    end: int,
    *,
    min_coverage: float = MIN_COVERAGE,
) -> None:
    """Print a table with a column for each funding trajectory."""
    asked = Interval(start, end)
    found = _carries(store, trajectories, asked, min_coverage)
    console.print(f"Funding received over {_left_open(asked)} · {store.source.label}")
    shown = [
        figure
        for figure in _FUNDING
        if figure[1] not in _SHOWN_ABOVE_0 or found[figure[1]].gt(0).any()
    ]
    print_figures(found.to_dicts(), shown)
    in_force = _in_force(store, trajectories, asked)
    if in_force.height:
        console.print(f"The service's own differential, sell - buy in force, over {asked}")
        print_figures(in_force.to_dicts(), _IN_FORCE)


def print_events(store: Store, start: int, end: int) -> None:
    """Print a table with a row for each event log."""
    asked = Interval(start, end)
    console.print(f"Events over {asked} · {store.source.label}")
    table = plain_table(
        "", "events", "closed", "open", "close lost", "opened before", "median life"
    )
    found = event_counts(store, asked)
    names = ("n", "closed", "open", "reopened", "orphans")
    for row in found.filter(pl.col("n").is_not_null()).iter_rows(named=True):
        table.add_row(row["family"], *(f"{row[name]:,}" for name in names), _median(row))
    console.print(table)
    for row in found.filter(pl.col("n_unknown") > 0).iter_rows(named=True):
        console.print(
            f"{row['family']}: {counted(row['n_unknown'], 'document')} of unknown type "
            f"({row['unknown_types']}), kept and not counted above"
        )
