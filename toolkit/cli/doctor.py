"""`rail doctor`: what works at a service, and what to do about the rest."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import typer
from rich.table import Table
from rich.text import Text

from toolkit import commands
from toolkit.cards import some
from toolkit.cli.options import STREAM_KEYS, asks
from toolkit.cli.output import TableOptions, show, tabled
from toolkit.cli.show import write_new
from toolkit.columns import schema_of
from toolkit.commands import ExitCode
from toolkit.errors import InputError
from toolkit.foreign import plain
from toolkit.show.sheet import Sheet
from toolkit.show.terminal import Terminal
from toolkit.workspace import Settings
from toolkit.workspace.doctor import Examination, examine
from toolkit.workspace.routes import State

_HEADINGS = {
    "service": "The service",
    "routes": "Its data routes",
    "fields": "Its records",
    "figures": "Its figures, computed anew from both legs",
    "mcp": "MCP",
    "sockets": "Sockets",
}
_CHECKS = schema_of(also=("base_url", "usable", "group", "check", "state", "says", "advice"))
_COLUMNS = ("check", "state", "says", "advice")
_WRONG = ("figures", State.FAILED)
_NAMES_WIDTH = 27  # characters of the longest name, so that the tables line up

_STYLES = {
    State.OK: "green",
    State.NOTE: "yellow",
    State.REFUSED: "dim",
    State.FAILED: "bold red",
    State.SKIPPED: "dim",
}


@tabled(lambda: _CHECKS, of_now=True)
@asks(
    streams=typer.Argument(help=f"Ask for these instead of the listed ones: {STREAM_KEYS}"),
    profile_out="Write a draft wire profile (TOML) to this new file.",
)
def doctor_command(
    streams: list[str] | None = None,
    base_url: str | None = None,
    allow_http: bool = False,
    profile_out: Path | None = None,
    *,
    view: TableOptions,
) -> None:
    """Check a service: show what works, what does not, and what to do about it.

    About 40 requests check the connection, key, plan, clock, routes and fields, whether spreads and
    funding follow from both legs, MCP and sockets. Nothing is loaded. The API key is read from
    RAIL_API_KEY, a wire profile from the file that RAIL_PROFILE names. The exit code is 0 if all
    that the plan includes can be loaded, 3 if some of it can, 1 if nothing.

    Example: rail doctor --profile-out profile.toml

    Example: rail doctor BTC_USDT:AURORA.spot:CORONA.futures events/spread

    Example: rail doctor --format json
    """
    if profile_out is not None and profile_out.exists():
        raise InputError("--profile-out", str(profile_out), "a file that is not there yet")
    found = examine(Settings.read(base_url=base_url, allow_http=allow_http), streams or ())
    if profile_out is not None and found.draft:
        write_new("--profile-out", profile_out, found.draft)
    show(view, _sheet(found, profile_out))
    if not found.usable:
        raise typer.Exit(ExitCode.PARTLY if found.readable else ExitCode.REFUSED)


def _sheet(found: Examination, profile_out: Path | None) -> Sheet:
    of_service = {"base_url": found.base_url, "usable": found.usable}
    notes = []
    if profile_out is not None and found.draft:
        notes.append(f"A draft profile is in {profile_out}: read it, then set RAIL_PROFILE to it.")
    elif found.differs:
        notes.append("Some names were not found: --profile-out FILE writes a draft to say them in.")
    if wrong := [f"{c.name} ({c.says})" for c in found.checks if (c.group, c.state) == _WRONG]:
        notes.append(f"Read by this profile, these would be wrong: {some(wrong)}.")
    shown = f"`{commands.rail('symbols', base_url=found.base_url)}` shows which"
    notes.append(
        f"Usable: data can be loaded; {shown if found.listed else 'name the keys, none is listed'}."
        if found.usable
        else f"Partly usable: not yet {some(found.unreadable)}. See what failed above."
        if found.readable
        else "Not usable yet: see what failed above, and what to do."
    )
    frame = found.df.with_columns(**{k: pl.lit(v) for k, v in of_service.items()}).select(*_CHECKS)
    return Sheet(found.base_url, found.source, frame, _COLUMNS, notes=notes, printed=_print)


def _print(page: Terminal, rows: pl.DataFrame) -> None:
    for (group,), checks in rows.group_by("group", maintain_order=True):
        page.print()
        page.print(Text(_HEADINGS[f"{group}"], style="bold"))
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column(no_wrap=True, width=_NAMES_WIDTH)
        table.add_column(no_wrap=True, min_width=11)
        table.add_column(overflow="fold")
        for name, state, text, advice in checks.select(_COLUMNS).iter_rows():
            says = Text(plain(text))
            if advice:
                says.append(f"\n→ {advice}", style="italic")
            table.add_row(plain(name), Text(state, style=_STYLES[State(state)]), says)
        page.print(table)
    page.print()
