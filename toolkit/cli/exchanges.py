"""The table of `rail serve --check-exchanges`: what each exchange answers here, and what to do."""

from __future__ import annotations

from pathlib import Path

import msgspec
import typer

from toolkit.cards import counted
from toolkit.cli.exit_codes import ExitCode
from toolkit.cli.show import console, errors, write_new
from toolkit.commands import rail
from toolkit.show.printed import plain_table
from toolkit.workspace.exchanges import ExchangeChoice, check_exchanges


def check_command(choice: ExchangeChoice, save: Path | None) -> None:
    """Ask exchanges one by one, show what each answered, and exit by whether all did."""
    found = {}
    for name, each in check_exchanges(choice):
        errors.print(f"{name} was asked")
        found[name] = each
    table = plain_table("exchange", *next(iter(found.values())).cells)
    for name, each in found.items():
        table.add_row(name, *each.cells.values())
    console.print(table)
    for name, each in found.items():
        for line in each.to_do:
            console.print(f"{name}: {line}")
    if save is not None:
        raw = [
            msgspec.json.encode(answer).decode() for each in found.values() for answer in each.raw
        ]
        write_new("--save", save, "\n".join([*raw, ""]))
        console.print(f"{counted(len(raw), 'raw answer')} in {save}: read it before you send it")
    if good := [name.lower() for name, each in found.items() if each.answers]:
        console.print(f"to read what answers: {rail('serve', '--exchanges', ','.join(good))}")
    if len(good) < len(found):
        raise typer.Exit(ExitCode.REFUSED)
