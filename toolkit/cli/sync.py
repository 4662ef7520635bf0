"""`rail sync` loads a window of streams; `rail symbols` shows what the service lists."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import compress
from pathlib import Path

import polars as pl
import typer

from toolkit.cards import counted, duration
from toolkit.cli.options import STREAM_KEYS, StoredWindow, asks, window
from toolkit.cli.output import Format, TableOptions, show, tabled
from toolkit.cli.show import console, errors, print_findings
from toolkit.client import Client
from toolkit.columns import schema_of
from toolkit.commands import ExitCode
from toolkit.errors import EmptyWindowError, InputError, UnreachableError, WireError
from toolkit.intervals import Interval, total_s
from toolkit.loader import LoadResult, PlannedLoad
from toolkit.loader.sync.planned import PLANNED
from toolkit.loader.sync.progress import streams_counted
from toolkit.market import Trajectory
from toolkit.show.sheet import Cells, Sheet
from toolkit.store import Store
from toolkit.wire.listing import (
    Listing,
    funding_trajectories,
    price_trajectories,
    spread_trajectories,
)
from toolkit.wire.profile.profile import Profile
from toolkit.workspace import DEFAULT_WINDOW_S, Settings, Workspace, load_progress, store_path
from toolkit.workspace.listed import WATCHLIST, chosen_streams, read_keys
from toolkit.workspace.settings import Over

_PATIENCE_S = 60.0
_PLAN = (
    *("stream", "requests", "rows", "missing_s", "leaves_rows", "leaves_at"),
    *("start_ts", "end_ts", "stretches"),
)
_CELLS: Cells = {
    "requests": lambda row: "refused" if row["refused"] else f"{row['bound']} {row['requests']:,}"
}


@tabled(lambda: PLANNED, of_now=True)
@asks(
    streams=typer.Argument(help=STREAM_KEYS),
    all_prices="Load every price that the service lists.",
    all_spreads="Load every pair of legs of one symbol once, buying the alphabetically first leg.",
    all_funding="Load the funding of every pair of futures legs.",
    watched="--watchlist: Load the 5 symbols with the most legs, every event log and snapshot.",
    symbol="With --all-…: only this symbol.",
    again="Ask for the whole window again, even for what the store has.",
    wait="Wait up to 60 s for a service that is just starting.",
    workers=typer.Option("--workers", min=1, max=64, help="Pages fetched at a time."),
    over="Ask by requests (http) or over the data socket (from Builder on).",
    plan="Show what a load would ask for and how long it would take; load nothing.",
)
def sync_command(
    streams: list[str] | None = None,
    all_prices: bool = False,
    all_spreads: bool = False,
    all_funding: bool = False,
    watched: bool = False,
    symbol: list[str] | None = None,
    start: str | None = None,
    end: str | None = None,
    store: Path | None = None,
    base_url: str | None = None,
    allow_http: bool = False,
    again: bool = False,
    wait: bool = False,
    workers: int = 4,
    over: Over = Over.HTTP,
    plan: bool = False,
    *,
    view: TableOptions,
) -> None:
    """Load a window of trajectories, event logs or snapshots into the store, each row once.

    A key with a * matches the keys that the service lists: 'BTC_USDT:*', 'events/*'. The window is
    by default the last 7 days by the service's clock. A snapshot is always of now. The API key is
    read from RAIL_API_KEY. A sync that was stopped resumes.

    --plan lists per stream what is missing, how many requests that takes, and what leaves the
    service's archive within 24 hours. It takes the options of tables.

    The exit code is 0 if every stream was loaded and 3 if some were refused.

    Example: rail sync LTC_USDT:AURORA.spot events/splash

    Example: rail sync --watchlist --plan
    """
    if not plan and view != TableOptions(Format.TABLE):
        options = "--format, --sort, --top, --where and --output"
        raise InputError(options, "without --plan", "beside --plan: a load prints no table")
    named = read_keys([*(streams or ()), *([WATCHLIST] if watched else ())])
    StoredWindow(start, end).check()
    settings = Settings.read(base_url=base_url, allow_http=allow_http)
    with Workspace(settings.client(over), Store(store_path(store))) as workspace:
        if wait:
            _await_service(workspace.client)
        lists = (price_trajectories, spread_trajectories, funding_trajectories)
        all_of = list(compress(lists, (all_prices, all_spreads, all_funding)))
        if not named and not all_of:
            options = "--watchlist, --all-prices, --all-spreads, --all-funding"
            raise InputError("streams", None, f"one key or more, or one of {options}")
        client = workspace.client
        wanted = chosen_streams(named, lambda: _whole_listing(client)) if named else []
        wanted += _listed(client, all_of, symbol)
        now = client.served_at()
        asked = window(
            start, end, now=lambda: now, default=lambda: Interval(now - DEFAULT_WINDOW_S, now)
        )
        if plan:
            _show_plan(workspace.plan(wanted, *asked, again=again, workers=workers), view)
            return
        with load_progress(streams_counted(wanted), lines=True) as watch:
            done = workspace.sync(
                wanted, *asked, again=again, workers=workers, on_progress=watch.show
            )
        _print_result(done, client.profile())
    if done.refused:
        raise typer.Exit(ExitCode.PARTLY)


def _await_service(client: Client) -> None:
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            client.discover()
        except UnreachableError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        else:
            return


def _listed(
    client: Client,
    lists: Sequence[Callable[[Listing], list[Trajectory]]],
    symbols: Sequence[str] | None,
) -> list[Trajectory]:
    if not lists:
        if symbols:
            allowed = "with --all-prices, --all-spreads or --all-funding"
            raise InputError("--symbol", ", ".join(symbols), allowed)
        return []
    listing = _whole_listing(client)
    listed = [trajectory for of in lists for trajectory in of(listing)]
    if not listed:
        raise EmptyWindowError(
            f"the service lists {counted(len(listing.legs), 'symbol')} and nothing of them that "
            "--all-… names can be read; name the trajectories instead, or let rail doctor find "
            "where their legs are"
        )
    found = [t for t in listed if not symbols or str(t.symbol) in symbols]
    if not found:
        known = ", ".join(sorted(map(str, listing.legs))[:12])
        raise InputError("--symbol", ", ".join(symbols or []), f"symbols listed, e.g. {known}")
    return found


def _whole_listing(client: Client) -> Listing:
    listing = client.symbols()
    print_findings(Counter(listing.findings).items(), client.profile())
    if listing.truncated:
        raise WireError(
            f"the service lists more symbols than it sends at once ({len(listing.legs)}); "
            "name the trajectories instead of --all-…"
        )
    return listing


def _print_result(result: LoadResult, profile: Profile) -> None:
    console.print(str(result))
    console.print(result.requests_counted)
    for asked, error in result.refused.items():
        errors.print(f"refused: {asked} ({error})")
    for asked in result.silent:
        errors.print(f"nothing in {result.window} for {asked}")
    for line in _out_of_reach(result):
        errors.print(line)
    print_findings(result.findings, profile)


def _show_plan(planned: PlannedLoad, view: TableOptions) -> None:
    refused = [f"refused: {asked} ({error})" for asked, error in planned.refused.items()]
    total = f"{planned.bound} {planned.requests:,} requests, {planned.schemas:,} or more of schemas"
    notes = [
        f"{total}; {planned.quota_words}",
        f"leaves the archive within 24 h: {planned.leaving_words}",
        *_out_of_reach(planned),
        *refused,
    ]
    heading = f"Plan of {planned.window}"
    show(view, Sheet(heading, planned.source.label, planned.df, _PLAN, notes=notes, cells=_CELLS))


def _out_of_reach(load: LoadResult | PlannedLoad) -> list[str]:
    return [
        f"{asked}: {duration(total_s(parts))} lie beyond the plan's depth and are not held"
        for asked, parts in load.unrecoverable.items()
    ]


_COLUMNS = ("symbol", "n_legs", "legs")
_SYMBOLS = schema_of(also=_COLUMNS)


@tabled(lambda: _SYMBOLS, of_now=True)
@asks(text=typer.Argument(help="Part of a symbol's name. Default: all symbols."))
def symbols_command(
    text: str = "", base_url: str | None = None, allow_http: bool = False, *, view: TableOptions
) -> None:
    """Show the symbols that the service lists, each with its legs.

    The key of a price is a symbol, a colon and a leg, such as BTC_USDT:KRAKEN.spot.

    Example: rail symbols BTC

    Example: rail symbols --where "legs like '%KRAKEN.spot%'" --sort -n_legs
    """
    settings = Settings.read(base_url=base_url, allow_http=allow_http)
    with settings.client() as client:
        listing = client.symbols(text)
        profile = client.profile()
    if not listing.legs:
        raise EmptyWindowError(f"the service lists no symbol with {text!r} in its name")
    rows = [
        (str(symbol), len(traded), " ".join(map(str, sorted(traded))))
        for symbol, traded in sorted(listing.legs.items())
    ]
    legs = counted(sum(map(len, listing.legs.values())), "leg")
    heading = f"{counted(len(rows), 'symbol')}, {legs}"
    label = profile.source.label if profile.source else "Source not stated"
    frame = pl.DataFrame(rows, schema=_SYMBOLS, orient="row")
    show(view, Sheet(heading, label, frame, _COLUMNS))
    print_findings(Counter(listing.findings).items(), profile)
    if listing.truncated:
        errors.print("the service holds more symbols than it lists at once; name a part of one")
