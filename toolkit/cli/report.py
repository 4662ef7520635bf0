"""`rail report`: reports on the store as HTML files, and their verification."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from toolkit.cards import some
from toolkit.cli.options import StoredWindow, asks, grouped, selected
from toolkit.cli.output import AsOf, store_as_of
from toolkit.cli.show import console, errors
from toolkit.commands import ExitCode, rail
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, Stream, Symbol, Trajectory, format_ts
from toolkit.reports import verify
from toolkit.reports.making import Draft, check_path, reading_workspace
from toolkit.reports.plans import (
    add_events,
    add_symbol,
    add_trajectories,
    add_watchlist,
    checked_parts,
    watched_streams,
)
from toolkit.store import Store, chosen_window, service_clock, sync_advice
from toolkit.workspace.events.event_selection import event_window
from toolkit.workspace.loading import wanted_watchlist
from toolkit.workspace.selection import Passes, held_window

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)

_Keys = Annotated[
    list[str] | None,
    typer.Argument(help="Keys SYMBOL:BUY.market:SELL.market, or patterns such as BTC_USDT:*."),
]
_Parts = Annotated[
    list[str] | None,
    typer.Option(
        "--part",
        metavar="NAME",
        help="An analysis to add, by the name of its method: tail_index. May be repeated.",
    ),
]
_TO = typer.Option("--to", metavar="FILE", help="The HTML file. Default: report-WHAT.html here.")
_AGAINST = typer.Option(
    "--against", metavar="FILE", help="An earlier report: changes since then come first."
)


@dataclass(frozen=True, slots=True)
class _EventReport(StoredWindow):
    """Options of a report: its window, its store, and its file."""

    as_of: AsOf = None
    to: Annotated[Path | None, _TO] = None
    against: Annotated[Path | None, _AGAINST] = None

    def draft(self, what: str, *, fees: Path | None = None, **on: Any) -> Draft:
        """Begin a report. Raises `InputError` for wrong options, before rows are read."""
        self.check()
        check_path(self._path(what))
        held = store_as_of(self.store, self.as_of)
        return Draft(reading_workspace(held, as_of=held.as_of, fees=fees), self.against, **on)

    def _path(self, what: str) -> Path:
        return self.to or Path(f"report-{what}.html")

    def write(self, what: str, draft: Draft, title: str) -> None:
        """Write the report, and say how to verify it."""
        file = draft.write(self._path(what), title)
        store = draft.workspace.store
        place = Path(store.published or store.path)
        again = rail("report", "--verify", str(file), store=place)
        console.print(f"{file} is written, of {draft.pin.words}; to check it later: {again}")


@dataclass(frozen=True, slots=True)
class _Report(_EventReport):
    """Options of a report on trajectories, which have costs and may be measured on a cluster."""

    cluster: str | None = None
    plain_text: bool = False
    fees: Path | None = None

    def draft(self, what: str, **_: Any) -> Draft:
        on = {"cluster": self.cluster, "plain_text": self.plain_text}
        return _EventReport.draft(self, what, fees=self.fees, **on)


@dataclass(frozen=True, slots=True)
class _WatchlistReport(_Report):
    """Options of a daily report, compared with the newest earlier one in its folder."""

    to: Annotated[
        Path, typer.Option("--to", help="The folder of daily reports, or an HTML file.")
    ] = Path()

    def of_day(self, last_second: int) -> _WatchlistReport:
        if not self.to.is_dir():
            return self
        to = self.to / f"watchlist-{format_ts(last_second)[:10]}.html"
        before = sorted(file for file in self.to.glob("watchlist-*.html") if file.name < to.name)
        return replace(self, to=to, against=self.against or next(reversed(before), None))


@app.callback()
@asks(file="--verify FILE: Compute a report again from its snapshot, and compare.")
def report_command(
    context: typer.Context,
    file: Path | None = None,
    store: Path | None = None,
    cluster: str | None = None,
    plain_text: bool = False,
    fees: Path | None = None,
) -> None:
    """Write a report on the data in the store: one HTML file that needs no network and prints.

    Each figure has its definition, n, coverage, window, source, parameters, the SHA-256 of its
    rows, and the Python that computes it. A report is of one snapshot: what the store had committed
    when it was made, or a publication (--store archive). --verify computes it again from that
    snapshot, even if more was loaded since. The exit code is 0 if every figure and the page are
    equal, else 1.

    Before: rail report spread

    Example: rail report --verify report-spread.html
    """
    if context.invoked_subcommand is not None:
        for option, given in (("--verify", file), ("--store", store), ("--fees", fees)):
            if given is not None:
                name = context.invoked_subcommand
                raise InputError(option, str(given), f"after `rail report {name}`, or without it")
        return
    if file is None:
        console.print(context.get_help())
        raise typer.Exit(ExitCode.USAGE)
    found = verify(file, store, fees=fees, cluster=cluster, plain_text=plain_text)
    console.print(str(found))
    if not found.equal:
        raise typer.Exit(ExitCode.REFUSED)


@app.command("spread")
@grouped
def spread_command(trajectories: _Keys = None, *, parts: _Parts = None, report: _Report) -> None:
    """Write a report on spreads: one with its chart, figures and hours, several ranked in a table.

    Positive: long the buy leg and short the sell leg earns it. By default it takes all spreads and
    all of their time in the store. Of several, it draws the first three of the table. A single key
    may be two prices (pair/BUY/SELL), or from snapshots
    (snapshot-spread/SYMBOL:BUY.market:SELL.market).

    Example: rail report spread LTC_USDT:AURORA.spot:BOREAS.spot --start 1d

    Before: rail report spread --to before.html

    Example: rail report spread --against before.html
    """
    _write(Family.SPREAD, trajectories, parts, report)


@app.command("funding")
@grouped
def funding_command(trajectories: _Keys = None, *, parts: _Parts = None, report: _Report) -> None:
    """Write a report on funding: one pair with its chart, carry and holdings, several in a table.

    Positive: long the buy leg and short the sell leg received it. By default it takes all pairs and
    all settlements in the store. Of several, it draws the first three of the table. A single key
    may be from snapshots (snapshot-funding/SYMBOL:EXCHANGE.market).

    Example: rail report funding BTC_USDT:AURORA.futures:EQUINOX.futures
    """
    _write(Family.FUNDING, trajectories, parts, report)


@app.command("events")
@grouped
@asks(families=typer.Argument(help="Event logs. Default: all in the store."))
def events_command(
    families: list[EventFamily] | None = None, *, parts: _Parts = None, report: _EventReport
) -> None:
    """Write a report on event logs: when events open, how long they last, how often by legs.

    By default it takes all of the time in the store.

    Example: rail report events spread --start 1d
    """
    added = checked_parts("events", parts)
    draft = report.draft("events")
    held = draft.workspace.store
    span = event_window(held, report.start, report.end, names=("--start", "--end"))
    named = families or [
        family for family in EventFamily if f"events/{family}" in _held(held)["stream"]
    ]
    add_events(draft, named, span, added)
    report.write("events", draft, f"Events: {some(named)}")


@app.command("symbol")
@grouped
@asks(symbol=typer.Argument(help="A symbol, BASE_QUOTE."))
def symbol_command(symbol: str, *, report: _Report) -> None:
    """Write a report on a symbol: all its legs on one axis of time, its spreads and its funding.

    It takes the symbol's prices, spreads, funding and events in the store, by default over all of
    the time.

    Example: rail report symbol LTC_USDT --start 1d
    """
    wanted = Symbol.parse(symbol)
    draft = report.draft("symbol")
    held = draft.workspace.store
    streams = [(Stream.parse(row["stream"]), row) for row in _held(held).to_dicts()]
    mine = {
        stream: row
        for stream, row in streams
        if isinstance(stream, Trajectory) and stream.symbol == wanted
    }
    if not mine:
        advice = sync_advice(held, f"{wanted}:*")
        raise EmptyWindowError(f"{held.name} holds nothing of {wanted}; {advice}")
    rows = [row for row in mine.values() if row["kind"] != Family.FUNDING] or [*mine.values()]
    ends = (report.start, report.end)
    span = held_window(held, Family.PRICE, rows, *ends, names=("--start", "--end"))
    logs = [stream for stream, _ in streams if stream.kind == "events"]
    add_symbol(draft, str(wanted), [*mine, *logs], span)
    report.write("symbol", draft, f"Symbol: {wanted}")


@app.command("watchlist")
@grouped
@asks(watchlist="--watchlist FILE: Default: rail.toml beside the store or here.")
def watchlist_command(watchlist: Path | None = None, *, report: _WatchlistReport) -> None:
    """Write a daily report on the watchlist: spreads and funding ranked, and events.

    In a folder its name is watchlist-DAY.html, and it is compared with the newest one of an earlier
    day. It takes the watchlist's series in the store, see `rail follow`. Rules that ask the
    service, such as open_now, take all series. The window is by default the last 24 hours.

    Example: rail report watchlist
    """
    report.check()
    held = store_as_of(report.store, report.as_of)
    streams = watched_streams(held, wanted_watchlist(held, None, watchlist))
    if not streams:
        advice = sync_advice(held, "--watchlist")
        raise EmptyWindowError(f"{held.name} holds nothing of the watchlist; {advice}")

    def day() -> Interval:
        now = service_clock(held)
        return Interval(now - 86_400, now)

    asked = chosen_window(held, report.start, report.end, day, names=("--start", "--end"))
    report = report.of_day(asked.end - 1)
    draft = report.draft("watchlist")
    missing = add_watchlist(draft, streams, asked)
    if missing:
        errors.print(f"nothing in {asked} of {some(missing)}")
    report.write("watchlist", draft, f"Watchlist, {format_ts(asked.end - 1)[:10]}")


def _held(store: Store) -> pl.DataFrame:
    return store.catalogue().filter(pl.col("rows") > 0)


def _write(
    family: Family, keys: list[str] | None, parts: list[str] | None, report: _Report
) -> None:
    added = checked_parts(family.value, parts)
    draft = report.draft(family.value)
    asked = selected(Passes.of(draft.workspace.store), family, keys, report)
    if len(asked.keys) > 1:
        if asked.kind != family:
            one = f"one key of {asked.kind}/, or several of stored trajectories"
            raise InputError("trajectories", some(asked.keys), one)
        for wanted, held in asked.held.items():
            if wanted != held:
                raise InputError("trajectories", wanted.key, f"{held.key}, as it is held")
    add_trajectories(draft, family, asked.keys, asked.window, added)
    of = "Spreads" if family is Family.SPREAD else "Funding"
    report.write(family.value, draft, f"{of}: {some(asked.keys)}")
