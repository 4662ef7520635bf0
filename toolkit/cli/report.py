"""`rail report`: what the store holds in one HTML file, and whether such a file is still true."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from toolkit.cards import some
from toolkit.cli.event_logs import event_window
from toolkit.cli.exit_codes import ExitCode
from toolkit.cli.held import asked_for
from toolkit.cli.options import (
    ClusterName,
    End,
    FeesFile,
    PlainText,
    Start,
    StorePath,
    check_times,
    window,
)
from toolkit.cli.show import console, errors
from toolkit.cli.table_options import AsOf, store_as_of
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
    watched_streams,
)
from toolkit.store import Store, service_clock
from toolkit.workspace.following import wanted_watchlist
from toolkit.workspace.screening import held_window

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
    typer.Option("--against", metavar="FILE", help="A report before: what changed since is first."),
]


@app.callback()
def report_command(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Option(
            "--verify",
            metavar="FILE",
            help="Compute a report again from its snapshot, and say whether it is equal.",
        ),
    ] = None,
    store: StorePath = None,
    cluster: ClusterName = None,
    plain_text: PlainText = False,
    fees: FeesFile = None,
) -> None:
    """Write a report on the data in the store: one HTML file, which needs no network and prints.

    Each figure has its definition, n, coverage, window, source, parameters, the SHA-256 of its
    rows, and the Python that makes it again. A report is of one snapshot: what the store had
    committed when it was made, or a publication (--store archive). --verify computes it again from
    there, of the store or the publication that it was made of, also when more was loaded since.
    The exit code is 0 where every figure and the page are equal, and 1 otherwise.

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
def spread_command(
    trajectories: _Keys = None,
    start: Start = None,
    end: End = None,
    store: StorePath = None,
    as_of: AsOf = None,
    cluster: ClusterName = None,
    plain_text: PlainText = False,
    fees: FeesFile = None,
    to: _To = None,
    against: _Against = None,
) -> None:
    """Write a report on spreads: one with its chart, figures and hours, several ranked in a table.

    Positive: long the buy leg and short the sell leg earns it. Without keys it takes all that are
    held, without a window all that is held of them. Of several the first three of the table are
    drawn. One key may be of any two prices held (pair/BUY/SELL), or kept from snapshots
    (snapshot-spread/SYMBOL:BUY.market:SELL.market).

    Example: rail report spread LTC_USDT:AURORA.spot:BOREAS.spot --start 1d

    Before: rail report spread --to before.html

    Example: rail report spread --against before.html
    """
    sheet = _ReportOptions("spread", to, against, start, end, as_of)
    draft = sheet.draft(store, fees, cluster, plain_text=plain_text)
    sheet.write(draft, _trajectories(draft, Family.SPREAD, trajectories, start, end))


@app.command("funding")
def funding_command(
    trajectories: _Keys = None,
    start: Start = None,
    end: End = None,
    store: StorePath = None,
    as_of: AsOf = None,
    cluster: ClusterName = None,
    plain_text: PlainText = False,
    fees: FeesFile = None,
    to: _To = None,
    against: _Against = None,
) -> None:
    """Write a report on funding: one pair with its chart, carry and holdings, several in a table.

    Positive: long the buy leg and short the sell leg received it. Without keys it takes all that
    are held, without a window all settlements. Of several the first three of the table are drawn.
    One key may be of rates kept from snapshots (snapshot-funding/SYMBOL:EXCHANGE.market).

    Example: rail report funding BTC_USDT:AURORA.futures:EQUINOX.futures
    """
    sheet = _ReportOptions("funding", to, against, start, end, as_of)
    draft = sheet.draft(store, fees, cluster, plain_text=plain_text)
    sheet.write(draft, _trajectories(draft, Family.FUNDING, trajectories, start, end))


@app.command("events")
def events_command(
    families: Annotated[
        list[EventFamily] | None, typer.Argument(help="Event logs. Default: all that are held.")
    ] = None,
    start: Start = None,
    end: End = None,
    store: StorePath = None,
    as_of: AsOf = None,
    to: _To = None,
    against: _Against = None,
) -> None:
    """Write a report on event logs: when events opened, how long they last, how often by legs.

    Without a window it takes all that is held.

    Example: rail report events spread --start 1d
    """
    sheet = _ReportOptions("events", to, against, start, end, as_of)
    draft = sheet.draft(store)
    held = draft.workspace.store
    span = event_window(held, start, end)
    named = families or [
        family for family in EventFamily if f"events/{family}" in _held(held)["stream"]
    ]
    add_events(draft, named, span)
    sheet.write(draft, f"Events: {some(named)}")


@app.command("symbol")
def symbol_command(
    symbol: Annotated[str, typer.Argument(help="A symbol, BASE_QUOTE.")],
    start: Start = None,
    end: End = None,
    store: StorePath = None,
    as_of: AsOf = None,
    cluster: ClusterName = None,
    plain_text: PlainText = False,
    fees: FeesFile = None,
    to: _To = None,
    against: _Against = None,
) -> None:
    """Write a report on a symbol: all its legs on one axis of time, its spreads and its funding.

    It is of what is held: prices, spreads and funding of the symbol, and event logs. Without a
    window it takes all that is held of the symbol.

    Example: rail report symbol LTC_USDT --start 1d
    """
    sheet = _ReportOptions("symbol", to, against, start, end, as_of)
    wanted = Symbol.parse(symbol)
    draft = sheet.draft(store, fees, cluster, plain_text=plain_text)
    held = draft.workspace.store
    rows = _held(held).to_dicts()
    streams = {row["stream"]: Stream.parse(row["stream"]) for row in rows}
    mine = {
        key: stream
        for key, stream in streams.items()
        if isinstance(stream, Trajectory) and stream.symbol == wanted
    }
    if not mine:
        loads = held.command("sync", f"{wanted}:*")
        raise EmptyWindowError(f"{held.path} holds nothing of {wanted}; `{loads}` loads it")
    of_mine = [row for row in rows if row["stream"] in mine]
    of_mine = [row for row in of_mine if row["kind"] != Family.FUNDING] or of_mine
    span = held_window(held, Family.PRICE, of_mine, start, end, names=("--start", "--end"))
    logs = [stream for stream in streams.values() if stream.kind == "events"]
    add_symbol(draft, str(wanted), [*mine.values(), *logs], span)
    sheet.write(draft, f"Symbol: {wanted}")


@app.command("watchlist")
def watchlist_command(
    watchlist: Annotated[
        Path | None,
        typer.Option(
            "--watchlist", metavar="FILE", help="Default: rail.toml beside the store or here."
        ),
    ] = None,
    start: Start = None,
    end: End = None,
    store: StorePath = None,
    as_of: AsOf = None,
    cluster: ClusterName = None,
    plain_text: PlainText = False,
    fees: FeesFile = None,
    to: Annotated[
        Path, typer.Option("--to", help="The folder of daily reports, or an HTML file.")
    ] = Path(),
    against: _Against = None,
) -> None:
    """Write the report of a day on what is watched: spreads and funding ranked, and events.

    In a folder it is watchlist-DAY.html, and is compared with the newest of an earlier day there.
    It takes what the store holds of the watchlist, see `rail follow`. A rule by which the service
    is asked, such as open_now, stands for all that is held. Without a window it is of the last 24
    hours.

    Example: rail report watchlist
    """
    check_times(start, end)
    held = store_as_of(store, as_of)
    streams = watched_streams(held, wanted_watchlist(held, None, watchlist))
    if not streams:
        loads = held.command("sync", "--watchlist")
        raise EmptyWindowError(f"{held.path} holds nothing of the watchlist; `{loads}` loads it")

    def day() -> Interval:
        now = service_clock(held)
        return Interval(now - 86_400, now)

    asked = window(start, end, now=lambda: service_clock(held), default=day)
    if to.is_dir():
        folder, to = to, to / f"watchlist-{format_ts(asked.end - 1)[:10]}.html"
        before = sorted(file for file in folder.glob("watchlist-*.html") if file.name < to.name)
        against = against or next(reversed(before), None)
    sheet = _ReportOptions("watchlist", to, against, start, end, as_of)
    draft = sheet.draft(store, fees, cluster, plain_text=plain_text)
    missing = add_watchlist(draft, streams, asked)
    if missing:
        errors.print(f"nothing in {asked} of {some(missing)}")
    sheet.write(draft, f"Watchlist, {format_ts(asked.end - 1)[:10]}")


@dataclass(frozen=True, slots=True)
class _ReportOptions:
    """Where a report of a command goes. All that can be wrong of it is found before it is made."""

    what: str
    to: Path | None
    against: Path | None
    start: str | None
    end: str | None
    as_of: str | None = None

    def draft(
        self,
        store: Path | None,
        fees: Path | None = None,
        cluster: str | None = None,
        *,
        plain_text: bool = False,
    ) -> Draft:
        """Open the store as it is now, or as of the time that was asked for."""
        check_times(self.start, self.end)
        check_path(self._path)
        held = store_as_of(store, self.as_of)
        workspace = reading_workspace(held, as_of=held.as_of, fees=fees)
        return Draft(workspace, self.against, cluster=cluster, plain_text=plain_text)

    @property
    def _path(self) -> Path:
        return self.to or Path(f"report-{self.what}.html")

    def write(self, draft: Draft, title: str) -> None:
        """Write the file, and print where it is and what checks it."""
        file = draft.write(self._path, title)
        store = draft.workspace.store
        place = Path(store.published or store.path)
        again = rail("report", "--verify", str(file), store=place)
        console.print(f"{file} is written, of {draft.pin.words}; to check it later: {again}")


def _held(store: Store) -> pl.DataFrame:
    return store.catalogue().filter(pl.col("rows") > 0)


def _trajectories(
    draft: Draft, family: Family, keys: list[str] | None, start: str | None, end: str | None
) -> str:
    """Add trajectories as they are held, and return what the report is called."""
    store = draft.workspace.store
    asked = asked_for(store, family, keys, start, end)
    if len(asked.keys) > 1:
        if asked.kind != family:
            one = f"one key of {asked.kind}/, or several of stored trajectories"
            raise InputError("trajectories", some(asked.keys), one)
        for wanted, held in asked.held.items():
            if wanted != held:
                raise InputError("trajectories", wanted.key, f"{held.key}, as it is held")
    add_trajectories(draft, family, asked.keys, asked.window)
    of = "Spreads" if family is Family.SPREAD else "Funding"
    return f"{of}: {some(asked.keys)}"
