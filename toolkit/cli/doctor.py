"""`rail doctor`: the first meeting with a service."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from toolkit import commands
from toolkit.cli.exit_codes import ExitCode
from toolkit.cli.options import AllowHttp, BaseUrl
from toolkit.cli.show import console
from toolkit.errors import InputError
from toolkit.foreign import plain
from toolkit.workspace import Settings
from toolkit.workspace.doctor import Check, State, examine

_HEADINGS = {
    "service": "The service",
    "routes": "Its data routes",
    "fields": "Its records",
    "mcp": "MCP",
    "sockets": "Sockets",
}
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_NAMES_WIDTH = 27
"""Characters of the longest name, so that the tables line up."""

_STYLES = {
    State.OK: "green",
    State.NOTE: "yellow",
    State.REFUSED: "dim",
    State.FAILED: "bold red",
    State.SKIPPED: "dim",
}


def doctor_command(
    base_url: BaseUrl = None,
    allow_http: AllowHttp = False,
    profile_out: Annotated[
        Path | None,
        typer.Option("--profile-out", help="Write a draft wire profile (TOML) to this new file."),
    ] = None,
) -> None:
    """Check a service: show what works, what does not, and what to do about it.

    Reachable? Key accepted? Which plan, which clock, which routes, do its records have the fields
    expected, MCP, sockets? Asks about 25 questions, loads nothing. The key is read from
    RAIL_API_KEY, a wire profile from the file that RAIL_PROFILE names. Exit code 0: data can be
    loaded; 1: not yet.

    Example: rail doctor --profile-out profile.toml
    """
    if profile_out is not None and profile_out.exists():
        raise InputError("--profile-out", str(profile_out), "a file that is not there yet")
    found = examine(Settings.read(base_url=base_url, allow_http=allow_http))
    console.print(Text.assemble((found.base_url, "bold"), " · ", found.source))
    for group, checks in groupby(found.checks, key=lambda check: check.group):
        console.print()
        console.print(Text(_HEADINGS[group], style="bold"))
        console.print(_table(list(checks)))
    console.print()
    if profile_out is not None and found.draft:
        try:
            with os.fdopen(os.open(profile_out, _NEW_FILE, 0o600), "w", encoding="utf-8") as draft:
                draft.write(found.draft)
        except OSError as error:
            told = error.strerror or str(error)
            raise InputError(
                "--profile-out", str(profile_out), "a file to write", advice=told
            ) from None
        console.print(f"A draft profile is in {profile_out}: read it, then set RAIL_PROFILE to it.")
    elif found.differs:
        console.print(
            "Some names were not found: --profile-out FILE writes a draft to say them in."
        )
    listing = commands.rail("symbols", base_url=found.base_url)
    console.print(
        Text.assemble(("Usable", "bold green"), f": data can be loaded; `{listing}` shows which.")
        if found.usable
        else Text.assemble(
            ("Not usable yet", "bold red"), ": see what failed above, and what to do."
        )
    )
    if not found.usable:
        raise typer.Exit(ExitCode.REFUSED)


def _table(checks: list[Check]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True, width=_NAMES_WIDTH)
    table.add_column(no_wrap=True, min_width=11)
    table.add_column(overflow="fold")
    for check in checks:
        says = Text(plain(check.says))
        if check.advice:
            says.append(f"\n→ {check.advice}", style="italic")
        table.add_row(plain(check.name), Text(check.state, style=_STYLES[check.state]), says)
    return table
