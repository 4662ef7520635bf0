"""`rail report`: reports on the store as HTML files, and their verification."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from toolkit.cards import some
from toolkit.cli.exit_codes import ExitCode
from toolkit.cli.held import selected
from toolkit.cli.options import StoredWindow, asks, grouped
from toolkit.cli.show import console, errors
from toolkit.cli.tables import AsOf, store_as_of
from toolkit.commands import rail
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, Stream, Symbol, Trajectory, format_ts
from toolkit.reports import verify
from toolkit.reports.drafting import Draft, check_path, reading_workspace
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
from toolkit.workspace.passes import Passes
from toolkit.workspace.selection import held_window

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)

_Keys = Annotated[
    list[str] | None,
    typer.Argument(help="Keys SYMBOL:BUY.market:SELL.market, or patterns such as BTC_USDT:*."),
]
_To = Annotated[
    Path | None,
    typer.Option("--to", metavar="FILE", help="The HTML file. Default: report-WHAT.html here."),
]
_Against = Annotated[
    Path | None,
    typer.Option("--against", metavar="FILE", help="An earlier report: changes since come first."),
]
_Parts = Annotated[
    list[str] | None,
    typer.Option(
        "--part",
        metavar="NAME",
        help="An analysis to add, by its method: tail_index. May be repeated.",
    ),
]


@dataclass(frozen=True, slots=True)
class _EventReport(StoredWindow):
    """Of what a report is, and where it goes. All that can be wrong is found before it is made."""

    as_of: AsOf = None
    to: _To = None
    against: _Against = None

    def draft(self, what: str) -> Draft:
        return self._draft(what)

    def _draft(self, what: str, fees: Path | None = None, **on: Any) -> Draft:
        self.check()
        check_path(self._path(what))
        held = store_as_of(self.store, self.as_of)
        workspace = reading_workspace(held, as_of=held.as_of, fees=fees)
        return Draft(workspace, self.against, **on)

    def _path(self, what: str) -> Path:
        return self.to or Path(f"report-{what}.html")

    def write(self, what: str, draft: Draft, title: str) -> None:
        file = draft.write(self._path(what), title)
        store = draft.workspace.store
        place = Path(store.published or store.path)
        again = rail("report", "--verify", str(file), store=place)
        console.print(f"{file} is written, of {draft.pin.words}; to check it later: {again}")


@dataclass(frozen=True, slots=True)
class _Report(_EventReport):
    """The same of trajectories, which have costs, and are measured here or on a cluster."""

    cluster: str | None = None
    plain_text: bool = False
    fees: Path | None = None

    def draft(self, what: str) -> Draft:
        return self._draft(what, self.fees, cluster=self.cluster, plain_text=self.plain_text)


@dataclass(frozen=True, slots=True)
class _WatchlistReport(_Report):
    """The same of a day, which is a file of a folder and compared with the newest one before it."""

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
    rows, and the Python that computes it. A report belongs to one snapshot: what the store had
    committed when it was made, or a publication (--store archive). --verify computes it again from
    that snapshot, even if more was loaded since. The exit code is 0 if every figure and the page
    are equal, else 1.

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
    all of their time in the store. Of several, the first three of the table are drawn. A single key
    may be two prices (pair/BUY/SELL), or from snapshots
    (snapshot-spread/SYMBOL:BUY.market:SELL.market).

    Example: rail report spread LTC_USDT:AURORA.spot:BOREAS.spot --start 1d

    Before: rail report spread --to before.html

    Example: rail report spread --against before.html
    """
    added = checked_parts("spread", parts)
    draft = report.draft("spread")
    report.write("spread", draft, _trajectories(draft, Family.SPREAD, trajectories, report, added))


@app.command("funding")
@grouped
def funding_command(trajectories: _Keys = None, *, parts: _Parts = None, report: _Report) -> None:
    """Write a report on funding: one pair with its chart, carry and holdings, several in a table.

    Positive: long the buy leg and short the sell leg received it. By default it takes all pairs and
    all settlements in the store. Of several, the first three of the table are drawn. A single key
    may be from snapshots (snapshot-funding/SYMBOL:EXCHANGE.market).

    Example: rail report funding BTC_USDT:AURORA.futures:EQUINOX.futures
    """
    added, family = checked_parts("funding", parts), Family.FUNDING
    draft = report.draft("funding")
    report.write("funding", draft, _trajectories(draft, family, trajectories, report, added))


@app.command("events")
@grouped
@asks(families=typer.Argument(help="Event logs. Default: all in the store."))
def events_command(
    families: list[EventFamily] | None = None, *, parts: _Parts = None, report: _EventReport
) -> None:
    """Write a report on event logs: when events opened, how long they last, how often by legs.

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
    rows = _held(held).to_dicts()
    streams = {row["stream"]: Stream.parse(row["stream"]) for row in rows}
    mine = {
        key: stream
        for key, stream in streams.items()
        if isinstance(stream, Trajectory) and stream.symbol == wanted
    }
    if not mine:
        advice = sync_advice(held, f"{wanted}:*")
        raise EmptyWindowError(f"{held.name} holds nothing of {wanted}; {advice}")
    of_mine = [row for row in rows if row["stream"] in mine]
    of_mine = [row for row in of_mine if row["kind"] != Family.FUNDING] or of_mine
    names = ("--start", "--end")
    span = held_window(held, Family.PRICE, of_mine, report.start, report.end, names=names)
    logs = [stream for stream in streams.values() if stream.kind == "events"]
    add_symbol(draft, str(wanted), [*mine.values(), *logs], span)
    report.write("symbol", draft, f"Symbol: {wanted}")


@app.command("watchlist")
@grouped
@asks(watchlist="--watchlist FILE: Default: rail.toml beside the store or here.")
def watchlist_command(watchlist: Path | None = None, *, report: _WatchlistReport) -> None:
    """Write a day's report on the watchlist: spreads and funding ranked, and events.

    In a folder its name is watchlist-DAY.html, and it is compared with the newest of an earlier
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


def _trajectories(
    draft: Draft, family: Family, keys: list[str] | None, within: StoredWindow, parts: list[str]
) -> str:
    store = draft.workspace.store
    asked = selected(Passes.of(store), family, keys, (within.start, within.end))
    if len(asked.keys) > 1:
        if asked.kind != family:
            one = f"one key of {asked.kind}/, or several of stored trajectories"
            raise InputError("trajectories", some(asked.keys), one)
        for wanted, held in asked.held.items():
            if wanted != held:
                raise InputError("trajectories", wanted.key, f"{held.key}, as it is held")
    add_trajectories(draft, family, asked.keys, asked.window, parts)
    of = "Spreads" if family is Family.SPREAD else "Funding"
    return f"{of}: {some(asked.keys)}"
