"""`rail demo`: the first five minutes in one command."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.dashboard import check_dashboard, run_dashboard
from toolkit.cli.options import Browser, StorePath
from toolkit.cli.show import console
from toolkit.cli.stats import print_events, print_funding, print_spreads
from toolkit.cli.sync import load
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory
from toolkit.store import Store
from toolkit.workspace import (
    DEFAULT_WINDOW_S,
    LOCAL_KEY,
    Workspace,
    simulated_service,
    watchlist,
)

_PRINTED = 3


def demo_command(
    once: Annotated[
        bool, typer.Option("--once", help="End after the statistics, without the dashboard.")
    ] = False,
    store: StorePath = None,
    port: Annotated[int, typer.Option("--port", help="Where the dashboard listens.")] = 8501,
    browser: Browser = True,
) -> None:
    """Start a service on a SIMULATED market, load a week of it, print statistics, open a dashboard.

    It loads prices, spreads and funding of five symbols, the three event logs and the snapshots.
    Everything happens on this machine. Nothing is asked of anybody else. Without --store the data
    goes to a temporary file. The service answers until the dashboard is closed.

    Example: rail demo --once
    """
    if not once:
        check_dashboard()
    with (
        tempfile.TemporaryDirectory(prefix="rail-demo-") as folder,
        simulated_service() as base_url,
    ):
        console.print(f"local service on a SIMULATED market at {base_url}")
        held = Store(store or Path(folder) / "demo.duckdb")
        with Workspace(Client(base_url, LOCAL_KEY), held) as workspace:
            wanted = watchlist(workspace.client.symbols())
            now = workspace.client.served_at()
            window = Interval(now - DEFAULT_WINDOW_S, now)
            load(workspace, wanted, window)
        for family, show in ((Family.SPREAD, print_spreads), (Family.FUNDING, print_funding)):
            console.print()
            of_family = [t for t in wanted if isinstance(t, Trajectory) and t.family is family]
            show(held, of_family[:_PRINTED], *window)
        console.print()
        print_events(held, *window)
        if not once:
            console.print()
            run_dashboard(held, host="127.0.0.1", port=port, browser=browser)
