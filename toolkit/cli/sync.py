"""`rail sync`: bring a window of trajectories into the store."""

from __future__ import annotations

from typing import Annotated

import typer

from toolkit.cli.options import BaseUrl, End, Start, StorePath, window
from toolkit.cli.show import console, duration, errors, load_progress
from toolkit.client import Client
from toolkit.errors import InputError, WireError
from toolkit.intervals import Interval, total_s
from toolkit.loader import LoadResult
from toolkit.market import Trajectory
from toolkit.store import Store
from toolkit.wire.listing import Listing, price_trajectories, spread_trajectories
from toolkit.workspace import Settings, Workspace

__all__ = ["sync_command"]

_DEFAULT_DAYS = 7


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
    """Bring a window of trajectories into the store: what is missing, all of it, once.

    The window runs from --start to just before --end; by default it is the last 7 days of the
    service's clock. The key is read from RAIL_API_KEY. A sync that was stopped goes on where it
    ended.

    Example: rail sync BTC_USD:COINBASE.spot:KRAKEN.spot --start 2023-03-01 --end 2023-03-22
    """
    settings = Settings.read(base_url=base_url, store=store)
    with Workspace(Client(settings.base_url, settings.api_key), Store(settings.store)) as workspace:
        wanted = _wanted(workspace.client, trajectories, all_prices, all_spreads, symbol)
        now = workspace.client.served_at
        asked = window(start, end, default=Interval(now - _DEFAULT_DAYS * 86_400, now))
        with load_progress(f"{len(wanted)} trajectories") as show:
            result = workspace.sync(wanted, *asked, workers=workers, on_progress=show)
    console.print(str(result))
    _explain(result)


def _wanted(
    client: Client,
    keys: list[str] | None,
    all_prices: bool,
    all_spreads: bool,
    symbols: list[str] | None,
) -> list[Trajectory]:
    wanted = [Trajectory.parse(key) for key in keys or []]
    if all_prices or all_spreads:
        listing = _whole_listing(client)
        listed = price_trajectories(listing) if all_prices else []
        listed += spread_trajectories(listing) if all_spreads else []
        wanted += [t for t in listed if not symbols or str(t.symbol) in symbols]
    elif symbols:
        raise InputError("--symbol", ", ".join(symbols), "a filter of --all-prices, --all-spreads")
    else:
        client.profile  # noqa: B018 - the service's clock is known after its first answer
    if not wanted:
        raise InputError(
            "trajectories",
            " ".join(symbols or []) or None,
            "one key or more, or --all-prices, or --all-spreads",
        )
    return wanted


def _whole_listing(client: Client) -> Listing:
    listing = client.symbols()
    if listing.truncated:
        raise WireError(
            f"the service lists more symbols than it sends at once ({len(listing.legs)}); "
            "name the trajectories instead of --all-…"
        )
    return listing


def _explain(result: LoadResult) -> None:
    """Say what a total does not: who stayed silent, what is out of reach, what was odd."""
    for trajectory in result.silent:
        errors.print(f"nothing in {result.window} for {trajectory.key}")
    for trajectory, stretches in result.unrecoverable.items():
        gone = duration(total_s(stretches))
        errors.print(f"{trajectory.key}: {gone} lie beyond the plan's depth and are not held")
    for finding, times in result.findings:
        errors.print(f"finding: {finding.kind} at {finding.where} ({times}x): {finding.says}")
