"""`rail sync`: bring a window of trajectories into the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from toolkit.cards import counted
from toolkit.cli.options import BaseUrl, End, Start, StorePath, window
from toolkit.cli.show import console, duration, errors
from toolkit.client import Client
from toolkit.errors import InputError, WireError
from toolkit.intervals import Interval, total_s
from toolkit.loader import LoadResult, take_snapshots
from toolkit.market import EventFamily, Family, Trajectory
from toolkit.store import Store
from toolkit.wire.listing import (
    Listing,
    funding_trajectories,
    price_trajectories,
    spread_trajectories,
)
from toolkit.workspace import (
    DEFAULT_WINDOW_S,
    Settings,
    Watchlist,
    Workspace,
    load_progress,
    store_path,
)

__all__ = ["load", "sync_command"]


def sync_command(
    trajectories: Annotated[
        list[str] | None,
        typer.Argument(help="Keys: SYMBOL:EXCHANGE.market, or SYMBOL:BUY.market:SELL.market."),
    ] = None,
    all_prices: Annotated[
        bool, typer.Option("--all-prices", help="Every price trajectory the service lists.")
    ] = False,
    all_spreads: Annotated[
        bool,
        typer.Option(
            "--all-spreads",
            help="Every pair of legs of one symbol, once, the alphabetically first leg bought.",
        ),
    ] = False,
    funding: Annotated[
        list[str] | None,
        typer.Option("--funding", help="The funding trajectory of this SYMBOL:BUY:SELL key."),
    ] = None,
    all_funding: Annotated[
        bool, typer.Option("--all-funding", help="Funding of every pair of futures legs.")
    ] = False,
    events: Annotated[
        list[EventFamily] | None,
        typer.Option("--events", help="This event log; may be repeated."),
    ] = None,
    snapshot: Annotated[
        list[str] | None,
        typer.Option("--snapshot", help="symbols, activity, spread or funding, as they stand."),
    ] = None,
    watchlist: Annotated[
        bool,
        typer.Option("--watchlist", help="What `rail demo` loads: the 5 symbols of most legs."),
    ] = False,
    symbol: Annotated[
        list[str] | None, typer.Option("--symbol", help="With --all-…: only this symbol.")
    ] = None,
    start: Start = None,
    end: End = None,
    store: StorePath = None,
    base_url: BaseUrl = None,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=64, help="Pages fetched at a time.")
    ] = 4,
) -> None:
    """Bring a window of trajectories or event logs into the store: what it lacks, all of it, once.

    The window runs from --start to just before --end; by default it is the last 7 days of the
    service's clock. The key is read from RAIL_API_KEY. A sync that was stopped goes on where it
    ended.

    Example: rail sync BTC_USD:COINBASE.spot:KRAKEN.spot --start 2023-03-01 --end 2023-03-22
    """
    settings = Settings.read(base_url=base_url)
    with Workspace(settings.client(), Store(store_path(store))) as workspace:
        lists = {
            price_trajectories: all_prices,
            spread_trajectories: all_spreads,
            funding_trajectories: all_funding,
        }
        wanted = [Trajectory.parse(key) for key in trajectories or []]
        wanted += [Trajectory.parse(key, Family.FUNDING) for key in funding or []]
        wanted += _listed(workspace.client, [of for of, on in lists.items() if on], symbol)
        if watchlist:
            default = Watchlist.default(_whole_listing(workspace.client))
            wanted += default.trajectories
            events, snapshot = list(default.events), list(default.snapshots)
        if not (wanted or events or snapshot):
            options = (
                "--watchlist, --all-prices, --all-spreads, --all-funding, --events, --snapshot"
            )
            raise InputError("trajectories", None, f"one key or more, or one of {options}")
        now = workspace.client.served_at()
        asked = window(start, end, default=Interval(now - DEFAULT_WINDOW_S, now))
        list_ = Watchlist(tuple(wanted), tuple(events or ()), tuple(snapshot or ()))
        load(workspace, list_, asked, workers=workers)


def load(workspace: Workspace, wanted: Watchlist, asked: Interval, *, workers: int = 4) -> None:
    """Load what is wanted of a window, showing progress and what came of it."""
    if wanted.trajectories:
        title = counted(len(wanted.trajectories), "trajectory", "trajectories")
        with load_progress(title, lines=True) as watch:
            done = workspace.sync(
                wanted.trajectories, *asked, workers=workers, on_progress=watch.show
            )
        _tell(done)
    if wanted.events:
        with load_progress(counted(len(wanted.events), "event log"), lines=True) as watch:
            done = workspace.sync_events(
                wanted.events, *asked, workers=workers, on_progress=watch.show
            )
        _tell(done)
    if wanted.snapshots:
        lengths = take_snapshots(workspace.client, workspace.store, wanted.snapshots)
        told = ", ".join(f"{kind} ({length:,} bytes)" for kind, length in lengths.items())
        console.print(f"kept as it stands: {told}")


def _listed(
    client: Client,
    lists: Sequence[Callable[[Listing], list[Trajectory]]],
    symbols: Sequence[str] | None,
) -> list[Trajectory]:
    """What the ``--all-…`` options name, less what ``--symbol`` leaves out."""
    if not lists:
        if symbols:
            raise InputError("--symbol", ", ".join(symbols), "a filter of --all-…")
        return []
    listing = _whole_listing(client)
    listed = [trajectory for of in lists for trajectory in of(listing)]
    found = [t for t in listed if not symbols or str(t.symbol) in symbols]
    if not found:
        known = ", ".join(sorted(map(str, listing.legs))[:12])
        raise InputError("--symbol", ", ".join(symbols or []), f"symbols listed, e.g. {known}")
    return found


def _whole_listing(client: Client) -> Listing:
    listing = client.symbols()
    if listing.truncated:
        raise WireError(
            f"the service lists more symbols than it sends at once ({len(listing.legs)}); "
            "name the trajectories instead of --all-…"
        )
    return listing


def _tell(result: LoadResult) -> None:
    """The total, and what it does not say: who stayed silent, what is out of reach or odd."""
    console.print(str(result))
    for asked in result.silent:
        errors.print(f"nothing in {result.window} for {asked}")
    for asked, stretches in result.unrecoverable.items():
        gone = duration(total_s(stretches))
        errors.print(f"{asked}: {gone} lie beyond the plan's depth and are not held")
    for finding, times in result.findings:
        errors.print(f"finding: {finding.kind} at {finding.where} ({times}x): {finding.says}")
