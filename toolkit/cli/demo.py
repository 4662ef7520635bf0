"""`rail demo`: the first five minutes in one command."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.dashboard import run_dashboard
from toolkit.cli.options import StorePath
from toolkit.cli.show import console, duration, load_progress
from toolkit.cli.stats import print_spreads
from toolkit.client import Client
from toolkit.store import Store
from toolkit.wire.listing import price_trajectories, spread_trajectories
from toolkit.workspace import (
    LOCAL_KEY,
    Workspace,
    simulated_half_lives_s,
    simulated_service,
    simulated_window,
)

__all__ = ["demo_command"]


def demo_command(
    once: Annotated[
        bool, typer.Option("--once", help="End after the statistics, without the dashboard.")
    ] = False,
    store: StorePath = None,
    port: Annotated[int, typer.Option("--port", help="Where the dashboard listens.")] = 8501,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser window.")
    ] = True,
) -> None:
    """Start a service on a SIMULATED market, load it, print its statistics, open the dashboard.

    Everything happens on this machine; nothing is asked of anybody else. Without --store the data
    goes to a temporary file.

    Example: rail demo --once
    """
    with tempfile.TemporaryDirectory(prefix="rail-demo-") as folder:
        held = Store(store or Path(folder) / "demo.duckdb")
        _load(held)
        console.print()
        truth = simulated_half_lives_s()
        print_spreads(held, list(truth), *simulated_window())
        told = ", ".join(f"{t.key} {duration(s)}" for t, s in truth.items())
        console.print(f"The market was simulated with these half-lives: {told}")
        if not once:
            console.print()
            run_dashboard(held, host="127.0.0.1", port=port, browser=browser)


def _load(store: Store) -> None:
    with simulated_service() as base_url:
        console.print(f"local service on a SIMULATED market at {base_url}")
        with Workspace(Client(base_url, LOCAL_KEY), store) as workspace:
            listing = workspace.client.symbols()
            wanted = price_trajectories(listing) + spread_trajectories(listing)
            with load_progress(f"{len(wanted)} trajectories") as show:
                result = workspace.sync(wanted, *simulated_window(), on_progress=show)
    console.print(str(result))
