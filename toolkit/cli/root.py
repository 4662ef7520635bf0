"""The command tree. The module of a command is imported only when the command runs."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from toolkit.commands import ExitCode, exit_codes
from toolkit.errors import StoppedError
from toolkit.foreign import plain

COMMANDS = {
    "serve": ("serve:serve_command", "Run a local service on a SIMULATED market or a replay."),
    "doctor": ("doctor:doctor_command", "Check a service: what works, what fails, what to do."),
    "symbols": ("sync:symbols_command", "Show the symbols and legs that the service lists."),
    "sync": ("sync:sync_command", "Load a window of market data into the store."),
    "follow": ("follow:follow_command", "Keep a watchlist current, by streams and polling."),
    "alerts": ("follow:alerts_command", "Show the alerts that follow found; check or test rules."),
    "webhook": ("webhook:app", "Receive webhook deliveries into the store, or set them up."),
    "status": ("store:status_command", "Show what the store holds and how complete it is."),
    "stats": ("analyses:stats", "Print statistics of the data in the store."),
    "events": ("analyses:events", "Print survival, rates, paths and payoffs of events."),
    "screen": ("screen:screen_command", "Rank all pairs in the store by any figure."),
    "report": ("report:app", "Write a report: one HTML file that can be verified later."),
    "fees": ("fees:fees_command", "Show the fee table and its gaps, or print an example."),
    "store": ("store:app", "Publish, check, rewrite or copy a store."),
    "import": ("store:import_command", "Make a store from published data or from your own rows."),
    "app": ("dashboard:app_command", "Open the dashboard over a store."),
    "mcp": ("serve:mcp_command", "Serve the store's statistics to an assistant over MCP."),
    "notebook": ("notebook:notebook_command", "Write the quickstart notebook here."),
    "open": ("dashboard:open_command", "Open the page of a trajectory or an event log."),
    "demo": ("demo:demo_command", "Load a SIMULATED market and open a dashboard that follows it."),
}
"""Each command: its function or group (module:name in this package) and its line of help."""


class _Lazy(TyperGroup):
    """A group that lists its commands by `COMMANDS` and imports the one that is called."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the program and exit with its code. A typing mistake is one line."""
        try:
            code = super().main(*args, **options | {"standalone_mode": False})
        except TyperException as error:
            context = getattr(error, "ctx", None)
            if getattr(error, "exit_code", None) != ExitCode.USAGE or context is None:
                raise
            words = error.format_message()
            if words == context.get_help():  # a group without a command shows its help
                typer.echo(words, err=True)
            else:
                words = " ".join(words.split()).replace("Value error, ", "").rstrip(".")
                help_of = f"`{context.command_path} --help` lists what there is"
                typer.echo(f"rail: {plain(words, 300)}; {help_of}", err=True)
            sys.exit(ExitCode.USAGE)
        sys.exit(code if isinstance(code, int) else ExitCode.DONE)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. At Ctrl-C Typer would end the program without a word."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise StoppedError from None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        if name is None or name not in COMMANDS:
            return name, listed, rest
        module, _, attribute = COMMANDS[name][0].partition(":")
        found = getattr(_imported(f"toolkit.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            group = typer.main.get_group(found)
            for command in group.commands.values():  # else cut to what is left of one line
                command.short_help = (command.help or "").partition("\n\n")[0]
            return name, group, rest
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(found)
        return name, typer.main.get_command(single), rest


def _imported(name: str) -> ModuleType:
    """Import a module without looking for garbage, which would take an eighth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        if enabled:
            gc.enable()


app = typer.Typer(
    name="rail",
    cls=_Lazy,
    help="Load, check, measure and chart trajectories of a machine-rail market-data service.",
    epilog=f"\b\n{exit_codes()}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - it takes a tenth of a second

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


def _listed() -> None:
    """Stand in for a command in the listing."""


for _name, (_, _help) in COMMANDS.items():
    app.command(_name, help=_help)(_listed)
