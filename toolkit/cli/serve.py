"""`rail serve`: the local service, over recorded or simulated data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.show import console
from toolkit.market import format_ts, parse_ts
from toolkit.workspace import Serving, serve_local

__all__ = ["serve_command"]


def serve_command(
    replay: Annotated[
        Path | None,
        typer.Option("--replay", help="A prices.parquet, or the folder that holds it."),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", help="Serve only this data set of the file; may be repeated."),
    ] = None,
    interval: Annotated[
        int | None, typer.Option("--interval", help="Serve only bars of this many seconds.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Serve the endless SIMULATED market of this seed.")
    ] = None,
    owners: Annotated[
        Path | None, typer.Option("--owners", help="A TOML file of owners, plans and keys.")
    ] = None,
    now: Annotated[
        str | None, typer.Option("--now", help="Let the service's clock stand at this time, UTC.")
    ] = None,
    retention: Annotated[
        int | None, typer.Option("--retention", help="Answer only for the last N days.")
    ] = None,
    port: Annotated[
        int, typer.Option("--port", help="Where to listen; 0 takes a free one.")
    ] = 8700,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
) -> None:
    """Run the local service until Ctrl-C: a replay, a seed's SIMULATED market, or a small one.

    Its demo keys are demo-free, demo-builder and demo-pro. The small market's clock stands at its
    end unless --now says otherwise; every other clock is the wall clock. A replay serves all it
    has unless --retention limits it; a simulated market reaches as far back as the key's plan.

    Example: rail serve --replay data --dataset iaqf_dhruvk1432 --now 2023-03-22
    """
    serve_local(
        replay=replay,
        datasets=dataset or (),
        interval_s=interval,
        seed=seed,
        owners=owners,
        now=None if now is None else parse_ts(now, parameter="--now"),
        retention_s=None if retention is None else retention * 86_400,
        host=host,
        port=port,
        ready=_announce,
    )


def _announce(serving: Serving) -> None:
    at = serving.clock_at
    clock = "wall clock" if at is None else f"clock standing at {format_ts(at)}"
    console.print(
        f"{serving.source.label}: {serving.symbols} symbols, {serving.legs} legs; {clock}"
    )
    console.print(f"listening at {serving.base_url}; keys: {serving.keys}")
