"""The command tree."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from toolkit.cli import (
    dashboard,
    demo,
    doctor,
    serve,
    stats,
    status,
    stream,
    symbols,
    sync,
    webhook,
)

__all__ = ["app"]

app = typer.Typer(
    name="rail",
    help="Load, check, measure and chart trajectories of a machine-rail market-data service.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rail {version('machine-rail-toolkit')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Load, check, measure and chart trajectories of a machine-rail market-data service."""


app.command("serve")(serve.serve_command)
app.command("doctor")(doctor.doctor_command)
app.command("symbols")(symbols.symbols_command)
app.command("sync")(sync.sync_command)
app.command("stream")(stream.stream_command)
app.command("webhook")(webhook.webhook_command)
app.command("status")(status.status_command)
app.add_typer(stats.app, name="stats")
app.command("app")(dashboard.app_command)
app.command("demo")(demo.demo_command)
