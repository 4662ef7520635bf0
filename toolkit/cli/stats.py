"""`rail stats`: statistics of what the store holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
import typer

from toolkit.cli.options import End, Start, StorePath, window
from toolkit.cli.show import console, duration, plain_table
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory
from toolkit.statistics import spread as spread_statistics
from toolkit.statistics.contract import Reason
from toolkit.store import Store
from toolkit.workspace import Settings

__all__ = ["app", "print_spreads", "spread_command"]

app = typer.Typer(help="Statistics of what the store holds.", no_args_is_help=True)

_LABEL_WIDTH, _COLUMN_WIDTH = 36, 22
"""Characters a label and a number take, which decides how many spreads stand side by side."""

_ROWS: tuple[tuple[str, str, str], ...] = (
    ("rows with both prices", "n", "count"),
    ("covered", "coverage", "share"),
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
    ("AR(1) coefficient", "ar1_phi", "plain"),
    ("half-life", "half_life_s", "s"),
    ("half-life, lower 95 %", "half_life_lower_s", "s"),
    ("half-life, upper 95 %", "half_life_upper_s", "s"),
)


@app.callback()
def _root() -> None:
    """Statistics of what the store holds."""


@app.command("spread")
def spread_command(
    trajectories: Annotated[
        list[str] | None, typer.Argument(help="Keys SYMBOL:BUY.market:SELL.market.")
    ] = None,
    start: Start = None,
    end: End = None,
    store: StorePath = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a trajectory, every column of it.")
    ] = False,
) -> None:
    """Print the statistics of spreads in the store: level, dispersion, tails, half-life.

    The spread is 1e4 ln(sell / buy) in bps; positive: long the buy leg and short the sell leg
    earns it. Without keys it takes every spread in the store, without a window all that is held.

    Example: rail stats spread BTC_USD:COINBASE.spot:KRAKEN.spot --start 2023-03-01 --end 2023-03-22
    """
    held = Store(Settings.read(base_url="http://127.0.0.1", store=store).store)
    catalogue = held.catalogue().filter(family=Family.SPREAD.value).filter(pl.col("rows") > 0)
    known = {row["trajectory"]: row for row in catalogue.iter_rows(named=True)}
    wanted = _wanted(held, trajectories, known)
    rows = [known[t.key] for t in wanted]
    all_held = Interval(
        min(row["first_ts"] for row in rows),
        max(row["last_ts"] + (row["step_s"] or 1) for row in rows),
    )
    asked = window(start, end, default=all_held)
    if as_json:
        for row in _summary(held, wanted, asked).iter_rows(named=True):
            typer.echo(json.dumps({"source": held.source.label, **row}))
    else:
        print_spreads(held, wanted, *asked)


def _wanted(store: Store, keys: list[str] | None, known: dict[str, Any]) -> list[Trajectory]:
    if not keys and not known:
        raise EmptyWindowError(f"{store.path} holds no spread yet; `rail sync` loads some")
    wanted = [Trajectory.parse(key) for key in keys or known]
    for trajectory in wanted:
        if trajectory.family is not Family.SPREAD:
            raise InputError(
                "trajectory", trajectory.key, "a spread: SYMBOL:BUY.market:SELL.market"
            )
        if trajectory.key not in known:
            held = ", ".join(list(known)[:5]) or "none"
            raise EmptyWindowError(
                f"{store.path} holds no row of {trajectory.key}; spreads held: {held}; "
                f"`rail sync {trajectory.key}` asks for it"
            )
    return wanted


def _summary(store: Store, trajectories: Sequence[Trajectory], asked: Interval) -> pl.DataFrame:
    frame = pl.concat([store.series(t, *asked) for t in trajectories])
    if frame.is_empty():
        names = ", ".join(t.key for t in trajectories)
        raise EmptyWindowError(f"{store.path} holds nothing in {asked} of {names}")
    return spread_statistics.summary(frame, *asked)


def print_spreads(store: Store, trajectories: Sequence[Trajectory], start: int, end: int) -> None:
    """Print a table with a column for each trajectory, and where its numbers are from."""
    asked = Interval(start, end)
    found = {row["trajectory"]: row for row in _summary(store, trajectories, asked).to_dicts()}
    shown = [found[t.key] for t in trajectories if t.key in found]
    console.print(f"Spread 1e4 ln(sell / buy) over {asked} · {store.source.label}")
    fitting = max(1, (console.width - _LABEL_WIDTH) // _COLUMN_WIDTH)
    for first in range(0, len(shown), fitting):
        part = shown[first : first + fitting]
        table = plain_table("", *(_heading(row) for row in part))
        for label, column, unit in _ROWS:
            suffix = " [dim]bps[/dim]" if unit == "bps" else ""
            table.add_row(label + suffix, *(_cell(row, column, unit) for row in part))
        console.print(table)


def _heading(row: dict[str, Any]) -> str:
    symbol, buy, sell = row["trajectory"].split(":")
    return f"{symbol}\nbuy {buy}\nsell {sell}"


def _cell(row: dict[str, Any], column: str, unit: str) -> str:
    """A number with its unit, or why there is none."""
    value = row[column]
    if value is None:
        names = list(row)
        reasons = (n for n in names[names.index(column) :] if n.endswith("_reason"))
        reason = row[next(reasons)]
        return f"– ({Reason(reason).words})" if reason else "–"
    return {
        "count": lambda: f"{value:,}",
        "share": lambda: f"{value:.2%}",
        "s": lambda: duration(value),
        "bps": lambda: f"{value:,.2f}",
        "plain": lambda: f"{value:.4f}",
    }[unit]()
